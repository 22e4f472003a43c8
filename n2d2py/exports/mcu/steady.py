"""Layers whose time depends on the data, by name.

All others run the same instructions for every input, on every core: their loops end where shapes say, clamps and maxima are
selections (masks where a core has no conditional instructions), tables are read at any index for the same price.
`tests/microcontrollers/test_steady_time.py` counts.
"""

from __future__ import annotations

from n2d2py.arithmetic import DoublingRescale, FixedPointRescale, Rescale, ShiftRescale
from n2d2py.graph import QuantGraph, QuantNode
from n2d2py.graph.forms import Aligned, Interpolated, Moved, Rescaled, Table, Weighted

_FORMS = (Aligned, Interpolated, Moved, Rescaled, Table, Weighted)
_KINDS = frozenset(
    """
    Activation Concat Conv Convert Deconv DepthToSpace ElemWise Fc IndexSelect Padding Pool Reshape Resize Transpose
    """.split()
)
"""Operators whose integer kernels were counted; of the others nothing is promised."""


def _steady_rescale(rescale: Rescale | None) -> bool:
    return rescale is None or isinstance(rescale, (DoublingRescale, FixedPointRescale, ShiftRescale))


def _reason(graph: QuantGraph, node: QuantNode) -> str:
    tensors = [graph.type(name) for name in (*node.inputs, node.output)]
    if any(kind.is_float for kind in tensors):
        return "it computes in floating point"
    if not _steady_rescale(node.rescale):
        return "it rescales in floating point"
    if node.op.kind == "Concat" and not node.op.concatenates_pixels(graph.shape(node.output)):
        return "the time of a concatenation of rows was not counted"
    if node.op.kind not in _KINDS or not isinstance(node.form, _FORMS):
        return f"the time of {node.op.kind} was not counted"
    return ""


def varying_layers(graph: QuantGraph) -> dict[str, str]:
    """Why the time of a layer may depend on the data, by the name of each layer where it may."""
    reasons = {node.name: _reason(graph, node) for node in graph.nodes}
    return {name: reason for name, reason in reasons.items() if reason}
