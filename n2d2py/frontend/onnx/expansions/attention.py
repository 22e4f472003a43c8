"""ONNX Runtime's fused attention (domain com.microsoft) as matrix products and a Softmax.

Source: `docs/ContribOperators.md` of ONNX Runtime. Past keys and values and separate relative positions are refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from n2d2py.frontend.onnx.parts import Parts, Unsupported, expands

_OTHER_FORM = "export the model without this optimization"


@expands("com.microsoft::Attention")
def _attention(parts: Parts) -> None:
    """Add self-attention of X (N, S, D) with one matrix (D, Q + K + V) and bias; outputs (N, S, V)."""
    _refuse_past(parts, 4, 6)
    width = parts.constant(1, "weights").shape[1]
    sizes = list(parts.attribute("qkv_hidden_sizes", [])) or [width // 3] * 3
    projected = parts.add_input(parts.add("MatMul", *parts.inputs[:2]), 2)
    if sum(sizes) != width:
        raise Unsupported(f"its weights make {width} values, not {'+'.join(map(str, sizes))}")
    _add_attention(parts, parts.split(projected, 2, sizes), [parts.dims(0)[1]] * 2, sizes, 3)


@expands("com.microsoft::MultiHeadAttention")
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
    heads = parts.attribute("num_heads")
    if not heads or any(size % heads for size in sizes):
        raise Unsupported(f"its {'+'.join(map(str, sizes))} values are not {heads} equal heads")
    if parts.attribute("do_rotary", 0):
        raise Unsupported("rotary embedding of queries and keys is not supported", _OTHER_FORM)

    def headed(x: str, count: int, size: int, perm: list[int]) -> str:
        return parts.add("Transpose", parts.reshape(x, 0, count, heads, size // heads), perm=perm)

    scale = parts.attribute("scale", 0.0) or (sizes[0] // heads) ** -0.5
    left = headed(parts.add("Mul", query, parts.number(scale)), length, sizes[0], [0, 2, 1, 3])
    scores = parts.add("MatMul", left, headed(key, others, sizes[1], [0, 2, 3, 1]))
    lowest = parts.attribute("mask_filter_value", -10000.0)
    scores = parts.add_input(scores, 5)
    if parts.has(mask):
        scores = parts.add("Add", scores, _mask_scores(parts, mask, lowest, others))
    if parts.attribute("unidirectional", 0):
        later = np.triu(np.full((length, others), lowest, np.float32), others - length + 1)
        scores = parts.add("Add", scores, parts.add_constant("later", later))
    shares = parts.add("Softmax", scores, axis=-1)
    result = parts.add("MatMul", shares, headed(value, others, sizes[2], [0, 2, 1, 3]))
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


@expands("com.microsoft::RotaryEmbedding")
def _rotary(parts: Parts) -> None:
    """Rotate halves (or, interleaved, pairs) of each head by its position's angles; X is (N, S, D) or (N, heads, S, size)."""
    dims, cosines, sines = parts.dims(0), parts.constant(2, "cosines"), parts.constant(3, "sines")
    size = 2 * cosines.shape[1]
    if len(dims) not in (3, 4) or parts.attribute("rotary_embedding_dim", 0) not in (0, size):
        raise Unsupported("a rotary embedding of a part of each head is not supported")
    length, shape = dims[-2], dims[1:]
    if len(dims) == 3:
        if dims[2] % size:
            raise Unsupported(f"its {dims[2]} values are not heads of {size}")
        shape = (length, dims[2] // size, size)
    places = parts.optional_constant(1, "positions")
    if places is None:
        raise Unsupported("its positions are missing")
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
