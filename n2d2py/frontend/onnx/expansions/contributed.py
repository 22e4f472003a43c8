"""Operators that ONNX Runtime's optimizer and quantizer write (most of domain com.microsoft), as other ONNX operators.

Source: `docs/ContribOperators.md` of ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from n2d2py.frontend.onnx.parts import EXPANSIONS, Parts, Unsupported, expands

_MICROSOFT = "com.microsoft::"
_PARAMETERS = {"LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta"), "Clip": ("min", "max")}
_ACTIVATIONS = ("Relu", "Tanh", "Sigmoid", *_PARAMETERS)
"""Activation functions of fused layers."""


@expands(_MICROSOFT + "FusedConv", _MICROSOFT + "FusedGemm")
def _fused_layer(parts: Parts) -> None:
    """Add Activation(Conv(X, W, B) + Z), or Activation(Gemm(A, B, C)) with activation parameters from separate attributes."""
    own = {name: value for name, value in parts.attributes().items() if name.startswith("activation")}
    name = parts.attribute("activation") or "Identity"
    listed = dict(zip(_PARAMETERS.get(name, ()), own.get("activation_params", ()), strict=False))
    given = listed | {key: own[f"activation_{key}"] for key in _PARAMETERS.get(name, ()) if f"activation_{key}" in own}
    if name not in ("Identity", *_ACTIVATIONS) or (name == "Clip" and not given):
        raise Unsupported(f"activation {name} is not supported", f"only {', '.join(_ACTIVATIONS)} are supported")
    is_conv = parts.type == "FusedConv"
    result = parts.add(parts.type.removeprefix("Fused"), *parts.inputs[: 3 if is_conv else None], **parts.attributes(*own))
    result = parts.add_input(result, 3) if is_conv else result
    if name == "Clip" and parts.opset >= 11:
        parts.add("Clip", result, *map(parts.number, given.values()), out=0)
    else:
        parts.add(name, result, out=0, **given)


@expands(_MICROSOFT + "FusedMatMul", _MICROSOFT + "TransposeMatMul")
def _fused_matmul(parts: Parts) -> None:
    """Add alpha * A' x B'; ' transposes the last two axes, or moves the first axis before the last."""
    factors = []
    for index, side in enumerate("AB"):
        rank, x = len(parts.dims(index)), parts.inputs[index]
        if parts.attribute(f"transBatch{side}", 0):
            raise Unsupported("it moves the batch axis", "export the model without this optimization")
        if parts.attribute(f"trans{side}", 0) and rank > 1:
            x = parts.add("Transpose", x, perm=[*range(rank - 2), rank - 1, rank - 2])
        factors.append(x)
    alpha = parts.attribute("alpha", 1.0)
    if alpha == 1:
        parts.add("MatMul", *factors, out=0)
    else:
        parts.add("Mul", parts.add("MatMul", *factors), parts.number(alpha), out=0)


@expands(_MICROSOFT + "Gelu", _MICROSOFT + "BiasGelu", _MICROSOFT + "FastGelu")
def _gelu(parts: Parts) -> None:
    """Add Gelu(X + bias), with tanh instead of erf for FastGelu."""
    approximate = "tanh" if parts.type == "FastGelu" else "none"
    parts.add("Gelu", parts.add_input(parts.inputs[0], 1), out=0, approximate=approximate)


@expands(_MICROSOFT + "QuickGelu")
def _quick_gelu(parts: Parts) -> None:
    scaled = parts.add("Mul", parts.inputs[0], parts.number(parts.attribute("alpha", 1.702)))
    parts.add("Mul", parts.inputs[0], parts.add("Sigmoid", scaled), out=0)


@expands(_MICROSOFT + "BiasSoftmax")
def _bias_softmax(parts: Parts) -> None:
    """Add Softmax(X + bias) over all axes from `axis` on."""
    rank, axis = len(parts.dims(0)), parts.attribute("axis", 1)
    if axis % rank != rank - 1:
        raise Unsupported(f"its axis {axis} is not the last one", "export the model without this optimization")
    parts.add("Softmax", parts.add("Add", *parts.inputs[:2]), out=0, axis=-1)


@expands(_MICROSOFT + "BiasAdd")
def _bias_add(parts: Parts) -> None:
    parts.add("Add", parts.add("Add", *parts.inputs[:2]), parts.inputs[2], out=0)


# ---- normalizations -----------------------------------------------------------------------------


def _add_norm(parts: Parts, x: str, scale: str, bias: str = "") -> None:
    """Add LayerNormalization over the last axis, or division by the root mean square for the simplified operators."""
    epsilon = parts.attribute("epsilon", 1e-12 if "Skip" in parts.type else 1e-5)
    kind = "RMSNormalization" if "Simplified" in parts.type else "LayerNormalization"
    parts.add(kind, x, *filter(None, (scale, bias)), out=0, epsilon=epsilon)


