"""Embeddings as unit vectors in integers, and their cosines: the definition that `kernels/n2d2/embeddings.hpp` computes too.

With v the stored values less their zero point (of floating point in 1/65536), shifted so that the largest magnitude has 20 bits:

    unit(v) = floor(32767 * v / root + 1/2)          root: the square root of sum(v^2), rounded; a vector of zeros stays
    cosine(a, b) = floor(65536 * sum(a * b) / 32767^2 + 1/2)
"""

from dataclasses import dataclass

import numpy as np

from n2d2py.arithmetic.fixed_scale import ONE, FixedScale
from n2d2py.arithmetic.micro_frontend import square_root
from n2d2py.arithmetic.numtype import NumType

UNIT = 32767
"""The length of a vector."""

LIMIT = 2**30
"""Bound of the values of floating point in 1/65536."""


@dataclass(frozen=True)
class Embedder:
    """The integers of an embedding.

    `size`: values of a vector. `value`: conversion of the stored values. `references`: unit vectors (number, size) that are
    known, one after the other. `threshold`: bound of the cosine of a match, in 1/65536.
    """

    size: int
    value: FixedScale
    references: tuple[int, ...] = ()
    threshold: int = 0

    @staticmethod
    def scale(kind: NumType) -> FixedScale:
        """Return the conversion for a type: the length of a vector does not count, so integers are unchanged."""
        return FixedScale.of(kind, ONE) if kind.is_float else FixedScale(kind.zero_point, 1, 0)

    def embed(self, stored: np.ndarray) -> np.ndarray:
        """Return the unit vectors (N, size), int16, of stored values (N, size)."""
        return unit(self.value.of_stored(stored, LIMIT))

    def match(self, vector: np.ndarray) -> tuple[int, int]:
        """Return the reference with the largest cosine, -1 if that is not above the threshold, and the cosine in 1/65536.

        Of equal cosines the first one wins. Without references, (-1, 0).
        """
        if not self.references:
            return -1, 0
        cosines = cosine(np.array(self.references, np.int64).reshape(-1, self.size), vector)
        best = int(cosines.argmax())
        return (best if cosines[best] > self.threshold else -1), int(cosines[best])


def unit(values: np.ndarray) -> np.ndarray:
    """Return the unit vectors (N, size), int16, of integer vectors (N, size) of at most 31 bits."""
    shifts = 20 - np.frexp(abs(values).max(1, keepdims=True).astype(np.float64))[1].astype(np.int64)
    scaled = values << np.maximum(shifts, 0) >> np.maximum(-shifts, 0)
    roots = np.maximum(square_root((scaled * scaled).sum(1, keepdims=True).astype(np.uint64)).astype(np.int64), 1)
    return np.clip((2 * UNIT * scaled + roots) // (2 * roots), -UNIT, UNIT).astype(np.int16)


def cosine(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the cosines in 1/65536, int64, of unit vectors along their last axis."""
    return ((first.astype(np.int64) * second).sum(-1) * ONE + UNIT * UNIT // 2) // (UNIT * UNIT)
