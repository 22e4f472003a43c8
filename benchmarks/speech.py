"""Measures Silero VAD's integers on spoken text against floating point, as a Markdown table.

    python benchmarks/speech.py silero_vad.onnx

The ONNX file is that of the package silero-vad (PyPI). Sixty sentences are spoken by espeak-ng (`apt-get install espeak-ng sox`) in six voices, with
pauses, at 16 kHz; noise of changing loudness is added. The first half of the chunks calibrates, the other half is measured: 512 samples behind the last 64
of the chunk before, the state kept from call to call. ONNX Runtime gets its state back call by call.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import wave
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import onnxruntime
from common import header, machine, row, run_tool

import n2d2py

VOICES = ("en-us", "en-gb", "en-us+f3", "en-gb+m4", "de", "fr")
SENTENCES = (
    "The quick brown fox jumps over the lazy dog.",
    "Please turn on the lights in the kitchen.",
    "What is the weather like tomorrow morning?",
    "Set an alarm for seven thirty.",
    "She sells sea shells by the sea shore.",
    "Embedded devices have little memory and less power.",
    "Stop. Go. Yes. No. Up. Down.",
    "I would like to order two coffees and a sandwich.",
    "Thank you very much for calling us today.",
    "The meeting has been moved to next Thursday afternoon.",
)
WAYS = ("-nbbits -32", "-nbbits 16", "-nbbits 8", "-nbbits 8 -quality best", "-nbbits 8 -quality fast")
NEW, OLD = 512, 64
"""Samples of a chunk, and of the one before it that the network reads again."""


def spoken(folder: Path) -> np.ndarray:
    """The sentences at 16 kHz, -1 to 1, with pauses and noise."""
    files = []
    for number, (voice, text) in enumerate((voice, text) for voice in VOICES for text in SENTENCES):
        raw, file = folder / "raw.wav", folder / f"{number}.wav"
        speed, pitch = 130 + 17 * number % 70, 30 + 13 * number % 50
        subprocess.run(["espeak-ng", "-v", voice, "-s", str(speed), "-p", str(pitch), "-w", raw, text], check=True)
        change = ["gain", "-n", f"-{3 + 7 * number % 20}", "pad", f"0.{3 + number % 5}", f"0.{2 + number % 6}"]
        subprocess.run(["sox", "-D", raw, "-r", "16000", "-c", "1", "-b", "16", file, *change], check=True)
        files.append(file)
    parts = []
    for file in files:
        with wave.open(str(file)) as one:
            parts.append(np.frombuffer(one.readframes(one.getnframes()), np.int16))
    samples, rng = np.concatenate(parts).astype(np.float32) / 32768, np.random.default_rng(0)
    noise = np.convolve(rng.normal(size=len(samples)), np.exp(-np.arange(40) / 12), "same")
    loudness = np.interp(np.arange(len(samples)), np.linspace(0, len(samples), 40), 10 ** rng.uniform(-3.5, -1.7, 40))
    return (samples + loudness * noise / noise.std()).astype(np.float32)


def chunks(samples: np.ndarray) -> np.ndarray:
    """(N, 576): what the network reads call by call."""
    padded = np.concatenate([np.zeros(OLD, np.float32), samples])
    return np.stack([padded[start : start + OLD + NEW] for start in range(0, len(samples) - NEW + 1, NEW)])


def expected(model: Path, x: np.ndarray) -> np.ndarray:
    """ONNX Runtime's probabilities of speech (N)."""
    session, state, found = onnxruntime.InferenceSession(model), np.zeros((2, 1, 128), np.float32), []
    for chunk in x:
        one, state = session.run(None, {"input": chunk[None], "state": state, "sr": np.array(16000, np.int64)})
        found.append(one.item())
    return np.array(found)


def integers(model: Path, folder: Path, x: np.ndarray, way: str) -> np.ndarray:
    """The same of an export, simulated."""
    words = f"-input-shape input={OLD + NEW} -export-parameters {folder / 'vad.ini'} -export CPP -calib -1 -db-export 0 -quiet"
    files = ["-calib-data", str(folder / "calib.npy"), "-o", str(folder), "-force"]
    run_tool([str(model), *words.split(), *files, *way.split()])
    (export,) = folder.glob(f"export_CPP_{'float32' if '-32' in way else 'int' + way.split()[1]}")
    found = n2d2py.load_simulator(export)(x)
    return np.asarray(found[0] if isinstance(found, (list, tuple)) else found).reshape(-1)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    model = parser.parse_args().model.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        x = chunks(spoken(folder))
        given, measured = np.split(x, [len(x) // 2])
        np.save(folder / "calib.npy", given)
        (folder / "vad.ini").write_text("Constants = sr:16000\n")
        real = expected(model, measured)
        print(f"{machine()}; {len(measured)} chunks, {100 * (real > 0.5).mean():.0f} % of them speech\n")
        header("export", "mean error", "largest", "same decision at 0.5")
        for way in WAYS:
            found = integers(model, folder, measured, way)
            off, same = np.abs(found - real), ((found > 0.5) == (real > 0.5)).mean()
            row(f"`{way}`", f"{off.mean():.2g}", f"{off.max():.2g}", f"{100 * same:.2f} %")


if __name__ == "__main__":
    main()
