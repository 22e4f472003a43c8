"""Ranges of activations refined one after the other, on what the quantized layers before really give.

Statistics of the float network choose each range as if all layers before were exact. Here the range of a tensor is chosen
again when all layers before it are integers: of a few ranges around the first one, that whose integers come nearest to the
values of the float network, over the sampled stimuli.
"""

from __future__ import annotations

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import NumType
from n2d2py.graph import Graph, Node
from n2d2py.operators.concat import joins
from n2d2py.operators.functions import ChannelClip
from n2d2py.operators.pool import Pool
from n2d2py.quant.types.choose import TensorTypes, shared_tensors

_FACTORS = np.geomspace(0.6, 1.25, 24)
"""Ranges that are tried, as shares of the first one."""
_MOST_VALUES = 400_000
_GAIN = 0.99
"""A range is left unchanged unless the squared error becomes smaller than this share of what it was."""


def refinable_tensors(graph: Graph, types: TensorTypes) -> dict[str, list[str]]:
    """Tensor -> all tensors that share its integers, for those whose range may change alone.

    Left out: inputs and outputs of the network, which are never clipped; tensors that a concatenation joins; those that only
    a max pool reads, whose range is that of the pool's output; and those without clipping of their own.
    """
    found = {}
    for name, held in shared_tensors(graph).items():
        kind = types.types[name]
        readers = [node for tensor in held for node in graph.consumers(tensor)]
        producer = graph.producer(name)
        fixed = (
            kind.is_float
            or kind.plain
            or name not in types.thresholds
            or producer is None
            or any(tensor in graph.outputs for tensor in held)
            or isinstance(producer.activation, ChannelClip)
            or any(joins(node) or (isinstance(node.op, Pool) and node.op.mode == "Max") for node in readers)
        )
        if not fixed:
            found[name] = held
    return found


def refined_type(node: Node, kind: NumType, pairs: list[tuple[np.ndarray, np.ndarray]]) -> NumType:
    """The type of a layer's output with the best range, from batches of (float values, values that the layer gives on the
    integers of its inputs before they are rounded)."""
    exact, reached = (np.concatenate([part[index].reshape(-1) for part in pairs]) for index in range(2))
    every = -(-exact.size // _MOST_VALUES)
    exact, reached = exact[::every].astype(np.float64), reached[::every].astype(np.float64)

    def error(candidate: NumType) -> float:
        low, high = candidate.qmin - candidate.zero_point, candidate.qmax - candidate.zero_point
        steps = np.clip(np.rint(reached / candidate.scale), low, high)
        return float(np.mean((steps * candidate.scale - exact) ** 2))

    first = error(kind)
    candidates = [kind.with_scale(kind.scale * factor) for factor in _FACTORS]
    errors = [error(candidate) for candidate in candidates]
    best = int(np.argmin(errors))
    if errors[best] >= _GAIN * first:
        return kind
    log.detail("range of %s: %.3g of what the statistics gave", node.name, _FACTORS[best])
    return candidates[best]
