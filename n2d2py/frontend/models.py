"""Network files of other frameworks, by their endings."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from n2d2py.errors import Location, N2D2Error
from n2d2py.frontend.onnx.model import OnnxModel, load_onnx
from n2d2py.frontend.tflite.model import load_tflite


def load_model(
    path: str | Path, *, ignore: Iterable[str] = (), ignore_init: bool = False, seed: int = 1, encodings: Path | None = None
) -> OnnxModel:
    """The model of an ONNX or TFLite file; what `load_onnx` and `load_tflite` raise.

    `encodings`, of an ONNX file alone, is a file of AIMET that says how its tensors are quantized.

    Raises:
        N2D2Error: E315 encodings of a TFLite file.
    """
    if Path(path).suffix != ".tflite":
        return load_onnx(path, ignore=ignore, ignore_init=ignore_init, seed=seed, encodings=encodings)
    if encodings is not None:
        raise N2D2Error(
            "E315",
            "encodings apply to ONNX files only",
            where=Location(str(encodings)),
            remedy="remove them; a TFLite file contains its own",
        )
    return load_tflite(path, ignore=ignore, ignore_init=ignore_init, seed=seed)
