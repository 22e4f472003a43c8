"""Names that nothing else has, and the endings of file names."""

from __future__ import annotations

from collections.abc import Callable

MODEL_ENDINGS = (".onnx", ".tflite")
"""Of the files of networks next to INI files."""


def numbered_name(stem: str, is_taken: Callable[[str], bool], first: int = 2) -> str:
    """`stem`; where that is taken `stem_N`, with the first N from `first` on that gives a free name."""
    name, number = stem, first
    while is_taken(name):
        name, number = f"{stem}_{number}", number + 1
    return name
