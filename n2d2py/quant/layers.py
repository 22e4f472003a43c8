"""How each kind of layer becomes integer: its constants, its rescale, its clamp."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import gcd

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import NumType, make_rescale
from n2d2py.arithmetic.interpolated import fit_knots, nearest_defined
from n2d2py.errors import N2D2Error
from n2d2py.graph import Node, QuantNode
from n2d2py.graph.shapes import Shape
from n2d2py.operators.conv import Conv
from n2d2py.operators.deconv import Deconv
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.fc import Fc
from n2d2py.operators.functions import ChannelClip, Clip
from n2d2py.operators.resize.op import WEIGHT_BITS
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.weights import Rounding, quantize_weights, round_nearest
from n2d2py.registry import Registry

__all__ = [
    "LayerTypes",
    "activation_clamp",
    "common_multipliers",
    "has_quantizer",
    "moved",
    "peak",
    "quantize_layer",
    "quantizer",
    "summed",
]


@dataclass(frozen=True)
class LayerTypes:
    """What a layer's quantizer may use: number types of its inputs and of its output, options, rounding of weights.

    `weight_bits` is the width of the layer's weights; None for that of the network. `input_shape` is the shape of the first input.
    """

    inputs: list[NumType]
    output: NumType
    options: QuantOptions
    rounding: Rounding = round_nearest
    weight_bits: int | None = None
    input_shape: Shape | None = None

    @property
    def wide(self) -> bool:
        """Whether the layer reads or writes integers of more than 8 bits."""
        return any(kind.bits > 8 for kind in (*self.inputs, self.output))


_WIDE_SUMS = 2**52
"""Limit of 64-bit accumulators, exact in double precision."""

_COARSER = 1.1
"""Weights under 16-bit inputs may get so much coarser before their sums take 64 bits instead."""

Quantizer = Callable[[Node, LayerTypes], QuantNode]
QUANTIZERS: Registry[Quantizer] = Registry("the quantizer of")
"""The integer forms by operator kind."""


def quantizer(*kinds: str) -> Callable[[Quantizer], Quantizer]:
    """Registers the quantizer of operator kinds; a second one for a kind is an InternalError."""

    def register(function: Quantizer) -> Quantizer:
        for kind in kinds:
            QUANTIZERS.add(kind, function)
        return function

    return register


def has_quantizer(kind: str) -> bool:
    """Whether an operator kind has an integer form."""
    return kind in QUANTIZERS


def quantize_layer(node: Node, types: LayerTypes) -> QuantNode:
    """The integer form of one layer.

    Raises:
        N2D2Error: E510 when the operator has none.
    """
    function = QUANTIZERS.get(node.op.kind)
    if function is None:
        raise N2D2Error(
            "E510",
            f"layer '{node.name}' ({node.op.kind}) has no integer arithmetic",
            where=node.location,
            remedy="remove the layer or export in floating point with -nbbits -32",
        )
    return function(node, types)


def activation_clamp(node: Node, output: NumType) -> tuple[int, int]:
    """Inclusive integer range of the output: the type's range cut by a clamping activation.

    Raises:
        N2D2Error: E511 for an activation that is not a clamp (it must be a layer of its own).
    """
    if node.activation is None:
        return output.qmin, output.qmax
    if isinstance(node.activation, ChannelClip) and node.activation.low == 0:
        return max(output.zero_point, output.qmin), output.qmax  # no range exceeds the lowest limit
    if not isinstance(node.activation, Clip):
        raise N2D2Error(
            "E511",
            f"layer '{node.name}': {node.activation.kind} cannot be part of an integer layer",
            where=node.location,
            remedy="declare the activation as a layer of its own",
        )
    low, high = node.activation.low, node.activation.high
    limits = [
        output.qmin if low == -np.inf else round(low / output.scale) + output.zero_point,
        output.qmax if high == np.inf else round(high / output.scale) + output.zero_point,
    ]
    return (int(np.clip(limits[0], output.qmin, output.qmax)), int(np.clip(limits[1], output.qmin, output.qmax)))


def _peak(kind: NumType) -> int:
    """Largest magnitude of stored value minus zero point."""
    return max(kind.qmax - kind.zero_point, kind.zero_point - kind.qmin)


def _new(node: Node, types: LayerTypes, **fields) -> QuantNode:
    return QuantNode(
        node.name,
        node.op,
        list(node.inputs),
        list(node.outputs),
        clamp=activation_clamp(node, types.output),
        location=node.location,
        source=list(node.source),
        **fields,
    )


def _acc_bits(bound: int) -> int:
    return max(32, int(bound).bit_length() + 1)


def _rescale(node: Node, factors: np.ndarray, bound: int, options: QuantOptions):
    """The rescale of the chosen mode; a shift needs weights that take up its error, else Fixed-point16."""
    mode = options.rescaling
    if mode.endswith("-shift") and "weights" not in node.params:
        mode = "Fixed-point16"
    rescale, replaced = make_rescale(mode, factors, _acc_bits(bound))
    if replaced:
        log.warning(
            "W502",
            f"layer '{node.name}': {options.rescaling} cannot hold its factor "
            f"{float(np.max(factors)):.4g}; {type(rescale).__name__} is used",
            where=node.location,
        )
    return rescale


def peak(kind: NumType) -> int:
    """Largest magnitude of stored value minus zero point."""
    return _peak(kind)


def common_multipliers(factors: np.ndarray, bits: int) -> tuple[list[int], float]:
    """Integers m_i of at most `bits` bits with m_i * unit ~ factors_i, and the unit, a power of two."""
    return _multipliers(factors, bits)


def moved(node: Node, types: LayerTypes) -> QuantNode:
    """The integer form of a layer that moves values."""
    return _new(node, types)


def summed(node: Node, types: LayerTypes, scale: float, bound: int, constants: dict[str, np.ndarray]) -> QuantNode:
    """The integer form of a layer that makes sums in which 1 stands for `scale`, and that reach `bound`."""
    rescale = _rescale(node, np.array([scale / types.output.scale]), bound, types.options)
    return _new(node, types, rescale=rescale, bound=bound, params=constants)


def _reduced_order(node: Node, types: LayerTypes, bits: int) -> np.ndarray | None:
    """The order of an output's weights in the kernels that multiply bytes, for a layer that `-wt-reduce-range` concerns."""
    if not types.options.reduce_range or bits != 8 or types.inputs[0].bits != 8:
        return None
    weights = node.params["weights"]
    if isinstance(node.op, Conv) and not node.op.is_depthwise(node):
        shape = weights.shape[1:]
    elif isinstance(node.op, Fc) and types.input_shape is not None:
        shape = (*types.input_shape[1:], 1, 1)[:3]
    else:
        return None
    return np.arange(weights[0].size).reshape(shape).transpose(1, 2, 0).reshape(-1)


