"""Operators that ONNX Runtime's optimizer and quantizer write (most of domain com.microsoft), as other ONNX operators.

Source: `docs/ContribOperators.md` of ONNX Runtime.
"""

from collections.abc import Sequence
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
    x, last = parts.inputs[0], parts.attribute("channels_last", 1)
    if last:
        x = parts.add("Transpose", x, perm=[0, 3, 1, 2])
    numbers = {"num_groups": parts.attribute("groups", 0), "epsilon": parts.attribute("epsilon", 1e-5)}
    x = parts.add("GroupNormalization", x, *parts.inputs[1:3], **numbers)
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


_FORMS: dict[str, tuple[str, tuple[int, ...], int, int | None]] = {
    "QLinearConv": ("Conv", (0, 3), 6, 8),
    "QLinearMatMul": ("MatMul", (0, 3), 6, None),
    _MICROSOFT + "QGemm": ("Gemm", (0, 3), 7, 6),
    **{f"{_MICROSOFT}QLinear{name}": (name, (0, 3), 6, None) for name in ("Add", "Mul")},
    **{
        f"{_MICROSOFT}QLinear{name}": (name, (0,), 3, None)
        for name in ("Sigmoid", "LeakyRelu", "Softmax", "GlobalAveragePool", "AveragePool", "ReduceMean")
    },
}
"""By operator (with its domain): the float operator, and the arguments of `_add_float_form`."""


def _add_float_form(operator: str, operands: tuple[int, ...], result: int, bias: int | None, parts: Parts) -> None:
    """Add the float operator between its quantizers; an int32 bias becomes a float constant.

    `operands`: indices of (x, scale, zero point); `result`: index of the output scale; `bias`: index of a bias in the scale of
    the product of the first two operands.
    """
    if parts.attribute("channels_last", 0):
        raise Unsupported("channels-last (NHWC) tensors are not supported", "quantize an NCHW model")
    axis = 0 if operator == "Conv" or parts.attribute("transB", 0) else 1
    reals = [parts.add("DequantizeLinear", *parts.inputs[position : position + 3], axis=axis) for position in operands]
    if bias is not None and parts.has(bias):
        reals.append(parts.add_constant("bias", _dequantize_bias(parts, (bias, *(index + 1 for index in operands)))))
    attributes, grid = parts.attributes("channels_last", "opset"), parts.inputs[result : result + 2]
    if not parts.has(result):
        parts.add(operator, *reals, out=0, **attributes)
    else:
        parts.add("QuantizeLinear", parts.add(operator, *reals, **attributes), *grid, out=0)


for _name, _form in _FORMS.items():
    EXPANSIONS.add(_name, partial(_add_float_form, *_form))


@expands(_MICROSOFT + "QLinearConcat")
def _concat(parts: Parts) -> None:
    """Add a Concat of any number of operands, which follow the scale and zero point of the result."""
    _add_float_form("Concat", tuple(range(2, len(parts.inputs), 3)), 0, None, parts)


def _dequantize_bias(parts: Parts, places: Sequence[int]) -> np.ndarray:
    """Return B * scale_x * scale_w in float64; `places` are the input indices of the three."""
    bias, x, w = (parts.constant(index, "bias or scale").astype(np.float64).reshape(-1) for index in places)
    if x.size != 1 or w.size not in (1, bias.size):
        raise Unsupported("its scales and its bias differ in length", "quantize the model again")
    return bias * x * w


# ---- attention: matrix products and a Softmax, without past keys and values ---------------------

_OTHER_FORM = "export the model without this optimization"


