"""Names that nothing else has, short ones for tables and drawings, and the endings of file names."""

from collections.abc import Callable, Iterable

MODEL_ENDINGS = (".onnx", ".tflite")
"""Of the files of networks next to INI files."""


class FreshNames:
    """Gives names that nothing else has: `stem`; where that is taken `stem_N`, with the first free N from `first` on. Names of
    one `key` are the same."""

    def __init__(self, taken: Iterable[str] = (), first: int = 2, key: Callable[[str], str] = str):
        self._taken, self._first, self._key = set(map(key, taken)), first, key

    def __call__(self, stem: str) -> str:
        name, number = stem, self._first
        while self._key(name) in self._taken:
            name, number = f"{stem}_{number}", number + 1
        self._taken.add(self._key(name))
        return name


def shorten(text: str, length: int) -> str:
    """At most `length` characters: the beginning and the end, which tell layers apart, around an ellipsis."""
    if len(text) <= length:
        return text
    head = (length - 1) // 3
    return text[:head] + "…" + text[len(text) - (length - 1 - head) :]