@quantizer("Conv", "Deconv", "Fc", "Affine")
def _weighted(node: Node, types: LayerTypes) -> QuantNode:
    """acc = b_q + sum of w_q x_q; factor of output o: s_x s_w[o] / s_y."""
    options, x = types.options, types.inputs[0]
    per_output = options.per_output or node.op.kind == "Affine"
    bits = types.weight_bits or options.bits
    limit, order = 2**31 - 1 if bits == 8 else _WIDE_SUMS, _reduced_order(node, types, bits)
    quantize = partial(
        quantize_weights,
        node.params["weights"],
        node.params["bias"],
        x.scale,
        _peak(x),
        bits=bits,
        per_output=per_output,
        clipping=options.wt_clipping,
        rounding=types.rounding,
    )
    result = quantize(limit=limit, reduced_order=order)
    if result.widened and x.bits > 8 and bits == 8:
        free = quantize(limit=_WIDE_SUMS, reduced_order=order)
        if np.max(result.scales / free.scales) > _COARSER:
            limit, result = _WIDE_SUMS, free
    factors, reduced = x.scale * result.scales / types.output.scale, result.reduced
    rescale = _rescale(node, factors if per_output else factors[:1], result.bound, options)
    if options.rescaling in ("Single-shift", "Double-shift"):
        gain = factors / np.broadcast_to(rescale.effective(), factors.shape)
        result = quantize(limit=limit, gain=gain, scales=result.scales)
    if order is not None:
        log.detail("%s: weights up to %.2f times as coarse, so that products of bytes fit 16 bits", node.name, reduced)
    if result.widened:
        log.detail(
            "%s: the weights of %d outputs use a coarser scale, to keep the accumulator within 32 bits",
            node.name,
            result.widened,
        )
    bias = result.bias
    if x.zero_point and not isinstance(node.op, Deconv):
        sums = result.weights.reshape(len(bias), -1).sum(axis=1, dtype=np.int64)
        bias = bias - x.zero_point * sums
    acc_type = np.int32 if result.bound < 2**31 else np.int64
    return _new(
        node, types, params={"weights": result.weights, "bias": bias.astype(acc_type)}, rescale=rescale, bound=result.bound
    )


