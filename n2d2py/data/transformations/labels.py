"""LabelFilterTransformation: removes or merges labels. ExpandLabelTransformation: gives every pixel the label."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from n2d2py.data.transformations.base import Inapplicable, Transformation, transformation
from n2d2py.errors import suggest
from n2d2py.ini import Kind, parameter

_NONE = -1


def label_id(label: str, names: tuple[str, ...]) -> int:
    """Return the id of a label, whose leading slash may be omitted. Raises Inapplicable if the database does not have it."""
    for candidate in (label, f"/{label}"):
        if candidate in names:
            return names.index(candidate)
    raise Inapplicable(f"label '{label}' is not in the database", suggest(label, names, "correct Labels"))


@transformation("LabelFilter", doc="Exclude labels from the score, or merge them.")
class LabelFilter(Transformation):
    """Default label for stimuli with the labels (Remove), or with all others (Keep); with Merge, the first of the labels.

    Images are unchanged.
    """

    labels: tuple[str, ...] = parameter("Labels", Kind.STRINGS, doc="Names of database labels.")
    filter: str = parameter("Filter", Kind.ENUM, "Remove", "Operation on these labels.", choices=("Keep", "Remove", "Merge"))
    default: int = parameter(
        "DefaultLabel",
        Kind.INT,
        -2,
        "Label id of removed labels. -1, -2: unlabelled, which is not scored.",
        lambda value: max(value, _NONE),
        minimum=-2,
    )

    def apply(self, image: np.ndarray) -> np.ndarray:
        return image

    def map_labels(self, labels: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
        ids = [label_id(label, names) for label in self.labels]
        if self.default >= len(names):
            what = f"DefaultLabel={self.default}, the database has {len(names)} labels"
            raise Inapplicable(what, "give the id of a label, or -1")
        matches = np.isin(labels, ids)
        if self.filter == "Merge":
            return np.where(matches, ids[0] if ids else _NONE, labels)
        return np.where(matches == (self.filter == "Remove"), self.default, labels)


@transformation("ExpandLabel", doc="Assign the label of the stimulus to each of its pixels.")
class ExpandLabel(Transformation):
    """The label of the stimulus for every pixel; images and pixel-wise labels are unchanged."""

    expands_labels: ClassVar[bool] = True

    def apply(self, image: np.ndarray) -> np.ndarray:
        return image