@expands("SimplifiedLayerNormalization", _MICROSOFT + "SimplifiedLayerNormalization")
def _simplified_norm(parts: Parts) -> None:
    """Add X / sqrt(mean(X^2) + epsilon) * scale."""
    rank, axis = len(parts.dims(0)), parts.attribute("axis", -1)
    if axis % rank != rank - 1 or parts.is_output_used(1):
        raise Unsupported("it normalizes more than the last axis, or its second output is used")
    _add_norm(parts, *parts.inputs[:2])


@expands(_MICROSOFT + "SkipLayerNormalization", _MICROSOFT + "SkipSimplifiedLayerNormalization")
def _skip_norm(parts: Parts) -> None:
    """Add LayerNormalization(X + skip + bias); output 3 is the sum."""
    simple = "Simplified" in parts.type
    if parts.is_output_used(1) or parts.is_output_used(2):
        raise Unsupported("the use of its mean or deviation output is not supported")
    x = parts.add_input(parts.add("Add", *parts.inputs[:2]), 3 if simple else 4)
    if parts.is_output_used(3):
        x = parts.add("Identity", x, out=3)
    _add_norm(parts, x, parts.inputs[2], parts.inputs[3] if not simple and parts.has(3) else "")


@expands(_MICROSOFT + "EmbedLayerNormalization")
def _embed_norm(parts: Parts) -> None:
    """Add LayerNormalization of the summed word, position and segment embeddings."""
    names, length = [*parts.inputs, *[""] * 9][:9], parts.dims(0)[1]
    words = parts.add("Gather", names[2], names[0], axis=0)
    places = names[8] or parts.add_constant("positions", np.arange(length)[None])
    x = parts.add("Add", words, parts.add("Gather", names[3], places, axis=0))
    if names[1] and names[4]:
        x = parts.add("Add", x, parts.add("Gather", names[4], names[1], axis=0))
    if parts.is_output_used(1):
        raise Unsupported("the use of its mask output is not supported", "export the model without this optimization")
    if parts.is_output_used(2):
        x = parts.add("Identity", x, out=2)
    _add_norm(parts, x, *names[5:7])


@expands(_MICROSOFT + "GroupNorm")
def _group_norm(parts: Parts) -> None:
    """Add GroupNormalization of (N, H, W, C) or channels first, optionally followed by SiLU."""
    x, dims, last = parts.inputs[0], parts.dims(0), parts.attribute("channels_last", 1)
    if last:
        x = parts.add("Transpose", x, perm=[0, 3, 1, 2])
        dims = (dims[0], dims[3], dims[1], dims[2])
    groups, channels = parts.attribute("groups"), dims[1]
    if not groups or channels % groups:
        raise Unsupported(f"its {channels} channels are not {groups} equal groups")
    ones, zeros = (parts.add_constant("unit", np.full(groups, value, np.float32)) for value in (1, 0))
    flat = parts.reshape(x, 0, groups, -1)
    flat = parts.add("InstanceNormalization", flat, ones, zeros, epsilon=parts.attribute("epsilon", 1e-5))
    x = parts.reshape(flat, 0, *dims[1:])
    for operator, index in (("Mul", 1), ("Add", 2)):
        x = parts.add(operator, x, parts.reshape(parts.inputs[index], channels, 1, 1))
    if parts.attribute("activation", 0):
        x = parts.add("Mul", x, parts.add("Sigmoid", x))
    parts.add("Transpose" if last else "Identity", x, out=0, **({"perm": [0, 2, 3, 1]} if last else {}))


@expands(_MICROSOFT + "NhwcMaxPool", _MICROSOFT + "NhwcConv")
def _channels_last(parts: Parts) -> None:
    operator, attributes = parts.type.removeprefix("Nhwc"), parts.attributes()
    first = parts.add("Transpose", parts.inputs[0], perm=[0, 3, 1, 2])
    weights = [parts.add("Transpose", parts.inputs[1], perm=[0, 3, 1, 2])] if operator == "Conv" else []
    result = parts.add(operator, first, *weights, *parts.inputs[2:], **attributes)
    parts.add("Transpose", result, out=0, perm=[0, 2, 3, 1])


# ---- low-bit weights, scales at run time ------------------------------------------------------


