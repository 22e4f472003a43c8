"""Equalization of activation ranges: the channels of a tensor between two layers brought near one range.

Scaling output k of a layer by f_k and what its only reader makes of channel k by 1 / f_k changes nothing
in floating point. In integers, the steps of channel k become f_k times finer, at no cost where a scale
for each output absorbs the factor: in the first layer always, in the second one where it is depthwise.
A dense reader gets coarser weights instead, so f_k = (widest range / range_k)^a with the exponent a
that the least error is expected from. The idea is that of M. Nagel et al., ICCV 2019, and of
G. Xiao et al., "SmoothQuant", ICML 2023.

A clipping rectifier becomes one with a limit for each channel, whose lowest limit no range may exceed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from n2d2py import log
from n2d2py.concurrency import ordered_map
from n2d2py.graph import Graph, Node
from n2d2py.graph.precision import TargetForm
from n2d2py.operators.conv import Conv
from n2d2py.operators.convert import Convert
from n2d2py.operators.fc import Fc
from n2d2py.operators.functions import ChannelClip, Clip
from n2d2py.quant.equalize import scale_inputs, takes_channels
from n2d2py.reference.engine import FloatEngine

_EXPONENTS = (0.0, 0.25, 0.5)
"""Below 1, so that values larger than those of the samples keep some room."""
_LARGEST = 256.0
"""No channel becomes finer than this."""
_LEVELS = (255.0, 127.0)
"""Steps of an unsigned activation and of a weight."""


def _pairs(graph: Graph) -> list[tuple[Node, Clip, Node]]:
    """(layer, its rectifier, only reader of its rectified output), the reader taking channel by channel what the layer gives."""
    found = []
    for node in graph.nodes:
        rectifier = node.activation
        if not isinstance(node.op, (Conv, Fc)) or not isinstance(rectifier, Clip) or rectifier.low != 0:
            continue
        if node.output in graph.outputs or (isinstance(node.op, Fc) and rectifier.high != np.inf):
            continue
        if graph.precision(node).quantize is False:
            continue
        tensor, reader = node.output, graph.sole_consumer(node.output)
        if graph.precision(node).target is TargetForm.SUMS:  # its results are rounded where they are read
            if reader is None or not isinstance(reader.op, Convert) or rectifier.high != np.inf:
                continue
            tensor, reader = reader.output, graph.sole_consumer(reader.output)
        if reader is not None and takes_channels(reader, tensor):
            found.append((node, rectifier, reader))
    return found


def channel_factors(graph: Graph, batches: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Tensor name -> factors (C), at least 1, for the tensors of a float graph that gain by them."""
    pairs = _pairs(graph)
    if not pairs or not batches:
        return {}
    names = [node.output for node, _, _ in pairs]
    engine = FloatEngine(graph, taps=names, threads=1)

    def measure(batch: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, int]]:
        values = engine.run(batch)
        found = []
        for name in names:
            by_channel = values[name].reshape(len(batch), values[name].shape[1], -1)
            power = np.einsum("ncp,ncp->c", by_channel, by_channel).astype(np.float64)
            found.append((by_channel.max(axis=(0, 2)).astype(np.float64), power, by_channel[:, 0].size))
        return found

    parts = list(ordered_map(measure, batches))

    def choose(index: int) -> np.ndarray | None:
        largest = np.max([part[index][0] for part in parts], axis=0)
        power = np.sum([part[index][1] for part in parts], axis=0) / sum(part[index][2] for part in parts)
        return _factors(pairs[index][2], largest, power)

    chosen = zip(names, ordered_map(choose, range(len(pairs))), strict=True)
    return {name: factors for name, factors in chosen if factors is not None}


def _factors(reader: Node, largest: np.ndarray, power: np.ndarray) -> np.ndarray | None:
    """The best factors for channels of these largest values and mean squares; None when none help."""
    widest = float(largest.max())
    if widest <= 0:
        return None
    wanted = np.clip(np.divide(widest, largest, out=np.ones_like(largest), where=largest > 0), 1.0, _LARGEST)
    candidates = [wanted**exponent for exponent in _EXPONENTS]
    errors = [_expected_error(reader, factors, widest, power) for factors in candidates]
    best = int(np.argmin(errors))
    return candidates[best] if errors[best] < 0.98 * errors[0] else None


def _expected_error(reader: Node, factors: np.ndarray, widest: float, power: np.ndarray) -> float:
    """Expected squared error of the reader's outputs from rounding its inputs (and, if dense, its weights)."""
    weights = reader.params["weights"].astype(np.float64)
    channels = len(factors)
    if isinstance(reader.op, Conv) and reader.op.groups > 1:  # its scales take the factors up
        size = np.square(weights).reshape(channels, -1).sum(axis=1)
        return float(np.sum(size * np.square(widest / factors)))
    shaped = weights.reshape(len(weights), channels, -1)
    scaled = shaped / factors[:, None]
    steps = np.maximum(np.maximum(scaled.max(axis=(1, 2), keepdims=True), -scaled.min(axis=(1, 2), keepdims=True)), 1e-30)
    steps /= _LEVELS[1]
    rounded = scaled / steps
    np.rint(rounded, out=rounded)
    rounded *= steps
    scaled -= rounded
    scaled *= factors[:, None]
    lost = np.einsum("ocp,ocp->c", scaled, scaled)
    size = np.einsum("ocp,ocp->c", shaped, shaped)
    return float(np.sum(size * np.square(widest / factors / _LEVELS[0])) / 12 + np.sum(lost * power))


def scale_channels(graph: Graph, factors: dict[str, np.ndarray]) -> Graph:
    """A copy of the graph, equal to it, in which these tensors are scaled channel by channel."""
    result = graph.copy()
    for node, rectifier, reader in _pairs(result):
        found = factors.get(node.output)
        if found is None:
            continue
        weights, bias = node.params["weights"], node.params["bias"]
        shape = (-1,) + (1,) * (weights.ndim - 1)
        node.params["weights"] = (weights * found.reshape(shape)).astype(weights.dtype)
        node.params["bias"] = (bias * found).astype(bias.dtype)
        if rectifier.high != np.inf:
            node.activation = ChannelClip(0.0, tuple(float(v) for v in rectifier.high * found))
        scale_inputs(reader, 1.0 / found)
    if factors:
        log.notice("equalization of activation ranges: %d tensors", len(factors))
    return result
