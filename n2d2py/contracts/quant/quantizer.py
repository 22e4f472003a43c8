"""Quantizers create the integer forms of layers: one for each kind of operator, in one registry.

They alone decide whether a layer has an integer form, also in pre-quantized networks, where scales come from the file instead
of calibration. Below: the building blocks of forms (nodes, clamps, rescales, multipliers), and the layers with weighted sums.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import gcd
from typing import ClassVar, TypeVar

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import FloatRescale, FractionRescale, NumType, Rescale, make_rescale
from n2d2py.arithmetic.weights import MAX_ACCUMULATOR, LayerWeights, Ranging, Rounding, range_nearest, round_nearest
from n2d2py.contracts.functions import ChannelClip, Clip
from n2d2py.contracts.quant.file_rounding import sums_rescale, with_small_constants
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.errors import N2D2Error
from n2d2py.graph import TWICE_UINT8, Node, QuantGraph, QuantNode, Shape
from n2d2py.graph.forms import Aligned, Dequantized, Exponentials, Form, Interpolated, Moved, Rescaled, Table, Weighted
from n2d2py.registry import Registry

_FILE_MODES = ("Floating-point", "Fixed-point-p32")
"""Default rescaling modes of targets, with which layers of a .tflite file keep the rounding of its kernels."""


@dataclass(frozen=True)
class LayerTypes:
    """Input of a quantizer: number types of the layer's inputs and output, options, weight rounding and ranges.

    Attributes:
        weight_bits: width of the weights; None for that of the network.
        cell: largest calibrated cell state, with headroom.
        input_shape: shape of the first input.
        remarks: collects reasons, as clauses, why integers may differ from the kernels of a pre-quantized file.
    """

    inputs: list[NumType]
    output: NumType
    options: QuantOptions
    rounding: Rounding = round_nearest
    ranging: Ranging = range_nearest
    weight_bits: int | None = None
    cell: float | None = None
    input_shape: Shape | None = None
    remarks: list[str] = field(default_factory=list, compare=False)

    def follows_file(self, node: Node) -> bool:
        """True if an 8-bit layer rounds as the kernel of its file does."""
        bytes_alone = max(kind.bits for kind in (*self.inputs, self.output)) <= 8
        return bool(node.rounding) and bytes_alone and self.options.rescaling in _FILE_MODES

    def remark(self, node: Node, reason: str) -> None:
        """Add a reason why results of a layer from a .tflite file may differ from those of its kernel."""
        if node.rounding:
            mode = self.options.rescaling
            self.remarks.append(reason if mode in _FILE_MODES else f"-act-rescaling-mode {mode}")

    @property
    def wide(self) -> bool:
        """True if the layer reads or writes integers of more than 8 bits."""
        return any(kind.bits > 8 for kind in (*self.inputs, self.output))


class Quantizer:
    """Quantizer of an operator. `remedy`: advice for refused layers. `reads_plain`: layers read unscaled integers, as
    indices."""

    reads_plain: ClassVar[bool] = False

    remedy: ClassVar[str] = "remove the layer, set Quantize=0 for it, or export in floating point with -nbbits -32"

    def refuses(self, node: Node) -> str | None:
        """Return the reason why a layer has no integer form, such as "Unpool with overlapping windows"; else None."""
        return None

    def plain(self, node: Node) -> bool:
        """True if a layer can also compute with unscaled 32-bit integers."""
        return False

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        """Return the integer form of a layer that is not refused. Raises N2D2Error (E504, E510, E511 types or activation)."""
        raise NotImplementedError

    def in_files(self, node: Node) -> bool:
        """Return false for a layer that pre-quantized networks compute in floating point between their integers."""
        return True

    def prequantized(self, node: Node, types: LayerTypes) -> QuantNode:
        """Return the integer form of a layer of a pre-quantized network, including its Quantize; by default as `quantize`.
        Raises N2D2Error as `quantize`, and E514 for weights that the file does not quantize."""
        return quantize_layer(node, types)

    def real_params(self, node: QuantNode, graph: QuantGraph) -> dict[str, np.ndarray] | None:
        """Return the real-valued constants, by role, that a layer's integers represent; None if they are not determined."""
        return {} if isinstance(node.form, _WITHOUT_REAL_CONSTANTS) else None


_WITHOUT_REAL_CONSTANTS = (Moved, Rescaled, Aligned, Dequantized, Table, Interpolated, Exponentials)
"""Forms whose constants follow from the operator and the types of its tensors."""

