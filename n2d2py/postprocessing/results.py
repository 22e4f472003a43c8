"""Results of post-processing: objects in images, key points, decided classes, embeddings."""

from typing import NamedTuple

import numpy as np


class Detection(NamedTuple):
    """An object in an image.

    Attributes:
        label, name: number and name of its class; "" where it has none.
        score: 0 to 1.
        x0, y0, x1, y1: left, top, right and bottom edge in pixels of the image.
    """

    label: int
    name: str
    score: float
    x0: float
    y0: float
    x1: float
    y1: float


class KeyPoint(NamedTuple):
    """A point of an object.

    Attributes:
        label, name: number and name of its heat map; "" where it has none.
        score: 0 to 1.
        x, y: position in pixels of the image.
    """

    label: int
    name: str
    score: float
    x: float
    y: float


class ClassScore(NamedTuple):
    """A class with its number, its name ("" where it has none) and its average score."""

    label: int
    name: str
    score: float


class Decision(NamedTuple):
    """The decision after a call.

    Attributes:
        label, name: number and name of the decided class; -1 for none, "" where it has none.
        score: its average score; of none, the best one.
        top: the best classes, the best one first.
    """

    label: int
    name: str
    score: float
    top: tuple[ClassScore, ...]


class Embedding(NamedTuple):
    """An embedding, and the reference nearest to it.

    Attributes:
        label, name: of the reference whose cosine is the largest one; -1 if that is not above the threshold.
        score: the largest cosine, -1 to 1; 0 without references.
        vector: unit vector (n,), float32; zeros for an output of zeros.
    """

    label: int
    name: str
    score: float
    vector: np.ndarray
