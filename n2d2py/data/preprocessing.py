"""Preprocessing of images and bytes for an ONNX input, in the terms of torchvision.

real value = (byte * scale - mean) / std

A resize to N makes the shorter side N pixels, bilinear with antialiasing; a crop takes the centre.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.frame import FrameSource, shorter_side
from n2d2py.arithmetic.sensor import StreamSource
from n2d2py.data.transformations.base import Range
from n2d2py.errors import N2D2Error
from n2d2py.graph.inputs import ORDERS, InputContract, InputSource, PixelMap

Size = tuple[int, ...]
"""(N,) or (width, height)."""

_MOST_PIXELS = 1 << 27
"""Limit of a resized image, 400 MB in color."""


@dataclass(frozen=True)
class Preprocessing:
    """Preprocessing of user images and bytes.

    Attributes:
        input_range: real values of bytes 0 and 255, without `scale`, `mean` and `std`.
        scale, mean, std: of the formula above; by default 1/255, 0 and 1 if another one is given. One value, or one per channel.
        resize: (N,) for the shorter side, (width, height), or None.
        crop: (N,) for a square, (width, height), or None.
        bgr: the network input is in the order blue, green, red.
        layout: axes of user arrays of images; None for those of the file.
        declared: declared range of real arrays, or None.
        integers: the input has integers, for example ids, which stay unchanged, bytes too.
        type: integer type that the file declares for the input; arrays of this type are dequantized.
        source: images become frames of a camera, sounds features, samples windows; an export uses the same integer arithmetic. None: neither.
        from_metadata: `scale`, `mean` and `std` are from the network's file and do not apply to real arrays.
    """

    input_range: Range = (0.0, 1.0)
    scale: float | None = None
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    resize: Size | None = None
    crop: Size | None = None
    bgr: bool = False
    layout: Literal["nchw", "nhwc"] | None = None
    declared: Range | None = None
    from_metadata: bool = False
    integers: bool = False
    type: NumType | None = None
    source: InputSource | None = None

    @property
    def by_formula(self) -> bool:
        """True if scale, mean or std define the values of bytes."""
        return self.scale is not None or bool(self.mean or self.std)

    def slopes(self, channels: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return factor and offset of a byte, for each channel."""
        if not self.by_formula:
            low, high = self.input_range
            return ((high - low) / 255,) * channels, (low,) * channels
        mean, std = (np.broadcast_to(v or [d], channels) for v, d in ((self.mean, 0.0), (self.std, 1.0)))
        return tuple((self._scale / std).tolist()), tuple((0.0 - mean / std).tolist())

    def contract(self, shape: tuple[int, ...], classes: tuple[str, ...], bgr: bool | None, bytes_known: bool) -> InputContract:
        """Return the images that an input of `shape` accepts, if it is (1 or 3, H, W).

        `bgr`: channel order is blue, green, red; None if unknown. `bytes_known`: the meaning of bytes is known.
        """
        if isinstance(self.source, StreamSource):
            return InputContract(classes=classes, source=self.source)
        if len(shape) != 3 or shape[0] not in (1, 3) or min(shape[1:]) < 2 or self.integers:
            return InputContract(classes=classes)
        order: tuple[int, ...] = (2, 1, 0) if bgr and shape[0] == 3 else tuple(range(shape[0]))
        pixels = PixelMap(*self.slopes(shape[0]), order) if bytes_known else None
        known = "" if bgr is None and shape[0] == 3 else ORDERS[order]
        return InputContract(known, (shape[2], shape[1]), pixels, classes, self.source)

    def real(self, values: np.ndarray) -> np.ndarray:
        """Return bytes (C, ...) as float32."""
        if self.integers:
            return values.astype(np.float32)
        if self.source is not None:  # the table of the export
            return PixelMap(*self.slopes(len(values)), ()).real(values)
        if self.type is not None and (values.dtype == self.type.dtype or values.dtype != np.uint8):
            return self.type.dequantize(values)
        if not self.by_formula:
            return scale_bytes(values, self.input_range)
        shape = (-1, *(1,) * (values.ndim - 1))
        mean, std = (np.asarray(v or [d]).reshape(shape) for v, d in ((self.mean, 0.0), (self.std, 1.0)))
        return ((values * self._scale - mean) / std).astype(np.float32)

    @property
    def _scale(self) -> float:
        return 1 / 255 if self.scale is None else self.scale

    def check(self, channels: int) -> None:
        """Raise E417 for an invalid range or formula."""
        low, high = self.input_range
        if not (np.isfinite(self.input_range).all() and low < high):
            raise N2D2Error("E417", f"-input-range {low:g}:{high:g} is empty", remedy="give LOW:HIGH with LOW below HIGH")
        for name, values in (("mean", self.mean), ("std", self.std)):
            if len(values) not in (0, 1, channels):
                what = f"-{name} has {len(values)} values, but the input has {channels} channel{'s' * (channels > 1)}"
                raise N2D2Error("E417", what, remedy=f"give 1 value or {channels}")
        if self.mean and not 0 <= min(self.mean) <= max(self.mean) <= 255 * self._scale:
            what = f"-mean {_numbers(self.mean)} exceeds the range 0 to {255 * self._scale:g} of scaled bytes"
            raise N2D2Error("E417", what, remedy="give the mean in scaled units, or add -scale 1 if it refers to bytes")

    def text(self, channels: int) -> str:
        """Return the range and the formula, for example "float -1..1 from uint8 by (x/255-0.5)/0.5"."""
        slopes, offsets = (np.array(v) for v in self.slopes(channels))
        ends = np.concatenate([offsets, offsets + 255 * slopes])
        return f"float {ends.min():.4g}..{ends.max():.4g} from uint8 by {self._formula()}"

    def _formula(self) -> str:
        scale, mean, std = self._scale, self.mean, self.std
        if not self.by_formula:
            low, high = self.input_range
            if (low, high) == (0.0, 255.0):
                return "x"
            times = "" if high - low == 1 else f"*{high - low:g}"
            return f"x/255{times}" + (f"{low:+g}" if low else "")
        term = "x/255" if abs(scale * 255 - 1) < 1e-6 else "x" if scale == 1 else f"x*{scale:g}"
        shifted = f"{term}-{_numbers(mean)}" if mean else term
        return shifted if not std else f"({shifted})/{_numbers(std)}" if mean else f"{shifted}/{_numbers(std)}"

    @property
    def crop_size(self) -> tuple[int, ...]:
        """Width and height of the crop; () without one."""
        return () if self.crop is None else (self.crop[0], self.crop[-1])

    def placement(self, width: int, height: int, wide: int, high: int, name: str) -> list[tuple[float, float]]:
        """Return scale and offset of columns and rows, from pixels of an image width x height to those of an input wide x high.

        Raises: E407, as `resize_and_crop`.
        """
        source, taken = self.source, (wide, high)
        if not isinstance(source, FrameSource):
            source = FrameSource("rgb", resize=self.resize or (), crop=self.crop_size)
            if self.resize:
                taken = self.crop_size or (
                    self.resize if len(self.resize) == 2 else shorter_side(width, height, self.resize[0])
                )
        axes, placements = source.axes(width, height, taken[0], taken[1], name), []
        for one, size, part, whole, flipped in zip(axes, (width, height), taken, (wide, high), source.flips, strict=True):
            scale = whole / part * one.target / one.size
            offset = -whole / part * (one.start * one.target / one.size + one.first)
            placements.append((scale, whole - scale * size - offset if flipped else offset))
        return placements

    def resize_and_crop(self, picture: np.ndarray, name: str) -> np.ndarray:
        """Return an image of bytes (H, W, C) after the requested resize and crop.

        Raises: E407 an image smaller than the crop, or huge after the resize.
        """
        if self.resize is not None:
            height, width = picture.shape[:2]
            size = shorter_side(width, height, self.resize[0]) if len(self.resize) == 1 else self.resize
            if size[0] * size[1] > _MOST_PIXELS:
                what = f"-resize makes {_size(size)} pixels of the image {name} of {width}x{height}"
                raise N2D2Error("E407", what, remedy="give a smaller -resize")
            picture = resize_antialiased(picture, size[0], size[1])
        return picture if self.crop is None else centre_crop(picture, self.crop[0], self.crop[-1], name)

    def steps(self) -> tuple[str, ...]:
        """Return a description of the resize and the crop."""
        source = () if self.source is None else (self.source.text,)
        resize = () if self.resize is None else (f"resize {_size(self.resize, 'shorter side ')}",)
        crop = () if self.crop is None else (f"centre crop {_size(self.crop_size)}",)
        return source + resize + crop


