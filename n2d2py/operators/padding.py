"""Zero padding of an image, or a crop."""

import numpy as np

from n2d2py.contracts.cpp import Layer, LayerCode, cpp, move
from n2d2py.contracts.facets import OnnxWriter, Op, Pads, onnx_emitter, pad, register
from n2d2py.contracts.ini import NB_OUTPUTS, LayerContext, ini
from n2d2py.contracts.onnx.nodes import OnnxNode, Unsupported
from n2d2py.contracts.quant.quantizer import Moving, quantizer
from n2d2py.graph import Node, Shape
from n2d2py.ini.schema import Key, Kind
from n2d2py.memory.access import PoolWindow, memory_access
from n2d2py.operators.arrays.values import Arrays, check_positions, onnx
from n2d2py.operators.quantize import dequantize_constant
from n2d2py.operators.reshape import transpose_source


@register
class Padding(Op):
    """Adds zeros (top, left, bottom, right); negative values crop."""

    pads: Pads
    moves_values = True

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        shape = inputs[0]
        self.require_rank(shape, 4, node)
        top, left, bottom, right = self.pads
        size = (shape[2] + top + bottom, shape[3] + left + right)
        if min(size) < 1:
            what = f"removes the whole input of {shape[3]}x{shape[2]} (width x height)"
            raise self.error("E207", node, what, "crop less")
        return [(*shape[:2], *size)]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [pad(inputs[0], self.pads)]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        return [pad(inputs[0], self.pads, graph.type(node.inputs[0]).zero_point)]


@onnx("Pad")
def _from_onnx(a: Arrays) -> None:
    node, x = a.node, a.input()
    begin, end = _amounts(node, len(x.dims))
    value = node.optional_constant(2, "value")
    fill = float(node.attribute("value", 0.0)) if value is None or not value.size else float(value.reshape(-1)[0])
    if node.inputs[0] in a.builder.integers:
        fill = dequantize_constant(a.builder, node.inputs[0], fill, None if value is None else value.dtype)
    mode = node.attribute("mode", "constant")
    if mode not in ("constant", "reflect", "edge", "wrap"):
        raise Unsupported(f"mode={mode} is not supported")
    check_positions(map(abs, [*begin, *end]))
    a.builder.guard_batch(node, 0, 0, "pads", begin[:1] == end[:1] == [0])
    padded = {axis for axis, amounts in enumerate(zip(begin, end, strict=True)) if any(amounts)}
    if x.image is not None and len(x.dims) == 4 and mode == "constant" and fill == 0 and padded:
        _, order = transpose_source(x.image, a.builder.graph)
        top, left = order.index(2), order.index(3)
        if padded <= {top, left}:
            op = Padding((begin[top], begin[left], end[top], end[left]))
            a.bind(a.before_transpose(lambda _: op, x))
            return
    positions = {}
    for axis in padded:
        before, after, size = begin[axis], end[axis], x.dims[axis]
        line = np.arange(size)[max(0, -before) : size - max(0, -after)]
        ends = (max(0, before), max(0, after))
        if mode == "constant":
            line = np.pad(line, ends, constant_values=-1)
        elif line.size:
            line = np.pad(line, ends, mode)  # type: ignore[call-overload]
        positions[axis] = line.tolist()
    a.bind(a.select(x, positions, fill))


def _amounts(node: OnnxNode, rank: int) -> tuple[list[int], list[int]]:
    pads = node.integers("pads", 1) or ()
    axes = [node.axis_of(axis, rank) for axis in node.integers("axes", 3, range(rank))]
    if len(pads) != 2 * len(axes):
        raise Unsupported(f"it has {len(pads)} pads for {len(axes)} axes")
    begin, end = [0] * rank, [0] * rank
    for index, axis in enumerate(axes):
        begin[axis], end[axis] = int(pads[index]), int(pads[index + len(axes)])
    return begin, end


_SIDES = ("Top", "Left", "Bottom", "Right")


@ini(
    "Padding",
    NB_OUTPUTS,
    *(Key(f"{side}Padding", Kind.INT, doc=f"Zeros on the {side.lower()} side. Negative values crop.") for side in _SIDES),
    doc="Pad with zeros, or crop.",
)
def _from_ini(context: LayerContext) -> None:
    context.add(Padding(tuple(context.values[f"{side}Padding"] for side in _SIDES)), [context.concat_inputs()])


@onnx_emitter("Padding")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    writer.pad(node.inputs[0], node.op.pads, 0.0, output)


memory_access("Padding")(lambda node, graph: PoolWindow((1, 1), pads=node.op.pads, mode="padding"))


quantizer("Padding")(Moving)


@cpp("Padding")
def _lower(layer: Layer) -> LayerCode:
    top, left = layer.op.pads[:2]
    zero = layer.inputs[0].zero_point
    return move(layer, "padding", {"PadTop": top, "PadLeft": left, "InputZero": zero, "Serial": layer.serial})