QUANTIZERS: Registry[Quantizer] = Registry("the quantizer of", "n2d2py.operators.catalog")
"""The quantizers by operator kind."""


QuantizerT = TypeVar("QuantizerT", bound=Quantizer)


def quantizer(*kinds: str) -> Callable[[type[QuantizerT]], type[QuantizerT]]:
    """Class decorator: register one object as the quantizer of operator kinds; a second one for a kind is an InternalError."""

    def register(cls: type[QuantizerT]) -> type[QuantizerT]:
        QUANTIZERS.declare(*kinds)(cls())
        return cls

    return register


def refused(node: Node) -> str | None:
    """Return the reason why a layer has no integer form; else None."""
    quantizer = QUANTIZERS.get(node.op.kind)
    return node.op.kind if quantizer is None else quantizer.refuses(node)


def computes_plain(node: Node) -> bool:
    """True if a layer can compute with unscaled 32-bit integers: -nbbits 32."""
    quantizer = QUANTIZERS.get(node.op.kind)
    return quantizer is not None and node.activation is None and quantizer.plain(node)


def refusal(node: Node, what: str, remedy: str | None = None) -> N2D2Error:
    """Return E510 for a layer without an integer form; `what` is the reason of `refuses`."""
    text, advice = f"layer '{node.name}' ({what}) is not supported in integers", QUANTIZERS.get(node.op.kind) or Quantizer
    return N2D2Error("E510", text, where=node.location, remedy=remedy or advice.remedy)


def quantize_layer(node: Node, types: LayerTypes) -> QuantNode:
    """Return the integer form of one layer. Raises N2D2Error (E510 if it has none; as `Quantizer.quantize`)."""
    reason = refused(node)
    if reason is not None:
        raise refusal(node, reason)
    return QUANTIZERS[node.op.kind].quantize(node, types)


def prequantize_layer(node: Node, types: LayerTypes) -> QuantNode:
    """Return the integer form of one layer with scales and weights from a file, including its Quantize. Raises N2D2Error as
    `Quantizer.prequantized`, and E510 for a layer without integer form."""
    quantizer = QUANTIZERS.get(node.op.kind)
    return quantize_layer(node, types) if quantizer is None else quantizer.prequantized(node, types)


# ---- building blocks of forms -------------------------------------------------------------------


def activation_clamp(node: Node, output: NumType) -> tuple[int, int]:
    """Return the inclusive integer range of the output: the type's range, limited by a clamping activation. Raises N2D2Error
    (E511 for an activation that is not a clamp; it must be a separate layer)."""
    if node.activation is None:
        return output.qmin, output.qmax
    if isinstance(node.activation, ChannelClip) and node.activation.low == 0:
        return max(output.zero_point, output.qmin), output.qmax  # no range exceeds the lowest limit
    if not isinstance(node.activation, Clip):
        raise _no_clamp(node, "declare the activation as a separate layer")
    low, high = node.activation.low, node.activation.high
    least = 1 if low > 0 else output.qmin - output.zero_point  # a guard stays one step
    lowest = output.qmin if low == -np.inf else max(round(low / output.scale), least) + output.zero_point
    highest = output.qmax if high == np.inf else round(high / output.scale) + output.zero_point
    return int(np.clip(lowest, output.qmin, output.qmax)), int(np.clip(highest, output.qmin, output.qmax))


def file_clamp(node: Node, output: NumType) -> tuple[int, int]:
    """Return the clamp in a pre-quantized network, with limits rounded like the results of the layer."""
    if node.activation is None:
        return output.qmin, output.qmax
    if not isinstance(node.activation, Clip):
        raise _no_clamp(node, "quantize what the activation reads too")
    low, high = output.quantize_linear(np.array([node.activation.low, node.activation.high], np.float64))
    return int(low), int(high)


def _no_clamp(node: Node, remedy: str) -> N2D2Error:
    kind = node.activation and node.activation.kind
    what = f"layer '{node.name}': {kind} cannot be fused into an integer layer"
    return N2D2Error("E511", what, where=node.location, remedy=remedy)


def peak(kind: NumType) -> int:
    """Return the largest magnitude of stored value minus zero point."""
    return max(kind.qmax - kind.zero_point, kind.zero_point - kind.qmin)


def integer_layer(
    node: Node, form: Form, clamp: tuple[int, int] | None, rescale: Rescale | None = None, bound: int = 0
) -> QuantNode:
    """Return the layer with an integer form."""
    return QuantNode.of(node, form, rescale=rescale, clamp=clamp, bound=bound)


