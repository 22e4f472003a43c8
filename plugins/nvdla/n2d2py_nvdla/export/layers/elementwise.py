"""Layers that one SDP operation from memory computes: sums, products, gains, activations."""

from __future__ import annotations

import numpy as np

from n2d2py.contracts.functions import Clip, LeakyRectifier
from n2d2py.graph import QuantNode
from n2d2py.graph.forms import Table
from n2d2py_nvdla.export.arithmetic import Post
from n2d2py_nvdla.export.layers.weighted import fold_followers
from n2d2py_nvdla.export.lowering import HardwareTensor, Lowering, int8_table, lowering, refuse

_COMBINE = {"Sum": "sum", "Max": "max", "Min": "min", "Prod": "mul"}


@lowering("ElemWise")
def _elemwise(state: Lowering, node: QuantNode) -> None:
    op = node.op
    weights, shifts = op.coefficients(len(node.inputs))
    if op.operation == "Sum" and len(node.inputs) == 1:
        _scaled(state, node, weights[0], shifts[0])
        return
    if op.operation not in _COMBINE or len(node.inputs) != 2 or any(shifts):
        raise refuse(
            node,
            f"{op.operation} of {len(node.inputs)} inputs{' with shifts' if any(shifts) else ''}",
            "use sums, products, maxima or minima of two tensors",
        )
    if op.operation != "Sum" and any(weight != 1 for weight in weights):
        raise refuse(node, f"{op.operation} with weights", "leave out the weights")
    order = sorted(
        range(2), key=lambda i: -state.values[node.inputs[i]].region.rows * state.values[node.inputs[i]].region.width
    )
    first, second = (state.values[node.inputs[i]] for i in order)
    repeated = first.region.shape != second.region.shape
    if repeated and second.region.shape != (first.region.channels, 1, 1):
        raise refuse(node, f"inputs of {_text(first)} and {_text(second)}", "use equal shapes, or one value per channel")
    own, its = (weights[i] for i in order)
    if not state.integer and its != 1:
        if own != 1:
            raise refuse(node, "a sum of two weighted inputs in fp16", "fold the weights into the layers before")
        (first, second), (own, its) = (second, first), (its, own)
    post = Post(
        np.array([first.scale * own]),
        None,
        state.scale_of(node.output),
        operand=second.region,
        operand_scale=second.scale * its,
        combine=_COMBINE[op.operation],
        repeated=repeated,
    )
    state.from_memory(
        node, node.output, first.region, state.activated(node, post, None if state.integer else node.activation, node.clamp)
    )


def _scaled(state: Lowering, node: QuantNode, weight: float, shift: float) -> None:
    """weight * x + shift."""
    value = state.values[node.inputs[0]]
    shifts = np.full(value.region.channels, shift)
    post = Post(np.array([value.scale * weight]), None, state.scale_of(node.output), after=shifts if shift else None)
    state.from_memory(
        node, node.output, value.region, state.activated(node, post, None if state.integer else node.activation, node.clamp)
    )


def _text(value: HardwareTensor) -> str:
    return "x".join(map(str, value.region.shape))


@lowering("Affine")
def _affine(state: Lowering, node: QuantNode) -> None:
    value = state.values[node.inputs[0]]
    weights, bias = (node.params[role].astype(np.float64).reshape(-1) for role in ("weights", "bias"))
    if state.integer:
        kind = state.graph.type(node.inputs[0])
        unit = node.rescaling.effective() * state.graph.type(node.output).scale
        post = Post(weights * unit * (value.scale / kind.scale), None, state.scale_of(node.output), after=bias * unit)
    else:
        post = Post(weights, None, 1.0, after=bias)
    post = state.activated(node, post, None if state.integer else node.activation, node.clamp)
    post, tensor = fold_followers(state, node, post)
    state.from_memory(node, tensor, value.region, post)


@lowering("Activation", in_bytes=True)
def _activation(state: Lowering, node: QuantNode) -> None:
    value, function = state.values[node.inputs[0]], node.op.function
    scale = state.scale_or(node.output, value.scale)
    post = Post(np.array([value.scale]), None, scale)
    simple = isinstance(function, Clip) or (isinstance(function, LeakyRectifier) and function.high == np.inf)
    if simple or not state.integer:
        post = state.activated(node, post, function, None)
    elif not state.config.has_y:
        raise refuse(
            node,
            f"{state.config.name} has no look-up table for {function.kind}",
            "use a rectifier, or a configuration with look-up tables such as nv_large",
        )
    else:
        kind = state.graph.type(node.inputs[0])
        post = Post(
            np.array([value.scale]), None, scale, table=int8_table(node.form_as(Table).table, kind.qmin), table_scale=kind.scale
        )
    state.from_memory(node, node.output, value.region, post)
