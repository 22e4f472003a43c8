"""The stimuli whose outputs the integers hold worst."""

from dataclasses import dataclass

import numpy as np

from n2d2py.arithmetic.sensor import StreamSource
from n2d2py.graph import NO_CONTRACT, InputContract, QuantGraph
from n2d2py.quant.observe.compare import decibels

_KEPT = 12
_LARGEST_IMAGE = 256


@dataclass(frozen=True)
class StimulusComparison:
    """One sample at the outputs of the network; `position` is that among the compared ones, `label` -1 without any.

    Attributes:
        error: mean |float - dequantized| over the outputs; sqnr_db of all of them together.
        expected, found: largest element of the first output in floating point and in integers, -1 for one element.
        image: what the network reads, as `stimulus_picture` gives it.
    """

    position: int
    name: str
    label: int
    error: float
    sqnr_db: float
    expected: int
    found: int
    image: np.ndarray | None = None


class WorstStimuli:
    """Keeps those with the largest error while batches pass."""

    def __init__(self, quantized: QuantGraph, contract: InputContract = NO_CONTRACT):
        self._contract = contract
        self._outputs = {name: quantized.type(name) for name in quantized.outputs}
        self._kept: list[StimulusComparison] = []
        self._seen = 0

    @np.errstate(invalid="ignore", over="ignore")  # NaN and infinities of a network make NaN figures
    def add(
        self, x: np.ndarray, labels: np.ndarray, names: list[str], real: dict[str, np.ndarray], stored: dict[str, np.ndarray]
    ) -> None:
        """Add a batch: the inputs (n, ...), and float and stored values of all tensors."""
        values = {name: kind.dequantize(stored[name]) for name, kind in self._outputs.items()}
        exact, restored = ([by[name].reshape(len(x), -1).astype(np.float64) for name in values] for by in (real, values))
        whole = np.concatenate(exact, axis=1)
        lost, several = np.abs(whole - np.concatenate(restored, axis=1)), exact[0].shape[1] > 1
        for k in range(len(x)):
            error = float(lost[k].mean())
            if len(self._kept) == _KEPT and error <= self._kept[-1].error:
                continue
            tops = (int(exact[0][k].argmax()), int(restored[0][k].argmax())) if several else (-1, -1)
            sqnr = decibels(float(np.sum(whole[k] ** 2)), float(np.sum(lost[k] ** 2)))
            image = stimulus_picture(x[k], self._contract)
            of_data = self._seen + k, names[k], int(labels[k])
            self._kept.append(StimulusComparison(*of_data, error, sqnr, *tops, image))
            self._kept = sorted(self._kept, key=lambda one: (-one.error, one.position))[:_KEPT]
        self._seen += len(x)

    def result(self) -> list[StimulusComparison]:
        """Return the samples with an error, the worst first."""
        return [one for one in self._kept if one.error > 0]


def stimulus_picture(x: np.ndarray, contract: InputContract, largest: int = _LARGEST_IMAGE) -> np.ndarray | None:
    """Return a stimulus (C, H, W) as bytes (H, W) or (H, W, 3), of more than `largest` pixels a side every second, third, ...
    one.

    The bytes are those that give these values, if `contract` says so; else black and white are the least and the largest value.
    Windows of samples are as high as a third of their width at least. None for other vectors and other numbers of channels.
    """
    if isinstance(contract.source, StreamSource):
        window = window_picture(x, contract.source)
        return np.repeat(window, max(1, window.shape[1] // (3 * len(window))), 0)
    if x.ndim != 3 or x.shape[0] not in (1, 3) or min(x.shape[1:]) < 2:
        return None
    factor = -(-max(x.shape[1:]) // largest)
    image = x[:, ::factor, ::factor].astype(np.float64)
    pixels = contract.pixels
    if pixels is not None and len(pixels.factors) == len(image):
        offsets, factors = (np.reshape(values, (-1, 1, 1)) for values in (pixels.offsets, pixels.factors))
        scaled = (image - offsets) / factors
    else:
        low, high = float(image.min()), float(image.max())
        scaled = (image - low) * (255 / (high - low) if high > low else 0.0)
    picture = np.clip(np.rint(scaled), 0, 255).astype(np.uint8)
    return picture[0] if len(picture) == 1 else np.ascontiguousarray(picture.transpose(1, 2, 0))


def window_picture(x: np.ndarray, source: StreamSource) -> np.ndarray:
    """Return features or samples as bytes (features, frames), the first feature below; coefficients and axes over their own range."""
    frames = source.frames_of(x.shape)
    values = x.reshape((source.features, frames.count) if frames.turned else (frames.count, source.features))
    values = values if frames.turned else values.T
    axis = None if source.size_key == "mels" else 1
    low, high = values.min(axis, keepdims=True), values.max(axis, keepdims=True)
    return np.rint((values - low) * (255 / np.maximum(high - low, 1e-9)))[::-1].astype(np.uint8)
