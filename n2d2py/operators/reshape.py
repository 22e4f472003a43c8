"""Layers that change the shape or the order of values, or nothing: Identity, Reshape, Transpose, and the views of memory that the
export adds."""

from math import prod

import numpy as np

from n2d2py.contracts.cpp import Layer, LayerCode, copy, cpp, image_axes, move
from n2d2py.contracts.facets import OnnxWriter, Op, onnx_emitter, register
from n2d2py.contracts.ini import NB_OUTPUTS, WINDOW_KEYS, LayerContext, ini
from n2d2py.contracts.quant.quantizer import Moving, MovingAnyIntegers, quantizer
from n2d2py.graph import Graph, Node, Shape, dims_text, elements, in_memory_order, n2d2_dims, of_memory_order
from n2d2py.ini.schema import Key, Kind
from n2d2py.memory.access import Joined, View, memory_access, same_order


@register
class Identity(Op):
    """y = x."""

    moves_values = True

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [inputs[0]]


@register
class Dropout(Identity):
    """y = x at inference; `ratio` is the fraction of values dropped in training."""

    ratio: float = 0.5


_RATIO = Key("Dropout", Kind.FLOAT, 0.5, "Fraction of values dropped in training.")


@ini("Dropout", NB_OUTPUTS, *WINDOW_KEYS, _RATIO, config=(_RATIO,), doc="Dropout layer. Removed at inference.")
def _from_ini_identity(context: LayerContext) -> None:
    context.add(Dropout(ratio=context.values["Dropout"]), [context.concat_inputs()])


@ini(
    "TargetBias",
    NB_OUTPUTS,
    Key("Bias", Kind.FLOAT, doc="Margin: added in training to the output of the right class where that is above -Bias."),
    doc="Additive margin of a loss (AM-Softmax). A section [<layer>.Target] names the right class. Removed at inference.",
)
def _target_bias_from_ini(context: LayerContext) -> None:
    context.add(Identity(), [context.concat_inputs()])


@onnx_emitter("Identity", "Dropout")
def emit_identity(writer: OnnxWriter, node: Node, output: str) -> None:
    """Emit a copy of the input."""
    writer.emit("Identity", node.inputs, output)


memory_access("Identity", "Dropout", "Reshape")(same_order)
quantizer("Identity", "Reshape", "Transpose")(MovingAnyIntegers)
quantizer("Dropout", "MemoryView")(Moving)
cpp("Identity", "Dropout")(copy)


@register
class Reshape(Op):
    """The elements in row-major (C, H, W) order as `dims`, the shape without the batch axis."""

    dims: tuple[int, ...]
    moves_values = True

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        if prod(self.dims) != prod(inputs[0][1:]):
            old, new = (dims_text(dims) for dims in (inputs[0][1:], self.dims))
            raise self.error("E208", node, f"cannot change {old} to {new}", "keep the number of elements")
        return [(inputs[0][0], *self.dims)]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [inputs[0].reshape(len(inputs[0]), *self.dims)]


@ini(
    "Reshape",
    NB_OUTPUTS,
    *WINDOW_KEYS,
    Key("Dims", Kind.INTS, doc="Dimensions X Y C of the result. 0: dimension of the input. -1 (once): inferred.", minimum=-1),
    doc="Reshape the elements in the order x + X * (y + Y * c).",
)
def _from_ini_reshape(context: LayerContext) -> None:
    tensor, dims = context.concat_inputs(), list(context.values["Dims"])
    shape = context.graph.shape(tensor)
    if not 1 <= len(dims) <= 3 or dims.count(-1) > 1:
        what = f"Dims with {len(dims)} values, {dims.count(-1)} of them -1, is not a shape"
        raise context.fail("E208", what, "give X Y C with at most one -1", "Dims")
    if len(dims) == 1:
        dims = [1, 1, dims[0] or shape[1]]  # a vector
    elif len(dims) == 2:
        dims = [dims[0], 1, dims[1]]  # a sequence of X positions
    dims = [size or old for size, old in zip(dims, n2d2_dims(shape), strict=True)]
    if -1 in dims:
        dims[dims.index(-1)] = elements(shape) // -prod(dims) or 1
    context.add(Reshape(tuple(reversed(dims))), [tensor])
    context.require_channels(context.name)


@onnx_emitter("Reshape")
def _emit_reshape(writer: OnnxWriter, node: Node, output: str) -> None:
    writer.emit("Reshape", [node.inputs[0], writer.constant([0, *node.op.dims])], output)


