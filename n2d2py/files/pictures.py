"""Images: opened by Pillow, of known formats and no more pixels than a network could take."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from n2d2py.files.regular import open_regular

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("BMP", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")
"""Pillow's names of the formats that are decoded; it knows others, whose decoders nobody needs here."""
MAX_PIXELS = 1 << 26
"""Pixels of a image: 8192 x 8192."""


@contextmanager
def open_picture(path: Path) -> Iterator[Image]:
    """Yield the image. Its header is read and its size checked; its pixels are decoded on demand.

    Raises:
        OSError: for what cannot be read, is not a regular file, or not an image of these formats (UnidentifiedImageError).
        ValueError: for more than MAX_PIXELS; Pillow raises nearly every type on damaged files.
    """
    from PIL import Image

    # Pillow would warn on stderr of sizes that are refused here anyway
    warnings.filterwarnings("error", category=Image.DecompressionBombWarning)
    with open_regular(path) as file:
        try:
            image = Image.open(file, formats=FORMATS)
        except (Image.DecompressionBombWarning, Image.DecompressionBombError):
            raise ValueError(f"it has more than {MAX_PIXELS:,} pixels") from None
        with image:
            if image.width * image.height > MAX_PIXELS:
                raise ValueError(f"it has more than {MAX_PIXELS:,} pixels")
            yield image
