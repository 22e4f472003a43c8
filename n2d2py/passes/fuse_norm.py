"""Gains and shifts of a normalisation of lines become part of it, then of the weights that alone read it.

ArrayNorm, ArrayMap Mul by a constant of a line [, ArrayMap Add of one]   =>  ArrayNorm with gain and shift
ArrayNorm with gain g and shift s, then Conv or Fc                        =>  ArrayNorm, Conv or Fc with W' = W g, b' = b + sum of W s

Views and chosen positions may lie between. The second one only where no gain is more than twice another: the weights of an output have
one scale, so that wide gains would leave the others few steps.
"""

from __future__ import annotations

from math import prod

import numpy as np

from n2d2py.graph import Graph, Node
from n2d2py.operators.arrays.index_select import ArrayIndexSelect
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.arrays.norm import ArrayNorm
from n2d2py.operators.channels_last import FromChannelsLast, ToChannelsLast
from n2d2py.operators.conv import Conv
from n2d2py.operators.fc import Fc
from n2d2py.operators.quantize import is_quantized
from n2d2py.operators.reshape import Reshape
from n2d2py.passes.base import Match, Pass
from n2d2py.passes.linear import scale_inputs


def _of_lines(node: Node, function: str, size: int) -> np.ndarray | None:
    """The constant of `size` elements that a layer combines with every line of its input; None for any other layer."""
    if not isinstance(node.op, ArrayMap) or node.op.function != function or node.activation is not None:
        return None
    op = node.op
    if op.result or sorted(op.slots) != [-1, 0]:
        return None
    index = op.slots.index(-1)
    constant, shape = node.params[f"operand{index}"], op.shapes[index]
    if constant.dtype.kind != "f" or op.shapes[1 - index] != op.dims:
        return None
    last = next((axis for axis in range(len(shape) + 1) if prod(op.dims[axis:]) == size), None)
    if last is None or prod(shape[:last]) != 1:
        return None
    return np.broadcast_to(constant.reshape(shape[last:]), op.dims[last:]).reshape(-1)


class FuseNorm(Pass):
    """ArrayNorm, Mul and Add => ArrayNorm."""

    name = "fuse-norm"
    summary = "gains and shifts merged into normalisations of lines"

    def match(self, graph: Graph, node: Node) -> Match | None:
        op = node.op
        if not isinstance(op, ArrayNorm) or op.part or op.result or node.activation is not None:
            return None
        reader = graph.sole_consumer(node.output)
        if reader is None:
            return None
        gains = _of_lines(reader, "Mul", op.inner)
        shifts = _of_lines(reader, "Add", op.inner)
        return None if gains is None and shifts is None else Match((reader, gains, shifts))

    def rewrite(self, graph: Graph, node: Node, found: tuple[Node, np.ndarray | None, np.ndarray | None]) -> str:
        reader, gains, shifts = found
        size = node.op.inner
        own, shift = node.params.get("gain", np.ones(size, np.float32)), node.params.get("shift", np.zeros(size, np.float32))
        if gains is not None:
            own, shift = own * gains, shift * gains
        if shifts is not None:
            shift = shift + shifts
        graph.absorb(node, reader)
        node.params = {"gain": own.astype(np.float32), "shift": shift.astype(np.float32)}
        return f"it does what {reader.name} did"


_WIDEST_GAINS = 2.0
"""The largest gain over the least one, of gains that become part of weights."""
_MOVES = (FromChannelsLast, ToChannelsLast, Reshape, ArrayIndexSelect)


def _linear_readers(graph: Graph, tensor: str, columns: np.ndarray) -> list[tuple[Node, np.ndarray]] | str:
    """The layers with weights that read a tensor, through what moves its elements, each with the element of a line that an input channel
    (of a Fc an input) is; a clause that says why not, where another layer reads it. `columns`: those of `tensor`, in its shape."""
    if tensor in graph.outputs:
        return "it is a network output"
    found = []
    for reader in graph.consumers(tensor):
        if isinstance(reader.op, _MOVES) and reader.activation is None:
            if isinstance(reader.op, ArrayIndexSelect) and reader.op.positions()[1].any():
                return f"{reader.name} fills positions"
            behind = _linear_readers(graph, reader.output, reader.op.run([columns], reader)[0])
            if isinstance(behind, str):
                return behind
            found += behind
        elif not isinstance(reader.op, (Conv, Fc)):
            return f"it feeds {reader.name} of type {reader.op.kind}"
        elif "weight_scales" in reader.params:
            return f"the weights of {reader.name} are integers"
        else:
            inputs = columns.reshape(columns.shape[1] if isinstance(reader.op, Conv) else columns.size, -1)
            if (inputs != inputs[:, :1]).any():
                return f"a channel of {reader.name} has several elements of a line"
            found.append((reader, inputs[:, 0].astype(np.int64)))
    return found or "nothing reads it"


class FuseNormForward(Pass):
    """ArrayNorm with gain and shift, then Conv or Fc => ArrayNorm without, Conv or Fc."""

    name = "fuse-norm-forward"
    summary = "gains and shifts of normalisations merged into the weights after them"

    def match(self, graph: Graph, node: Node) -> Match | None:
        if not isinstance(node.op, ArrayNorm) or "gain" not in node.params or is_quantized(graph):
            return None
        if node.activation is not None:
            return Match.no(f"it has the activation {node.activation.kind}")
        gains = np.abs(node.params["gain"])
        if not np.isfinite(gains).all() or gains.max() > _WIDEST_GAINS * gains.min():
            return Match.no(f"its gains differ by more than a factor of {_WIDEST_GAINS:g}")
        columns = np.tile(np.arange(node.op.inner, dtype=np.float64), node.op.outer)[None]
        readers = _linear_readers(graph, node.output, columns)
        if isinstance(readers, str):
            return Match.no(readers)
        padded = [reader for reader, _ in readers if isinstance(reader.op, Conv) and any(reader.op.pads)]
        if padded and node.params["shift"].any():
            return Match.no(f"{padded[0].name} pads with zeros, which the shift would change")
        return Match(readers)

    def rewrite(self, graph: Graph, node: Node, found: list[tuple[Node, np.ndarray]]) -> str:
        gain, shift = (node.params[role].astype(np.float64) for role in ("gain", "shift"))
        for reader, columns in found:
            scale_inputs(graph, reader, gain[columns], shift[columns])
        node.params = {}
        return "gain and shift merged into " + ", ".join(reader.name for reader, _ in found)
