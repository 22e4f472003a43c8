"""Packing of constants: low-bit weights in bytes (`kernels/n2d2/packed.hpp`), words as bytes, padding with zeros."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from n2d2py.arithmetic import round_up

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
