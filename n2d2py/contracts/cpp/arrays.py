"""Constant arrays: packed low-bit weights (`kernels/n2d2/packed.hpp`), and their form in C++.

They are initializers of numbers, string literals, which compile about twenty times faster, or binary files.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from n2d2py.arithmetic import round_up
from n2d2py.contracts.cpp.identifiers import float_literal
from n2d2py.contracts.cpp.parts import Array

LARGE = 65536
"""Elements above which WeightsFormat=auto writes 8-bit arrays as string literals if it writes no files."""
FILES = {"auto": 1 << 16, "binary": 4096, "once": 4096}
"""Bytes from which arrays are separate files, by WeightsFormat; "once": in big networks, with one order of each."""
_COLUMNS = 100
_PLAIN = frozenset(range(32, 127)) - frozenset(b'"\\?')
_ESCAPED = [chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in range(256)]
_SHORT = [chr(byte) if byte in _PLAIN else f"\\{byte:o}" for byte in range(256)]


def is_file(values: np.ndarray, weights_format: str) -> bool:
    """True if `values` are written as a binary file, which the assembler includes."""
    return values.nbytes >= FILES.get(weights_format, values.nbytes + 1)


def file_bytes(values: np.ndarray) -> bytes:
    """Return the content of the file, little-endian."""
    return np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()


def is_string(values: np.ndarray, weights_format: str) -> bool:
    """True if `values` are written as a string literal, which requires 8-bit integers."""
    if is_file(values, weights_format):
        return False
    if values.dtype.kind not in "iu" or values.dtype.itemsize != 1:
        return False
    return weights_format == "string" or (weights_format != "text" and values.size > LARGE)


def initializer(values: np.ndarray, as_string: bool) -> str:
    """Return the text right of ``=`` for flat `values`; a string literal has one more element, a zero.

    Values that are not finite need <limits>.
    """
    if as_string:
        return _string(values)
    return "{\n" + _wrapped(_numbers(values)) + "\n}"


def _numbers(values: np.ndarray) -> list[str]:
    if values.dtype.kind == "f":
        ctype = "float" if values.dtype.itemsize == 4 else "double"
        return [float_literal(value, ctype) for value in values.tolist()]
    lowest = {-(2**31): "(-2147483647 - 1)", -(2**63): "(-9223372036854775807LL - 1)"}
    suffix = "" if values.dtype.itemsize < 8 else "ULL" if values.dtype.kind == "u" else "LL"
    return [lowest.get(value) or f"{value}{suffix}" for value in values.tolist()]


def _wrapped(words: list[str]) -> str:
    each = max(1, (_COLUMNS - 4) // (max(map(len, words), default=0) + 2))
    return ",\n".join("    " + ", ".join(words[start : start + each]) for start in range(0, len(words), each)) + ","


def _string(values: np.ndarray) -> str:
    """Return adjacent string literals, one in a line.

    Special bytes (quotes, backslash, ``?`` for its trigraphs, unprintable ones) are octal escapes, with three digits before a
    digit.
    """
    data = values.tobytes()
    lines: list[str] = []
    line: list[str] = []
    columns = 0
    for byte, following in pairwise(data + b" "):
        text = _ESCAPED[byte] if following in b"01234567" else _SHORT[byte]
        if columns + len(text) > _COLUMNS - 6:
            lines.append("".join(line))
            line, columns = [], 0
        line.append(text)
        columns += len(text)
    lines.append("".join(line))
    return "\n    " + "\n    ".join(f'"{text}"' for text in lines)


# Orders that the build makes of the panels of SIMD kernels (`dnn/derive.cpp`): a line of `dnn/parameters/derived.list` names both files.
def panel_file(name: str) -> str:
    """Return the file of an array's panels, the first of its forms."""
    return f"{name}_1.bin"


