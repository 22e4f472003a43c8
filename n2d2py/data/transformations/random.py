"""Training-only transformations: distortion, gain and gamma, random crops, compression noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from n2d2py.data.transformations.base import (
    Inapplicable,
    RandomTransformation,
    Transformation,
    by_channel,
    read_interval,
    require_image,
    saturate_cast,
    transformation,
)
from n2d2py.data.transformations.geometry import MAX_SIDE, RotatedSlice, SliceExtraction
from n2d2py.ini import Key, Kind, Values, parameter


@dataclass(frozen=True, eq=False)
class _Displacement(Transformation):
    """Displacement of pixels by (H, W) down and across: each is read at its place less the displacement, outside at the border.

    `unlabelled`: pixels from outside have no label.
    """

    down: np.ndarray
    across: np.ndarray
    unlabelled: bool = True

    def apply(self, image: np.ndarray) -> np.ndarray:
        return by_channel(image, lambda plane: self._move(plane, "INTER_LINEAR", "BORDER_REPLICATE"))

    def apply_to_map(self, labels: np.ndarray) -> np.ndarray:
        border = "BORDER_CONSTANT" if self.unlabelled else "BORDER_REPLICATE"
        return self._move(labels.astype(np.float64), "INTER_NEAREST", border).astype(np.int64)

    def _move(self, plane: np.ndarray, interpolation: str, border: str) -> np.ndarray:
        import cv2

        rows, columns = np.mgrid[: self.down.shape[0], : self.down.shape[1]]
        places = (columns - self.across).astype(np.float32), (rows - self.down).astype(np.float32)
        return cv2.remap(plane, *places, getattr(cv2, interpolation), borderMode=getattr(cv2, border), borderValue=-1)


@transformation("Distortion", doc="Training only: distort, scale and rotate each image at random.", needs_opencv=True)
class Distortion(RandomTransformation):
    """Elastic displacement, stretching and rotation about the centre, as Simard et al., ICDAR 2003.

    The three displacements are added, and subtracted from the place where a pixel is read: a rotation by an angle a also
    shrinks the image, by 2 - cos(a) along each axis.

    Attributes:
        size, sigma: of the Gaussian that smooths uniform noise in [-1, 1], in pixels.
        elastic: factor of the smoothed noise, in pixels.
        stretch: per cent, turn: degrees; both are drawn up to this limit in both directions.
        unlabelled: pixels from outside of the image have no label.
    """

    size: int = parameter("ElasticGaussianSize", Kind.UINT, 15, "Side of the Gaussian in pixels.", minimum=1, maximum=1023)
    sigma: float = parameter("ElasticSigma", Kind.FLOAT, 6.0, "Standard deviation of the Gaussian in pixels.")
    elastic: float = parameter("ElasticScaling", Kind.FLOAT, 0.0, "Scale factor of the smoothed noise. 0: none.", minimum=0)
    stretch: float = parameter("Scaling", Kind.FLOAT, 0.0, "Largest scaling along each axis, in percent.", minimum=0)
    turn: float = parameter("Rotation", Kind.FLOAT, 0.0, "Largest rotation, in degrees.", minimum=0)
    unlabelled: bool = parameter("IgnoreMissingData", Kind.BOOL, True, "Pixels from beyond the image have no label.")

    @classmethod
    def from_values(cls, values: Values) -> Distortion:
        if values["ElasticSigma"] <= 0:
            raise values.fail("E417", "ElasticSigma is not positive", "give a value above 0", "ElasticSigma")
        return super().from_values(values)

    def draw_parameters(self, image: np.ndarray, random: np.random.Generator) -> Transformation:
        height, width = image.shape[:2]
        y = np.arange(height)[:, None] - (height - 1) / 2
        x = np.arange(width)[None, :] - (width - 1) / 2
        across = down = np.zeros((height, width))
        if self.elastic:
            across, down = (self.elastic * self._smooth(each) for each in random.uniform(-1, 1, (2, height, width)))
        stretch_x, stretch_y = random.uniform(-1, 1, 2) * (self.stretch / 100)
        turn = np.deg2rad(random.uniform(-1, 1) * self.turn)
        across = across + stretch_x * x + (x * (np.cos(turn) - 1) + y * np.sin(turn))
        down = down + stretch_y * y + (y * (np.cos(turn) - 1) - x * np.sin(turn))
        return _Displacement(down, across, self.unlabelled)

    def _smooth(self, noise: np.ndarray) -> np.ndarray:
        """Return the noise (H, W), 0 outside, filtered with the weights exp(-d^2 / (2 sigma^2)) / (2 pi sigma^2)."""
        import cv2

        offsets = np.arange(self.size) - self.size // 2
        weights = np.exp(-(offsets * offsets) / (2 * self.sigma**2)) / (np.sqrt(2 * np.pi) * self.sigma)
        return cv2.sepFilter2D(noise, -1, weights, weights, borderType=cv2.BORDER_CONSTANT)


@dataclass(frozen=True)
class _Affine(Transformation):
    """gain * (v / top)^gamma * top + bias * top of each channel: top is the largest integer of the type, 1 for reals."""

    gain: tuple[float, ...]
    bias: tuple[float, ...]
    gamma: tuple[float, ...]

    def apply(self, image: np.ndarray) -> np.ndarray:
        top = 1.0 if image.dtype.kind == "f" else float(np.iinfo(image.dtype).max)
        gain, bias, gamma = (np.array(each) for each in (self.gain, self.bias, self.gamma))
        wide = image.astype(np.float64)
        if (gamma != 1).any():
            if (wide[:, :, gamma != 1] < 0).any():
                raise Inapplicable("a gamma is not defined on negative values", "put it before what makes values negative")
            wide = np.where(gamma == 1, wide, (np.maximum(wide, 0) / top) ** gamma * top)
        return saturate_cast(gain * wide + bias * top, image.dtype)


@transformation(
    "RandomAffine",
    *(
        key
        for name, neutral in (("Gain", (1.0, 1.0)), ("Bias", (0.0, 0.0)), ("Gamma", (1.0, 1.0)))
        for key in (
            Key(f"{name}Range", Kind.FLOATS, neutral, f"Range of the {name.lower()} for all channels."),
            Key(f"{name}Range[*", Kind.FLOATS, neutral, f"{name}Range[c]: range for channel c, counted from 0."),
            Key(f"{name}VarProb", Kind.FLOATS, (), "Probability of a change: one value, or one per channel. Default: 1."),
        )
    ),
    Key("DisjointGamma", Kind.BOOL, False, "Keep gain and bias unchanged where gamma changes."),
    Key("ChannelsMask", Kind.FLOATS, (), "1 for each channel to change. Default: all channels."),
    doc="Training only: compute gain * v^gamma + bias with random parameters. v is relative to the largest value of the type.",
)
class RandomAffine(RandomTransformation):
    """Random gain, bias and gamma, drawn once for all channels, or for each.

    Attributes:
        ranges: of gain, bias and gamma: one interval, or one per channel; further channels do not vary.
        chances: probability that each varies: (), one for all channels, or one per channel.
        mask: the channels to change; () for all.
    """

    ranges: tuple[tuple[tuple[float, float], ...], ...]
    chances: tuple[tuple[float, ...], ...]
    disjoint: bool = False
    mask: tuple[bool, ...] = ()

    @classmethod
    def from_values(cls, values: Values) -> RandomAffine:
        ranges, chances = [], []
        for name in ("Gain", "Bias", "Gamma"):
            own = values.matching(f"{name}Range[*")
            keys = [f"{name}Range[{channel}]" for channel in range(len(own))]
            for key in own:
                if key not in keys:
                    what = f"{key} is not a key of channels 0 to {len(own) - 1}"
                    raise values.fail("E417", what, f"give {name}Range[0], {name}Range[1] and so on without a gap", key)
            ranges.append(tuple(read_interval(values, key) for key in keys or [f"{name}Range"]))
            chances.append(tuple(values[f"{name}VarProb"]))
            if any(not 0 <= chance <= 1 for chance in chances[-1]):
                raise values.fail("E417", f"{name}VarProb is not a probability", "give values from 0 to 1", f"{name}VarProb")
        return cls(tuple(ranges), tuple(chances), values["DisjointGamma"], tuple(bool(one) for one in values["ChannelsMask"]))

    def draw_parameters(self, image: np.ndarray, random: np.random.Generator) -> Transformation:
        channels = image.shape[2]
        drawn, varies = [], []
        for ranges, chances, neutral in zip(self.ranges, self.chances, _NEUTRAL, strict=True):
            low, high = _extend(ranges, channels, (neutral, neutral)).T
            are_equal = len(ranges) == 1 and len(chances) <= 1
            drawn.append(np.full(channels, random.uniform(low[0], high[0])) if are_equal else random.uniform(low, high))
            draws = np.full(channels, random.random()) if len(chances) <= 1 else random.random(channels)
            varies.append(draws < _extend(chances or (1.0,), channels, 1.0))
        if self.disjoint:
            varies[:2] = [each & ~varies[2] for each in varies[:2]]
        mask = np.array([*self.mask, *[not self.mask] * channels][:channels])
        result = (np.where(each & mask, values, one) for values, each, one in zip(drawn, varies, _NEUTRAL, strict=True))
        return _Affine(*(tuple(each.tolist()) for each in result))


_NEUTRAL = (1.0, 0.0, 1.0)
"""Gain, bias and gamma that change nothing."""


def _extend(values: tuple, channels: int, beyond: object) -> np.ndarray:
    """Return the values of each channel: one for all, or one per channel, then `beyond`."""
    whole = values * channels if len(values) == 1 else values
    return np.array([*whole, *[beyond] * channels][:channels])


@transformation("RandomResizeCrop", doc="Training only: crop a random region and resize it.")
class RandomResizeCrop(RandomTransformation):
    """A rescaled part with random place, share of the image's area and aspect ratio.

    After ten failed draws: the largest part with an allowed ratio nearest to the image's, at the top left.
    """

    width: int = parameter("Width", Kind.UINT, doc="Width of the result.", minimum=1, maximum=MAX_SIDE)
    height: int = parameter("Height", Kind.UINT, doc="Height of the result.", minimum=1, maximum=MAX_SIDE)
    smallest: float = parameter("ScaleMin", Kind.FLOAT, 1.0, "Smallest fraction of the image area.", minimum=0, maximum=1)
    largest: float = parameter("ScaleMax", Kind.FLOAT, 1.0, "Largest fraction of the image area.", minimum=0, maximum=1)
    tallest: float = parameter("RatioMin", Kind.FLOAT, 1.0, "Smallest ratio of width to height.")
    widest: float = parameter("RatioMax", Kind.FLOAT, 1.0, "Largest ratio of width to height. It is log-uniform.")

    @classmethod
    def from_values(cls, values: Values) -> RandomResizeCrop:
        for name in ("Scale", "Ratio"):
            low, high = values[f"{name}Min"], values[f"{name}Max"]
            if not 0 < low <= high:
                what = f"{name}Min={low:g} and {name}Max={high:g} are not an interval above 0"
                raise values.fail("E417", what, f"give 0 < {name}Min <= {name}Max", f"{name}Min")
        return super().from_values(values)

    def draw_parameters(self, image: np.ndarray, random: np.random.Generator) -> Transformation:
        rows, columns = image.shape[:2]
        left = top = 0
        for _ in range(10):
            area = rows * columns * random.uniform(self.smallest, self.largest)
            ratio = np.exp(random.uniform(*np.log([self.tallest, self.widest])))
            width, height = round(float(np.sqrt(area * ratio))), round(float(np.sqrt(area / ratio)))
            if 0 < width <= columns and 0 < height <= rows:
                top, left = int(random.integers(0, rows - height + 1)), int(random.integers(0, columns - width + 1))
                break
        else:
            ratio = min(max(columns / rows, self.tallest), self.widest)
            width, height = max(1, min(columns, round(rows * ratio))), max(1, min(rows, round(columns / ratio)))
        return RotatedSlice(SliceExtraction(width, height, left, top), 0.0, self.width, self.height)


@dataclass(frozen=True)
class _JpegRoundTrip(Transformation):
    """The image of bytes encoded and decoded as a JPEG of this quality."""

    quality: int

    def apply(self, image: np.ndarray) -> np.ndarray:
        import cv2

        require_image(image, 1, 3, in_bytes=True)
        _, data = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, self.quality])
        return np.asarray(cv2.imdecode(data, cv2.IMREAD_UNCHANGED)).reshape(image.shape)


@transformation(
    "CompressionNoise",
    Key("CompressionRange", Kind.FLOATS, (0.0, 100.0), "Range of 100 minus the JPEG quality.", minimum=0, maximum=100),
    doc="Training only: add the artifacts of JPEG compression.",
    needs_opencv=True,
)
class CompressionNoise(RandomTransformation):
    """The image of bytes encoded and decoded as a JPEG of random quality."""

    compression: tuple[float, float]

    @classmethod
    def from_values(cls, values: Values) -> CompressionNoise:
        return cls(read_interval(values, "CompressionRange"))

    def draw_parameters(self, image: np.ndarray, random: np.random.Generator) -> Transformation:
        low, high = self.compression
        return _JpegRoundTrip(min(100, max(1, 100 - int(random.integers(int(low), int(high) + 1)))))
