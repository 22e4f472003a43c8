"""Equalization: the channels of a tensor between two layers are scaled, so that activations or weights have similar ranges.

Scaling output k of a layer by f_k, and channel k at its consumers by 1 / f_k, does not change the float function. In integers,
the step of channel k becomes f_k times finer. That is free where a scale for each output absorbs the factor: in the producer,
and in a depthwise consumer. A dense consumer gets coarser weights, so f_k = (widest range / range_k)^a with the exponent a of
least expected error. The idea is that of M. Nagel et al., ICCV 2019, and of G. Xiao et al., "SmoothQuant", ICML 2023.

The producer is a normalization, whose gains and shifts take the factors, or a convolution or fully connected layer, either with
a rectifier or linear before a product with another tensor, such as values of an attention or a gated projection. A Clip becomes
one with a limit for each channel; the range may not exceed the lowest limit. Queries and keys: quant/correct/projections.py.

With one weight scale for each layer (`-act-rescale-per-output 0`), the weights of neighbouring layers are equalized instead. With
f = sqrt(r2 / r1), r1 and r2 the largest weight magnitudes of output k and of input channel k of its only consumer, the ranges
become equal (M. Nagel et al., "Data-free quantization through weight equalization and bias correction", ICCV 2019).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from n2d2py import log
from n2d2py.concurrency import ordered_map
from n2d2py.contracts.functions import ChannelClip, Clip
from n2d2py.graph import Graph, Node, TargetForm, each_sample, in_memory_order
from n2d2py.operators import Conv, Convert, Fc, Normalize
from n2d2py.operators.linear import WeightedReaders, axis_numbers, scale_inputs, scale_outputs, weighted_readers
from n2d2py.quant.correct.projections import LARGEST, Projection, compensate, find_projections, score_factors, with_one_range
from n2d2py.quant.types.ranges import channel_weights, weight_error
from n2d2py.reference.engine import FloatEngine

_EXPONENTS = (0.0, 0.25, 0.5)
"""Candidate exponents. They stay below 1 to leave headroom for values larger than those of the samples."""
_NORM_EXPONENTS = (*_EXPONENTS, 0.75, 1.0)
"""Candidate exponents for a normalization, whose results do not grow with its inputs."""
_GAIN, _NORM_GAIN = 0.98, 0.7
"""Share of the expected error left where equalization pays; rare values of a normalisation are clipped."""
_UNCERTAIN = 2.0
"""Logarithm of the ratio by which one value of a channel falls short of its range; the largest of N values leaves 1 / N of it."""
_ROUNDS, _TOLERANCE = 50, 1e-3
"""Most rounds of the equalization of weights, and the relative change below which it ends."""
_UNSIGNED, _SIGNED = 255.0, 127.0
"""Steps of an activation, of a signed one and a weight."""


@dataclass(frozen=True)
class _Scalable:
    """A layer whose output channels can be scaled, the weighted layers that consume them, and the tensor that these read."""

    node: Node
    readers: WeightedReaders
    read: str

    @property
    def is_signed(self) -> bool:
        return self.node.activation is None

    def by_channel(self, values: np.ndarray) -> np.ndarray:
        """Return the consumed values (n, ...) by channel, (N, C, positions)."""
        if isinstance(self.node.op, Normalize):
            return in_memory_order(values).reshape(-1, self.node.op.size, 1)
        rows = values.reshape(*values.shape[:2], -1)
        return rows if self.read == self.node.output else rows[:, np.argsort(self.readers[0][1])]

    def scale(self, factors: np.ndarray) -> None:
        node, params = self.node, self.node.params
        if isinstance(node.op, Normalize):
            size = node.op.size
            roles = {"gain": np.ones(size, np.float32), "shift": np.zeros(size, np.float32)}
            node.params = {role: (params.get(role, plain) * factors).astype(np.float32) for role, plain in roles.items()}
        else:
            scale_outputs(node, factors)
            if isinstance(node.activation, Clip) and node.activation.high != np.inf:
                node.activation = ChannelClip(0.0, tuple(float(v) for v in node.activation.high * factors))
        self.unscale(factors)

    def unscale(self, factors: np.ndarray) -> None:
        for reader, numbers in self.readers:
            scale_inputs(reader, 1.0 / factors[numbers])


def _scalables(graph: Graph) -> list[_Scalable]:
    scalables: dict[str, _Scalable] = {}
    for node in graph.nodes:
        if graph.precision(node).quantize is False:
            continue
        if node.activation is None and isinstance(node.op, (Conv, Fc)):
            readers = _consumer_after_products(graph, node)
            if readers:  # of two factors of a product, one
                scalables.setdefault(readers[0][0].name, _Scalable(node, readers, readers[0][0].inputs[0]))
            continue
        readers = _consumers_of_norm(graph, node) if isinstance(node.op, Normalize) else _consumer_of_rectifier(graph, node)
        if readers:
            scalables[node.name] = _Scalable(node, readers, node.output)
    return list(scalables.values())


def _consumer_after_products(graph: Graph, node: Node) -> WeightedReaders:
    """Return the only weighted consumer of a linear layer after products with other tensors, if it sees each channel once."""
    if graph.precision(node).target is TargetForm.SUMS or "weight_scales" in node.params:
        return []
    shape = graph.shape(node.output)
    numbers = axis_numbers(shape)
    readers = weighted_readers(graph, node.output, numbers, products=True)
    if isinstance(readers, str) or len(readers) > 1 or not isinstance(weighted_readers(graph, node.output, numbers), str):
        return []
    ((reader, gains),) = readers
    takes = isinstance(reader.op, (Conv, Fc)) and getattr(reader.op, "groups", 1) == 1
    return readers if takes and sorted(gains) == list(range(shape[1])) else []


def _consumers_of_norm(graph: Graph, node: Node) -> WeightedReaders:
    if node.op.part or node.activation is not None:
        return []
    readers = weighted_readers(graph, node.output, node.op.channel_numbers(graph.shape(node.output)))
    if isinstance(readers, str) or any(isinstance(one.op, Conv) and one.op.groups > 1 for one, _ in readers):
        return []
    return readers


def _consumer_of_rectifier(graph: Graph, node: Node) -> WeightedReaders:
    rectifier = node.activation
    if not isinstance(node.op, (Conv, Fc)) or not isinstance(rectifier, Clip) or rectifier.low != 0:
        return []
    if isinstance(node.op, Fc) and rectifier.high != np.inf:
        return []
    tensor, reader = node.output, graph.sole_consumer(node.output)
    if graph.precision(node).target is TargetForm.SUMS:  # its results are rounded where they are read
        if reader is None or not isinstance(reader.op, Convert) or rectifier.high != np.inf:
            return []
        tensor, reader = reader.output, graph.sole_consumer(reader.output)
    if reader is None or not _takes_channels(reader, tensor):
        return []
    channels = graph.shape(tensor)[1]
    inputs = channels if isinstance(reader.op, Conv) else reader.params["weights"].shape[1]
    return [(reader, np.repeat(np.arange(channels), inputs // channels))]


def channel_factors(graph: Graph, batches: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Return, by tensor name, factors (C) >= 1 for the tensors that benefit from equalization."""
    scalables, projections = _scalables(graph), find_projections(graph)
    if not (scalables or projections) or not batches:
        return {}
    measured = [*scalables, *(part for one in projections for part in _whole_and_values(one))]
    last = {one.read: index for index, one in enumerate(measured)}
    engine, several = FloatEngine.for_batches(graph, last)

    def measure(batch: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, int, np.ndarray]]:
        values = engine.run(batch)
        figures = []
        for index, one in enumerate(measured):
            rows = one.by_channel(values.pop(one.read) if last[one.read] == index else values[one.read])
            power = np.einsum("ncp,ncp->c", rows, rows).astype(np.float64)
            largest = rows.max(axis=(0, 2))
            largest = np.maximum(largest, -rows.min(axis=(0, 2))) if one.is_signed else largest
            active = np.count_nonzero(rows, axis=(0, 2))
            figures.append((largest.astype(np.float64), power, rows[:, 0].size, active))
        return figures

    parts = list(ordered_map(measure, batches if several else each_sample(batches), several))

    def summarize(index: int) -> tuple[np.ndarray, np.ndarray]:
        active = np.maximum(np.sum([part[index][3] for part in parts], axis=0), 1)
        largest = np.max([part[index][0] for part in parts], axis=0) * np.exp(_UNCERTAIN / active)
        activation = measured[index].node.activation
        largest = np.minimum(largest, activation.high) if isinstance(activation, Clip) else largest
        return largest, np.sum([part[index][1] for part in parts], axis=0) / sum(part[index][2] for part in parts)

    ranges = iter([summarize(index) for index in range(len(measured))])
    chosen = ordered_map(lambda pair: _best_factors(pair[0], *pair[1]), [(one, next(ranges)) for one in scalables])
    by_tensor = {one.node.output: best for one, best in zip(scalables, chosen, strict=True) if best is not None}
    known = [[next(ranges) for _ in _whole_and_values(one)] for one in projections]
    return {**by_tensor, **_projection_factors(projections, known)}


