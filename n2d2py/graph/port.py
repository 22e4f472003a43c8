"""Inputs and outputs of a network, also as the file has them: with its axes, which user arrays have; the last ones may be states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from math import prod
from typing import Any

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.errors import InternalError
from n2d2py.graph.shapes import Shape, dims_text, elements


def with_tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of a dataclass as read from JSON, which has lists for tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}


@dataclass(frozen=True)
class FilePort:
    """Axes and element type in the file. The tensor of the graph has the same elements as (1, C, H, W), (1, C, W) or (1, F).

    Attributes:
        dims: sizes, 1 along the batch axis.
        axis: the batch axis; None for a file without one.
        is_free: the batch size is open in the file.
        channels_last: the file has height, width, channels.
        image_axes: axes of the graph tensor (C, H, W) that are channels, height and width of images.
        type: quantized integer type of the file; None for real numbers.
    """

    dims: Shape
    axis: int | None = 0
    is_free: bool = True
    channels_last: bool = False
    type: NumType | None = None
    image_axes: tuple[int, int, int] = (0, 1, 2)

    @property
    def sample(self) -> Shape:
        """The sizes of one sample."""
        return self.dims if self.axis is None else (*self.dims[: self.axis], *self.dims[self.axis + 1 :])

    def text(self) -> str:
        """Return the sizes for messages, N for the batch."""
        sizes = ["N" if index == self.axis else str(size) for index, size in enumerate(self.dims)]
        return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"

    def samples(self, x: np.ndarray, shape: Shape) -> np.ndarray | None:
        """Return an array with the axes of the file as samples (N, ...) of a graph tensor of `shape`; None if it has other
        axes.

        Without a batch axis, samples may be stacked along a new first axis. A vector also takes flat samples.
        """
        flat = x.shape[1:] == shape[1:] and len(shape) == 2
        if self.axis is None:
            x = x[None] if x.shape == self.dims else x
        elif x.ndim == len(self.dims) and not (flat and x.shape[: self.axis] != self.dims[: self.axis]):
            x = np.moveaxis(x, self.axis, 0)
        if x.ndim == 0 or not (x.shape[1:] == self.sample or flat):
            return None
        if self.channels_last and not flat:
            x = np.moveaxis(x, -1, 1)
        return x.reshape(len(x), *shape[1:])

    def array(self, samples: np.ndarray, is_single: bool) -> np.ndarray:
        """Return the samples (N, ...) of the graph tensor in the file's axes; `is_single`: one sample, without new axis."""
        if self.channels_last:
            samples = np.moveaxis(samples, 1, -1)
        stacked = samples.reshape(len(samples), *self.sample)
        if self.axis is None:
            return stacked[0] if is_single else stacked
        return np.moveaxis(stacked, 0, self.axis)

    def in_layout(self, shape: Shape, layout: str) -> FilePort:
        """Return the port of an image (C, H, W) in the layout "nchw" or "nhwc"."""
        last = layout == "nhwc"
        return replace(self, dims=(1, *shape[1:], shape[0]) if last else (1, *shape), axis=0, channels_last=last)

    def is_single(self, x: np.ndarray) -> bool:
        """True if an array is exactly one run of the file, not a batch of free size."""
        return x.shape == self.dims and not (self.is_free and self.axis is not None)

    def fields(self) -> dict[str, Any]:
        """Return plain data for `of`."""
        return asdict(self)

    @staticmethod
    def of(fields: Mapping[str, Any]) -> FilePort:
        """Return the port of `fields`."""
        kind = fields["type"]
        return FilePort(**{**with_tuples(fields), "type": kind and NumType(**kind)})


def plain_port(shape: Shape) -> FilePort:
    """Return the port of a network with the axes of its graph, such as that of an INI."""
    return FilePort(tuple(shape))


@dataclass(frozen=True)
class TensorInfo:
    """An input or output: `shape` includes batch 1, `type` holds scale and zero point.

    `port`: axes of user arrays, if they differ from `stored`, the shape in memory.
    """

    name: str
    stored: tuple[int, ...]
    type: NumType
    port: FilePort | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of user arrays."""
        return self.stored if self.port is None else self.port.dims

    @property
    def dtype(self) -> np.dtype:
        """The NumPy type of the stored values."""
        return self.type.dtype

    @property
    def scale(self) -> float:
        """real = scale * (stored - zero_point)."""
        return self.type.scale

    @property
    def zero_point(self) -> int:
        """The stored value of 0."""
        return self.type.zero_point


class OneOutput:
    """A layer that has one output as a rule."""

    name: str
    outputs: list[str]

    @property
    def output(self) -> str:
        """The only output."""
        if len(self.outputs) != 1:
            raise InternalError(f"{self.name} has {len(self.outputs)} outputs")
        return self.outputs[0]


class Ends:
    """Inputs and outputs of a graph. The last `states` inputs are the last outputs of the previous call."""

    name: str
    tensors: dict[str, Any]
    inputs: list[str]
    outputs: list[str]
    states: int
    input_ports: list[FilePort]
    output_ports: list[FilePort]

    def __repr__(self) -> str:
        layers = sum(not getattr(node, "helper", False) for node in getattr(self, "nodes", ()))
        return f"{self.name}: {layers} layers, inputs {self._shapes(self.inputs)}, outputs {self._shapes(self.outputs)}"

    def _shapes(self, names: list[str]) -> str:
        return ", ".join(f"{name} {dims_text(self.shape(name)[1:])}" for name in names)

    def shape(self, tensor: str) -> Shape:
        """Return the shape of a tensor, including batch 1."""
        return self.tensors[tensor].shape

    def verify_outputs(self, known: set[str]) -> None:
        """Raise InternalError for an output that is not one of the `known` tensors, or a duplicate."""
        for name in self.outputs:
            if name not in known:
                raise InternalError(f"output {name} is never written")
        if len(set(self.outputs)) != len(self.outputs):
            raise InternalError(f"a tensor is an output twice: {', '.join(self.outputs)}")

    @property
    def user_input_ports(self) -> list[FilePort]:
        """The axes and types of the inputs except states, as in the file; those of the graph without a file."""
        return [self._port(name, self.input_ports, index) for index, name in enumerate(self.user_inputs)]

    @property
    def user_output_ports(self) -> list[FilePort]:
        """The axes and types of the outputs except states, as `user_input_ports`."""
        return [self._port(name, self.output_ports, index) for index, name in enumerate(self.user_outputs)]

    def _port(self, name: str, ports: list[FilePort], index: int) -> FilePort:
        shape = self.shape(name)
        return ports[index] if index < len(ports) and prod(ports[index].sample) == elements(shape) else plain_port(shape)

    @property
    def user_inputs(self) -> list[str]:
        """The inputs that the user passes: all except states."""
        return self.inputs[: len(self.inputs) - self.states]

    @property
    def user_outputs(self) -> list[str]:
        """The outputs that the user receives: all except states."""
        return self.outputs[: len(self.outputs) - self.states]

    @property
    def state_inputs(self) -> list[str]:
        """The inputs that are states."""
        return self.inputs[len(self.inputs) - self.states :]

    @property
    def state_outputs(self) -> list[str]:
        """The outputs that become the states of the next call, in the order of `state_inputs`."""
        return self.outputs[len(self.outputs) - self.states :]