@quantizer("Pool")
def _pool(node: Node, types: LayerTypes) -> QuantNode:
    """Max: no arithmetic. Average: acc = sum of the window; factor s_x / (count s_y)."""
    if node.op.mode == "Max":
        return _new(node, types)
    x, window = types.inputs[0], node.op.kernel[0] * node.op.kernel[1]
    uniform = node.op.count_pad or not any(node.op.pads)
    counts = np.array([window]) if uniform else np.arange(1, window + 1)
    bound = window * _peak(x)
    factors = x.scale / (counts * types.output.scale)
    return _new(node, types, rescale=_rescale(node, factors, bound, types.options), bound=bound)


def _multipliers(factors: np.ndarray, bits: int) -> tuple[list[int], float]:
    """Integers m_i with m_i * unit ~ factors_i, |m_i| <= 2^bits, in lowest terms; and the unit, a power of two."""
    unit = 2.0 ** (np.ceil(np.log2(np.max(np.abs(factors)))) - bits)
    whole = [int(v) for v in np.rint(factors / unit)]
    common = gcd(*whole)
    power = common & -common
    return [v // power for v in whole], float(unit * power)


@quantizer("ElemWise")
def _elemwise(node: Node, types: LayerTypes) -> QuantNode:
    """Sum: acc = sum of m_i q_i + offset, m_i ~ w_i s_i / (s_y unit) in 14 bits (22 where a tensor has 16 bits).

    The unit is a power of two, so the rescale is exact in every mode.
    """
    op, options = node.op, types.options
    peaks = [_peak(kind) for kind in types.inputs]
    scales = np.array([kind.scale for kind in types.inputs])
    weights, shifts = (np.array(v, np.float64) for v in op.coefficients(len(types.inputs)))
    if op.operation == "EuclideanSum" or (op.operation in ("Max", "Min") and (np.any(weights != 1) or np.any(shifts))):
        raise N2D2Error(
            "E510",
            f"layer '{node.name}' (ElemWise {op.operation}) has no integer arithmetic",
            where=node.location,
            remedy="export in floating point with -nbbits -32",
        )
    if op.operation == "Prod":
        bound = int(np.prod([float(p) for p in peaks]))
        factor = float(np.prod(scales)) / types.output.scale
        rescale = _rescale(node, np.array([factor]), bound, options)
        return _new(
            node,
            types,
            rescale=rescale,
            bound=bound,
            params={"multipliers": np.ones(len(peaks), np.int32), "offset": np.zeros(1, np.int32)},
        )
    multipliers, unit = _multipliers(weights * scales / types.output.scale, 22 if types.wide else 14)
    offset = round(float(shifts.sum()) / (unit * types.output.scale)) if op.operation == "Sum" else 0
    bound = sum(abs(m) * p for m, p in zip(multipliers, peaks, strict=True)) + abs(offset)
    acc_type = np.int32 if bound < 2**31 else np.int64
    rescale = _rescale(node, np.array([unit]), bound, options)
    return _new(
        node,
        types,
        rescale=rescale,
        bound=bound,
        params={"multipliers": np.array(multipliers, acc_type), "offset": np.array([offset], acc_type)},
    )


@quantizer("Activation")
def _activation(node: Node, types: LayerTypes) -> QuantNode:
    """table[q - qmin] = quantized f(s_x (q - zero point)) for every stored input value q, or knots between which inputs
    of 16 bits are interpolated; where f is not defined, its value at the nearest q where it is."""
    x = types.inputs[0]
    if x.bits > 8 and isinstance(node.op.function, Clip):  # a sum of one, and the clamp of its output
        return _elemwise(replace(node, op=ElemWise("Sum"), activation=node.op.function), types)
    first = x.qmin if x.bits == 8 else -(2**15) if x.signed else 0
    stored = np.arange(first, x.qmax + (2 if x.bits > 8 else 1))
    with np.errstate(all="ignore"):
        values = nearest_defined(node.op.function(x.dequantize(stored).astype(np.float64)))
    if values is None:
        raise N2D2Error(
            "E504",
            f"layer '{node.name}' ({node.op.function.kind}) is not a number for any of its inputs",
            where=node.location,
            remedy="check the weights and the range of the inputs",
        )
    y = types.output
    if x.bits > 8:
        knots, _ = fit_knots(values / y.scale + y.zero_point, y.qmin, y.qmax)
        if knots is not None:
            return _new(node, types, params={"knots": knots})
        log.notice(
            "%s: %s of 16 bits takes a table of 65536 entries: lines between 4096 of them would be off by more than one step",
            node.name,
            node.op.function.kind,
        )
        values = values[x.qmin - first : -1]
    return _new(node, types, params={"table": y.quantize(values)})


@quantizer("Concat")
def _concat(node: Node, types: LayerTypes) -> QuantNode:
    """Inputs of the output's type are copied; otherwise each is rescaled by s_i / s_y."""
    if all(kind == types.output for kind in types.inputs):
        return _new(node, types)
    factors = np.array([kind.scale / types.output.scale for kind in types.inputs])
    bound = max(_peak(kind) for kind in types.inputs)
    return _new(node, types, rescale=_rescale(node, factors, bound, types.options), bound=bound)


@quantizer("Padding", "Take", "DepthToSpace", "SpaceToDepth", "Reshape", "Transpose", "Identity", "Dropout", "ArrayTake")
def _moving(node: Node, types: LayerTypes) -> QuantNode:
    return _new(node, types)


@quantizer("Convert")
def _convert(node: Node, types: LayerTypes) -> QuantNode:
    """To floating point: no constants. From it: factor 1 / s_y in float32. Between integers: factor s_x / s_y."""
    x, y = types.inputs[0], types.output
    if y.is_float:
        return QuantNode(
            node.name, node.op, list(node.inputs), list(node.outputs), location=node.location, source=list(node.source)
        )
    if x.is_float:
        return _new(node, types, rescale=make_rescale("Floating-point", np.array([1 / y.scale]))[0])
    bound = _peak(x)
    return _new(node, types, rescale=_rescale(node, np.array([x.scale / y.scale]), bound, types.options), bound=bound)


@quantizer("Resize")
def _resize(node: Node, types: LayerTypes) -> QuantNode:
    """Nearest: no arithmetic. Bilinear: acc = sum of q times weights that add up to 2^22; factor 2^-22."""
    if node.op.mode == "Nearest":
        return _new(node, types)
    x = types.inputs[0]
    bound = max(x.qmax, -x.qmin) << 2 * WEIGHT_BITS
    factor = np.array([2.0 ** (-2 * WEIGHT_BITS)])
    return _new(node, types, rescale=_rescale(node, factor, bound, types.options), bound=bound)


@quantizer("Unpool")
def _unpool(node: Node, types: LayerTypes) -> QuantNode:
    """No arithmetic; overlapping windows would need sums beyond the range of the type."""
    if node.op.overlaps:
        raise N2D2Error(
            "E510",
            f"layer '{node.name}' (Unpool with overlapping windows) has no integer arithmetic",
            where=node.location,
            remedy="use a stride of the size of the window, or export in floating point with -nbbits -32",
        )
    return _new(node, types)