def _whole_and_values(projection: Projection) -> list[_Scalable]:
    whole = _Scalable(projection.node, [], projection.node.output)
    return [whole, *(_Scalable(projection.node, part.readers, part.read) for part in projection.values)]


def _projection_factors(
    projections: list[Projection], ranges: list[list[tuple[np.ndarray, np.ndarray]]]
) -> dict[str, np.ndarray]:
    """Return, by tensor name, factors (C) for the projections that benefit; `ranges`: largest values and mean squares."""
    by_tensor = {one.node.output: np.ones(len(known[0][0])) for one, known in zip(projections, ranges, strict=True)}
    sides = {}
    for one, ((largest, power), *values) in zip(projections, ranges, strict=True):
        for key, channels in one.sides.items():
            sides[key] = one.node.output, channels, (largest[channels], power[channels])
        for part, scalable, known in zip(one.values, _whole_and_values(one)[1:], values, strict=True):
            factors = _best_factors(scalable, *known)
            if factors is not None:
                by_tensor[one.node.output][part.channels] *= factors
    for name in dict.fromkeys(name for name, _ in sides):
        (queries, left, known), (keys, right, others) = sides[name, 0], sides[name, 1]
        for tensor, channels, factors in zip((queries, keys), (left, right), score_factors(known, others), strict=True):
            by_tensor[tensor][channels] *= factors
    for one, ((largest, _), *_) in zip(projections, ranges, strict=True):
        by_tensor[one.node.output] = with_one_range(one.parts, by_tensor[one.node.output], largest)
    return {name: factors for name, factors in by_tensor.items() if (factors != 1).any()}