def moved_layer(node: Node, types: LayerTypes) -> QuantNode:
    """Return the integer form of a layer that moves values."""
    return integer_layer(node, Moved(), activation_clamp(node, types.output))


def rescaled_layer(node: Node, types: LayerTypes, factors: np.ndarray, bound: int, form: Form | None = None) -> QuantNode:
    """Return the integer form of a layer whose sums, at most `bound`, are multiplied by `factors`."""
    rescale = rescale_of(node, factors, bound, types.options)
    return integer_layer(node, form or Rescaled(), activation_clamp(node, types.output), rescale, bound)


def summed_layer(node: Node, types: LayerTypes, scale: float, bound: int, form: Form) -> QuantNode:
    """Return the integer form of a layer with sums in units of `scale`, at most `bound`."""
    return rescaled_layer(node, types, np.array([scale / types.output.scale]), bound, form)


def rescale_of(node: Node, factors: np.ndarray, bound: int, options: QuantOptions, weighted: bool = False) -> Rescale:
    """Return the rescale of the chosen mode; Fixed-point16 instead of a shift if no weights can compensate its error."""
    mode = options.rescaling
    if mode.endswith("-shift") and not weighted:
        mode = "Fixed-point16"
    rescale, replaced = make_rescale(mode, factors, _acc_bits(bound))
    if replaced:
        _warn_of_mode(node, options.rescaling, factors, rescale)
    return rescale


def file_rescale(node: Node, factors: np.ndarray, bound: int, mode: str) -> Rescale:
    """Return the rescale in a pre-quantized network; weights are fixed, so shift modes use Fixed-point16."""
    if mode == "Floating-point":
        return FloatRescale(factors)
    wanted = "Fixed-point16" if mode.endswith("-shift") else mode
    rescale, replaced = make_rescale(wanted, factors, _acc_bits(bound))
    if replaced or wanted != mode:
        _warn_of_mode(node, mode, factors, rescale)
    return rescale


def _acc_bits(bound: int) -> int:
    return max(32, int(bound).bit_length() + 1)


def _warn_of_mode(node: Node, mode: str, factors: np.ndarray, rescale: Rescale) -> None:
    reason = f"{mode} cannot represent its factor {float(np.max(factors)):.4g}"
    what = f"layer '{node.name}': {reason}; {type(rescale).__name__} is used instead"
    log.warning("W502", what, where=node.location)


