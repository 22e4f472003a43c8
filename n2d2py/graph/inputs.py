"""Inputs of a network: joint samples of several inputs, and the meaning of image bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from n2d2py.arithmetic.audio import AudioSource
from n2d2py.arithmetic.frame import FrameSource
from n2d2py.arithmetic.sensor import SensorSource
from n2d2py.graph.port import with_tuples
from n2d2py.graph.shapes import dims_text, elements

if TYPE_CHECKING:
    from n2d2py.graph.graph import Graph
    from n2d2py.graph.quant import QuantGraph


InputSource = FrameSource | AudioSource | SensorSource
"""Camera frames, sounds or samples of a sensor, and their conversion to the network's input, which an export contains."""


@dataclass(frozen=True)
class PixelMap:
    """Conversion of image bytes to the real values of the input, channel by channel: factor * byte + offset. `order` has, for
    each channel of the input, the index of its channel in a red, green, blue image."""

    factors: tuple[float, ...]
    offsets: tuple[float, ...]
    order: tuple[int, ...]

    def real(self, values: np.ndarray) -> np.ndarray:
        """Convert bytes (C, ...) to float32."""
        factors, offsets = (np.reshape(one, (-1, *(1,) * (values.ndim - 1))) for one in (self.factors, self.offsets))
        return (values * factors + offsets).astype(np.float32)


ChannelOrder = Literal["RGB", "BGR", "gray", ""]
"""Channel order of images; "" if there is none or it is unknown."""

ORDERS: dict[tuple[int, ...], ChannelOrder] = {(0, 1, 2): "RGB", (2, 1, 0): "BGR", (0,): "gray"}
"""Channel order by `PixelMap.order`."""


@dataclass(frozen=True)
class InputContract:
    """The images that the network takes and the names of its classes, recorded when network and data are loaded.

    Attributes:
        order: channel order of images; "" for other inputs, or if unknown.
        size: width and height of images; None for other inputs.
        pixels: conversion of bytes to real values; None if unknown.
        classes: class names by label; may be empty.
        source: camera frames, sounds or samples that the export converts; None without `-input-format`, `-audio` or `-sensor`.
    """

    order: ChannelOrder = ""
    size: tuple[int, int] | None = None
    pixels: PixelMap | None = None
    classes: tuple[str, ...] = ()
    source: InputSource | None = None

    @property
    def value_range(self) -> tuple[float, float] | None:
        """Return the smallest and largest real value of bytes 0 to 255; None if unknown."""
        if self.pixels is None:
            return None
        ends = np.outer((0, 255), self.pixels.factors) + self.pixels.offsets
        return float(ends.min()), float(ends.max())

    @property
    def text(self) -> str:
        """Return a description such as "96x96 RGB, real values 0 to 1"; "" if nothing is known."""
        bounds = self.value_range
        parts = [" ".join([*([dims_text(self.size)] if self.size else []), *([self.order] if self.order else [])])]
        parts += [] if bounds is None else [f"real values {bounds[0]:.4g} to {bounds[1]:.4g}"]
        return ", ".join(part for part in parts if part)

    def red_first(self, image: np.ndarray) -> np.ndarray:
        """Return an image (H, W) or (H, W, C) of this channel order in the order red, green, blue."""
        return image[:, :, ::-1].copy() if image.ndim == 3 and self.order == "BGR" else image

    def fields(self) -> dict[str, Any]:
        """Return plain data for `of`."""
        return {name: value for name, value in asdict(self).items() if name != "source" or value}

    @staticmethod
    def of(fields: Mapping[str, Any]) -> InputContract:
        """Return the contract of `fields`."""
        pixels, source = fields["pixels"], fields.get("source")
        parts = {"pixels": pixels and PixelMap(**with_tuples(pixels)), "source": source and _source(source)}
        return InputContract(**{**with_tuples(fields), **parts})


def _source(fields: Mapping[str, Any]) -> InputSource:
    kind = AudioSource if "preset" in fields else SensorSource if "axes" in fields else FrameSource
    return kind(**with_tuples(fields))


NO_CONTRACT = InputContract()
"""A contract without any facts."""


def stimulus_shape(graph: Graph | QuantGraph) -> tuple[int, ...]:
    """Return the shape of one sample: (C, H, W) or (F,) of the only user input, (total,) of several."""
    if len(graph.user_inputs) == 1:
        return tuple(graph.shape(graph.user_inputs[0])[1:])
    return (sum(elements(graph.shape(name)) for name in graph.user_inputs),)


def split_inputs(graph: Graph | QuantGraph, stimuli: np.ndarray) -> Sequence[np.ndarray]:
    """Return the array (N, ...) of each user input from samples (N, *stimulus_shape), or of all for `with_states`."""
    names, sizes = graph.user_inputs, [elements(graph.shape(name)) for name in graph.inputs]
    if graph.states and stimuli.ndim == 2 and stimuli.shape[1] == sum(sizes):
        names = graph.inputs
    if len(names) == 1:
        return [stimuli]
    shapes = [graph.shape(name) for name in names]
    ends = np.cumsum([elements(shape) for shape in shapes])[:-1]
    return [part.reshape(len(stimuli), *shape[1:]) for part, shape in zip(np.split(stimuli, ends, axis=1), shapes, strict=True)]


def named_inputs(graph: Graph | QuantGraph, stimuli: np.ndarray) -> dict[str, np.ndarray]:
    """Return the result of `split_inputs` by input."""
    return dict(zip(graph.inputs, split_inputs(graph, stimuli)))  # noqa: B905  states may be left out


def with_states(graph: Graph, stimuli: np.ndarray, values: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the samples (N, elements of all inputs) that include the states before their call, from `values`."""
    parts = [stimuli, *(values[name] for name in graph.state_inputs)]
    return np.concatenate([part.reshape(len(stimuli), -1) for part in parts], axis=1).astype(np.float32)


def each_sample(batches: Iterable[np.ndarray]) -> list[np.ndarray]:
    """Return every sample of batches (n, ...) as a batch of one."""
    return [batch[index : index + 1] for batch in batches for index in range(len(batch))]


def each_call(
    graph: Graph | QuantGraph,
    inputs: Mapping[str, np.ndarray],
    first: Mapping[str, np.ndarray],
    run: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]],
) -> dict[str, np.ndarray]:
    """Return the results of `run` by tensor for samples (n, ...) that are consecutive calls, with the states before each call.

    inputs: the user inputs. first: the states (1, ...) after a reset. run: function from the inputs of one call to a dict that
    has the outputs of the network.
    """
    states, parts = dict(first), []
    sources = dict(zip(graph.state_inputs, graph.state_outputs, strict=True))
    for index in range(len(next(iter(inputs.values())))):
        values = run({**{name: x[index : index + 1] for name, x in inputs.items()}, **states})
        parts.append({**values, **states})
        states = {name: values[source] for name, source in sources.items()}
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}
