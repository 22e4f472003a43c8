"""Inputs in floating point: where one scale for an input costs more than the integers of what its first layers make of it.

    x, Log(x + 0.001), Conv               x in floating point, the logarithm too; its result gets integers
    x > 0.5, MatMul                       x in floating point: rounded values next to 0.5 would be on the other side
    x, Fc; channels of different units    x in floating point, each channel brought to [-1, 1]; the weights undo that; channels along any axis

The first layers are those of single values: gains, shifts, functions. Both sides are measured on stimuli: the error of the first layers'
results from rounding x, and from rounding these results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.graph import Graph, Node
from n2d2py.graph.inputs import named_inputs
from n2d2py.operators.activation import Activation
from n2d2py.operators.add_constants import AddConstants
from n2d2py.operators.affine import Affine
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.base import Op
from n2d2py.operators.convert import Convert
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.functions import Clip
from n2d2py.operators.linear import padded_reader, scale_inputs, weighted_readers
from n2d2py.operators.view import MemoryView
from n2d2py.quant.observe.histogram import LEAST_RANGE
from n2d2py.quant.types.guards import EXACT_FUNCTIONS
from n2d2py.quant.types.ranges import interval_type

_WORSE = 2.0
"""Least ratio of the squared error of an input's integers to that of its first layers' results."""
_WORSE_CHANNELS = 16.0
"""The same of channels with one scale and with their own."""
_FEWEST = 8
"""Stimuli that tell the ranges of channels."""
_SQNR = 35.0
"""Decibels that 8 bits must keep of an input, which else has 16."""
_FEWEST_VALUES = 1000
"""Of normal values, the next ones beyond the largest of so many have 35 dB less power than all."""

InputScales = Mapping[str, np.ndarray]
"""By input: gains and shifts (2, ...) of its channels, which broadcast to it, such as (2, 1, C) to rows (1, T, C); (2, 0) where its first
layers stay unchanged."""


# ---- the layers after an input ---------------------------------------------------------------------
def input_layers(graph: Graph) -> set[str]:
    """Names of the layers that compute in floating point for the inputs that are so: the first layers, of single values, what moves values
    before them, and products with an input at the end of the network, such as that of a mask."""
    found: set[str] = set()
    for name in graph.float_inputs:
        for node in _first_layers(graph, name):
            found.add(node.name)
            while (node := graph.producer(node.inputs[0])) is not None:
                found.add(node.name)
        found |= {node.name for node in _last_products(graph, name)}
    return found


def is_given(graph: Graph, tensor: str) -> bool:
    """True if a tensor holds the integers that the first layers make of an input in floating point."""
    node = graph.producer(tensor)
    if node is None or not isinstance(node.op, Convert) or node.op.to_float:
        return False
    while node is not None:
        tensor = node.inputs[0]
        node = graph.producer(tensor)
        if node is not None and not (node.op.moves_values or _is_of_single_values(node)):
            return False
    return tensor in graph.float_inputs


def _first_layers(graph: Graph, tensor: str) -> Iterator[Node]:
    for reader in graph.consumers(tensor):
        if _is_of_single_values(reader):
            yield reader
        if _is_of_single_values(reader) or (reader.op.moves_values and reader.activation is None):
            yield from _first_layers(graph, reader.output)


def _last_products(graph: Graph, tensor: str) -> Iterator[Node]:
    """The layers that multiply a tensor, moved or not, by others and give outputs of the network, with what moves values around them."""
    for reader in graph.consumers(tensor):
        if reader.op.moves_values and reader.activation is None:
            after = [*_last_products(graph, reader.output)]
            yield from (reader, *after) if after else ()
        product = isinstance(reader.op, ElemWise) and reader.op.operation == "Prod"
        product = product or (isinstance(reader.op, ArrayMap) and reader.op.function == "Mul")
        if product and len(set(reader.inputs)) > 1 and reader.activation is None and graph.is_last(reader.output):
            yield from (reader, *_movers(graph, reader.output))


def _movers(graph: Graph, tensor: str) -> Iterator[Node]:
    for reader in graph.consumers(tensor):
        yield from (reader, *_movers(graph, reader.output))


def _is_of_single_values(node: Node) -> bool:
    """True if each element of the result is a function of one of the only input, with the same bits everywhere in floating point."""
    op = node.op
    if len(set(node.inputs)) != 1 or not (node.activation is None or isinstance(node.activation, Clip)):
        return False
    if isinstance(op, Activation):
        return isinstance(op.function, Clip) or op.function.kind in EXACT_FUNCTIONS
    if isinstance(op, ArrayMap):
        whole = [prod(shape) == prod(op.dims) for shape, slot in zip(op.shapes, op.slots, strict=True) if slot >= 0]
        return all(whole)
    if isinstance(op, ElemWise):
        return op.operation == "Prod"
    return isinstance(op, (AddConstants, Affine))


# ---- the choice -------------------------------------------------------------------------------------
def choose_float_inputs(graph: Graph, stimuli: np.ndarray, ranges: Mapping[str, tuple[float, float] | None]) -> InputScales:
    """The inputs that are better left in floating point, by stimuli (n, ...); those of known ranges, such as images, are not."""
    found: dict[str, np.ndarray] = {}
    for name, x in named_inputs(graph, stimuli).items():
        measured = ranges.get(name) is None and name in graph.fed and not graph.kind(name)
        if not measured or name in graph.outputs or not np.isfinite(x).all() or not x.size:
            continue
        if any(_is_of_single_values(node) and graph.precision(node).quantize for node in graph.consumers(name)):
            continue
        x = x.astype(np.float64)
        if _is_lost_in_layers(graph, name, x) or (_is_spoiled(x) and any(_last_products(graph, name))):
            found[name] = np.zeros((2, 0))
        elif (scales := _scales_of_channels(graph, name, x)) is not None:
            found[name] = scales
    return found


def _is_lost_in_layers(graph: Graph, name: str, x: np.ndarray) -> bool:
    """True if the integers of an input cost more than those of what its first layers make of it."""
    integers = _rounded(x, 8)
    real, rounded = _results(graph, name, x), _results(graph, name, integers)
    if not all(np.isfinite(values).all() for values in real.values()):
        return False
    if any(getattr(node.op, "result", "") for node in _first_layers(graph, name)) and not np.allclose(integers, x):
        return True  # other stimuli may lie next to where truth values change
    for tensor, values in real.items():
        with np.errstate(all="ignore"):
            error = np.square(rounded[tensor] - values, dtype=np.float64).mean()
            own = np.square(_stored(values) - values).mean()
        if not np.isfinite(error) or error > _WORSE * max(own, 1e-30 * np.square(values).mean()):
            return True
    return False


def _results(graph: Graph, name: str, x: np.ndarray) -> dict[str, np.ndarray]:
    """The values of the tensors that the first layers of an input give to layers of other kinds."""
    values, found = {name: x}, {}
    layers = {node.name: node for node in _first_layers(graph, name)}
    for node in graph.nodes:
        if node.inputs[:1] and node.inputs[0] in values and (node.name in layers or node.op.moves_values):
            with np.errstate(all="ignore"):
                (y,) = node.op.run([values[one] for one in node.inputs], node)
                values[node.output] = y if node.activation is None else node.activation(y)
    for node in layers.values():
        readers = graph.consumers(node.output)
        if node.output in graph.outputs or any(reader.name not in layers for reader in readers):
            found[node.output] = values[node.output]
    return found


def _is_spoiled(values: np.ndarray) -> bool:
    return is_spoiled(np.abs(values).max(), values.var())


def is_spoiled(largest: float, variance: float) -> bool:
    """True if rounding to 127 steps leaves less than 35 dB between the signal and the error."""
    step = largest / 127
    return bool(step * step / 12 > 10 ** (-_SQNR / 10) * variance)


def is_clipped(graph: Graph, name: str, count: int) -> bool:
    """True if the `count` values that calibration saw of an input, or of its scaled channels, are so few that clipping others costs more than
    35 dB. The 16-bit range has room for them. Inputs next to states keep the bits of the network: kept inputs would take twice the memory."""
    return not graph.states and count < _FEWEST_VALUES * (graph.shape(name)[1] if is_given(graph, name) else 1)


def _stored(x: np.ndarray) -> np.ndarray:
    """The real numbers that the integers of an input stand for, in 16 bits where 8 spoil it."""
    return _rounded(x, 16 if _is_spoiled(x) else 8)


def _rounded(x: np.ndarray, bits: int) -> np.ndarray:
    """The real numbers that the integers of these values stand for; the 16-bit ones have headroom."""
    if bits == 16:
        kind = NumType(16).with_scale(max(2 * float(np.abs(x).max()), LEAST_RANGE) / 32767)
    else:
        kind = interval_type(8, min(float(x.min()), 0.0), max(float(x.max()), LEAST_RANGE))
    return kind.dequantize(kind.quantize(x)).astype(np.float64)


def _scales_of_channels(graph: Graph, name: str, x: np.ndarray) -> np.ndarray | None:
    """Gains and shifts that bring each channel of an input to [-1, 1], where one scale is much worse; None where it is not, or where no
    weights undo them. The channels are along the axis by which most is won."""
    if len(x) < _FEWEST or any(graph.precision(node).quantize is False for node in graph.consumers(name)):
        return None
    found = [_scales_along(graph, name, x, axis) for axis in range(1, x.ndim) if x.shape[axis] > 1]
    ratio, scales = max((each for each in found if each is not None), key=lambda each: each[0], default=(0.0, None))
    return scales if ratio > _WORSE_CHANNELS else None


def _scales_along(graph: Graph, name: str, x: np.ndarray, axis: int) -> tuple[float, np.ndarray] | None:
    """Those of channels along an axis, and the ratio of the squared error of one scale to theirs."""
    numbers = _numbers(x.shape, axis)
    readers = weighted_readers(graph, name, numbers)
    if isinstance(readers, str) or _place(graph, name, numbers) is None:
        return None
    channels = np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)
    low, high = channels.min(axis=1), channels.max(axis=1)
    largest = np.maximum(np.abs(low), np.abs(high))
    varies = high - low > 1e-6 * largest
    if not varies.any():
        return None
    # nothing is known of a channel that stays the same but its size
    symmetric = np.full(len(low), True) if padded_reader(readers) is not None else ~varies
    half = np.where(symmetric, np.where(largest > LEAST_RANGE, largest, 1.0), (high - low) / 2)
    centre = np.where(symmetric, 0.0, (high + low) / 2)
    own = (channels - centre[:, None]) / half[:, None]
    error = np.square((_stored(channels) - channels) / half[:, None])[varies].mean()
    least = np.square(_stored(own) - own)[varies].mean()
    return float(error / max(least, 1e-30)), np.stack([1 / half, -centre / half]).reshape(2, *_along(x.ndim, axis))


def _along(rank: int, axis: int) -> tuple[int, ...]:
    """The shape, batch apart, of channels that broadcast to a tensor of `rank` axes along one of them."""
    return tuple(-1 if each == axis else 1 for each in range(1, rank))


def _numbers(shape: tuple[int, ...], axis: int) -> np.ndarray:
    """The number of its channel along an axis, for each element (1, ...) of a tensor."""
    return np.broadcast_to(np.arange(shape[axis]).reshape(1, *_along(len(shape), axis)), (1, *shape[1:]))


def _place(graph: Graph, name: str, numbers: np.ndarray) -> tuple[str, tuple[int, ...]] | None:
    """The tensor after an input, itself or its moved values, whose layout an Affine takes channel by channel: its name and the dims
    (C, ...) that it has, or is seen in; None without any."""
    count = int(numbers.max()) + 1
    while True:
        dims = numbers.shape[1:]
        if dims[0] == count and (np.moveaxis(numbers[0], 0, -1) == np.arange(count)).all():
            return name, dims
        if len(dims) == 1 and (numbers.reshape(-1, count) == np.arange(count)).all():
            return name, (count, 1, dims[0] // count)
        mover = graph.sole_consumer(name)
        if mover is None or not mover.op.moves_values or mover.activation is not None or len(mover.inputs) != 1:
            return None
        name, numbers = mover.output, mover.op.run([numbers], mover)[0]
        if numbers.size % count:
            return None


def with_float_inputs(graph: Graph, scales: InputScales) -> Graph:
    """A copy of a fused graph with these inputs in floating point, and the layers that scale their channels; the same function."""
    if not scales:
        return graph
    result = graph.copy()
    result.float_inputs = frozenset(scales)
    for name, (gains, shifts) in scales.items():
        if gains.size:
            _scale_channels(result, name, gains, shifts)
    result.verify()
    return result


def _scale_channels(graph: Graph, name: str, gains: np.ndarray, shifts: np.ndarray) -> None:
    """Add the layer that scales the channels of an input, and undo it in the weights that read them."""
    gain, shift = gains.reshape(-1), shifts.reshape(-1)
    numbers = np.broadcast_to(np.arange(gain.size).reshape(gains.shape), graph.shape(name))
    readers, place = weighted_readers(graph, name, numbers), _place(graph, name, numbers)
    assert not isinstance(readers, str) and place is not None
    for reader, own in readers:
        scale_inputs(reader, (1 / gain)[own], (-shift / gain)[own])
    source, dims = place
    consumers, first = graph.consumers(source), graph.producer(source)
    at = graph.nodes.index(first) + 1 if first is not None else 0
    params = {"weights": gain.astype(np.float32), "bias": shift.astype(np.float32)}
    layers: list[tuple[str, Op]] = [("scaled", Affine())]
    if graph.shape(source)[1:] != dims:
        layers = [("rows", MemoryView(dims)), ("scaled", Affine()), ("array", MemoryView(graph.shape(source)[1:]))]
    last = source
    for step, (suffix, op) in enumerate(layers):
        made = graph.fresh_name(f"{name}_{suffix}")
        graph.add(Node(made, op, [last], [made], params if suffix == "scaled" else {}, helper=True), at=at + step)
        last = made
    for node in consumers:
        node.inputs = [last if one == source else one for one in node.inputs]
