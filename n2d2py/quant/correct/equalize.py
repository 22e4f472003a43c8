"""Cross-layer equalization: weights of neighbouring layers are scaled to the same range.

Scaling output k of a layer by 1/s and channel k of its only consumer by s does not change the function if the activation
between is linear or a rectifier. With s = sqrt(r1 / r2), r1 and r2 the largest magnitudes of both, the ranges become equal (M.
Nagel et al., "Data-free quantization through weight equalization and bias correction", ICCV 2019).

It is used with one weight scale for each layer (`-act-rescale-per-output 0`). With a scale for each output, weights do not
benefit, and `channels.py` equalizes the activations.
"""

from __future__ import annotations

import numpy as np

from n2d2py import log
from n2d2py.contracts.functions import Clip
from n2d2py.graph import Graph, Node
from n2d2py.operators.conv import Conv, Fc
from n2d2py.operators.linear import scale_inputs

_ROUNDS = 50
_TOLERANCE = 1e-3


def equalize(graph: Graph) -> Graph:
    """Return a copy of a fused float graph whose Conv and Fc chains are equalized."""
    result = graph.copy()
    pairs = [(node, reader) for node in result.nodes for reader in [_partner(result, node)] if reader is not None]
    for _ in range(_ROUNDS):
        change = max((_balance(first, second) for first, second in pairs), default=0.0)
        if change < _TOLERANCE:
            break
    if pairs:
        log.notice("cross-layer equalization: %d pairs of layers", len(pairs))
    return result


def _partner(graph: Graph, node: Node) -> Node | None:
    """Return the only consumer of a layer if its input channels are exactly the layer's outputs; else None."""
    if not isinstance(node.op, (Conv, Fc)):
        return None
    linear = node.activation is None or node.activation == Clip(0.0)
    reader = graph.sole_consumer(node.output)
    return reader if linear and reader is not None and takes_channels(reader, node.output) else None


def takes_channels(reader: Node, tensor: str) -> bool:
    """True for a dense or depthwise Conv or Fc over this tensor, whose input channels can be scaled."""
    if not isinstance(reader.op, (Conv, Fc)) or reader.inputs != [tensor]:
        return False
    return isinstance(reader.op, Fc) or reader.op.groups == 1 or reader.op.is_depthwise(reader)


def _input_ranges(node: Node, channels: int) -> np.ndarray:
    """Return the largest weight magnitude of each input channel (C)."""
    weights = np.abs(node.params["weights"])
    if isinstance(node.op, Conv):
        if node.op.groups > 1:
            return weights.reshape(channels, -1).max(axis=1)
        return weights.max(axis=(0, 2, 3))
    return weights.reshape(len(weights), channels, -1).max(axis=(0, 2))


def _balance(first: Node, second: Node) -> float:
    """Equalize one pair of layers; return the largest relative change."""
    weights = first.params["weights"]
    outputs = len(weights)
    r1 = np.abs(weights.reshape(outputs, -1)).max(axis=1).astype(np.float64)
    r2 = _input_ranges(second, outputs).astype(np.float64)
    usable = np.minimum(r1, r2) > 1e-9
    factors = np.where(usable, np.sqrt(np.divide(r2, r1, out=np.ones_like(r1), where=usable)), 1.0)
    shape = (-1,) + (1,) * (weights.ndim - 1)
    first.params["weights"] = (weights * factors.reshape(shape)).astype(weights.dtype)
    first.params["bias"] = (first.params["bias"] * factors).astype(first.params["bias"].dtype)
    scale_inputs(second, 1.0 / factors)
    return float(np.max(np.abs(factors - 1.0)))