def _best_factors(scalable: _Scalable, largest: np.ndarray, power: np.ndarray) -> np.ndarray | None:
    """Return the best factors for channels with these largest values and mean squares; None if no factors help.

    The range of a normalization is a multiple of its deviation: the largest values of few samples would leave too little
    headroom.
    """
    ranges = np.sqrt(power) if scalable.is_signed else largest
    if not (0 < largest.max() < np.inf and np.isfinite(power).all()):
        return None
    wanted = np.clip(np.divide(ranges.max(), ranges, out=np.ones_like(ranges), where=ranges > 0), 1.0, LARGEST)
    candidates = [wanted**exponent for exponent in (_NORM_EXPONENTS if scalable.is_signed else _EXPONENTS)]
    steps = [float((largest * factors).max()) / (_SIGNED if scalable.is_signed else _UNSIGNED) for factors in candidates]
    errors = [
        sum(_expected_error(reader, factors[numbers], step, power[numbers]) for reader, numbers in scalable.readers)
        for factors, step in zip(candidates, steps, strict=True)
    ]
    best = int(np.argmin(errors))
    return candidates[best] if errors[best] < (_NORM_GAIN if scalable.is_signed else _GAIN) * errors[0] else None


def _expected_error(reader: Node, factors: np.ndarray, step: float, power: np.ndarray) -> float:
    """Return the expected squared error of a consumer's outputs from rounding its inputs and, if it is dense, its weights.

    factors, power: factor and mean square of each input channel.
    """
    weights, dense = channel_weights(reader, len(factors))
    error = float(np.einsum("ocp,ocp->c", weights, weights) @ np.square(step / factors))
    if not dense:  # its scales take the factors up
        return error
    return error / 12 + float(weight_error(weights, factors) @ power)


def scale_channels(graph: Graph, factors: dict[str, np.ndarray]) -> Graph:
    """Return an equivalent copy of the graph with these tensors scaled channel by channel."""
    result = graph.copy()
    scalables, projections = _scalables(result), find_projections(result)
    for one in scalables:
        if one.node.output in factors:
            one.scale(factors[one.node.output])
    for one in projections:
        if one.node.output in factors:
            whole, *values = _whole_and_values(one)
            whole.scale(factors[one.node.output])
            for part, scalable in zip(one.values, values, strict=True):
                scalable.unscale(factors[one.node.output][part.channels])
    compensate(result, projections, factors)
    if factors:
        log.notice("equalization of activation ranges: %d tensors", len(factors))
    return result


# ---- weights of neighbouring layers -------------------------------------------------------------


def equalize(graph: Graph) -> Graph:
    """Return a copy of a fused float graph whose Conv and Fc chains have equalized weights."""
    result = graph.copy()
    pairs = [(node, reader) for node in result.nodes if (reader := _partner(result, node)) is not None]
    for _ in range(_ROUNDS):
        if max((_balance(first, second) for first, second in pairs), default=0.0) < _TOLERANCE:
            break
    if pairs:
        log.notice("cross-layer equalization: %d pairs of layers", len(pairs))
    return result


def _partner(graph: Graph, node: Node) -> Node | None:
    if not isinstance(node.op, (Conv, Fc)):
        return None
    linear = node.activation is None or node.activation == Clip(0.0)
    reader = graph.sole_consumer(node.output)
    return reader if linear and reader is not None and _takes_channels(reader, node.output) else None


def _takes_channels(reader: Node, tensor: str) -> bool:
    """True for a dense or depthwise Conv or Fc over this tensor, whose input channels can be scaled."""
    if not isinstance(reader.op, (Conv, Fc)) or reader.inputs != [tensor]:
        return False
    return isinstance(reader.op, Fc) or reader.op.groups == 1 or reader.op.is_depthwise(reader)


def _balance(first: Node, second: Node) -> float:
    """Equalize one pair of layers; return the largest relative change."""
    weights = first.params["weights"]
    r1 = np.abs(weights.reshape(len(weights), -1)).max(axis=1).astype(np.float64)
    r2 = np.abs(channel_weights(second, len(weights))[0]).max(axis=(0, 2))
    usable = np.minimum(r1, r2) > 1e-9
    factors = np.where(usable, np.sqrt(np.divide(r2, r1, out=np.ones_like(r1), where=usable)), 1.0)
    scale_outputs(first, factors)
    scale_inputs(second, 1.0 / factors)
    return float(np.max(np.abs(factors - 1.0)))