def scale_bytes(values: np.ndarray, input_range: Range) -> np.ndarray:
    """Return bytes scaled to the input range, float32."""
    low, high = input_range
    if (low, high) == (0.0, 255.0):
        return values.astype(np.float32)
    return (values / 255.0 * (high - low) + low).astype(np.float32)


def resize_antialiased(picture: np.ndarray, width: int, height: int) -> np.ndarray:
    """Return bytes (H, W, C), C 1 or 3, resized by a triangle filter that widens when the image shrinks."""
    from PIL import Image

    if picture.shape[:2] == (height, width):
        return picture
    image = Image.fromarray(picture[:, :, 0] if picture.shape[2] == 1 else np.ascontiguousarray(picture))
    resized = np.asarray(image.resize((width, height), Image.Resampling.BILINEAR))
    return resized[:, :, None] if resized.ndim == 2 else resized


def centre_crop(picture: np.ndarray, width: int, height: int, name: str) -> np.ndarray:
    """Return the centre of an image (H, W, C); half of an odd margin is rounded to even. Raises E407 for a smaller image."""
    rows, columns = picture.shape[:2]
    if rows < height or columns < width:
        what = f"image {name} is {columns}x{rows}, smaller than the crop {width}x{height}"
        raise N2D2Error("E407", what, remedy=f"add -resize {max(width, height)}, or give a smaller -crop")
    top, left = round((rows - height) / 2), round((columns - width) / 2)
    return picture[top : top + height, left : left + width]


