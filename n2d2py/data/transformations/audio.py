"""Features of sounds, as with `-audio`. An export includes them if they are the only transformation."""

from __future__ import annotations

import numpy as np

from n2d2py.arithmetic.audio import KEYS, AudioSource, read_audio
from n2d2py.data.transformations.base import Inapplicable, Range, Transformation, transformation
from n2d2py.ini import Key, Kind, Values

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
class AudioFeatures(Transformation):
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

    def map_range(self, bounds: Range) -> None:
        return None
