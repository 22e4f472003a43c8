"""Signal transformations: windows, Fourier and cosine transforms, magnitude and phase, features of sounds as with `-audio`.

A signal is a row of an image; sounds are images of one row. A ReshapeTransformation splits a sound into frames, one per row.
All sums are in float64, the result is float32.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from n2d2py.arithmetic.audio import KEYS, AudioSource, read_audio
from n2d2py.data.transformations.base import Inapplicable, Range, Transformation, Unbounded, require_image, transformation
from n2d2py.ini import Key, Kind, Values, parameter

WINDOWS = ("Rectangular", "Hann", "Hamming", "Cosine", "Gaussian", "Blackman", "Kaiser")
_PARAMETERS = {"Gaussian": ("Sigma", 0.4), "Blackman": ("Alpha", 0.16), "Kaiser": ("Beta", 5.0)}


def window(name: str, size: int, parameter: float | None = None) -> np.ndarray:
    """Return the symmetric window of `size` samples, float64; a window of one sample is 1.

    With t = n / (size - 1): Hann (1 - cos 2 pi t) / 2, Hamming 0.54 - 0.46 cos 2 pi t, Cosine sin pi t, Gaussian exp(-((2 t -
    1) / sigma)^2 / 2), Blackman (1 - a) / 2 - cos(2 pi t) / 2 + a cos(4 pi t) / 2, Kaiser I0(beta sqrt(1 - (2 t - 1)^2)) /
    I0(beta).
    """
    if size == 1 or name == "Rectangular":
        return np.ones(size)
    if parameter is None:
        parameter = _PARAMETERS.get(name, ("", 0.0))[1]
    time = np.arange(size) / (size - 1)
    turn = 2 * np.pi * time
    if name == "Hann":
        return 0.5 * (1 - np.cos(turn))
    if name == "Hamming":
        return 0.54 - 0.46 * np.cos(turn)
    if name == "Cosine":
        return np.sin(np.pi * time)
    if name == "Gaussian":
        return np.exp(-0.5 * ((2 * time - 1) / parameter) ** 2)
    if name == "Blackman":
        return (1 - parameter) / 2 - np.cos(turn) / 2 + parameter / 2 * np.cos(2 * turn)
    return np.kaiser(size, parameter)


def fast_size(size: int) -> int:
    """Return the smallest number >= size with no prime factors other than 2, 3 and 5: the numbers that divide a power of 30."""
    while pow(30, 32, size):
        size += 1
    return size


@transformation(
    "Apodization",
    Key("WindowName.Sigma", Kind.FLOAT, 0.4, "Standard deviation of Gaussian, relative to half the window."),
    Key("WindowName.Alpha", Kind.FLOAT, 0.16, "Parameter of Blackman."),
    Key("WindowName.Beta", Kind.FLOAT, 5.0, "Parameter of Kaiser."),
    doc="Multiply each row of the image (a frame of a signal) by a window.",
)
class Apodization(Transformation):
    """Product of each row with a window; integers are then rounded down to their type."""

    size: int = parameter("Size", Kind.UINT, doc="Samples of the window, as many as the image is wide.", minimum=1)
    name: str = parameter("WindowName", Kind.ENUM, "Rectangular", "Shape of the window.", choices=WINDOWS)
    parameter: float | None = None

    @classmethod
    def from_values(cls, values: Values) -> Apodization:
        name = values["WindowName"]
        key = _PARAMETERS[name][0] if name in _PARAMETERS else None
        parameter = values[f"WindowName.{key}"] if key else None
        if key == "Sigma" and parameter is not None and parameter <= 0:
            what = f"WindowName.Sigma={parameter:g} is not positive"
            raise values.fail("E417", what, "give a number above 0", "WindowName.Sigma")
        return replace(super().from_values(values), parameter=parameter)

    def apply(self, image: np.ndarray) -> np.ndarray:
        if image.shape[1] != self.size:
            what = f"the window has {self.size} samples, the image is {image.shape[1]} wide"
            raise Inapplicable(what, f"set Size={image.shape[1]}")
        factors = window(self.name, self.size, self.parameter)[None, :, None]
        return (image * factors).astype(image.dtype)

    def map_range(self, bounds: Range) -> Range:
        return min(bounds[0], 0.0), max(bounds[1], 0.0)


@dataclass(frozen=True)
class _Transform(Unbounded):
    """Common base of DFT and DCT: of each row, or of rows and columns."""

    two_dimensional: bool = parameter("TwoDimensional", Kind.BOOL, True, "1: transform the whole image. 0: transform each row.")

    def padded(self, image: np.ndarray, rows: int, columns: int) -> np.ndarray:
        """Return the only channel of an image, float64 (rows, columns), zero-padded at the bottom and right."""
        require_image(image, 1)
        missing = ((0, rows - image.shape[0]), (0, columns - image.shape[1]))
        return np.pad(image[:, :, 0].astype(np.float64), missing)


@transformation(
    "DFT",
    doc="Fourier transform of a one-channel image. The result has two channels, the real and the imaginary part. Zero "
    "padding extends sizes to 2^a 3^b 5^c.",
)
class DFT(_Transform):
    """Real and imaginary part, as two channels, of the discrete Fourier transform.

    The image is zero-padded, right and below, to sizes with the factors 2, 3 and 5; so is the number of rows if each row is
    transformed by itself.
    """

    def apply(self, image: np.ndarray) -> np.ndarray:
        padded = self.padded(image, *map(fast_size, image.shape[:2]))
        result = np.fft.fft2(padded) if self.two_dimensional else np.fft.fft(padded, axis=1)
        return np.stack([result.real, result.imag], axis=2).astype(np.float32)


@transformation(
    "DCT",
    doc="Orthonormal cosine transform of a one-channel image. Zero padding extends sizes to even 2^a 3^b 5^c.",
    needs_opencv=True,
)
class DCT(_Transform):
    """The orthonormal discrete cosine transform (type II).

    The image is zero-padded, right and below, to even sizes with the factors 2, 3 and 5.
    """

    def apply(self, image: np.ndarray) -> np.ndarray:
        import cv2

        padded = self.padded(image, *(2 * fast_size((size + 1) // 2) for size in image.shape[:2]))
        result = cv2.dct(padded, flags=0 if self.two_dimensional else cv2.DCT_ROWS)
        return result.astype(np.float32).reshape(*padded.shape, 1)


@transformation(
    "MagnitudePhase",
    doc="Compute magnitude and phase from the real and imaginary part. To keep one of them, use "
    "ChannelExtractionTransformation with CSChannel=Blue (magnitude) or Green (phase).",
)
class MagnitudePhase(Unbounded):
    """Magnitude (ln(1 + magnitude) with `log_scale`) and phase in [-pi, pi], as two channels."""

    log_scale: bool = parameter("LogScale", Kind.BOOL, False, "Return the logarithm of 1 + magnitude.")

    def apply(self, image: np.ndarray) -> np.ndarray:
        if image.shape[2] != 2:
            what = f"it needs the real and the imaginary part, the image has {image.shape[2]} channels"
            raise Inapplicable(what, "put a DFTTransformation before")
        real, imaginary = np.moveaxis(image.astype(np.float64), 2, 0)
        magnitude = np.hypot(real, imaginary)
        if self.log_scale:
            magnitude = np.log1p(magnitude)
        return np.stack([magnitude, np.arctan2(imaginary, real)], axis=2).astype(np.float32)


_NAMES = {"".join(word.capitalize() for word in key.split("_")): key for key in KEYS}
"""Keys of -audio by their names in the section."""


@transformation(
    "AudioFeatures",
    Key("Features", Kind.STRING, doc="Kind of the features: log_mel, mfcc or pcen; or a text of `-audio` with its keys."),
    Key("Frames", Kind.UINT, doc="Number of frames, the height of the result. A sound is cut, or silence follows.", minimum=1),
    *(Key(name, Kind.STRING, None, f"`{key}` of `-audio`.") for name, key in _NAMES.items()),
    doc="Convert a mono 16-bit sound to frames of features, in integers. If it is the only transformation, C++ exports contain "
    "the conversion. Sounds must have the rate of the features.",
)
class AudioFeatures(Unbounded):
    """Feature frames in the rows of an image of one channel."""

    source: AudioSource
    frames: int

    @classmethod
    def from_values(cls, values: Values) -> AudioFeatures:
        kind, _, text = values["Features"].partition(":")
        settings = ",".join(
            [text] * bool(text) + [f"{_NAMES[name]}={values[name]}" for name in _NAMES if values.is_given(name)]
        )
        return cls(read_audio(f"{kind}:{settings}" if settings else kind, values.where("Features")), values["Frames"])

    def apply(self, image: np.ndarray) -> np.ndarray:
        if image.shape[0] != 1 or image.shape[2] != 1 or image.dtype.kind != "f":
            raise Inapplicable("the stimulus is not a mono sound", "give WAV files of one channel")
        samples = np.clip(np.rint(image[0, :, 0] * np.float32(32768)), -32768, 32767).astype(np.int16)
        return self.source.real(self.source.convert(samples, self.frames))[:, :, None]
