"""Sequential refinement of activation ranges on the integers of the layers before.

Calibration chooses each range as if all layers before were exact. Here the range of a tensor is chosen again once all layers
before it are quantized: of a few candidates around the first range, the one closest to the float network on the samples.
"""

from __future__ import annotations

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import NumType
from n2d2py.contracts.functions import ChannelClip
from n2d2py.graph import Graph, Node
from n2d2py.operators.concat import is_real_concat
from n2d2py.operators.pool import Pool
from n2d2py.quant.types.choose import TensorTypes, shared_tensors

_FACTORS = np.geomspace(0.6, 1.25, 24)
"""Candidate ranges, relative to the first one."""
_MOST_VALUES = 400_000
_GAIN = 0.99
"""A range changes only if the squared error falls below this share."""


def refinable_tensors(graph: Graph, types: TensorTypes) -> dict[str, list[str]]:
    """Return the tensors whose range may change, each with all tensors that share its integers.

    Not included: inputs and outputs of the network, which are never clipped; inputs of a concatenation; tensors that only a max
    pool consumes, whose range comes from the pool's output; tensors without a clipping threshold.
    """
    refinable = {}
    for name, sharing in shared_tensors(graph).items():
        kind = types.types[name]
        readers = [node for tensor in sharing for node in graph.consumers(tensor)]
        producer = graph.producer(name)
        fixed = (
            kind.is_float
            or kind.plain
            or name not in types.thresholds
            or producer is None
            or any(tensor in graph.outputs for tensor in sharing)
            or isinstance(producer.activation, ChannelClip)
            or any(is_real_concat(node) or (isinstance(node.op, Pool) and node.op.mode == "Max") for node in readers)
        )
        if not fixed:
            refinable[name] = sharing
    return refinable


def refined_type(node: Node, kind: NumType, pairs: list[tuple[np.ndarray, np.ndarray]]) -> NumType:
    """Return the type of a layer's output with the best range, from batches of (float values, results on the integer inputs
    before rounding)."""
    exact, computed = (np.concatenate([part[index].reshape(-1) for part in pairs]) for index in range(2))
    stride = -(-exact.size // _MOST_VALUES)
    exact, computed = exact[::stride].astype(np.float64), computed[::stride].astype(np.float64)

    def error(candidate: NumType) -> float:
        low, high = candidate.qmin - candidate.zero_point, candidate.qmax - candidate.zero_point
        steps = np.clip(np.rint(computed / candidate.scale), low, high)
        return float(np.mean((steps * candidate.scale - exact) ** 2))

    first = error(kind)
    candidates = [kind.with_scale(kind.scale * factor) for factor in _FACTORS]
    errors = [error(candidate) for candidate in candidates]
    best = int(np.argmin(errors))
    if errors[best] >= _GAIN * first:
        return kind
    log.detail("range of %s: %.3g of what the statistics gave", node.name, _FACTORS[best])
    return candidates[best]
