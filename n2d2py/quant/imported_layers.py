"""The integer form of each kind of layer whose scales and weights a file brings.

Factors are float32 quotients in the order of ONNX's operators: (scale_x * scale_w) / scale_y. Element-wise sums are of
real numbers in float32, as DequantizeLinear, Add and QuantizeLinear give them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import FloatRescale, FractionRescale, NumType, Rescale, StepRescale, make_rescale
from n2d2py.arithmetic.interpolated import nearest_defined
from n2d2py.errors import N2D2Error
from n2d2py.graph import Node, QuantNode
from n2d2py.graph.forms import Dequantized, Rescaled, Table, Weighted
from n2d2py.operators.activation import Activation
from n2d2py.operators.affine import Affine
from n2d2py.operators.deconv import Deconv
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.functions import Clip
from n2d2py.operators.quantize import Quantize
from n2d2py.quant.layers import LayerTypes, quantize_layer

__all__ = ["import_layer"]

_OFF_GRID = 0.02
"""Largest distance of a weight from an integer, in steps, that rounding of real weights and scales explains."""
_FRACTION = 1e-3
"""A bias that is nearer to an integer has no fraction."""


def import_layer(node: Node, types: LayerTypes) -> QuantNode:
    """The integer form of one layer, rounding included.

    Raises:
        N2D2Error: E510 an operator without integer arithmetic, E511 an activation that is none, E514 weights that
            the file does not quantize.
    """
    function = _IMPORTERS.get(node.op.kind)
    if function is None or (node.op.kind == "Pool" and node.op.mode == "Max"):
        return quantize_layer(node, types)
    if types.options.rescaling != "Floating-point" and isinstance(node.op, ElemWise) and node.op.operation != "Prod":
        return quantize_layer(node, types)
    return function(node, types)


def _clamp(node: Node, output: NumType) -> tuple[int, int]:
    """The type's range, cut by a clamping activation whose limits are rounded as its results are."""
    if node.activation is None:
        return output.qmin, output.qmax
    if not isinstance(node.activation, Clip):
        raise N2D2Error(
            "E511",
            f"layer '{node.name}': {node.activation.kind} cannot be part of an integer layer",
            where=node.location,
            remedy="quantize what the activation reads too",
        )
    low, high = Quantize(output).stored(np.array([node.activation.low, node.activation.high], np.float64))
    return int(low), int(high)


def _new(node: Node, types: LayerTypes, **fields) -> QuantNode:
    return QuantNode(
        node.name,
        fields.pop("op", node.op),
        list(node.inputs),
        list(node.outputs),
        clamp=_clamp(node, types.output),
        location=node.location,
        source=list(node.source),
        **fields,
    )


def _rescale(node: Node, factors: np.ndarray, bound: int, mode: str) -> Rescale:
    """The rescale of the chosen mode; the weights are as they are, so the shift modes take Fixed-point16."""
    if mode == "Floating-point":
        return FloatRescale(factors)
    wanted = "Fixed-point16" if mode.endswith("-shift") else mode
    rescale, replaced = make_rescale(wanted, factors, max(32, bound.bit_length() + 1))
    if replaced or wanted != mode:
        log.warning(
            "W502",
            f"layer '{node.name}': {mode} cannot hold its factor {float(np.max(factors)):.4g}; "
            f"{type(rescale).__name__} is used",
            where=node.location,
        )
    return rescale


def _weights(node: Node) -> tuple[np.ndarray, np.ndarray]:
    """(integers, scales (O)) of a layer; those of a gain per channel are signs, with the gains as scales."""
    weights = node.params["weights"].astype(np.float64)
    if isinstance(node.op, Affine):
        return np.sign(weights).astype(np.int8), np.where(weights == 0, 1.0, np.abs(weights)).astype(np.float32)
    scales = node.params.get("weight_scales")
    if scales is None:
        raise N2D2Error(
            "E514",
            f"layer '{node.name}' ({node.op.kind}): the file does not quantize its weights",
            where=node.location,
            remedy="quantize the layer too, or give the floating-point network and -calib",
        )
    scales = np.broadcast_to(scales, len(weights))
    steps = weights / scales.astype(np.float64).reshape(-1, *(1,) * (weights.ndim - 1))
    integers = np.rint(steps)
    if np.abs(steps - integers).max(initial=0.0) > _OFF_GRID:
        raise N2D2Error(
            "E514",
            f"layer '{node.name}' ({node.op.kind}): its weights are no integers in the scale that the file gives them",
            where=node.location,
            remedy="quantize the weights per output channel, and behind the folding of gains",
        )
    reach = int(np.abs(integers).max(initial=0.0))
    dtype = (
        np.int8
        if integers.min(initial=0) >= -128 and integers.max(initial=0) <= 127
        else np.int16
        if reach < 2**15
        else np.int32
    )
    return integers.astype(dtype), scales