def _numbers(values: tuple[float, ...]) -> str:
    return f"{values[0]:g}" if len(values) == 1 else f"[{','.join(f'{value:g}' for value in values)}]"


def _size(size: Size, single: str = "") -> str:
    return f"{single}{size[0]}" if len(size) == 1 else "x".join(map(str, size))


_GRAY = (0.299, 0.587, 0.114)
"""Weights of red, green and blue in a gray value."""


def find_pixels(run: Callable[[np.ndarray], np.ndarray], like: np.ndarray) -> PixelMap | None:
    """Return the affine map from bytes to values, if `run` has one for each channel.

    Args:
        run: function from an image (h, w, c) of bytes, colours in the order blue, green, red, to real values (C, H, W).
        like: a decoded image.
    """
    if like.dtype != np.uint8 or like.ndim != 3 or like.shape[2] not in (1, 3):
        return None

    def values(red: int, green: int, blue: int) -> np.ndarray:
        """Return the channels of an image of one colour. Raises ValueError if they vary over the image."""
        picture = np.zeros_like(like)
        picture[:] = (blue, green, red) if like.shape[2] == 3 else red
        pixels = run(picture)
        if (
            pixels.ndim != 3
            or pixels.shape[0] not in (1, 3)
            or np.ptp(pixels, axis=(1, 2)).max() > 1e-4 * max(1.0, np.abs(pixels).max())
        ):
            raise ValueError
        return pixels.mean(axis=(1, 2), dtype=np.float64)

    try:
        black, half, white = values(0, 0, 0), values(102, 102, 102), values(255, 255, 255)
        colours = [values(255, 0, 0), values(0, 255, 0), values(0, 0, 255)] if like.shape[2] == 3 else []
    except (N2D2Error, ValueError):
        return None
    reach = white - black
    if not np.allclose(half - black, 0.4 * reach, rtol=0, atol=1e-3 * np.abs(reach).max()) or not reach.all():
        return None
    order = tuple(range(len(reach)))
    if colours:
        shares = np.array([(one - black) / reach for one in colours]).T
        order = tuple(int(share.argmax()) for share in shares)
        expected = np.eye(3)[list(order)] if len(reach) == 3 else np.array([_GRAY])
        if not np.allclose(shares, expected, rtol=0, atol=0.01):
            return None
    return PixelMap(tuple((reach / 255).tolist()), tuple(black.tolist()), order if len(reach) == 3 else (0,))
