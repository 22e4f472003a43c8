"""Scores of what -post decides: mAP of detections against labelled boxes, and word accuracy in long recordings (-streams)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from n2d2py.arithmetic.audio import AudioSource
from n2d2py.data.decode import read_lines, read_samples
from n2d2py.data.stimuli import Stimuli
from n2d2py.errors import Location, N2D2Error
from n2d2py.graph import Graph, QuantGraph
from n2d2py.postprocessing import Detector, PostProcessor, parse_post
from n2d2py.postprocessing.results import Decision
from n2d2py.postprocessing.scores import ScoreDecider
from n2d2py.runtime import Network
from n2d2py.runtime.simulator import ends
from n2d2py.stages.load import LoadedNetwork
from n2d2py.targets import Score
from n2d2py.targets.detections import Boxes, Words

DETECTIONS, WORDS = "detections", "words"
"""Names of the scores in the place of a target's."""
_NO_WORDS = ("silence", "unknown", "background", "noise", "other")
"""Names of classes whose decisions are not words, with underscores around them or not."""


def check_boxes(network: LoadedNetwork, stimuli: Stimuli) -> None:
    """Raise E452 for key points, for detections without labelled boxes, or labelled boxes without detections."""
    if network.options.post is not None and parse_post(network.options.post).kind.name == "keypoints":
        what, remedy = "-test cannot score the key points of -post", "remove -test; -compare gives the error of the maps"
        raise N2D2Error("E452", what, where=network.place, remedy=remedy)
    if (detector_of(network, network.graph) is None) == (stimuli.boxes is None):
        return
    if stimuli.boxes is None:
        what = "-test has no boxes to compare the detections of -post with"
        remedy = "give -labels FILE.json of COCO, or a folder of YOLO's .txt files"
    else:
        what, remedy = "the labels are boxes, but the model has no -post", "add -post with the kind of the detector"
    raise N2D2Error("E452", what, where=network.place, remedy=remedy)


def detector_of(network: LoadedNetwork, graph: Graph | QuantGraph) -> Detector | None:
    """Return the detector of -post for the types of `graph`; None without one."""
    post = post_of(network, graph)
    return post if isinstance(post, Detector) else None


def post_of(network: LoadedNetwork, graph: Graph | QuantGraph) -> PostProcessor | None:
    """Return the post-processing of -post for the types of `graph`; None without -post."""
    text = network.options.post
    return None if text is None else parse_post(text).bind(*ends(graph), network.data.classes)


def with_pipeline(running: Network, network: LoadedNetwork, graph: Graph | QuantGraph) -> Network:
    """Return `running`, which runs `graph`, with the conversion of its input and the post-processing of the network."""
    running.contract, running.post = network.data.contract, post_of(network, graph)
    return running


def found_boxes(detector: Detector, outputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the detections of each sample of stored outputs (N, C, ...), as in `Boxes`."""
    detections = map(detector.result, detector.stored(outputs))
    return [np.array([(one.label, *one[2:]) for one in each], np.float64).reshape(-1, 6) for each in detections]


def detection_score(
    names: tuple[str, ...], detections: Sequence[np.ndarray], stimuli: Stimuli, indices: np.ndarray | None = None
) -> Score:
    """Return the score of detections in stimuli with the numbers `indices` in their set; `names` are those of the classes."""
    labelled = tuple(np.zeros((0, 6)) if one is None else one for one in stimuli.boxes or ())
    numbers = np.arange(len(stimuli)) if indices is None else indices
    return Score.of_detections(DETECTIONS, names, tuple(stimuli.names), numbers, Boxes(tuple(detections), labelled))


@dataclass(frozen=True)
class Recording:
    """A sound, int16, and the classes of the words that are spoken in it."""

    name: str
    samples: np.ndarray
    words: tuple[int, ...]


def read_recordings(folder: Path, network: LoadedNetwork) -> list[Recording]:
    """Return the WAV files of a folder, each with the words in the .txt file of its name. Raise E007 without -audio or -post
    scores, E410 an unknown class, E401, E402, E408, E416 for files."""
    source, names = network.data.contract.source, network.data.classes
    if not isinstance(source, AudioSource) or not isinstance(post_of(network, network.graph), ScoreDecider) or not names:
        remedy = "add -audio, -post scores and -class-names"
        raise N2D2Error("E007", "-streams requires sounds, decisions and names of the classes", remedy=remedy)
    files = sorted(folder.glob("*.wav"))
    if not files:
        remedy = "give a folder of .wav files with .txt files of their words"
        raise N2D2Error("E416", f"{folder} contains no sound", remedy=remedy)
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
    return Score.of_detections(WORDS, names, files, np.arange(len(files)), words)


def _words(decisions: Sequence[Decision], names: tuple[str, ...]) -> tuple[int, ...]:
    """Return the decided classes that are words, each once for as long as it lasts."""
    labels = [one.label for one in decisions]
    begins = [label for label, before in zip(labels, [-1, *labels], strict=False) if label != before and label >= 0]
    return tuple(label for label in begins if names[label].strip("_").lower() not in _NO_WORDS)
