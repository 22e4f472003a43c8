"""Network files of other frameworks, by their endings."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from n2d2py.frontend.onnx.model import OnnxModel, load_onnx
from n2d2py.frontend.tflite.model import load_tflite


def load_model(path: str | Path, *, ignore: Iterable[str] = (), ignore_init: bool = False, seed: int = 1) -> OnnxModel:
    """The model of an ONNX or TFLite file; what `load_onnx` and `load_tflite` raise."""
    load = load_tflite if Path(path).suffix == ".tflite" else load_onnx
    return load(path, ignore=ignore, ignore_init=ignore_init, seed=seed)
