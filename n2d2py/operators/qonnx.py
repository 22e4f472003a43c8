"""QONNX: quantizers of any bit width as separate operators (Brevitas, FINN, hls4ml).

Quant: y = s (clamp(round(x / s + z), limits of the bits) - z); BipolarQuant: y = s if x >= 0, else -s. Definitions:
github.com/fastmachinelearning/qonnx, docs/qonnx-custom-ops.
"""

from __future__ import annotations

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.contracts.onnx.nodes import OnnxNode, Unsupported
from n2d2py.operators.arrays.values import Arrays, onnx
from n2d2py.operators.quantize import Quantize, integer_limits

_DOMAINS = ("qonnx.custom_op.general", "onnx.brevitas")
_MAX_BITS = 16
"""Largest bit width of activations; constants may have 32."""


def _positive_scale(node: OnnxNode) -> np.ndarray:
    scale = node.constant(1, "scale").astype(np.float32)
    if not np.all((scale > 0) & np.isfinite(scale)):
        raise Unsupported("its scale is not a positive number", "quantize the model again")
    return scale


def _limits(node: OnnxNode) -> tuple[int, int, int, bool]:
    """Return (bits, smallest integer, largest integer, signed)."""
    widths = node.constant(3, "bit width").reshape(-1)
    if widths.size != 1 or float(widths[0]) != int(widths[0]) or not 1 <= int(widths[0]) <= 32:
        raise Unsupported(f"its bit width {widths.tolist()} is not supported", "give one whole number of bits")
    bits, signed = int(widths[0]), bool(node.attribute("signed", 1))
    mode = str(node.attribute("rounding_mode", "ROUND"))
    if mode.upper() not in ("ROUND", "HALF_EVEN"):
        raise Unsupported(f"rounding_mode={mode} is not supported", "round to the nearest integer, ties to even (ROUND)")
    low, high = integer_limits(bits, signed)
    if node.attribute("narrow", 0):
        low, high = (low + 1, high) if signed else (low, high - 1)
    if low >= high:
        raise Unsupported(f"{bits} bits leave a single integer", "use BipolarQuant for binary weights")
    return bits, low, high, signed


@onnx(*(f"{domain}::{name}" for domain in _DOMAINS for name in ("Quant", "IntQuant")))
def _quant(a: Arrays) -> None:
    node, builder = a.node, a.builder
    scale, zero = _positive_scale(node), node.constant(2, "zero point").astype(np.float64)
    bits, low, high, signed = _limits(node)
    if not np.array_equal(zero, np.rint(zero)):
        raise Unsupported("its zero point is not a whole number", "quantize the model again")
    if node.is_constant(0):
        values = node.constant(0, "input")
        steps = np.rint(values.astype(np.float32) / scale + zero.astype(np.float32)).astype(np.float64)
        builder.constants[node.name] = ((np.clip(steps, low, high) - zero) * scale).astype(np.float32)
        builder.weight_scales[node.name] = np.broadcast_to(scale, values.shape)
        return
    if bits > _MAX_BITS:
        raise Unsupported(f"{bits}-bit activations are not supported", f"use {_MAX_BITS} or fewer")
    if scale.size != 1 or zero.size != 1:
        raise Unsupported("activations quantized per channel are not supported", "quantize activations per tensor")
    stored = 8 if bits <= 8 else 16
    value = int(zero.item())
    if not low <= value <= high:
        raise Unsupported(f"its zero point {value} is not a {bits}-bit integer", "quantize the model again")
    least, most = (None, None) if (low, high) == integer_limits(stored, signed) else (low, high)
    kind = NumType(stored, signed, scale=scale.item(), zero_point=value, full=signed, least=least, most=most)
    builder.layer(node, Quantize(kind), [node.tensor()])


@onnx(*(f"{domain}::BipolarQuant" for domain in _DOMAINS))
def _bipolar(a: Arrays) -> None:
    node, builder = a.node, a.builder
    if not node.is_constant(0):
        raise Unsupported("binary activations (signs) are not supported", "quantize activations to unsigned integers")
    scale, values = _positive_scale(node), node.constant(0, "input")
    builder.constants[node.name] = (np.where(values >= 0, 1.0, -1.0) * scale).astype(np.float32)
    builder.weight_scales[node.name] = np.broadcast_to(scale, values.shape)


@onnx(*(f"{domain}::Trunc" for domain in _DOMAINS))
def _trunc(a: Arrays) -> None:
    raise Unsupported("it drops the lowest bits of its input, which is not supported", "put a Quant after the average pool")
