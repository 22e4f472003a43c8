"""Local response normalization on the CDP."""

from __future__ import annotations

import numpy as np

from n2d2py.contracts.operator import make_operator
from n2d2py.graph import QuantNode
from n2d2py_nvdla import firmware
from n2d2py_nvdla.export.arithmetic import fixed_point
from n2d2py_nvdla.export.hardware import HwOp
from n2d2py_nvdla.export.lowering import Lowering, lowering, refuse
from n2d2py_nvdla.export.small_networks import SmallNetwork, self_test
from n2d2py_nvdla.export.tables import integer_normalization_table, normalization_table
from n2d2py_nvdla.firmware import CDP

_COMPUTED = ("Conv", "Fc", "Deconv", "Affine")
"""Kinds whose own constants are 0 after the last channel."""


@lowering("LRN", in_bytes=True)
def _lrn(state: Lowering, node: QuantNode) -> None:
    op, value = node.op, state.values[node.inputs[0]]
    if op.size not in (3, 5, 7, 9) or node.activation is not None or op.k <= 0 or op.alpha < 0:
        raise refuse(
            node,
            f"LRN over {op.size} channels, alpha {op.alpha:g}, k {op.k:g}"
            + (", with an activation" if node.activation is not None else ""),
            "use 3, 5, 7 or 9 channels",
        )
    if value.region.channels % state.lanes and not _zero_behind(state, node.inputs[0]):
        raise refuse(
            node,
            f"{value.region.channels} channels end inside of an atom of {state.lanes}, and what fills it is not 0",
            "use a multiple of the atom's channels",
        )
    cdp = np.zeros((), firmware.CDP_OP)
    cdp["in_precision"] = cdp["out_precision"] = state.precision
    cdp["local_size"] = op.size
    for name in ("in_cvt", "out_cvt"):
        cdp[name]["scale"], cdp[name]["enable"] = 1, 1
    sums = np.array([0.0, op.size * (127 * value.scale) ** 2])  # the factor is largest at one of their ends
    scale = state.scale_or(node.output, value.scale * float(np.max((op.k + op.alpha * sums) ** -op.beta)))
    if state.integer:
        lut, fraction = integer_normalization_table(op.alpha * value.scale**2, op.beta, op.k, op.size)
        factor, shift = fixed_point(value.scale / scale / 2.0**fraction)
        cdp["out_cvt"]["scale"], cdp["out_cvt"]["truncate"] = int(factor[0]), shift
    else:
        lut = normalization_table(op.alpha, op.beta, op.k)
    result = state.result(node.output)
    chain = [HwOp(CDP, firmware.descriptor(cdp), {"src_data": value.region, "dst_data": result}, lut)]
    state.finish(node, node.output, result, scale, [chain])


def _zero_behind(state: Lowering, tensor: str) -> bool:
    """True if the lanes after the last channel hold 0: they are neighbours of it for this engine."""
    node = next((one for one in state.graph.nodes if tensor in one.outputs), None)
    if node is None:
        return True
    function = node.op.function if node.op.kind == "Activation" else node.activation
    if function is not None and function(np.zeros((1, 1, 1, 1)))[0, 0, 0, 0] != 0:
        return False
    if node.clamp is not None and not node.clamp[0] <= 0 <= node.clamp[1]:
        return False
    return node.op.kind in _COMPUTED or all(_zero_behind(state, name) for name in node.inputs)


@self_test("10_lrn", "CDP with its look-up table")
def _self_test(net: SmallNetwork) -> str:
    return net.conv("conv2", net.add("lrn", make_operator("LRN", 5, 0.5, 0.75, 1.0), net.conv("conv1", "input", 32)), 8)
