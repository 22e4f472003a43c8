"""Networks of others on a Cortex-M4 in QEMU: Python's integers in every layer, and results near those of LiteRT's reference or ONNX Runtime.

Files of TFLite Micro that are not in shared/data are read from the folder TFLITE_MICRO.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import folder
import numpy as np
import pytest
from support.board_export import SHARED, make
from support.tables import few_fast

import n2d2py
from n2d2py.results import QuantizedModel

FOLDERS = (SHARED / "field" / "real", Path(os.environ.get("TFLITE_MICRO", SHARED)))
FRAMES = 12


def voice() -> np.ndarray:
    """Frames (FRAMES + 20, 257) of the spectrum of a voice of 140 Hz with three formants, syllables and noise, at 16 kHz."""
    time = np.arange(256 * (FRAMES + 21)) / 16000
    random = np.random.default_rng(5)
    pitch = 2 * np.pi * np.cumsum(140 + 15 * np.sin(2 * np.pi * 2.5 * time)) / 16000
    levels = [sum(np.exp(-(((140 * k - formant) / 180) ** 2)) for formant in (600, 1200, 2500)) for k in range(1, 40)]
    sound = sum(level * np.sin(k * pitch) for k, level in enumerate(levels, 1)) * (1 + np.sin(2 * np.pi * 4 * time))
    sound = 0.1 * sound + random.normal(0, 0.02, len(time))
    window = np.sqrt(np.hanning(513)[:-1])
    return np.array([np.fft.rfft(sound[at : at + 512] * window) for at in range(0, len(time) - 511, 256)])


def magnitudes() -> np.ndarray:
    return np.abs(voice()).astype(np.float32)[20:, None, None] / 20


def complex_frames() -> np.ndarray:
    frames = voice()
    return np.stack([np.real(frames), np.imag(frames)], axis=-1).astype(np.float32)[:, None, :, None]


FILES: dict[str, tuple[tuple[str, ...], Callable[[], np.ndarray] | None, str]] = {
    "mnist_lstm": (("tflm_mnist_lstm_int8.tflite", "trained_lstm_int8.tflite"), None, "0 steps"),
    "keyword_scrambled_8bit": (("tflm_keyword_8bit.tflite", "keyword_scrambled_8bit.tflite"), None, "0 steps"),
    "keyword_scrambled": (("keyword_scrambled.tflite",), None, "0 steps"),
    "micro_speech": (("micro_speech_quantized.tflite",), None, "0 steps"),
    "person_detect": (("tflm_person.tflite", "person_detect.tflite"), None, ""),
    "dtln": (("dtln_noise_suppression.tflite",), magnitudes, "8 steps"),
    "gtcrn": (("gtcrn_simple.onnx",), complex_frames, "12 dB"),
}
"""Names of a file, its samples (None: noise), and the largest difference from the referee, or the least ratio; empty: LiteRT refuses the
file, and tests/frontend_tflite compares a mended copy."""


def quantized(path: Path, samples: np.ndarray | None, limit: str, monkeypatch: pytest.MonkeyPatch) -> QuantizedModel:
    """The integers of a file, compared with its referee; LiteRT runs in a process of its own, as it may crash when it frees a file."""
    if path.suffix == ".tflite":
        if samples is not None:
            data: dict[str, Any] = {n2d2py.load(path).info.inputs[0].name: samples}
            np.savez(path.with_suffix(".npz"), **data)
        if limit:
            assert int(folder.run_apart(path, ["-size", "64"], 300)["int8"].split()[0]) <= int(limit.split()[0])
        return n2d2py.quantize(n2d2py.load(path))
    if samples is not None:
        monkeypatch.setattr(folder, "samples_of", lambda path, peer: folder.Case(path, [samples[20:]], [samples[:20]]))
    one = folder.Examined(path, 64)
    integers = one.calibrated()
    assert float(folder.decibels(one.run(integers), one.wanted).split()[0]) >= float(limit.split()[0])
    return integers


@pytest.mark.parametrize("network", few_fast(FILES))
def test_board(network, tmp_path, monkeypatch):
    names, samples, limit = FILES[network]
    path = next((place / name for place in FOLDERS for name in names if (place / name).is_file()), None)
    if path is None:
        pytest.skip(f"{names[-1]} is not in shared/data/field/real, and TFLITE_MICRO is not set")
    if path.suffix == ".tflite":
        pytest.importorskip("ai_edge_litert", reason="the referee, ai-edge-litert, is not installed")
    model = quantized(Path(shutil.copy(path, tmp_path)), samples() if samples else None, limit, monkeypatch)
    exported = n2d2py.export(model, "CPP_MCU", folder=tmp_path)
    has_float_layers = network == "gtcrn"  # a root of its input spectrum
    wanted = " layers: equal up to rounding" if has_float_layers else " layers: identical"
    assert wanted in make(exported.folder, "cortex-m4", "test").splitlines()[-1]
