"""Names that nothing else has, short ones for tables and drawings, and the endings of file names."""

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


def shorten(text: str, length: int) -> str:
    """At most `length` characters: the beginning and the end, which tell layers apart, around an ellipsis."""
    if len(text) <= length:
        return text
    head = (length - 1) // 3
    return text[:head] + "…" + text[len(text) - (length - 1 - head) :]
