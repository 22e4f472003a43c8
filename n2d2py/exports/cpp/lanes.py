"""Constants of the kernels that multiply two outputs at once: `kernels/n2d2/mcu/lanes.hpp`.

Two weights share a 16-bit lane, 256 * wB + wA, and a word holds the lanes of two inputs. The sums of both outputs come from two
products, exact while the sum of B is below 2^23.
"""

from __future__ import annotations

import numpy as np

from n2d2py.arithmetic import FixedPointRescale, NumType
from n2d2py.exports.cpp.isa import LANES, PAIRS, having
from n2d2py.exports.cpp.layer import Layer
from n2d2py.exports.cpp.parts import Stream
from n2d2py.exports.cpp.variants import Selection

_OUTPUTS = 4
_INPUTS = 8
_LIMIT = 2**23
_SHIFT = 32


def _sums(weights: np.ndarray, bias: np.ndarray, kind: NumType) -> np.ndarray:
    """The largest magnitude of bias + sum of w x, per output, for stored inputs of any value."""
    w, (least, most) = weights.astype(np.int64), (-128, 127) if kind.signed else (0, 255)
    low = np.minimum(w * least, w * most).sum(axis=1) + bias
    high = np.maximum(w * least, w * most).sum(axis=1) + bias
    return np.maximum(np.abs(low), np.abs(high))


