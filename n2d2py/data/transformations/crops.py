"""Content-dependent crops, and removal of stripes."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from n2d2py.data.transformations.base import Inapplicable, RandomByKeys, Transformation, require_image, transformation
from n2d2py.data.transformations.color import gray
from n2d2py.ini import Key, Kind, Values, parameter


@transformation("CentroidCrop", doc="Crop so that the center of mass of the values is in the middle.")
class CentroidCrop(Transformation):
    """Crop of the largest part with the image's centre of mass (truncated to pixels) in its middle.

    Along x (`axis` 0), y (1) or both (-1).
    """

    axis: int = parameter("Axis", Kind.INT, -1, "0: columns. 1: rows. -1: both.", minimum=-1, maximum=1)

    def apply(self, image: np.ndarray) -> np.ndarray:
        require_image(image, 1)
        wide = image[:, :, 0].astype(np.float64)
        mass = wide.sum()
        if mass == 0:
            raise Inapplicable("the values of the image sum to 0: it has no centre of mass", "remove the stimulus")
        parts = []
        for axis, (size, sums) in enumerate(((image.shape[1], wide.sum(axis=0)), (image.shape[0], wide.sum(axis=1)))):
            centre = int((np.arange(size) * sums).sum() / mass)
            half = min(centre, size - centre)
            if self.axis not in (-1, axis):
                parts.append(slice(None))
            elif half < 1:
                raise Inapplicable("the centre of mass is at the border: nothing would be left", "remove the stimulus")
            else:
                parts.append(slice(centre - half, centre + half))
        return image[parts[1], parts[0]]


@transformation(
    "StripeRemove",
    Key("StepOffset", Kind.UINT, None, "Step between stripes, counted in the remaining image. Default: Offset."),
    Key("RandomOffset", Kind.BOOL, False, "Training only: draw the start of the first stripe."),
    doc="Cut stripes out of the image.",
)
class StripeRemove(RandomByKeys):
    """Removal of `length` columns (axis 0) or rows (1) at `offset`.

    Repeated on the remaining image, each time `step` further.
    """

    axis: int = parameter("Axis", Kind.INT, doc="0: columns. 1: rows.", minimum=0, maximum=1)
    offset: int = parameter("Offset", Kind.UINT, doc="Start of the first stripe.")
    length: int = parameter("Length", Kind.UINT, doc="Columns or rows per stripe.")
    iterations: int = parameter("NbIterations", Kind.UINT, 1, "Number of stripes.")
    step: int = 0

    @classmethod
    def from_values(cls, values: Values) -> StripeRemove:
        step = values["Offset"] if values["StepOffset"] is None else values["StepOffset"]
        return replace(super().from_values(values), step=step)

    def apply(self, image: np.ndarray) -> np.ndarray:
        along = 1 - self.axis
        for index in range(self.iterations):
            start = self.offset + index * self.step
            size = image.shape[along]
            if start + self.length > size or self.length == size:
                what = f"a stripe of {self.length} at {start} is not inside what is left, {size}"
                raise Inapplicable(what, "check Offset, Length and NbIterations")
            image = np.delete(image, slice(start, start + self.length), axis=along)
        return image

    def draw(self, image: np.ndarray, random: np.random.Generator) -> StripeRemove:
        """Draw the position of the first stripe from those that keep all stripes in the image."""
        size = image.shape[1 - self.axis]
        # after the others are gone, the last one, further by as many steps, is still inside
        room = size - self.length * self.iterations - (self.iterations - 1) * self.step
        return replace(self, offset=int(random.integers(0, max(room, 0) + 1)), random=())


@transformation(
    "Trim",
    Key("Method", Kind.ENUM, "Discretize", "Detection of the border. Reduce is not supported.", ("Discretize", "Reduce")),
    doc="Crop uniform borders.",
)
class Trim(Transformation):
    """Removal of border rows and columns that consist of the border's value.

    The border's value is the most frequent one of the outermost pixels, in gray reduced to `levels`.
    """

    unsupported: ClassVar = {"Method": "clusters from random centres"}
    levels: int = parameter("NbLevels", Kind.UINT, doc="Number of gray levels to distinguish. 0: all.", maximum=256)

    @classmethod
    def from_values(cls, values: Values) -> Trim:
        if values["NbLevels"] == 1:
            raise values.fail("E417", "NbLevels=1 cannot distinguish anything", "give 0, or 2 or more", "NbLevels")
        return super().from_values(values)

    def apply(self, image: np.ndarray) -> np.ndarray:
        require_image(image, in_bytes=True)
        levels = gray(image)[:, :, 0].astype(np.int64)
        if self.levels:
            steps = self.levels - 1
            levels = 255 * np.floor(steps * levels / 255.0 + 0.5).astype(np.int64) // steps
        frame = np.concatenate([levels[:, 0], levels[:, -1], levels[0, 1:-1], levels[-1, 1:-1]])
        inside = levels != np.argmax(np.bincount(frame))
        rows, columns = np.nonzero(inside.any(axis=1))[0], np.nonzero(inside.any(axis=0))[0]
        if not len(rows):
            raise Inapplicable("the image is all of one value: nothing would be left", "remove the stimulus")
        return image[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
