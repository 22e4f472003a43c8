"""Scores of the decisions of -post scores in long recordings (-streams): word accuracy of the float network and of its integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from n2d2py.arithmetic.audio import AudioSource
from n2d2py.data.decode import read_samples
from n2d2py.data.text import read_lines
from n2d2py.errors import Location, N2D2Error
from n2d2py.postprocessing.results import Decision
from n2d2py.postprocessing.scores import ScoreDecider
from n2d2py.runtime import Network
from n2d2py.stages.load import LoadedNetwork
from n2d2py.stages.score_boxes import post_of
from n2d2py.targets import Score
from n2d2py.targets.words import Words

TARGET = "words"
"""Name of the score in the place of a target's."""

_NO_WORDS = ("silence", "unknown", "background", "noise", "other")
"""Names of classes whose decisions are not words, with underscores around them or not."""


@dataclass(frozen=True)
class Recording:
    """A sound, int16, and the classes of the words that are spoken in it."""

    name: str
    samples: np.ndarray
    words: tuple[int, ...]


def read_recordings(folder: Path, network: LoadedNetwork) -> list[Recording]:
    """Return the WAV files of a folder, each with the words in the .txt file of its name.

    Raises:
        N2D2Error: E007 without -audio or -post scores, E410 an unknown class, E401, E402, E408, E416 for files.
    """
    source, names = network.data.contract.source, network.data.classes
    if not isinstance(source, AudioSource) or not isinstance(post_of(network, network.graph), ScoreDecider) or not names:
        remedy = "add -audio, -post scores and -class-names"
        raise N2D2Error("E007", "-streams requires sounds, decisions and names of the classes", remedy=remedy)
    files = sorted(folder.glob("*.wav"))
    if not files:
        raise N2D2Error(
            "E416", f"{folder} contains no sound", remedy="give a folder of .wav files with .txt files of their words"
        )
    recordings = []
    for file in files:
        words = []
        for number, line in read_lines(file.with_suffix(".txt"), comment="#"):
            for word in line.split():
                if word not in names:
                    where = Location(str(file.with_suffix(".txt")), number)
                    raise N2D2Error("E410", f"the class '{word}' is unknown", where=where, remedy=f"write {', '.join(names)}")
                words.append(names.index(word))
        recordings.append(Recording(file.name, read_samples(file, file.name, source.sound_rate), tuple(words)))
    return recordings


def word_score(running: Network, recordings: Sequence[Recording], names: tuple[str, ...]) -> Score:
    """Return the score of the decisions that `running`, with its pipeline, makes in the recordings."""
    heard = tuple(_words(running.stream(one.samples), names) for one in recordings)
    words = Words(heard, tuple(one.words for one in recordings))
    files = tuple(one.name for one in recordings)
    return Score.of_detections(TARGET, names, files, np.arange(len(files)), words)


def _words(decisions: Sequence[Decision], names: tuple[str, ...]) -> tuple[int, ...]:
    """Return the decided classes that are words, each once for as long as it lasts."""
    labels = [one.label for one in decisions]
    begins = [label for label, before in zip(labels, [-1, *labels], strict=False) if label != before and label >= 0]
    return tuple(label for label in begins if names[label].strip("_").lower() not in _NO_WORDS)
