"""Concatenation of tensors along an axis."""

from dataclasses import field
from math import prod

import numpy as np

from n2d2py.contracts.cpp import Call, Layer, LayerCode, cpp, epilogue, moving_epilogue, vectors
from n2d2py.contracts.facets import OnnxWriter, onnx_emitter, register
from n2d2py.contracts.quant.quantizer import LayerTypes, Quantizer, moved_layer, peak, quantizer, rescaled_layer
from n2d2py.graph import Custom, Node, QuantGraph, QuantNode, Shape, channels, dims_text, elements, requantized
from n2d2py.graph.shapes import rows_along
from n2d2py.memory.access import Access, Concatenated, Whole, memory_access
from n2d2py.operators.arrays.base import ArrayOp, operand_pointers, output_pointer
from n2d2py.operators.arrays.values import Arrays, Unsupported, Value, onnx
from n2d2py.operators.reshape import Transpose, transpose_source


@register
class Concat(ArrayOp):
    """Concatenation of images along an axis, channels by default, or of arrays row by row: each of `rows` rows holds the next
    part of each operand.

    Without `slots`, the operands are all inputs in order. `alike`: one operand is a state cut from the others in the previous
    call, so all share one scale.
    """

    axis: int = 1
    rows: int = 1
    slots: tuple[int, ...] = ()
    result: str = ""
    alike: bool = field(default=False, repr=False)
    mixes_types = False
    same_bits = True

    @property
    def concatenates_reals(self) -> bool:
        """True if it only concatenates tensors of real numbers, which share one type if their ranges allow it."""
        return not (self.result or self.alike or -1 in self.slots)

    def concatenates_pixels(self, shape: Shape) -> bool:
        """True if each pixel of the output, of `shape`, concatenates pixels of the inputs; an array is one pixel."""
        return self.concatenates_reals and not self.slots and (self.axis == 1 if len(shape) > 2 else self.rows == 1)

    def lengths(self, shapes: list[Shape], node) -> list[int]:
        """Return the number of elements of each operand in a row of the output, in memory order."""
        sizes = []
        for index, slot in enumerate(self.slots or range(len(shapes))):
            if slot < 0:
                sizes.append(node.params[f"operand{index}"].size // self.rows)
            elif len(shapes[slot]) == 2:
                sizes.append(elements(shapes[slot]) // self.rows)
            else:
                sizes.append(prod(rows_along(shapes[slot], self.axis)[1:]))
        return sizes

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        first, axis = inputs[0], self.axis
        if len(first) == 2:
            uneven = [shape for shape in inputs if len(shape) != 2 or shape[1] % self.rows]
            if not uneven:
                return [(first[0], self.rows * sum(self.lengths(inputs, node)))]
        for shape in inputs:
            if len(shape) != len(first) or (*shape[1:axis], *shape[axis + 1 :]) != (*first[1:axis], *first[axis + 1 :]):
                dims = " and ".join(dims_text(s[1:]) for s in (first, shape))
                raise self.error("E206", node, f"has inputs of different sizes {dims}", "use inputs of equal width and height")
        return [(*first[:axis], sum(shape[axis] for shape in inputs), *first[axis + 1 :])]

    def operand_dims(self) -> tuple[Shape, ...]:
        return ((self.rows, -1),) * len(self.slots)

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        if inputs[0].ndim > 2:
            return [np.concatenate(inputs, axis=self.axis)]
        count = len(inputs[0])
        parts = self.operands(inputs, node) if self.slots else [x.reshape(len(x), self.rows, -1) for x in inputs]
        return [np.concatenate([np.broadcast_to(x, (count, *x.shape[1:])) for x in parts], axis=2).reshape(count, -1)]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """Rescale inputs whose type differs from the output's; constants are stored in the output's type."""
        if node.rescale is None:
            return self.run(inputs, node)
        kind = graph.type(node.output)
        parts = []
        for index, (name, x) in enumerate(zip(node.inputs, inputs, strict=True)):
            centred = np.subtract(x, graph.type(name).zero_point, dtype=np.int32 if x.itemsize < 4 else np.int64)
            parts.append(requantized(centred, node.rescale.only(index), node.limits, kind))
        return self.run(parts, node)


def is_real_concat(node: Node | QuantNode) -> bool:
    """True if a layer only concatenates tensors of real numbers."""
    return isinstance(node.op, Concat) and node.op.concatenates_reals


def concatenate(a: Arrays, values: list[Value], axis: int) -> Value:
    """Return the values concatenated along `axis`."""
    first = values[0].dims
    if len({(*value.dims[:axis], None, *value.dims[axis + 1 :]) for value in values}) > 1:
        raise Unsupported("its inputs differ in more than the concatenated axis")
    values = [value for value in values if value.dims[axis]]
    constants = [value.constant for value in values if value.constant is not None]
    if len(constants) == len(values):
        result = np.concatenate(constants, axis)
        return Value(result.shape, values[0].kind, None, result)
    if len(values) == 1:
        return values[0]
    padding = {float(number) for one in constants for number in (one.min(), one.max())} if not values[0].kind else set()
    if len(constants) == len(values) - 1 and len(padding) == 1:
        (value,) = (one for one in values if one.constant is None)
        parts = [np.arange(one.dims[axis]) if one is value else np.full(one.dims[axis], -1) for one in values]
        return a.select(value, {axis: np.concatenate(parts).tolist()}, fill=padding.pop())
    dims = (*first[:axis], sum(value.dims[axis] for value in values), *first[axis + 1 :])
    rows = prod(first[:axis])
    alike = any(value.tensor == name for value in values for name, _ in a.builder.model.states)
    plain = not any(value.is_constant or value.kind for value in values)
    op = Concat(1, rows, () if plain else a.slots(values), values[0].kind, alike and not (plain and rows == 1))
    return a.add(op, values, dims, label="joined")


@onnx("Concat")
def _from_onnx(a: Arrays) -> None:
    node, graph = a.node, a.builder.graph
    axis = node.axis_of(node.attribute("axis", 1), len(a.input().dims))
    a.builder.guard_batch(node, 0, axis, "joins")
    images = [a.builder.names[name] for name in node.inputs if name in a.builder.names]
    if axis == 0 or len(images) < len(node.inputs):
        a.bind(concatenate(a, a.values(), axis))
        return
    sources = [transpose_source(image, graph) for image in images]
    order = sources[0][1]
    if len(images) == 1:
        a.bind(a.input())
    elif axis != 1 and order[axis] != axis and all(other == order for _, other in sources):
        concat = a.builder.layer(node, Concat(order[axis]), [source for source, _ in sources], part="channels")
        a.builder.layer(node, Transpose(order), [concat])
    else:
        a.builder.layer(node, Concat(axis), images)


@onnx_emitter("Concat")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op, shape = node.op, writer.graph.shape(node.output)
    if not op.slots and (len(shape) > 2 or op.rows == 1):
        writer.emit("Concat", node.inputs, output, axis=op.axis)
        return
    shapes = tuple((op.rows, length) for length in op.lengths([writer.graph.shape(name) for name in node.inputs], node))
    slots = op.slots or tuple(range(len(node.inputs)))
    parts = writer.operands(node, shapes, slots)
    count = writer.emit("Shape", [node.inputs[0]], start=0, end=1)
    for index, (slot, dims) in enumerate(zip(slots, shapes, strict=True)):
        if slot < 0:
            wanted = writer.emit("Concat", [count, writer.constant(list(dims))], axis=0)
            parts[index] = writer.emit("Expand", [parts[index], wanted])
    writer.flat(writer.emit("Concat", parts, axis=2), output)


@quantizer("Concat")
class ConcatQuantizer(Quantizer):
    """Copies the inputs if all have the output's type, else rescales each by s_i / s_y. Constants are quantized."""

    def refuses(self, node: Node) -> str | None:
        if node.op.result or any(values.dtype.kind != "f" for values in node.params.values()):
            return "arrays of integers joined"
        return None

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        if is_real_concat(node) and all(kind == types.output for kind in types.inputs):
            return moved_layer(node, types)
        factors = np.array([kind.scale / types.output.scale for kind in types.inputs])
        constants = {role: types.output.quantize(values.astype(np.float64)) for role, values in node.params.items()}
        return rescaled_layer(node, types, factors, max(map(peak, types.inputs)), Custom(constants) if constants else None)

    def real_params(self, node: QuantNode, graph: QuantGraph) -> dict[str, np.ndarray]:
        return {role: graph.type(node.output).dequantize(values) for role, values in node.params.items()}


@memory_access("Concat")
def _memory(node: QuantNode, graph: QuantGraph) -> Access:
    if not node.op.concatenates_pixels(graph.shape(node.output)):
        return Whole(dense=True)
    return Concatenated(node.rescale is not None or node.activation is not None)


@cpp("Concat")
def lower(layer: Layer) -> LayerCode:
    if not layer.op.concatenates_pixels(layer.output_shape):
        return _lower_rows(layer.requiring_whole_input())
    scales = layer.integer and layer.node.rescale is not None
    selection = vectors(layer) if scales else layer.portable
    sum_type = layer.sum_type() if scales else layer.output.cpp
    configs, first = [], 0
    for i, (name, plane) in enumerate(zip(layer.node.inputs, layer.input_planes, strict=True)):
        stored = epilogue(layer, selection, only=i) if scales else moving_epilogue(layer)
        types = {"Input": plane, "Output": layer.output_plane, "Sum": sum_type, "Epilogue": stored}
        zero = layer.inputs[i].zero_point if scales else 0
        constants = {"Channel": first, "InputZero": zero, "Serial": layer.serial}
        configs.append(layer.config(f"channels from {first} on, of {name}", types, constants, selection, f"config{i}"))
        first += channels(layer.graph.shape(name))
    declared = f"const unsigned char* const inputs[] = {{{', '.join(layer.bases)}}};"
    return layer.code("concat", Call("n2d2::concat", tuple(configs), ("inputs", "out"), (declared,)), selection=selection)


def _lower_rows(layer: Layer) -> LayerCode:
    op, calls, first = layer.op, [], 0
    lengths = op.lengths([layer.graph.shape(name) for name in layer.node.inputs], layer.node)
    total, slots = sum(lengths), op.slots or tuple(range(len(lengths)))
    rows = elements(layer.output_shape) // total
    for slot, operand, length in zip(slots, operand_pointers(layer, slots), lengths, strict=True):
        sizes, ends = (rows, length, total, first), (operand, output_pointer(layer))
        if slot < 0 or layer.node.rescale is None:
            calls.append(Call("n2d2::arrayConcat", sizes, ends))
        else:
            stored = epilogue(layer, only=slot)
            calls.append(Call("n2d2::arrayConcatRescaled", (stored, layer.inputs[slot].zero_point, *sizes), ends))
        first += length
    return layer.code("array_move", *calls)
