"""Writer of the layers of a quantized network as .tflite tensors and operators, on int8 or in floating point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from n2d2py.contracts.functions import Clip, FunctionRow
from n2d2py.exports.model_file import NoForm, real_weights
from n2d2py.exports.tflite.file import Grid, ModelFile, int8_grid
from n2d2py.exports.tflite.xnnpack import weight_scales
from n2d2py.graph import QuantGraph, QuantNode, Shape
from n2d2py.operators.pointwise import Activation
from n2d2py.registry import Registry


def channels_last(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape in the order of the file."""
    return (shape[0], *shape[2:], shape[1]) if len(shape) == 4 else tuple(shape)


class Layers:
    """Writer of layers.

    Attributes:
        index: tensor of the file for each tensor of the network.
        real: tensors that are real numbers in the file too.
    """

    def __init__(self, graph: QuantGraph, file: ModelFile):
        self.graph, self.file = replace(graph, tensors=dict(graph.tensors)), file
        self.index: dict[str, int] = {}
        self.real = frozenset(name for name in graph.tensors if graph.type(name).is_float) - _probabilities(graph)

    def parts(self, node: QuantNode) -> list[QuantNode]:
        """Return the layer; a float layer and its activation separately if no operator fuses them."""
        function, name = node.activation, node.output
        if name not in self.real or function is None or fused_name(function):
            return [node]
        linear = f"{name}/linear"
        self.graph.tensors[linear] = replace(self.graph.tensors[name], name=linear)
        self.real |= {linear}
        return [replace(node, outputs=[linear], activation=None), QuantNode(node.name, Activation(function), [linear], [name])]

    # ---- tensors --------------------------------------------------------------------------------
    def grid(self, name: str) -> Grid:
        """Return the scale and zero point of a tensor of the network, None for real numbers."""
        return None if name in self.real else int8_grid(self.graph.type(name))

    def is_int8(self, name: str) -> bool:
        """True if a quantized tensor can be int8 in the file."""
        kind = self.graph.type(name)
        return not kind.plain and kind.bits == 8

    def required_grid(self, node: QuantNode, grid: Grid) -> Grid:
        """Return the scale and zero point that an operator requires of an int8 result; None for a float result."""
        return None if node.output in self.real else grid

    def declare(self, name: str) -> int:
        """Return the file's tensor for one of the network, added at first use."""
        if name not in self.index:
            self.index[name] = self.add_tensor(name, self.graph.shape(name), self.grid(name))
        return self.index[name]

    def add_tensor(self, name: str, shape: Shape, grid: Grid) -> int:
        """Add a tensor with `shape` in the order of the network."""
        return self.add_file_tensor(name, channels_last(shape), grid)

    def add_file_tensor(self, name: str, shape: Shape, grid: Grid) -> int:
        """Add a tensor with `shape` in the order of the file."""
        return self.file.tensor(name, tuple(shape), np.float32 if grid is None else np.int8, grid)

    def add(self, name: str, code: str, inputs: list[int], shape: Shape, grid: Grid, **fields: Any) -> int:
        """Add an operator whose result is a new tensor, with `shape` in the order of the file."""
        result = self.add_file_tensor(name, shape, grid)
        self.file.operator(code, inputs, result, **fields)
        return result

    def write(self, node: QuantNode, code: str, inputs: list[int], **fields: Any) -> None:
        """Write an operator whose result is that of the layer."""
        self.file.operator(code, inputs, self.declare(node.output), **fields)

    def write_in(self, grid: Grid, node: QuantNode, code: str, inputs: list[int], **fields: Any) -> None:
        """Write an operator whose result has another scale, then the conversion to that of the layer."""
        name = node.output if grid == self.grid(node.output) else f"{node.output}/{code.lower()}"
        shape = channels_last(self.graph.shape(node.output))
        self.finish(node, self.add(name, code, inputs, shape, grid, **fields), grid)

    def sources(self, node: QuantNode) -> list[int]:
        return [self.index[name] for name in node.inputs]

    def requantize(self, index: int, name: str, shape: Shape, source: Grid, target: Grid) -> int:
        """Return the values of a tensor with another scale, after a QUANTIZE if the scales differ."""
        if source == target:
            return index
        result = self.add_tensor(name, shape, target)
        self._write_conversion(index, result, source, target)
        return result

    def in_grid(self, node: QuantNode, grid: Grid) -> list[int]:
        """Return the inputs of a layer, all with one scale."""
        return [
            self.requantize(index, f"{node.name}/input_{number}", self.graph.shape(name), self.grid(name), grid)
            for number, (index, name) in enumerate(zip(self.sources(node), node.inputs, strict=True))
        ]

    def finish(self, node: QuantNode, index: int, grid: Grid) -> None:
        """Make a tensor the result of a layer, requantized if the scales differ."""
        wanted = self.grid(node.output)
        if grid == wanted:
            self.index[node.output] = index
        else:
            self._write_conversion(index, self.declare(node.output), grid, wanted)

    def _write_conversion(self, index: int, result: int, source: Grid, target: Grid) -> None:
        code = "DEQUANTIZE" if source is not None and target is None else "QUANTIZE"
        self.file.operator(code, [index], result)

    # ---- activations ----------------------------------------------------------------------------
    def activation(self, node: QuantNode) -> int:
        """Return the fused activation of a layer; for integers, NONE if the limits are those of int8. Raise NoForm for limits
        other than those of RELU and RELU6."""
        kinds, kind = self.file.schema.ActivationFunctionType, self.graph.type(node.output)
        if node.output in self.real:
            name = fused_name(node.activation)
            if name is None:
                raise NoForm(f"it carries the activation {node.activation}")
            return getattr(kinds, name)
        low, high = node.clamp or (kind.qmin, kind.qmax)
        full = (-128, 127) if kind.signed else (0, 255)
        below, above = low > full[0] and not (kind.signed and low == -127), high < full[1]
        six = abs(kind.scale * (high - kind.zero_point) - 6) <= kind.scale / 2
        if (below and low != kind.zero_point) or (above and not (six and low == kind.zero_point)):
            raise NoForm(f"its result is limited to {low} .. {high} of {kind.name}")
        return kinds.RELU6 if above else kinds.RELU if below else kinds.NONE

    # ---- windows --------------------------------------------------------------------------------
    def pad_window(
        self, node: QuantNode, pads: Sequence[int], extents: Sequence[int], stride: Sequence[int], lowest: bool = False
    ) -> tuple[int, int]:
        """Return (input, padding) of a window operator: SAME or VALID, after a PAD if the pads are neither.

        `lowest`: pads are the lowest value (maximum pooling), else 0.
        """
        padding, name = self.file.schema.Padding, node.inputs[0]
        index, shape, out = self.index[name], self.graph.shape(name), self.graph.shape(node.output)[2:]
        top, left, bottom, right = pads
        needed = [max((o - 1) * s + e - n, 0) for o, s, e, n in zip(out, stride, extents, shape[2:], strict=True)]
        if not any(pads):
            return index, padding.VALID
        same = (needed[0] // 2, needed[1] // 2, needed[0] - needed[0] // 2, needed[1] - needed[1] // 2)
        if same == tuple(pads) and tuple(out) == tuple(-(-n // s) for n, s in zip(shape[2:], stride, strict=True)):
            return index, padding.SAME
        if min(pads) < 0:
            raise NoForm("its pads are negative")
        full = (shape[0], shape[1], shape[2] + top + bottom, shape[3] + left + right)
        return self.pad(index, node, pads, full, lowest), padding.VALID

    def pad(self, index: int, node: QuantNode, pads: Sequence[int], full: Shape, lowest: bool = False) -> int:
        """Add a tensor of the shape `full` with padded images."""
        top, left, bottom, right = pads
        grid = self.grid(node.inputs[0])
        amounts = self.file.constant(f"{node.name}/pads", np.array([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32))
        result = self.add_tensor(f"{node.name}/padded", full, grid)
        if not lowest:
            self.file.operator("PAD", [index, amounts], result)
            return result
        dtype = np.float32 if grid is None else np.int8
        least = np.array([np.finfo(np.float32).min if grid is None else -128], dtype)
        value = self.file.tensor(f"{node.name}/lowest", (1,), dtype, grid, least)
        self.file.operator("PADV2", [index, amounts, value], result)
        return result

    # ---- constants ------------------------------------------------------------------------------
    def add_weights(self, node: QuantNode, ordered: Callable[[np.ndarray], np.ndarray], axis: int) -> list[int]:
        """Add weights and bias of a layer: int8 with a scale for each output channel, at `axis`, and int32; or floats.

        Args:
            ordered: reorders weights (O, ...) to the order of the file.

        Raise NoForm for wider integers.
        """
        if node.output in self.real:
            weights, bias = ordered(node.params["weights"]), node.params["bias"]
            return [
                self.file.tensor(f"{node.name}/weights", weights.shape, np.float32, values=weights),
                self.file.tensor(f"{node.name}/bias", bias.shape, np.float32, values=bias),
            ]
        real, (x, y) = real_weights(self.graph, node), (self.graph.type(name) for name in (node.inputs[0], node.output))
        scales = weight_scales(real.scales, node.rescaling.effective(), x, y)
        return self.add_integers(node, ordered(real.weights), scales, axis, real.whole_bias, real.steps)

    def add_integers(
        self, node: QuantNode, weights: np.ndarray, scales: np.ndarray, axis: int, bias: np.ndarray, steps: np.ndarray
    ) -> list[int]:
        """Add integer weights, in the order of the file, and bias, with their scales. Raise NoForm for integers wider than int8
        and int32."""
        if weights.dtype != np.int8:
            raise NoForm(f"its weights are {weights.dtype.name}")
        if np.abs(bias).max(initial=0) >= 2**31:
            raise NoForm("its bias needs more than 32 bits")
        return [
            self.file.tensor(f"{node.name}/weights", weights.shape, np.int8, (scales.astype(np.float32), 0), weights, axis),
            self.file.tensor(f"{node.name}/bias", bias.shape, np.int32, (steps.astype(np.float32), 0), bias),
        ]

    def add_floats(self, name: str, values: np.ndarray) -> int:
        """Add a float constant, in the order of the file."""
        return self.file.tensor(name, values.shape, np.float32, values=values)


LOWERINGS: Registry[Callable[[Layers, QuantNode], None]] = Registry("the TFLite form of", "n2d2py.exports.tflite.layers")
"""Functions by operator kind that write a layer, or raise NoForm."""


def fused_name(activation: FunctionRow | None) -> str | None:
    """Return the name of the fused activation for float operators; None if there is none."""
    if activation is None:
        return "NONE"
    limits = (activation.low, activation.high) if isinstance(activation, Clip) else None
    return {(0.0, np.inf): "RELU", (0.0, 6.0): "RELU6", (-1.0, 1.0): "RELU_N1_TO_1"}.get(limits) if limits else None


def _probabilities(graph: QuantGraph) -> set[str]:
    """Return the float tensors of an integer network that are int8 in the file: outputs of an integer Softmax."""
    probabilities: set[str] = set()
    for node in graph.nodes:
        if node.op.kind != "Convert" or graph.type(node.inputs[0]).is_float or not graph.type(node.output).is_float:
            continue
        readers = graph.consumers(node.output)
        if all(one.op.kind == "Softmax" and not one.op.log and not graph.consumers(one.output) for one in readers):
            probabilities.update([node.output, *(one.output for one in readers)])
    return probabilities - set(graph.inputs)