def row_derivation(array: Array) -> str:
    """Return the line that derives the rows of the portable kernel; "" if the export must hold them."""
    order = array.order
    if order is None or not array.forms or not all(is_file(one, "once") for one in (array.values, array.forms[0].values)):
        return ""
    sizes = f"{order.rows} {order.inputs} {order.outputs} {order.each} {int(order.filled)} {array.values.dtype.itemsize}"
    return f'derive rows "{array.name}.bin" "{panel_file(array.name)}" {sizes}'


def winograd_derivation(name: str, weights: Array) -> str:
    """Return the line that derives the Winograd weights `name` from the direct `weights`."""
    if weights.order is None:
        return ""
    return f'derive winograd "{name}.bin" "{panel_file(weights.name)}" {weights.order.rows} {weights.order.inputs // 9}'


_BITS = (1, 2, 4)


def zero_padded(values: np.ndarray, *shape: int) -> np.ndarray:
    """Return `values` with zeros after the last index of each axis, up to `shape`."""
    return np.pad(values, [(0, size - old) for size, old in zip(shape, values.shape, strict=True)])


def word_bytes(words: np.ndarray) -> np.ndarray:
    """Return the bytes of 32-bit words, int8, four along the last axis for each."""
    return np.ascontiguousarray(words & 0xFFFFFFFF).astype("<u4").view(np.int8)


def joined_bytes(*parts: np.ndarray) -> np.ndarray:
    """Return parts with the same first axis, int8 or 32-bit words, as one run of bytes: for each index its bytes of every part."""
    rows = [part if part.dtype == np.int8 else word_bytes(part) for part in parts]
    return np.concatenate([row.reshape(len(row), -1) for row in rows], axis=1).reshape(-1)


@dataclass(frozen=True)
class Storage:
    """The bits r of a weight stand for step * (r ^ flip) + base.

    Attributes:
        bits: of a weight: 1, 2, 4, or 8 for odd numbers beyond int8.
        kept: bytes of static memory that the weights take where they are unpacked, or `transformed`, once; 0 without.
    """

    bits: int
    step: int
    flip: int
    base: int
    kept: int = 0
    transformed: bool = False

    @property
    def facts(self) -> dict[str, int]:
        """The enumerators of a config."""
        kept = {"PrepackedWinograd" if self.transformed else "Prepacked": 1} if self.kept else {}
        return {"WeightBits": self.bits, "WeightStep": self.step, "WeightFlip": self.flip, "WeightBase": self.base, **kept}

    def rows(self, weights: np.ndarray) -> np.ndarray:
        """(O, ...) integers as bytes, flat; those of each output are filled up to whole bytes."""
        each, values = 8 // self.bits, weights.reshape(len(weights), -1).astype(np.int64) - self.base
        raw = np.where(values % self.step == 0, values // self.step, 0) ^ self.flip
        filled = zero_padded(raw.astype(np.uint16), len(raw), round_up(raw.shape[1], each)).reshape(-1, each)
        return (filled << (self.bits * np.arange(each, dtype=np.uint16))).sum(axis=1).astype(np.uint8)

    def run(self, weights: np.ndarray) -> np.ndarray:
        """Return the integers as bytes in one run; zeros that fill up panels of odd numbers change when it is unpacked."""
        return self.rows(weights.reshape(1, -1))


def storage_of(weights: np.ndarray) -> Storage | None:
    """Return the storage of fewest bits that holds integer weights; None if it is a byte for each, or more."""
    low, high = int(weights.min(initial=0)), int(weights.max(initial=0))
    odd = bool(weights.size and (weights & 1).all())
    for bits in _BITS:
        top, half = 2**bits - 1, 2 ** (bits - 1)
        if odd and -top <= low and high <= top:
            return Storage(bits, 2, 0, -top)
        if bits > 1 and -half <= low and high < half:
            return Storage(bits, 1, half, -half)
    if odd and low >= -255 and high <= 255 and (low < -128 or high > 127):
        return Storage(8, 2, 0, -255)
    return None
