"""Permutation of axes."""

from __future__ import annotations

import numpy as np

from n2d2py.contracts.cpp import Layer, LayerCode, cpp, image_axes, move
from n2d2py.contracts.ini import NB_OUTPUTS, WINDOW_KEYS, LayerContext, ini
from n2d2py.contracts.operator import Op, register
from n2d2py.contracts.quant.forming import MovingAnyIntegers
from n2d2py.contracts.quant.quantizer import quantizer
from n2d2py.contracts.reference import OnnxWriter, onnx_emitter
from n2d2py.graph import Graph, Node, Shape
from n2d2py.ini.schema import Key, Kind


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
def _from_ini(context: LayerContext) -> None:
    context.as_images()
    tensor, perm = context.concat_inputs(), context.values["Perm"]
    if sorted(perm) != [0, 1, 2, _BATCH] or perm[_BATCH] != _BATCH:
        what = f"Perm={' '.join(map(str, perm))} does not order the axes X Y C B with B last"
        raise context.fail("E209", what, "give a permutation of 0, 1 and 2, then 3", "Perm")
    # counted from the end, the axes X Y C B are those of (N, C, H, W)
    context.add(Transpose(tuple(_BATCH - perm[_BATCH - axis] for axis in range(4))), [tensor])
    context.require_channels(context.name)


@onnx_emitter("Transpose")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    writer.emit("Transpose", node.inputs, output, perm=list(node.op.perm))


quantizer("Transpose")(MovingAnyIntegers)


@cpp("Transpose")
def _lower(layer: Layer) -> LayerCode:
    """Return the C++ of a transposition. Raise E703 for a tensor with more than three axes after the batch."""
    axes = image_axes(layer, layer.requiring_whole_input().input_shape)
    along = {0: 0, 1: 1, 2: 2}
    for axis, source in zip(axes, layer.op.perm[1:], strict=True):
        along[axis] = axes[source - 1]
    return move(layer, "transpose", {"AxisC": along[0], "AxisH": along[1], "AxisW": along[2]})