@expands(_MICROSOFT + "Attention")
def _attention(parts: Parts) -> None:
    """Add self-attention of X (N, S, D) with one matrix (D, Q + K + V) and bias; outputs (N, S, V)."""
    _refuse_past(parts, 4, 6)
    width = parts.constant(1, "weights").shape[1]
    sizes = list(parts.attribute("qkv_hidden_sizes", [])) or [width // 3] * 3
    projected = parts.add_input(parts.add("MatMul", *parts.inputs[:2]), 2)
    if sum(sizes) != width:
        raise Unsupported(f"its weights make {width} values, not {'+'.join(map(str, sizes))}")
    _add_attention(parts, parts.split(projected, 2, sizes), [parts.dims(0)[1]] * 2, sizes, 3)


@expands(_MICROSOFT + "MultiHeadAttention")
def _multi_head_attention(parts: Parts) -> None:
    """Add attention of query (N, S, D), key (N, T, D) and value (N, T, V), with one bias for all three."""
    _refuse_past(parts, 6, 7)
    for index in (0, 1, 2):
        if len(parts.dims(index)) != 3:
            raise Unsupported("packed or four-dimensional query, key and value are not supported", _OTHER_FORM)
    sizes, names = [parts.dims(index)[2] for index in (0, 1, 2)], parts.inputs[:3]
    if parts.has(3):
        biases = np.split(parts.constant(3, "bias"), np.cumsum(sizes)[:2])
        names = [parts.add("Add", x, parts.add_constant("bias", one)) for x, one in zip(names, biases, strict=True)]
    _add_attention(parts, names, [parts.dims(index)[1] for index in (0, 1)], sizes, 4)


def _refuse_past(parts: Parts, *inputs: int) -> None:
    if any(map(parts.has, inputs)) or any(map(parts.is_output_used, range(1, 4))):
        raise Unsupported("past keys and values are not supported", _OTHER_FORM)


def _add_attention(parts: Parts, names: Sequence[str], lengths: Sequence[int], sizes: Sequence[int], mask: int) -> None:
    """Add Softmax(scale * Q K' + bias) V for each head; `lengths` of Q and K, `mask` is the index of the key mask input."""
    (query, key, value), (length, others) = names, lengths
    heads, kinds = parts.attribute("num_heads", 0), ("query", "key", "value")
    each = [parts.divide(size, f"values per {kind}", heads, f"{heads} heads") for size, kind in zip(sizes, kinds, strict=True)]
    if parts.attribute("do_rotary", 0):
        raise Unsupported("rotary embedding of queries and keys is not supported", _OTHER_FORM)

    def headed(x: str, count: int, size: int, perm: list[int]) -> str:
        return parts.add("Transpose", parts.reshape(x, 0, count, heads, size), perm=perm)

    scale = parts.attribute("scale", 0.0) or each[0] ** -0.5
    left = headed(parts.add("Mul", query, parts.number(scale)), length, each[0], [0, 2, 1, 3])
    scores = parts.add("MatMul", left, headed(key, others, each[1], [0, 2, 3, 1]))
    lowest = parts.attribute("mask_filter_value", -10000.0)
    scores = parts.add_input(scores, 5)
    if parts.has(mask):
        scores = parts.add("Add", scores, _mask_scores(parts, mask, lowest, others))
    if parts.attribute("unidirectional", 0):
        later = np.triu(np.full((length, others), lowest, np.float32), others - length + 1)
        scores = parts.add("Add", scores, parts.add_constant("later", later))
    shares = parts.add("Softmax", scores, axis=-1)
    result = parts.add("MatMul", shares, headed(value, others, each[2], [0, 2, 1, 3]))
    parts.reshape(parts.add("Transpose", result, perm=[0, 2, 1, 3]), 0, length, sizes[2], out=0)


def _mask_scores(parts: Parts, index: int, lowest: float, others: int) -> str:
    """Return an addend of the scores: zero for keys whose mask (N, T) or (N, S, T) is 1."""
    dims = parts.dims(index)
    if len(dims) not in (2, 3) or dims[-1] != others:
        raise Unsupported("a mask of lengths is not supported", "export it with a mask of ones and zeros for each key")
    real = parts.add("Cast", parts.inputs[index], to=1)
    shape = (0, 1, 1, others) if len(dims) == 2 else (0, 1, dims[1], others)
    lost = parts.add("Sub", parts.number(1), parts.reshape(real, *shape))
    return parts.add("Mul", lost, parts.number(lowest))


@expands(_MICROSOFT + "RotaryEmbedding")
def _rotary(parts: Parts) -> None:
    """Rotate halves (or, interleaved, pairs) of each head by its position's angles; X is (N, S, D) or (N, heads, S, size)."""
    dims, cosines, sines = parts.dims(0), parts.constant(2, "cosines"), parts.constant(3, "sines")
    size = 2 * cosines.shape[1]
    if len(dims) not in (3, 4) or parts.attribute("rotary_embedding_dim", 0) not in (0, size):
        raise Unsupported("a rotary embedding of a part of each head is not supported")
    length, shape = dims[-2], dims[1:]
    if len(dims) == 3:
        shape = (length, parts.divide(dims[2], "values", size, f"heads of {size}"), size)
    places = parts.constant(1, "positions")
    positions = np.arange(length) + places.reshape(-1)[0] if places.size == 1 else places.reshape(-1, length)[0]
    form = (length, 1, -1) if len(dims) == 3 else (1, length, -1)
    angles = [table[positions].reshape(form) for table in (cosines, sines)]
    pairs = (*shape[:-1], size // 2, 2) if parts.attribute("interleaved", 0) else (*shape[:-1], 2, size // 2)
    axis = 3 if pairs[-2] == 2 and not parts.attribute("interleaved", 0) else 4
    split = parts.reshape(parts.inputs[0], 0, *pairs)
    first, second = (parts.reshape(one, 0, *shape[:-1], size // 2) for one in parts.split(split, axis, (1, 1)))
    cos, sin = (parts.add_constant("angles", one) for one in angles)
    rotated = (
        parts.add("Sub", parts.add("Mul", first, cos), parts.add("Mul", second, sin)),
        parts.add("Add", parts.add("Mul", first, sin), parts.add("Mul", second, cos)),
    )
    single = [1 if positions == axis - 1 else one for positions, one in enumerate(pairs)]
    both = [parts.reshape(one, 0, *single) for one in rotated]
    parts.reshape(parts.add("Concat", *both, axis=axis), 0, *dims[1:], out=0)
