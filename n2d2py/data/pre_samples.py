"""Files of one stimulus after each step of its pipeline (-pre-samples)."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from n2d2py.data.pipeline import TracePoint
from n2d2py.data.provider import StimuliProvider
from n2d2py.data.transformations.color import ColorSpace
from n2d2py.errors import N2D2Error


def write_pre_samples(provider: StimuliProvider, position: int, folder: Path) -> list[Path]:
    """Write `<position>_<step>_<name>.png` or `.npy` for each point of a stimulus's pipeline; return the files in order.

    Bytes of 1, 3 or 4 channels are images. Other values are exact arrays (H, W, C), and for 1 or 3 channels also images, with
    their range stretched to black and white.

    Raises:
        N2D2Error: E416 for a missing stimulus, and the errors of reading and transforming it.
    """
    count = provider.sizes()["Test"]
    if not 0 <= position < count:
        what = f"stimulus {position} does not exist in the test set of {count}"
        remedy = f"give -pre-samples from 0 to {count - 1}" if count else "add a [database] with a test set"
        raise N2D2Error("E416", what, remedy=remedy)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    red_first = False
    for step, point in enumerate(provider.trace("Test", position)):
        if isinstance(point.transformation, ColorSpace):
            red_first = point.transformation.order == "RGB"
        written += _write_point(point, folder, f"{position}_{step:02d}_{_point_name(point)}", red_first)
    return written


def _point_name(point: TracePoint) -> str:
    """Return the title without parameters, for a file name: "Rescale", "channel_0_Flip"."""
    return re.sub(r"\W+", "_", point.title.split("(")[0].strip()).strip("_")


def _write_point(point: TracePoint, folder: Path, name: str, red_first: bool) -> list[Path]:
    from PIL import Image

    image, written = point.image, []
    channels = image.shape[2]
    if image.dtype != np.uint8 or channels not in (1, 3, 4):
        written.append(folder / f"{name}.npy")
        np.save(written[-1], image, allow_pickle=False)
        if channels not in (1, 3):
            return written
        low, high = float(np.nanmin(image)), float(np.nanmax(image))
        scale = 255 / (high - low) if high > low else 0.0
        image = np.rint((np.nan_to_num(image.astype(np.float64), nan=low) - low) * scale)
        image = np.clip(image, 0, 255).astype(np.uint8)
    if channels > 1 and not red_first:
        image = image[:, :, [2, 1, 0, 3][:channels]]
    written.append(folder / f"{name}.png")
    Image.fromarray(image[:, :, 0] if channels == 1 else np.ascontiguousarray(image)).save(written[-1])
    return written
