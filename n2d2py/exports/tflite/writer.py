"""Writer of the layers of a quantized network as .tflite tensors and operators, on int8 or in floating point."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from n2d2py.contracts.functions import Clip, FunctionRow
from n2d2py.exports.model_file import NoForm, real_weights
from n2d2py.exports.tflite.file import Grid, ModelFile, int8_grid
from n2d2py.exports.tflite.xnnpack import weight_scales
from n2d2py.graph import QuantGraph, QuantNode
from n2d2py.operators.pointwise import Activation
from n2d2py.registry import Registry


def channels_last(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape in the order of the file."""
    return (shape[0], *shape[2:], shape[1]) if len(shape) == 4 else tuple(shape)


Dims = tuple[int, ...]


@dataclass(frozen=True)
class FileTensor:
    """A tensor of the file: its index, its dimensions, and its scale and zero point; None for real numbers."""

    index: int
    dims: Dims
    grid: Grid


class Layers:
    """Writer of layers. Dimensions are in the order of the file, shapes in that of the network.

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

    def dims(self, name: str) -> Dims:
        """Return the dimensions in the file of a tensor of the network."""
        return channels_last(self.graph.shape(name))

    def of(self, name: str) -> FileTensor:
        """Return the file's tensor for one of the network."""
        return FileTensor(self.index[name], self.dims(name), self.grid(name))

    def source(self, node: QuantNode) -> FileTensor:
        """Return the first input of a layer."""
        return self.of(node.inputs[0])

    def declare(self, name: str) -> FileTensor:
        """Return the file's tensor for one of the network, added at first use."""
        if name not in self.index:
            self.index[name] = self.new(name, self.dims(name), self.grid(name)).index
        return self.of(name)

    def new(self, name: str, dims: Dims, grid: Grid) -> FileTensor:
        """Add a tensor."""
        return FileTensor(self.file.tensor(name, dims, np.float32 if grid is None else np.int8, grid), dims, grid)

    def stored(self, name: str, values: np.ndarray, grid: Grid = None, axis: int = 0) -> FileTensor:
        """Add a constant: float32, or integers with `grid`, whose scales may be those of the indices of an axis."""
        dtype = np.float32 if grid is None else values.dtype
        return FileTensor(self.file.tensor(name, values.shape, dtype, grid, values, axis), values.shape, grid)

    def constant(self, name: str, values: Sequence[Any] | np.ndarray) -> FileTensor:
        """Add an int32 constant without scale."""
        array = np.asarray(values)
        return FileTensor(self.file.constant(name, array), array.shape, None)

    # ---- operators ------------------------------------------------------------------------------
    def operator(self, code: str, inputs: Sequence[FileTensor], result: FileTensor, **fields: Any) -> FileTensor:
        """Add an operator; return its result."""
        self.file.operator(code, [one.index for one in inputs], result.index, **fields)
        return result

    def add(self, name: str, code: str, inputs: Sequence[FileTensor], dims: Dims, grid: Grid, **fields: Any) -> FileTensor:
        """Add an operator whose result is a new tensor."""
        return self.operator(code, inputs, self.new(name, dims, grid), **fields)

    def reshape(self, name: str, tensor: FileTensor, dims: Dims, constant: str = "") -> FileTensor:
        """Add a reshape to other dimensions; `constant` is the name of their tensor."""
        result, values = self.new(name, dims, tensor.grid), np.array(dims, np.int32)
        return self.operator("RESHAPE", [tensor, self.constant(constant or f"{name}/shape", values)], result, newShape=values)

    def transpose(self, name: str, tensor: FileTensor, order: Sequence[int], constant: str = "") -> FileTensor:
        """Add a transposition; `constant` is the name of the tensor of the order."""
        result = self.new(name, tuple(tensor.dims[axis] for axis in order), tensor.grid)
        return self.operator("TRANSPOSE", [tensor, self.constant(constant or f"{name}/perm", order)], result)

    def gather(self, name: str, tensor: FileTensor, positions: np.ndarray, axis: int, constant: str) -> FileTensor:
        """Add a gather along an axis; `constant` is the name of the tensor of the positions."""
        result = self.new(name, (*tensor.dims[:axis], len(positions), *tensor.dims[axis + 1 :]), tensor.grid)
        return self.operator("GATHER", [tensor, self.constant(constant, positions)], result, axis=axis)

    def write(self, node: QuantNode, code: str, inputs: Sequence[FileTensor], **fields: Any) -> None:
        """Write an operator whose result is that of the layer."""
        self.operator(code, inputs, self.declare(node.output), **fields)

    def write_in(self, grid: Grid, node: QuantNode, code: str, inputs: Sequence[FileTensor], **fields: Any) -> None:
        """Write an operator whose result has another scale, then the conversion to that of the layer."""
        name = node.output if grid == self.grid(node.output) else f"{node.output}/{code.lower()}"
        self.finish(node, self.add(name, code, inputs, self.dims(node.output), grid, **fields))

    def in_grid(self, node: QuantNode, grid: Grid) -> list[FileTensor]:
        """Return the inputs of a layer, all with one scale."""
        inputs = [self.of(name) for name in node.inputs]
        for number, one in enumerate(inputs):
            if one.grid != grid:
                inputs[number] = self._converted(one, self.new(f"{node.name}/input_{number}", one.dims, grid))
        return inputs

    def finish(self, node: QuantNode, tensor: FileTensor) -> None:
        """Make a tensor the result of a layer, requantized if the scales differ."""
        if tensor.grid == self.grid(node.output):
            self.index[node.output] = tensor.index
        else:
            self._converted(tensor, self.declare(node.output))

    def finish_reshaped(self, node: QuantNode, tensor: FileTensor) -> None:
        """Make a tensor of other dimensions the result of a layer."""
        name = node.output if tensor.grid == self.grid(node.output) else f"{node.output}/vector"
        self.finish(node, self.reshape(name, tensor, self.dims(node.output)))

    def _converted(self, tensor: FileTensor, result: FileTensor) -> FileTensor:
        return self.operator("DEQUANTIZE" if tensor.grid is not None and result.grid is None else "QUANTIZE", [tensor], result)

    # ---- activations ----------------------------------------------------------------------------
    def activation(self, node: QuantNode) -> int:
        """Return the fused activation of a layer; for integers, NONE, which is 0, if the limits are those of int8. Raise NoForm
        for limits other than those of RELU and RELU6."""
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

    def refuse_limits(self, node: QuantNode) -> None:
        """Raise NoForm for an activation, if the operator of the layer has none."""
        if self.activation(node):
            raise NoForm("its limits are not those of its integers")

    # ---- windows --------------------------------------------------------------------------------
    def pad_window(
        self, node: QuantNode, pads: Sequence[int], extents: Sequence[int], stride: Sequence[int], lowest: bool = False
    ) -> tuple[FileTensor, int]:
        """Return (input, padding) of a window operator: SAME or VALID, after a PAD if the pads are neither.

        `lowest`: pads are the lowest value (maximum pooling), else 0.
        """
        padding, tensor, out = self.file.schema.Padding, self.source(node), self.graph.shape(node.output)[2:]
        if not any(pads):
            return tensor, padding.VALID
        sizes = tensor.dims[1:3]
        needed = [max((o - 1) * s + e - n, 0) for o, s, e, n in zip(out, stride, extents, sizes, strict=True)]
        same = (needed[0] // 2, needed[1] // 2, needed[0] - needed[0] // 2, needed[1] - needed[1] // 2)
        if same == tuple(pads) and tuple(out) == tuple(-(-n // s) for n, s in zip(sizes, stride, strict=True)):
            return tensor, padding.SAME
        if min(pads) < 0:
            raise NoForm("its pads are negative")
        return self.pad(node, pads, lowest), padding.VALID

    def pad(self, node: QuantNode, pads: Sequence[int], lowest: bool = False) -> FileTensor:
        """Add a tensor of the padded images of a layer."""
        top, left, bottom, right = pads
        tensor = self.source(node)
        count, lines, columns, channels = tensor.dims
        amounts = self.constant(f"{node.name}/pads", [[0, 0], [top, bottom], [left, right], [0, 0]])
        result = self.new(f"{node.name}/padded", (count, lines + top + bottom, columns + left + right, channels), tensor.grid)
        if not lowest:
            return self.operator("PAD", [tensor, amounts], result)
        least = np.array([np.finfo(np.float32).min]) if tensor.grid is None else np.array([-128], np.int8)
        return self.operator("PADV2", [tensor, amounts, self.stored(f"{node.name}/lowest", least, tensor.grid)], result)

    # ---- weights --------------------------------------------------------------------------------
    def add_weights(self, node: QuantNode, ordered: Callable[[np.ndarray], np.ndarray], axis: int) -> list[FileTensor]:
        """Add weights and bias of a layer: int8 with a scale for each output channel, at `axis`, and int32; or floats.

        Args:
            ordered: reorders weights (O, ...) to the order of the file.

        Raise NoForm for wider integers.
        """
        if node.output in self.real:
            constants = ("weights", ordered(node.params["weights"])), ("bias", node.params["bias"])
            return [self.stored(f"{node.name}/{role}", values) for role, values in constants]
        real, (x, y) = real_weights(self.graph, node), (self.graph.type(name) for name in (node.inputs[0], node.output))
        scales = weight_scales(real.scales, node.rescaling.effective(), x, y)
        return self.add_integers(node, ordered(real.weights), scales, axis, real.whole_bias, real.steps)

    def add_integers(
        self, node: QuantNode, weights: np.ndarray, scales: np.ndarray, axis: int, bias: np.ndarray, steps: np.ndarray
    ) -> list[FileTensor]:
        """Add integer weights, in the order of the file, and bias, with their scales. Raise NoForm for integers wider than int8
        and int32."""
        if weights.dtype != np.int8:
            raise NoForm(f"its weights are {weights.dtype.name}")
        if np.abs(bias).max(initial=0) >= 2**31:
            raise NoForm("its bias needs more than 32 bits")
        return [
            self.stored(f"{node.name}/weights", weights, (scales.astype(np.float32), 0), axis),
            self.stored(f"{node.name}/bias", bias.astype(np.int32), (steps.astype(np.float32), 0)),
        ]


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