def _weighted(node: Node, types: LayerTypes) -> QuantNode:
    """acc = b_q + sum of w_q x_q, with the input's zero point in b_q; what b_q leaves is a fraction of the sum."""
    x, mode = types.inputs[0], types.options.rescaling
    integers, scales = _weights(node)
    steps = np.float32(x.scale) * scales
    real = node.params["bias"].astype(np.float64) / (np.float64(x.scale) * scales.astype(np.float64))
    bias = np.rint(real)
    fractions = real - bias
    rows = integers.reshape(len(bias), -1).astype(np.int64)
    bias = bias.astype(np.int64)
    if x.zero_point and not isinstance(node.op, Deconv):
        bias = bias - x.zero_point * rows.sum(axis=1)
        peak = max(x.qmax, -x.qmin)
    else:
        peak = max(x.qmax - x.zero_point, x.zero_point - x.qmin)
    bound = int((np.abs(rows).sum(axis=1) * peak + np.abs(bias)).max())
    factors = steps / np.float32(types.output.scale)
    rescale = _rescale(node, factors, bound, mode)
    small = np.abs(fractions) <= _FRACTION + 4e-7 * np.abs(real)
    if isinstance(rescale, FloatRescale) and not small.all():
        rescale = FractionRescale(factors, np.where(small, 0, fractions))
    acc_type = np.int32 if bound < 2**31 else np.int64
    return _new(node, types, form=Weighted(integers, bias.astype(acc_type)), rescale=rescale, bound=bound)


def _average(node: Node, types: LayerTypes) -> QuantNode:
    """The mean of real numbers in float32; in the fixed-point modes that of the integers without their zero point."""
    if types.options.rescaling == "Floating-point":
        return _new(
            node,
            types,
            rescale=StepRescale(np.float32(types.output.scale)),
            form=Dequantized(np.array([types.inputs[0].scale], np.float32)),
        )
    x, window = types.inputs[0], node.op.kernel[0] * node.op.kernel[1]
    uniform = node.op.count_pad or not any(node.op.pads)
    counts = np.array([window]) if uniform else np.arange(1, window + 1)
    bound = window * max(x.qmax - x.zero_point, x.zero_point - x.qmin, x.qmax, -x.qmin)
    factors = np.float64(x.scale) / (counts * np.float64(types.output.scale))
    return _new(node, types, form=Rescaled(), rescale=_rescale(node, factors, bound, types.options.rescaling), bound=bound)


def _elemwise(node: Node, types: LayerTypes) -> QuantNode:
    """Real numbers, scale_i (q_i - zero point), combined in float32."""
    op = node.op
    weights, shifts = op.coefficients(len(types.inputs))
    if op.operation not in ("Sum", "Prod", "Max", "Min") or any(shifts) or (op.operation != "Sum" and set(weights) != {1}):
        raise N2D2Error(
            "E510",
            f"layer '{node.name}' (ElemWise {op.operation}) has no integer arithmetic",
            where=node.location,
            remedy="replace it by sums, products or limits of tensors",
        )
    scales = np.array([np.float32(kind.scale) * np.float32(weight) for kind, weight in zip(types.inputs, weights, strict=True)])
    return _new(node, types, rescale=StepRescale(np.float32(types.output.scale)), form=Dequantized(scales))


def _activation(node: Node, types: LayerTypes) -> QuantNode:
    """table[q - qmin] for every stored value q; where the function is not defined, its nearest value that is."""
    x = types.inputs[0]
    stored = np.arange(x.qmin, x.qmax + 1)
    with np.errstate(over="ignore"):
        values = node.op.function((stored - x.zero_point).astype(np.float32) * np.float32(x.scale))
    values = nearest_defined(values if node.activation is None else node.activation(values))
    if values is None:
        raise N2D2Error(
            "E504",
            f"layer '{node.name}' ({node.op.function.kind}) is not a number for any of its inputs",
            where=node.location,
            remedy="check the weights and the range of the inputs",
        )
    return _new(replace(node, activation=None), types, form=Table(Quantize(types.output).stored(values)))


def _requantize(node: Node, types: LayerTypes) -> QuantNode:
    """Integers of one type to those of another: a table, or the real numbers of a wide type rounded again."""
    if types.inputs[0].bits == 8:
        return _activation(replace(node, op=Activation(Clip())), types)
    return _elemwise(replace(node, op=ElemWise("Sum")), types)


_IMPORTERS: dict[str, Callable[[Node, LayerTypes], QuantNode]] = {
    **dict.fromkeys(("Conv", "Deconv", "Fc", "Affine"), _weighted),
    "Pool": _average,
    "ElemWise": _elemwise,
    "Activation": _activation,
    "Quantize": _requantize,
}
