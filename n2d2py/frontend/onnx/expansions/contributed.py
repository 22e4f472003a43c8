"""ONNX Runtime's operators (domain com.microsoft) that its optimizer and quantizer write, as ONNX operators.

Source: `docs/ContribOperators.md` of ONNX Runtime.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from n2d2py.frontend.onnx.parts import Parts, Unsupported, expands

_MICROSOFT = "com.microsoft::"
_ACTIVATIONS = {
    "": (),
    "Relu": (),
    "Tanh": (),
    "Sigmoid": (),
    "LeakyRelu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "Clip": ("min", "max"),
}
"""Activation functions of fused layers, and their parameter names."""


def _add_activation(parts: Parts, x: str, out: int | None) -> str:
    """Add the activation function of a fused layer after its node `x`; it produces output `out`."""
    name = parts.attribute("activation", "")
    if name not in _ACTIVATIONS:
        raise Unsupported(f"activation {name} is not supported", f"only {', '.join(_ACTIVATIONS)[2:]} are supported")
    parameters = parts.attribute("activation_params", [])
    if not name:
        return parts.add("Identity", x, out=out)
    if name == "Clip" and parts.opset >= 11:
        return parts.add("Clip", x, *map(parts.number, parameters), out=out)
    return parts.add(name, x, out=out, **dict(zip(_ACTIVATIONS[name], parameters, strict=False)))


@expands(_MICROSOFT + "FusedConv")
def _fused_conv(parts: Parts) -> None:
    """Add Activation(Conv(X, W, B) + Z)."""
    result = parts.add("Conv", *parts.inputs[:3], **parts.attributes("activation", "activation_params"))
    _add_activation(parts, parts.add_input(result, 3), 0)


@expands(_MICROSOFT + "FusedGemm")
def _fused_gemm(parts: Parts) -> None:
    """Add Activation(Gemm(A, B, C)) with activation parameters from separate attributes."""
    own = {name: value for name, value in parts.attributes().items() if name.startswith("activation")}
    result = parts.add("Gemm", *parts.inputs, **parts.attributes(*own))
    name = parts.attribute("activation", "")
    if name not in ("", *_ACTIVATIONS) or name == "Clip":
        raise Unsupported(f"its activation function is {name}")
    attributes = {key.removeprefix("activation_"): value for key, value in own.items() if key != "activation"}
    parts.add(name or "Identity", result, out=0, **{key: attributes[key] for key in _ACTIVATIONS[name] if key in attributes})


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
    """Add Gelu(X + bias) by erf, or by tanh for FastGelu."""
    x = parts.add_input(parts.inputs[0], 1)
    fast = parts.type == "FastGelu"
    if parts.opset >= 20:
        parts.add("Gelu", x, out=0, approximate="tanh" if fast else "none")
        return
    if fast:
        cubic = parts.add("Mul", parts.add("Mul", x, x), x)
        inner = parts.add("Add", x, parts.add("Mul", cubic, parts.number(0.044715)))
        bent = parts.add("Tanh", parts.add("Mul", inner, parts.number((2 / np.pi) ** 0.5)))
    else:
        bent = parts.add("Erf", parts.add("Div", x, parts.number(2**0.5)))
    half = parts.add("Mul", x, parts.number(0.5))
    parts.add("Mul", half, parts.add("Add", bent, parts.number(1)), out=0)


@expands(_MICROSOFT + "QuickGelu")
def _quick_gelu(parts: Parts) -> None:
    """Add x * sigmoid(alpha * x)."""
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
    """Add X + bias + skip."""
    parts.add("Add", parts.add("Add", *parts.inputs[:2]), parts.inputs[2], out=0)


# ---- normalizations -----------------------------------------------------------------------------


def layer_norm(parts: Parts, x: str, rank: int, scale: str, bias: str = "", root: bool = False, out: int | None = None) -> str:
    """Add LayerNormalization over the last axis, or, with `root`, division by the root mean square."""
    epsilon = parts.number(parts.attribute("epsilon", 1e-12 if "Skip" in parts.type else 1e-5))
    if not root:
        x = parts.add("Sub", x, parts.add_along("ReduceMean", x, [rank - 1], 18))
    power = parts.add_along("ReduceMean", parts.add("Mul", x, x), [rank - 1], 18)
    result = parts.add("Div", x, parts.add("Sqrt", parts.add("Add", power, epsilon)))
    if not bias:
        return parts.add("Mul", result, scale, out=out)
    return parts.add("Add", parts.add("Mul", result, scale), bias, out=out)


@expands("SimplifiedLayerNormalization", _MICROSOFT + "SimplifiedLayerNormalization")
def _simplified_norm(parts: Parts) -> None:
    """Add X / sqrt(mean(X^2) + epsilon) * scale."""
    rank, axis = len(parts.dims(0)), parts.attribute("axis", -1)
    if axis % rank != rank - 1 or parts.is_output_used(1):
        raise Unsupported("it normalizes more than the last axis, or its second output is used")
    layer_norm(parts, parts.inputs[0], rank, parts.inputs[1], root=True, out=0)


@expands(_MICROSOFT + "SkipLayerNormalization", _MICROSOFT + "SkipSimplifiedLayerNormalization")
def _skip_norm(parts: Parts) -> None:
    """Add LayerNormalization(X + skip + bias); output 3 is the sum."""
    simple = "Simplified" in parts.type
    if parts.is_output_used(1) or parts.is_output_used(2):
        raise Unsupported("the use of its mean or deviation output is not supported")
    x = parts.add_input(parts.add("Add", *parts.inputs[:2]), 3 if simple else 4)
    if parts.is_output_used(3):
        x = parts.add("Identity", x, out=3)
    bias = parts.inputs[3] if not simple and parts.has(3) else ""
    layer_norm(parts, x, len(parts.dims(0)), parts.inputs[2], bias, simple, out=0)


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
    layer_norm(parts, x, 3, names[5], names[6], out=0)


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
    """Add the ONNX operator between two layout transpositions."""
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
    """Add x * weights, plus the input `bias` if present."""
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