@cpp("Reshape")
def _lower_reshape(layer: Layer) -> LayerCode:
    for shape in (layer.requiring_whole_input().input_shape, layer.output_shape):
        image_axes(layer, shape)
    return move(layer, "reshape", {"Serial": 0})


@register
class Transpose(Op):
    """Output axis i is input axis perm[i]; axis 0 is the batch and stays first."""

    perm: tuple[int, ...]
    moves_values = True

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        shape = inputs[0]
        if sorted(self.perm) != list(range(len(shape))) or self.perm[0] != 0:
            what = f"has the permutation {list(self.perm)}, which does not keep the batch axis of a rank-{len(shape)} tensor"
            raise self.error("E209", node, what, "keep the batch axis in place")
        return [tuple(shape[axis] for axis in self.perm)]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [inputs[0].transpose(self.perm)]


def transpose_source(tensor: str, graph: Graph) -> tuple[str, tuple[int, ...]]:
    """Return (source, p): axis i of `tensor` is axis p[i] of `source`.

    `source` is the input of the transposition that produces `tensor`; without one, `tensor` itself.
    """
    producer = graph.producer(tensor)
    if producer is not None and isinstance(producer.op, Transpose):
        return producer.inputs[0], producer.op.perm
    return tensor, tuple(range(len(graph.shape(tensor))))


_BATCH = 3


@ini(
    "Transpose",
    NB_OUTPUTS,
    *WINDOW_KEYS,
    Key(
        "Perm", Kind.UINTS, doc="Input axis of each of the axes X Y C B of the result. 1 0 2 3 swaps X and Y. B (3) stays last."
    ),
    doc="Permute the axes.",
)
def _from_ini_transpose(context: LayerContext) -> None:
    context.as_images()
    tensor, perm = context.concat_inputs(), context.values["Perm"]
    if sorted(perm) != [0, 1, 2, _BATCH] or perm[_BATCH] != _BATCH:
        what = f"Perm={' '.join(map(str, perm))} does not order the axes X Y C B with B last"
        raise context.fail("E209", what, "give a permutation of 0, 1 and 2, then 3", "Perm")
    # counted from the end, the axes X Y C B are those of (N, C, H, W)
    context.add(Transpose(tuple(_BATCH - perm[_BATCH - axis] for axis in range(4))), [tensor])
    context.require_channels(context.name)


@onnx_emitter("Transpose")
def _emit_transpose(writer: OnnxWriter, node: Node, output: str) -> None:
    writer.emit("Transpose", node.inputs, output, perm=list(node.op.perm))


@cpp("Transpose")
def _lower_transpose(layer: Layer) -> LayerCode:
    axes = image_axes(layer, layer.requiring_whole_input().input_shape)
    along = {0: 0, 1: 1, 2: 2}
    for axis, source in zip(axes, layer.op.perm[1:], strict=True):
        along[axis] = axes[source - 1]
    return move(layer, "transpose", {"AxisC": along[0], "AxisH": along[1], "AxisW": along[2]})


@register
class MemoryView(Op):
    """The elements of the input in memory order as a tensor of `dims`, without the batch axis.

    The array (1, W * C) is the image (C, 1, W) with element c of row w at channel c of column w.
    """

    dims: Shape
    moves_values = True

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        if elements(inputs[0]) != prod(self.dims):
            text = dims_text(inputs[0][1:])
            raise self.error("E208", node, f"requires {prod(self.dims)} elements, but its input has shape {text}")
        return [(inputs[0][0], *self.dims)]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [of_memory_order(in_memory_order(inputs[0]), (1, *self.dims))]


@onnx_emitter("MemoryView")
def _emit_view(writer: OnnxWriter, node: Node, output: str) -> None:
    writer.flat(writer.array(node.inputs[0], (-1,)), output)


memory_access("MemoryView")(lambda node, graph: View())


@register
class Columns(Op):
    """Columns [first, stop) of the input (N, C, H, W)."""

    first: int
    stop: int
    moves_values = True
    is_part = True

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        return [(*inputs[0][:3], self.stop - self.first)]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [inputs[0][..., self.first : self.stop]]


@register
class SideBySide(Op):
    """Concatenation of the inputs (N, C, H, W) along the columns."""

    moves_values = True

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        return [(*inputs[0][:3], sum(shape[3] for shape in inputs))]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [np.concatenate(inputs, axis=3)]


memory_access("SideBySide")(lambda node, graph: Joined())
