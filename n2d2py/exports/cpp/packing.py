"""Storage of low-bit weights: several in a byte (`kernels/n2d2/packed.hpp`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_BITS = (1, 2, 4)


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
        each = 8 // self.bits
        rows = weights.reshape(len(weights), -1)
        raw = np.zeros((len(rows), -(-rows.shape[1] // each) * each), np.uint8)
        raw[:, : rows.shape[1]] = self._raw(rows)
        return self._bytes(raw)

    def run(self, weights: np.ndarray) -> np.ndarray:
        """Integers as bytes, in one run; zeros among odd numbers, which fill up panels, are replaced there when it is unpacked."""
        return self.rows(weights.reshape(1, -1))

    def _raw(self, weights: np.ndarray) -> np.ndarray:
        values = weights.astype(np.int64) - self.base
        values = np.where(values % self.step == 0, values // self.step, 0)
        return (values ^ self.flip).astype(np.uint8)

    def _bytes(self, raw: np.ndarray) -> np.ndarray:
        parts = raw.reshape(-1, 8 // self.bits).astype(np.uint16) << (self.bits * np.arange(8 // self.bits, dtype=np.uint16))
        return parts.sum(axis=1).astype(np.uint8)


def storage_of(weights: np.ndarray) -> Storage | None:
    """The storage of fewest bits that holds integer weights; None where it is a byte for each, or more."""
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
