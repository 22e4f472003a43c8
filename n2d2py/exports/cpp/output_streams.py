"""Constants of the kernels whose vectors hold outputs: `kernels/n2d2/mcu/vector_outputs.hpp`. Their sums are exact for all weights."""

from __future__ import annotations

import numpy as np

from n2d2py.arithmetic import FixedPointRescale
from n2d2py.exports.cpp.isa import OUTPUTS, having
from n2d2py.exports.cpp.lanes import unfit
from n2d2py.exports.cpp.layer import Layer
from n2d2py.exports.cpp.parts import Stream
from n2d2py.exports.cpp.variants import Selection
from n2d2py.exports.cpp.vector_streams import word_bytes


def output_stream(weights: np.ndarray, bias: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
    """int8 bytes for weights (O, taps): biases, twice the multipliers, the weights of all outputs for each tap."""
    words = np.stack([bias, 2 * np.broadcast_to(multipliers, len(weights))])
    return np.concatenate([word_bytes(words.reshape(-1)), weights.T.astype(np.int8).reshape(-1)])


def outputs(layer: Layer, selection: Selection, weights: np.ndarray, groups: int = 1) -> Selection:
    """`selection` with the stream of weights (O, ...) too, where the layer fits; the reason where it does not.

    `groups`: of a dense layer; a depthwise one has one weight of each tap for a channel.
    """
    rows, rescale, name = weights.reshape(len(weights), -1), layer.node.rescale, "vectors of outputs"
    if not layer.integer:
        return selection
    problem = unfit(layer, rows, 16 if layer.node.op.kind == "Fc" else 8) or ("it has groups" if groups != 1 else "")
    if problem or not isinstance(rescale, FixedPointRescale):
        return selection.with_stream(Stream(name, having(OUTPUTS), problem=problem))
    stream = output_stream(rows, layer.values("bias").astype(np.int64), rescale.multipliers)
    return selection.with_stream(Stream(name, having(OUTPUTS), stream, facts={"Outputs": 1}))
