"""Quantization of layers with weighted sums."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import FloatRescale, FractionRescale, Rescale
from n2d2py.arithmetic.weights import MAX_ACCUMULATOR, LayerWeights
from n2d2py.contracts.quant.file_rounding import sums_rescale, with_small_constants
from n2d2py.contracts.quant.forming import activation_clamp, file_clamp, file_rescale, integer_layer, peak, rescale_of
from n2d2py.contracts.quant.quantizer import LayerTypes, Quantizer
from n2d2py.errors import N2D2Error
from n2d2py.graph import TWICE_UINT8, Node, QuantNode, Weighted

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
        """Return the shape (C, H, W) of one output's weights if the kernels multiply them as bytes in the order H, W, C; else
        None."""
        return None

    def file_weights(self, node: Node) -> tuple[np.ndarray, np.ndarray]:
        """Return the integers and the scales (O) of a layer of a pre-quantized network.

        Raises:
            N2D2Error: E514 for weights that the file does not quantize.
        """
        return _file_weights(node)

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
        """As `quantize`, with the scales of the file. The part of the bias that b_q cannot hold becomes a fraction of the
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
        """Return the order of an output's weights in the kernels that multiply bytes, for layers that `-wt-reduce-range`
        applies to; else None."""
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


def _file_weights(node: Node) -> tuple[np.ndarray, np.ndarray]:
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
