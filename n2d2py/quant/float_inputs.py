"""Inputs in floating point: where one scale for an input costs more than the integers of what its first layers make of it.

    x, Log(x + 0.001), Conv               x in floating point, the logarithm too; its result gets integers
    x, Fc; channels of different units    x in floating point, each channel brought to [-1, 1]; the weights undo that

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
from n2d2py.operators.arrays.recurrent import ArrayRecurrent
from n2d2py.operators.conv import Conv
from n2d2py.operators.convert import Convert
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.fc import Fc
from n2d2py.operators.functions import Clip
from n2d2py.operators.linear import padded_reader, scale_inputs, weighted_readers
from n2d2py.quant.guards import EXACT_FUNCTIONS
from n2d2py.quant.histogram import LEAST_RANGE
from n2d2py.quant.ranges import interval_type

_WORSE = 2.0
"""Least ratio of the squared error of an input's integers to that of its first layers' results."""
_WORSE_CHANNELS = 16.0
"""The same of channels with one scale and with their own."""
_FEWEST = 8
"""Stimuli that tell the ranges of channels."""
_SQNR = 35.0
"""Decibels that 8 bits must keep in front of layers with weights, which else read 16 bits."""
WEIGHTED = (Conv, Fc, ArrayRecurrent)
"""Layers whose inputs may have 16 bits in a network of 8."""

InputScales = Mapping[str, np.ndarray]
"""By input: gains and shifts (2, C) of its channels; (2, 0) where its first layers stay unchanged."""


# ---- the layers after an input ---------------------------------------------------------------------
def input_layers(graph: Graph) -> set[str]:
    """Names of the layers that compute in floating point for the inputs that are so: the first layers, of single values, and products with
    an input at the end of the network, such as that of a mask."""
    return {node.name for name in graph.float_inputs for node in (*_first_layers(graph, name), *_last_products(graph, name))}


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
        return not op.result and all(whole)
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
        if _is_lost_in_layers(graph, name, x):
            found[name] = np.zeros((2, 0))
        elif (scales := _scales_of_channels(graph, name, x)) is not None:
            found[name] = scales
    return found


def _is_lost_in_layers(graph: Graph, name: str, x: np.ndarray) -> bool:
    """True if the integers of an input cost more than those of what its first layers make of it."""
    real = _results(graph, name, x)
    rounded = _results(graph, name, _rounded(x, 8))
    if not all(np.isfinite(values).all() for values in real.values()):
        return False
    for tensor, values in real.items():
        with np.errstate(all="ignore"):
            error = np.square(rounded[tensor] - values).mean()
            own = np.square(_rounded(values, _bits(graph, tensor, values)) - values).mean()
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


def _bits(graph: Graph, tensor: str, values: np.ndarray) -> int:
    """The bits that a tensor gets: 16 in front of layers with weights that 8 would spoil."""
    readers = graph.consumers(tensor)
    while len(readers) == 1 and readers[0].op.moves_values:
        readers = graph.consumers(readers[0].output)
    if not readers or not all(isinstance(reader.op, WEIGHTED) for reader in readers):
        return 8
    return 16 if _is_spoiled(values) else 8


def _is_spoiled(values: np.ndarray) -> bool:
    return is_spoiled(np.abs(values).max(), values.var())


def is_spoiled(largest: float, variance: float) -> bool:
    """True if rounding to 127 steps leaves less than 35 dB between the signal and the error."""
    step = largest / 127
    return bool(step * step / 12 > 10 ** (-_SQNR / 10) * variance)


def _rounded(x: np.ndarray, bits: int) -> np.ndarray:
    """The real numbers that the integers of these values stand for; the 16-bit ones have headroom."""
    if bits == 16:
        kind = NumType(16).with_scale(max(2 * float(np.abs(x).max()), LEAST_RANGE) / 32767)
    else:
        kind = interval_type(8, min(float(x.min()), 0.0), max(float(x.max()), LEAST_RANGE))
    return kind.dequantize(kind.quantize(x)).astype(np.float64)


def _scales_of_channels(graph: Graph, name: str, x: np.ndarray) -> np.ndarray | None:
    """Gains and shifts that bring each channel of an input to [-1, 1], where one scale is much worse; None where it is not, or where no
    weights undo them."""
    if x.shape[1] < 2 or len(x) < _FEWEST or any(graph.precision(node).quantize is False for node in graph.consumers(name)):
        return None
    numbers = np.broadcast_to(np.arange(x.shape[1]).reshape(1, -1, *(1,) * (x.ndim - 2)), (1, *x.shape[1:]))
    readers = weighted_readers(graph, name, numbers)
    if isinstance(readers, str):
        return None
    channels = np.moveaxis(x, 1, 0).reshape(x.shape[1], -1)
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
    error = np.square((_rounded(channels, 16 if _is_spoiled(channels) else 8) - channels) / half[:, None])[varies].mean()
    least = np.square(_rounded(own, 16 if _is_spoiled(own) else 8) - own)[varies].mean()
    return np.stack([1 / half, -centre / half]) if error > _WORSE_CHANNELS * least else None


def with_float_inputs(graph: Graph, scales: InputScales) -> Graph:
    """A copy of a fused graph with these inputs in floating point, and the layers that scale their channels; the same function."""
    if not scales:
        return graph
    result = graph.copy()
    result.float_inputs = frozenset(scales)
    for name, (gain, shift) in scales.items():
        if not len(gain):
            continue
        numbers = np.arange(len(gain)).reshape(1, -1, *(1,) * (len(result.shape(name)) - 2))
        readers = weighted_readers(result, name, np.broadcast_to(numbers, result.shape(name)))
        assert not isinstance(readers, str)
        for reader, own in readers:
            scale_inputs(reader, (1 / gain)[own], (-shift / gain)[own])
        scaled, consumers = result.fresh_name(f"{name}_scaled"), result.consumers(name)
        params = {"weights": gain.astype(np.float32), "bias": shift.astype(np.float32)}
        result.add(Node(scaled, Affine(), [name], [scaled], params, helper=True), at=0)
        for node in consumers:
            node.inputs = [scaled if one == name else one for one in node.inputs]
    result.verify()
    return result