@expands(_MICROSOFT + "MatMulNBits")
def _matmul_nbits(parts: Parts) -> None:
    """Add X x W'; W (N, K) is stored in blocks of a row, each with a scale and a zero point."""
    bits, block = parts.attribute("bits", 4), parts.attribute("block_size", 32)
    rows, columns = parts.attribute("N"), parts.attribute("K")
    if bits not in (2, 4, 8) or not rows or not columns or not block or parts.has(4):
        raise Unsupported(f"{bits} bits, or blocks in the order of g_idx, are not supported")
    blocks = -(-columns // block)
    stored = _unpack_bits(parts.constant(1, "weights"), bits).reshape(rows, blocks, block).astype(np.float32)
    scales = parts.constant(2, "scales").astype(np.float32).reshape(rows, blocks, 1)
    zeros: Any = parts.optional_constant(3, "zero points")
    if zeros is None:
        zeros = np.float32(1 << (bits - 1))
    elif zeros.dtype == np.uint8:
        zeros = _unpack_bits(zeros.reshape(rows, -1), bits)[:, :blocks, None].astype(np.float32)
    else:
        zeros = zeros.astype(np.float32).reshape(rows, blocks, 1)
    weights = ((stored - zeros) * scales).reshape(rows, -1)[:, :columns]
    weights_name = parts.add_constant("weights", np.ascontiguousarray(weights.T))
    _add_matmul(parts, parts.inputs[0], weights_name, 5)


def _add_matmul(parts: Parts, x: str, weights: str, bias: int) -> None:
    if parts.has(bias):
        parts.add("Add", parts.add("MatMul", x, weights), parts.inputs[bias], out=0)
    else:
        parts.add("MatMul", x, weights, out=0)


def _unpack_bits(stored: np.ndarray, bits: int) -> np.ndarray:
    """Unpack 2-, 4- or 8-bit values from bytes along the last axis, lowest bits first."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return (stored[..., None] >> shifts & (1 << bits) - 1).reshape(*stored.shape[:-1], -1)


@expands(_MICROSOFT + "DynamicQuantizeMatMul", _MICROSOFT + "MatMulIntegerToFloat")
def _dynamic_matmul(parts: Parts) -> None:
    """Add X x W + bias with dequantized weights; X is not rounded, since calibration determines its scale."""
    dynamic = parts.type == "DynamicQuantizeMatMul"
    scale, zero, bias = (2, 3, 4) if dynamic else (3, 5, 6)
    weights, x = parts.constant(1, "weights").astype(np.float32), parts.inputs[0]
    offset = parts.optional_constant(zero, "zero points")
    weights = (weights - (0 if offset is None else offset.astype(np.float32))) * parts.constant(scale, "scales")
    weights_name = parts.add_constant("weights", weights.astype(np.float32))
    if not dynamic:
        x = parts.add("DequantizeLinear", x, parts.inputs[2], *parts.inputs[4:5])
    _add_matmul(parts, x, weights_name, bias)


# ---- QOperator nodes: DequantizeLinear, the float operator, QuantizeLinear -----------------------


@dataclass(frozen=True)
class _Form:
    """Input layout of an operator: `operands` are indices of (x, scale, zero point), `result` is the index of the output scale,
    `bias` is the index of an int32 bias in the scale of the product of the first two operands."""

    operator: str
    operands: tuple[int, ...] = (0,)
    result: int = 3
    bias: int | None = None


_FORMS = {
    "QLinearConv": _Form("Conv", (0, 3), 6, 8),
    "QLinearMatMul": _Form("MatMul", (0, 3), 6),
    _MICROSOFT + "QGemm": _Form("Gemm", (0, 3), 7, 6),
    _MICROSOFT + "QLinearAdd": _Form("Add", (0, 3), 6),
    _MICROSOFT + "QLinearMul": _Form("Mul", (0, 3), 6),
    **{
        f"{_MICROSOFT}QLinear{name}": _Form(name)
        for name in ("Sigmoid", "LeakyRelu", "Softmax", "GlobalAveragePool", "AveragePool", "ReduceMean")
    },
}
"""Form by operator (with its domain)."""


def _expand_form(form: _Form, parts: Parts) -> None:
    """Add the nodes of a form; an int32 bias becomes a float constant.

    Raises Unsupported: the layout is not channels first, or scales are not constant.
    """
    if parts.attribute("channels_last", 0):
        raise Unsupported("channels-last (NHWC) tensors are not supported", "quantize an NCHW model")
    needed = [index for position in form.operands for index in (position, position + 1)]
    if not needed or not all(map(parts.has, needed)):
        raise Unsupported(f"it has {len(parts.inputs)} inputs, which is too few", "export the model again")
    axis = 0 if form.operator == "Conv" or parts.attribute("transB", 0) else 1
    reals = [parts.add("DequantizeLinear", *parts.inputs[position : position + 3], axis=axis) for position in form.operands]
    if form.bias is not None and parts.has(form.bias):
        reals.append(parts.add_constant("bias", _dequantize_bias(parts, (form.bias, *(index + 1 for index in form.operands)))))
    attributes, grid = parts.attributes("channels_last", "opset"), parts.inputs[form.result : form.result + 2]
    if not parts.has(form.result):
        parts.add(form.operator, *reals, out=0, **attributes)
    else:
        parts.add("QuantizeLinear", parts.add(form.operator, *reals, **attributes), *grid, out=0)


for _name, _form in _FORMS.items():
    EXPANSIONS.add(_name, partial(_expand_form, _form))


@expands(_MICROSOFT + "QLinearConcat")
def _concat(parts: Parts) -> None:
    """Add a Concat of any number of operands, which follow the scale and zero point of the result."""
    _expand_form(_Form("Concat", tuple(range(2, len(parts.inputs), 3)), 0), parts)


def _dequantize_bias(parts: Parts, places: Sequence[int]) -> np.ndarray:
    """Return B * scale_x * scale_w in float64; `places` are the input indices of the three."""
    bias, x, w = (parts.constant(index, "bias or scale").astype(np.float64).reshape(-1) for index in places)
    if x.size != 1 or w.size not in (1, bias.size):
        raise Unsupported("its scales and its bias differ in length", "quantize the model again")
    return bias * x * w