def _packed(weights: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights (blocks, 4, K) with K a multiple of 8, and bias (blocks, 4), filled up with zeros."""
    outputs, inputs = weights.shape
    blocks, depth = -(-outputs // _OUTPUTS), -(-inputs // _INPUTS) * _INPUTS
    padded = np.zeros((blocks * _OUTPUTS, depth), np.int64)
    padded[:outputs, :inputs] = weights
    sums = np.zeros(blocks * _OUTPUTS, np.int64)
    sums[:outputs] = bias
    return padded.reshape(blocks, _OUTPUTS, depth), sums.reshape(blocks, _OUTPUTS)


def lane_stream(weights: np.ndarray, bias: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
    """int8 bytes of the stream of weights (O, K), biases (O) and multipliers (O), as `lanes.hpp` describes it."""
    rows, first = _packed(weights, bias)
    _, factors = _packed(weights, np.broadcast_to(multipliers, len(weights)))
    lanes = 256 * rows[:, 1::2] + rows[:, ::2]  # (blocks, AB and CD, K)
    quads = lanes.reshape(len(rows), 2, -1, 4) & 0xFFFF
    words = np.stack([quads[..., 0] | quads[..., 2] << 16, quads[..., 1] | quads[..., 3] << 16], axis=-1)
    products = words.reshape(len(rows), 2, -1).transpose(0, 2, 1).reshape(len(rows), -1)
    begin = np.stack([first[:, 0], first[:, 0] + 256 * first[:, 1], first[:, 2], first[:, 2] + 256 * first[:, 3]], axis=1)
    stream = np.concatenate([begin, products, factors], axis=1) & 0xFFFFFFFF
    return stream.reshape(-1).astype("<u4").view(np.int8)


def without_dead(weights: np.ndarray, bias: np.ndarray, rescale: FixedPointRescale) -> tuple[np.ndarray, np.ndarray]:
    """(bias, multipliers) per output: those without weights get a small bias with the same result.

    Scales of channels that training has switched off are tiny, so their biases are the largest numbers of a layer.
    """
    dead = ~weights.any(axis=1)
    multipliers = np.broadcast_to(rescale.multipliers, len(weights)).copy()
    result = (bias * multipliers + (1 << (_SHIFT - 1))) >> _SHIFT
    bias = np.where(dead, 4 * np.clip(result, -(1 << 17), 1 << 17), bias)  # beyond the range of 16 bits it is clamped anyway
    multipliers[dead] = 1 << (_SHIFT - 2)
    return bias, multipliers


def unfit(layer: Layer, weights: np.ndarray, widest: int = 8) -> str:
    """What rules a layer with weights (O, K) out for the kernels of microcontrollers, as a clause; "" where they are exact.

    `widest`: bits of an output that its kernel stores.
    """
    rescale, kind, output = layer.node.rescale, layer.inputs[0], layer.output
    if kind.bits != 8 or output.bits not in (8, widest) or kind.is_float or output.is_float:
        return "its tensors are not 8-bit"
    if layer.node.residual is not None:
        return "it does the sum of another layer"
    if not isinstance(rescale, FixedPointRescale) or rescale.shift != _SHIFT or rescale.multipliers.min() < 0:
        return "its rescale is not a 32-bit product"
    if layer.sum_type() != "std::int32_t" or weights.min() < -128 or weights.max() > 127:
        return "its sums or weights are wide"
    return ""


def _no_lanes(layer: Layer, weights: np.ndarray, groups: int) -> str:
    """What rules the lanes of a dense layer out."""
    rescale, kind = layer.node.rescale, layer.inputs[0]
    if problem := unfit(layer, weights, 16 if layer.node.op.kind == "Fc" else 8):
        return problem
    if groups != 1 or not isinstance(rescale, FixedPointRescale):
        return "it has groups"
    rows, _ = _packed(weights, np.zeros(len(weights), np.int64))
    if (256 * rows[:, 1::2] + rows[:, ::2]).min() < -32768:
        return "a weight of -128 shares its lane with a negative one"
    bias, _ = without_dead(weights, layer.values("bias").astype(np.int64), rescale)
    if _sums(weights, bias, kind)[1::2].max(initial=0) >= _LIMIT:
        return "a sum may reach 2^23"
    return ""


def pair_stream(weights: np.ndarray, bias: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
    """int8 bytes of the stream of depthwise weights (C, taps), as `pairs.hpp` describes it; C is a multiple of 4."""
    channels, taps = weights.shape
    rows = np.zeros((channels, -(-taps // 2), 2), np.int64)
    rows.reshape(channels, -1)[:, :taps] = weights
    words = rows[..., 0] & 0xFFFF | rows[..., 1] << 16
    blocks = words.reshape(-1, 4, words.shape[1]).transpose(0, 2, 1).reshape(channels // 4, -1)
    first, factors = bias.reshape(-1, 4), np.broadcast_to(multipliers, channels).reshape(-1, 4)
    stream = np.concatenate([first, blocks, factors], axis=1) & 0xFFFFFFFF
    return stream.reshape(-1).astype("<u4").view(np.int8)


def lane_facts(layer: Layer) -> dict[str, int]:
    """The enumerators of a config that has a stream: how the results are rounded and stored, signed bytes 128 higher."""
    output, high = layer.output, 128 if layer.output.signed and layer.output.bits == 8 else 0
    least, most = layer.node.clamp or (output.qmin, output.qmax)
    return {
        "LaneZero": (0 if layer.node.zero_in_bias else output.zero_point) + high,
        "LaneSigned": int(output.signed),
        "LaneLow": int(least) + high,
        "LaneHigh": int(most) + high,
    }


def lanes(layer: Layer, selection: Selection, weights: np.ndarray, groups: int = 1) -> Selection:
    """`selection` with the stream of dense weights (O, ...) too, where the layer fits; the reason where it does not."""
    rows, rescale, name = weights.reshape(len(weights), -1), layer.node.rescale, "two weights a lane"
    if not layer.integer:
        return selection
    if (problem := _no_lanes(layer, rows, groups)) or not isinstance(rescale, FixedPointRescale):
        return selection.with_stream(Stream(name, having(LANES), problem=problem))
    stream = lane_stream(rows, *without_dead(rows, layer.values("bias").astype(np.int64), rescale))
    return selection.with_stream(Stream(name, having(LANES), stream, facts={"Lanes": 1}))


def pairs(layer: Layer, selection: Selection, weights: np.ndarray) -> Selection:
    """`selection` with the stream of depthwise weights (O, KH, KW) too, where the layer fits; the reason where it does not."""
    rows, rescale, name = weights.reshape(len(weights), -1), layer.node.rescale, "two taps a word"
    if not layer.integer:
        return selection
    problem = unfit(layer, rows)
    if not problem and (len(rows) % 4 or layer.input_shape[1] != len(rows)):
        problem = "the number of its channels is not a multiple of four" if len(rows) % 4 else "a channel has several outputs"
    if problem or not isinstance(rescale, FixedPointRescale):
        return selection.with_stream(Stream(name, having(PAIRS), problem=problem))
    stream = pair_stream(rows, layer.values("bias").astype(np.int64), rescale.multipliers)
    return selection.with_stream(Stream(name, having(PAIRS), stream, facts={"Lanes": 1}))