def common_multipliers(factors: np.ndarray, bits: int) -> tuple[list[int], float]:
    """Return the integers m_i with m_i * unit ~ factors_i, |m_i| <= 2^bits, in lowest terms, and the unit, a power of two."""
    unit = 2.0 ** (np.ceil(np.log2(np.max(np.abs(factors)))) - bits)
    whole = [int(v) for v in np.rint(factors / unit)]
    common = gcd(*whole)
    power = common & -common
    return [v // power for v in whole], float(unit * power)


class Moving(Quantizer):
    """Quantizer of operators that move values without arithmetic."""

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        return moved_layer(node, types)


class MovingAnyIntegers(Moving):
    """Quantizer of operators that also move unscaled integers."""

    def plain(self, node: Node) -> bool:
        return True


# ---- weighted sums ------------------------------------------------------------------------------


_WIDE_SUMS = 2**52
"""Limit of 64-bit accumulators that double precision represents exactly."""
_COARSER = 1.1
"""8-bit weights with 16-bit inputs may become this much coarser before 64-bit accumulators are used."""
_COARSER_WIDE = {8: 128.0, 16: 16.0}
"""The same limit for 16-bit weights, by the bit width of the network. In an 8-bit network, 9 effective bits are twice as fine
as the 8 bits they replace. In a 16-bit network, 12 effective bits cost at most 2 dB of 69 and more; 10 bits would cost up to
10 (docs/lab/accuracy.md)."""
_OFF_GRID = 0.02
"""Largest distance of a weight from an integer, in steps, that float rounding of weights and scales explains."""
_FRACTION = 1e-3
"""A bias closer to an integer than this counts as an integer."""
_DOMINANT_BIAS = 2.0**40
"""A bias above this many accumulator steps hides the sum: the rest is below the precision of float32."""


class WeightedQuantizer(Quantizer):
    """Quantizer of layers with acc = b_q + sum of w_q x_q and the factor s_x s_w[o] / s_y for output o.

    Attributes:
        per_output: each output has its own scale, whatever the options say.
        zero_point_in_bias: the zero point of the input is folded into b_q, and padding holds the zero point.
        real_factors: TFLite's kernel multiplies the scales in float32.
    """

    per_output: ClassVar[bool] = False
    zero_point_in_bias: ClassVar[bool] = True
    real_factors: ClassVar[bool] = False

    def weight_shape(self, node: Node, types: LayerTypes) -> tuple[int, ...] | None:
        """Return the shape (C, H, W) of one output's weights if kernels multiply them as bytes in the order H, W, C; else
        None."""
        return None

    def file_weights(self, node: Node) -> tuple[np.ndarray, np.ndarray]:
        """Return integers and scales (O) of a pre-quantized layer. Raises N2D2Error (E514 weights that the file does not
        quantize)."""
        weights = node.params["weights"].astype(np.float64)
        scales = node.params.get("weight_scales")
        if scales is None and node.op.kind == "Deconv":  # QOperator files have it in floating point between their integers
            largest = np.abs(weights).reshape(len(weights), -1).max(axis=1)
            scales = np.where(largest > 0, largest, 1) / 32767
            return np.rint(weights / scales.reshape(-1, *(1,) * (weights.ndim - 1))).astype(np.int16), scales
        if scales is None:
            what = f"layer '{node.name}' ({node.op.kind}) has weights that the file does not quantize"
            remedy = "quantize the layer too, or give the float model and -calib"
            raise N2D2Error("E514", what, where=node.location, remedy=remedy)
        scales = np.broadcast_to(scales, len(weights))
        steps = weights / scales.astype(np.float64).reshape(-1, *(1,) * (weights.ndim - 1))
        integers = np.rint(steps)
        if np.abs(steps - integers).max(initial=0.0) > _OFF_GRID:
            what = f"layer '{node.name}' ({node.op.kind}) has weights that are not integers in the scale of the file"
            remedy = "quantize the weights per output channel, after folding the gains"
            raise N2D2Error("E514", what, where=node.location, remedy=remedy)
        largest = int(np.abs(integers).max(initial=0.0))
        is_byte = integers.min(initial=0) >= -128 and integers.max(initial=0) <= 127
        return integers.astype(np.int8 if is_byte else np.int16 if largest < 2**15 else np.int32), scales

    def has_file_weights(self, node: Node) -> bool:
        """True if `file_weights` returns the integers that the kernel of the file multiplies."""
        return True

    def in_files(self, node: Node) -> bool:
        """True unless the file has float weights."""
        try:
            return "weights" not in node.params or bool(self.file_weights(node))
        except N2D2Error:
            return False

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        """With a Floating-point rescale, b_q also contains the zero point z of the output, as round(z / factor). The error is
        at most half a unit of the accumulator."""
        options, x = types.options, types.inputs[0]
        per_output = options.per_output or self.per_output
        bits = types.weight_bits or options.bits
        limit, order = MAX_ACCUMULATOR, self._reduced_order(node, types, bits)
        weights, bias, methods = node.params["weights"], node.params["bias"], (types.rounding, types.ranging)
        layer_weights = LayerWeights(weights, bias, x.scale, peak(x), bits, per_output, options.wt_clipping, *methods)
        result = layer_weights.quantize(limit, reduced_order=order)
        if result.widened and max(x.bits, bits) > 8:
            free = layer_weights.quantize(_WIDE_SUMS, reduced_order=order)
            if np.max(result.scales / free.scales) > (_COARSER if bits <= 8 else _COARSER_WIDE[options.bits]):
                limit, result = _WIDE_SUMS, free
        factors, reduced = x.scale * result.scales / types.output.scale, result.reduced
        rescale = rescale_of(node, factors if per_output else factors[:1], result.bound, options, weighted=True)
        if options.rescaling in ("Single-shift", "Double-shift"):
            gain = factors / np.broadcast_to(rescale.effective(), factors.shape)
            result = layer_weights.quantize(limit, gain, result.scales)
        if order is not None:
            log.detail("%s: weights up to %.2f times as coarse, so that two 8-bit products fit 16 bits", node.name, reduced)
        if result.widened:
            text = "%s: the weights of %d outputs use a coarser scale, to keep the accumulator within 32 bits"
            log.detail(text, node.name, result.widened)
        bias = result.bias
        if types.output.is_float:
            layer = integer_layer(node, _weighted_form(result.weights, bias, result.bound), None, rescale, result.bound)
            return replace(layer, activation=node.activation)
        if x.zero_point and self.zero_point_in_bias:
            sums = result.weights.reshape(len(bias), -1).sum(axis=1, dtype=np.int64)
            bias = bias - x.zero_point * sums
        zeros = zero_point_terms(rescale, types.output.zero_point, len(bias), 2**31 - 1 - result.bound)
        bound = result.bound + int(zeros.max(initial=0))
        form = _weighted_form(result.weights, bias + zeros, bound)
        layer = integer_layer(node, form, activation_clamp(node, types.output), rescale, bound)
        return replace(layer, zero_in_bias=bool(zeros.any()))

    def prequantized(self, node: Node, types: LayerTypes) -> QuantNode:
        """As `quantize`, with the scales of the file. The part of the bias that b_q cannot hold is a fraction of the
        rescale."""
        x = types.inputs[0]
        integers, scales = self.file_weights(node)
        real = node.params["bias"].astype(np.float64) / (np.float64(x.scale) * scales.astype(np.float64))
        constant = np.abs(real) > _DOMINANT_BIAS  # a gain near 0, of a batch normalization
        if constant.any():
            integers = np.where(constant.reshape(-1, *(1,) * (integers.ndim - 1)), 0, integers).astype(integers.dtype)
            scales = np.where(constant, np.float32(types.output.scale / x.scale), scales).astype(np.float32)
            limit = float(2 * (types.output.qmax - types.output.qmin))
            own_bias = node.params["bias"].astype(np.float64) / types.output.scale
            real = np.where(constant, np.clip(own_bias, -limit, limit), real)
        steps = np.float32(x.scale) * scales
        bias = np.rint(real)
        fractions = real - bias
        rows = integers.reshape(len(bias), -1).astype(np.int64)
        bias = bias.astype(np.int64)
        largest = peak(x)
        if x.zero_point and self.zero_point_in_bias:
            bias = bias - x.zero_point * rows.sum(axis=1)
            largest = max(x.qmax, -x.qmin)
        factors = steps / np.float32(types.output.scale)
        clamp, small = file_clamp(node, types.output), np.abs(fractions) <= _FRACTION + 4e-7 * np.abs(real)
        exact, limits = None, (clamp[0] - types.output.zero_point, clamp[1] - types.output.zero_point)
        if self.has_file_weights(node) and types.follows_file(node) and small.all():
            products = steps if node.rounding == TWICE_UINT8 else np.float64(x.scale) * scales.astype(np.float64)
            wanted = products.astype(np.float64) / np.float64(types.output.scale)
            wanted = factors.astype(np.float64) if self.real_factors else wanted
            bias, exact = with_small_constants(node, bias, wanted, np.asarray(rows.any(axis=1)))
            factors = exact.astype(np.float32)
        bound = int((np.abs(rows).sum(axis=1) * largest + np.abs(bias)).max())
        rescale = None if exact is None else sums_rescale(node, exact, bound, limits)
        if rescale is None:
            types.remark(node, "its sums are not those of a file's integers" if exact is None else "its sums may reach 2^30")
            rescale = file_rescale(node, factors, bound, types.options.rescaling)
        if isinstance(rescale, FloatRescale) and not small.all():
            rescale = FractionRescale(factors, np.where(small, 0, fractions))
        return integer_layer(node, _weighted_form(integers, bias, bound), clamp, rescale, bound)

    def _reduced_order(self, node: Node, types: LayerTypes, bits: int) -> np.ndarray | None:
        """Return the order of an output's weights in the kernels that multiply bytes, for `-wt-reduce-range`; else None."""
        if not types.options.reduce_range or bits > 8 or types.inputs[0].bits != 8:
            return None
        shape = self.weight_shape(node, types)
        return None if shape is None else np.arange(np.prod(shape)).reshape(shape).transpose(1, 2, 0).reshape(-1)


def zero_point_terms(rescale: Rescale, zero_point: int, outputs: int, limit: int) -> np.ndarray:
    """Return the zero point in units of the accumulators (O). Zeros if one would exceed `limit`, and in fixed point, where the
    rescale adds the zero point at no cost."""
    if not isinstance(rescale, FloatRescale):
        return np.zeros(outputs, np.int64)
    with np.errstate(divide="ignore", invalid="ignore"):
        real = np.rint(zero_point / np.broadcast_to(rescale.effective(), outputs))
    return real.astype(np.int64) if np.all(real <= limit) else np.zeros(outputs, np.int64)


def _weighted_form(weights: np.ndarray, bias: np.ndarray, bound: int) -> Weighted:
    return Weighted(weights, bias.astype(np.int32 if bound < 2**31 else np.int64))
