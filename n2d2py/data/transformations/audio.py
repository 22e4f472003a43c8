"""Features of sounds, as with `-audio`. An export includes them if they are the only transformation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from n2d2py.arithmetic.audio import AudioSource, read_audio
from n2d2py.data.transformations.base import Inapplicable, Range, Transformation, transformation
from n2d2py.ini import Key, Kind, Values


@transformation(
    "AudioFeatures",
    Key("Features", Kind.STRING, doc="Kind and keys of the features, as in `-audio`: `log_mel:preset=tflm,mels=40`."),
    Key("Frames", Kind.UINT, doc="Number of frames, the height of the result. A sound is cut, or silence follows.", minimum=1),
    doc="Convert a mono 16-bit sound to frames of features, in integers. If it is the only transformation, C++ exports contain "
    "the conversion. Sounds must have the rate of `Features`.",
)
@dataclass(frozen=True)
class AudioFeatures(Transformation):
    """Feature frames in the rows of an image of one channel."""

    source: AudioSource
    frames: int

    @classmethod
    def from_values(cls, values: Values) -> AudioFeatures:
        return cls(read_audio(values["Features"], "Features"), values["Frames"])

    def apply(self, image: np.ndarray) -> np.ndarray:
        if image.shape[0] != 1 or image.shape[2] != 1 or image.dtype.kind != "f":
            raise Inapplicable("the stimulus is not a mono sound", "give WAV files of one channel")
        samples = np.clip(np.rint(image[0, :, 0] * np.float32(32768)), -32768, 32767).astype(np.int16)
        return self.source.real(self.source.convert(samples, self.frames))[:, :, None]

    def map_range(self, bounds: Range) -> None:
        return None
