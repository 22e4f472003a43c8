"""Layers that an int8 network computes in floating point: on the accelerator their tensors are bytes as well.

Each takes the scale of the integer tensor that it is converted to after the last of them; conversions cost nothing there.
"""

from __future__ import annotations

import numpy as np

from n2d2py.contracts.functions import Clip
from n2d2py.errors import N2D2Error
from n2d2py.graph import QuantGraph, QuantNode
from n2d2py_nvdla.export.arithmetic import Post
from n2d2py_nvdla.export.lowering import HardwareTensor, Lowering, is_in_bytes, lowering, refuse

_OF_GIVEN_SCALE = ("Concat", "Softmax")
"""Kinds whose scale must come from after them; others keep that of their input, or know one that holds all their values."""

SOFTMAX_SCALE = 1 / 127


def in_floating_point(graph: QuantGraph, node: QuantNode) -> bool:
    """True if a layer of an integer network reads or gives floating point; conversions do not count."""
    return (
        graph.bits > 0
        and node.op.kind != "Convert"
        and any(graph.type(name).is_float for name in (*node.inputs, *node.outputs))
    )


def island_scales(graph: QuantGraph) -> dict[str, float]:
    """Integer that stands for 1 in each floating-point tensor of an integer network; those without a hint are missing."""
    found: dict[str, float] = {}
    for node in reversed(graph.nodes):
        for name in node.inputs:
            if not graph.type(name).is_float or name in found:
                continue
            for result in node.outputs:
                kind = graph.type(result)
                scale = found.get(result) if kind.is_float else kind.scale if node.op.kind == "Convert" else None
                if scale is not None and (node.op.kind in ("Convert", "Pool", "Concat", "Activation") or node.op.moves_values):
                    found[name] = scale
        for name in node.outputs:
            if graph.type(name).is_float and name not in found and node.op.kind == "Softmax" and not node.op.log:
                found[name] = SOFTMAX_SCALE
    return found


def island_problem(state: Lowering, node: QuantNode) -> N2D2Error | None:
    """E715 for a layer in floating point that the accelerator does not have in int8."""
    if not in_floating_point(state.graph, node):
        return None
    limiting = isinstance(node.op.function, Clip) if node.op.kind == "Activation" else True
    if not is_in_bytes(node.op.kind) or node.activation is not None or not limiting:
        return refuse(node, "it stays in floating point in an int8 network", "export with -nbbits -32 for nv_full")
    if node.op.kind in _OF_GIVEN_SCALE and any(
        state.graph.type(name).is_float and name not in state.scales for name in node.outputs
    ):
        return refuse(node, "no layer after it gives the scale of its int8 output", "end the network with a layer in int8")
    return None


@lowering("Convert", in_bytes=True)
def _convert(state: Lowering, node: QuantNode) -> None:
    """Add a conversion if the scale or the place changes; bytes stay bytes."""
    value = state.values[node.inputs[0]]
    wanted = state.scale_of(node.output)
    if node.op.to_float or (
        np.isclose(value.scale, wanted, rtol=1e-6) and node.output not in state.slots and node.output not in state.graph.outputs
    ):
        state.values[node.output] = HardwareTensor(value.region, value.scale)
        return
    state.from_memory(node, node.output, value.region, Post(np.array([value.scale]), None, wanted))
