"""Float inputs: inputs for which one integer scale costs more than quantizing the results of their first layers.

    x, Log(x + 0.001), Conv               x and the logarithm stay in floating point; the result of Log is quantized
    x > 0.5, MatMul                       x stays in floating point: quantized values near 0.5 could change the comparison
    x, LSTM with peepholes                x stays in floating point, as the layer does, which has no integer form
    x, Fc; channels of different units    x stays in floating point, each channel is scaled to [-1, 1], and the weights undo it

"First layers" are the element-wise layers after an input: gains, shifts, functions. Two errors at their results are compared
on samples: from quantizing x, and from quantizing the results.
"""

from collections.abc import Iterator, Mapping
from math import prod

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.histogram import LEAST_RANGE
from n2d2py.contracts.functions import Clip
from n2d2py.contracts.operator import Op
from n2d2py.contracts.quant.quantizer import refused
from n2d2py.graph import Graph, Node, named_inputs
from n2d2py.operators import Activation, AddConstants, Affine, ArrayMap, Convert, ElemWise, MemoryView
from n2d2py.operators.linear import WeightedReaders, axis_numbers, padded_reader, scale_inputs, weighted_readers
from n2d2py.quant.types.dynamic_range import EXACT_FUNCTIONS, only_clamps
from n2d2py.quant.types.ranges import channel_weights, interval_type, weight_error

_WORSE_RATIO = 2.0
"""An input stays in floating point if quantizing it has at least this multiple of the squared error."""
_WORSE_CHANNEL_RATIO = 4.0
"""The same ratio for one scale against a scale for each channel."""
_FEWEST_SAMPLES = 8
"""Least number of samples for ranges of channels."""
_SQNR = 35.0
"""Signal to quantization noise, in dB, below which an input has 16 bits instead of 8."""
_FEWEST_VALUES = 1000
"""Clipping at the largest of so many normally distributed values costs 35 dB."""

InputScales = Mapping[str, np.ndarray]
"""By input: gains and shifts (2, ...) that broadcast to it, such as (2, 1, C) for (1, T, C); (2, 0) without scaling."""


def input_layers(graph: Graph) -> set[str]:
    """Return the layers that compute in floating point because of a float input.

    They are the first layers with the layers that move values before them, and products and sums with the input at the end of
    the network, such as the application of a mask.
    """
    names: set[str] = set()
    for name in graph.float_inputs:
        for node in _first_layers(graph, name):
            names.add(node.name)
            while (node := graph.producer(node.inputs[0])) is not None:
                names.add(node.name)
        names |= _last_products(graph, name, {})
        if _goes_to_float(graph, name):
            names |= set(_moving_layers(graph, name))
    return names


def _goes_to_float(graph: Graph, tensor: str) -> bool:
    """True if only layers without integer form, such as an LSTM with peepholes, consume a tensor or copies of it."""
    return graph.feeds_only(tensor, lambda node: refused(node) is not None, lambda node: node.only_moves)


def is_requantized_input(graph: Graph, tensor: str) -> bool:
    """True if a tensor holds the quantized result of the first layers of a float input."""
    node = graph.producer(tensor)
    if node is None or not isinstance(node.op, Convert) or node.op.to_float:
        return False
    while node is not None:
        tensor = node.inputs[0]
        node = graph.producer(tensor)
        if node is not None and not (node.op.moves_values or _is_elementwise(node)):
            return False
    return tensor in graph.float_inputs


def _first_layers(graph: Graph, tensor: str) -> Iterator[Node]:
    for reader in graph.consumers(tensor):
        if _is_elementwise(reader):
            yield reader
        if _is_elementwise(reader) or reader.only_moves:
            yield from _first_layers(graph, reader.output)


def _last_products(graph: Graph, tensor: str, known: dict[str, set[str]]) -> set[str]:
    """Return the names of the layers that add or multiply a tensor and others to form outputs, and of those that move values
    there. `known` caches the result by tensor."""
    if tensor not in known:
        names = known[tensor] = set()
        for reader in graph.consumers(tensor):
            combines = _combines(reader)
            if combines and graph.is_last(reader.output):
                names |= {reader.name, *_moving_layers(graph, reader.output)}
            elif (combines or reader.only_moves) and (after := _last_products(graph, reader.output, known)):
                names |= {reader.name, *after}
    return known[tensor]


def _combines(node: Node) -> bool:
    op, count = node.op, len(set(node.inputs))
    if count < 2 or node.activation is not None:
        return False
    if isinstance(op, ArrayMap):
        return op.function in ("Add", "Mul", "Sub")
    return isinstance(op, ElemWise) and (op.operation == "Prod" or (op.is_plain_sum and count == 2))


def _moving_layers(graph: Graph, tensor: str) -> Iterator[str]:
    for reader in graph.consumers(tensor):
        if reader.only_moves:
            yield from (reader.name, *_moving_layers(graph, reader.output))


def _is_elementwise(node: Node) -> bool:
    """True if a layer with one input is element-wise and gives the same float bits on every machine."""
    op = node.op
    if len(set(node.inputs)) != 1 or not only_clamps(node):
        return False
    if isinstance(op, Activation):
        return isinstance(op.function, Clip) or op.function.kind in EXACT_FUNCTIONS
    if isinstance(op, ArrayMap):
        return all(prod(shape) == prod(op.dims) for shape, slot in zip(op.shapes, op.slots, strict=True) if slot >= 0)
    if isinstance(op, ElemWise):
        return op.operation == "Prod"
    return isinstance(op, (AddConstants, Affine))


def choose_float_inputs(graph: Graph, stimuli: np.ndarray, ranges: Mapping[str, tuple[float, float] | None]) -> InputScales:
    """Return the inputs better left in floating point on samples (n, ...); never inputs of known range (images)."""
    scales_by_input: dict[str, np.ndarray] = {}
    for name, x in named_inputs(graph, stimuli).items():
        measured = ranges.get(name) is None and name in graph.user_inputs and not graph.kind(name)
        if not measured or name in graph.outputs or not np.isfinite(x).all() or not x.size:
            continue
        if any(_is_elementwise(node) and graph.precision(node).quantize for node in graph.consumers(name)):
            continue
        x = x.astype(np.float64)
        results, scaled = _first_results(graph, name, x), _scaled_tensor(graph, name)
        result = x if scaled == name else results.get(scaled)
        scales = None if result is None or not np.isfinite(result).all() else _channel_scales(graph, scaled, result)
        if scales is not None:
            scales_by_input[name] = scales
        elif _goes_to_float(graph, name) or _last_products(graph, name, {}) or _is_better_in_float(graph, name, x, results):
            scales_by_input[name] = np.zeros((2, 0))
    return scales_by_input


def _scaled_tensor(graph: Graph, name: str) -> str:
    """Return the tensor whose channels may have scales of their own: the result of a chain of first layers, else the input."""
    tensor, last = name, name
    while (node := graph.sole_consumer(tensor)) is not None and node.output not in graph.outputs:
        if _is_elementwise(node):
            last = node.output
        elif not node.only_moves:
            break
        tensor = node.output
    return last


def _is_better_in_float(graph: Graph, name: str, x: np.ndarray, real: Mapping[str, np.ndarray]) -> bool:
    """True if quantizing an input has a larger error than quantizing `real`, the results of its first layers."""
    integers = _quantized_to(x, 8)
    rounded = _first_results(graph, name, integers)
    if not all(np.isfinite(values).all() for values in real.values()):
        return False
    if any(getattr(node.op, "result", "") for node in _first_layers(graph, name)) and not np.allclose(integers, x):
        return True  # other samples may lie near the threshold of a comparison
    for tensor, values in real.items():
        if values.dtype.kind != "f":
            continue
        with np.errstate(all="ignore"):
            error = np.square(rounded[tensor] - values, dtype=np.float64).mean()
            own_error = np.square(_quantized(values) - values).mean()
            least = 1e-30 * np.square(values, dtype=np.float64).mean()
        if not error <= _WORSE_RATIO * max(own_error, least):
            return True
    return False


def _first_results(graph: Graph, name: str, x: np.ndarray) -> dict[str, np.ndarray]:
    """Return the results of the first layers of an input that other layers consume."""
    values, results = {name: x}, {}
    layers = {node.name: node for node in _first_layers(graph, name)}
    for node in graph.nodes:
        if node.inputs[:1] and node.inputs[0] in values and (node.name in layers or node.op.moves_values):
            with np.errstate(all="ignore"):
                (values[node.output],) = node.compute([values[one] for one in node.inputs])
    for node in layers.values():
        readers = graph.consumers(node.output)
        if node.output in graph.outputs or any(reader.name not in layers for reader in readers):
            results[node.output] = values[node.output]
    return results


def needs_16_bits(largest: float, variance: float) -> bool:
    """True if rounding to 127 steps leaves less than 35 dB between the signal and the error."""
    step = largest / 127
    return bool(step * step / 12 > 10 ** (-_SQNR / 10) * variance)


def would_clip(graph: Graph, name: str, count: int) -> bool:
    """True if calibration saw so few values (`count`) of an input, or of each scaled channel, that clipping later ones costs 35
    dB.

    A 16-bit range has headroom for them. Inputs of a network with states keep 8 bits: stored inputs would take twice the
    memory.
    """
    return not graph.states and count < _FEWEST_VALUES * (graph.shape(name)[1] if is_requantized_input(graph, name) else 1)


def _quantized(x: np.ndarray) -> np.ndarray:
    """Return the values after quantization to 8 bits, or 16 if 8 would spoil them."""
    return _quantized_to(x, 16 if needs_16_bits(np.abs(x).max(), x.var()) else 8)


def _squared_error(channels: np.ndarray) -> np.ndarray:
    return np.square(_quantized(channels) - channels).mean(axis=1)


def _quantized_to(x: np.ndarray, bits: int) -> np.ndarray:
    """Return the values after quantization to 8 bits, or to 16 with headroom."""
    kind = interval_type(8, min(float(x.min()), 0.0), max(float(x.max()), LEAST_RANGE))
    if bits == 16:
        kind = NumType(16).with_scale(max(2 * float(np.abs(x).max()), LEAST_RANGE) / 32767)
    return kind.dequantize(kind.quantize(x)).astype(np.float64)


def _channel_scales(graph: Graph, name: str, x: np.ndarray) -> np.ndarray | None:
    """Return gains and shifts that scale each channel of an input to [-1, 1], along the axis with the largest benefit.

    None if one scale is nearly as good, or if no weights can undo the scaling.
    """
    if len(x) < _FEWEST_SAMPLES or any(graph.precision(node).quantize is False for node in graph.consumers(name)):
        return None
    candidates = [_scales_along(graph, name, x, axis) for axis in range(1, x.ndim) if x.shape[axis] > 1]
    ratio, scales = max(filter(None, candidates), key=lambda each: each[0], default=(0.0, None))
    return scales if ratio > _WORSE_CHANNEL_RATIO else None


def _scales_along(graph: Graph, name: str, x: np.ndarray, axis: int) -> tuple[float, np.ndarray] | None:
    """Return the error ratio of one scale to a scale for each channel along an axis, and the gains and shifts."""
    numbers = axis_numbers(x.shape, axis)
    readers = weighted_readers(graph, name, numbers)
    if isinstance(readers, str) or _scalable_copy(graph, name, numbers) is None:
        return None
    channels = np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)
    low, high = channels.min(axis=1), channels.max(axis=1)
    largest = np.maximum(np.abs(low), np.abs(high))
    varies = high - low > np.maximum(1e-6 * largest, LEAST_RANGE)
    if not varies.any():
        return None
    # of a constant channel only its magnitude is known
    symmetric = np.full(len(low), True) if padded_reader(readers) is not None else ~varies
    half = np.where(symmetric, np.where(largest > LEAST_RANGE, largest, 1.0), (high - low) / 2)
    centre = np.where(symmetric, 0.0, (high + low) / 2)
    scaled = (channels - centre[:, None]) / half[:, None]
    variance = channels.var(axis=1)
    error = _expected_error(readers, _squared_error(channels) * varies, variance, np.ones(len(half)))
    least = _expected_error(readers, _squared_error(scaled) * half**2 * varies, variance, 1 / half)
    shape = (2, *(-1 if each == axis else 1 for each in range(1, x.ndim)))
    return error / max(least, 1e-30), np.stack([1 / half, -centre / half]).reshape(shape)


def _expected_error(readers: WeightedReaders, squares: np.ndarray, variance: np.ndarray, factors: np.ndarray) -> float:
    """Return the squared error of the consumers' outputs relative to their variance, from rounding channels multiplied by
    `factors` and the weights divided by them.

    squares, variance, factors: (C), of each channel.
    """
    total = 0.0
    for reader, numbers in readers:
        weights, dense = channel_weights(reader, len(numbers))
        power = np.einsum("ocp,c->o", np.square(weights), variance[numbers])
        rows = weights / np.sqrt(np.maximum(power, 1e-30))[:, None, None]
        total += float(np.square(rows).sum(axis=(0, 2)) @ squares[numbers])
        total += float(weight_error(rows, factors[numbers]) @ variance[numbers]) if dense else 0.0
    return total


def _scalable_copy(graph: Graph, name: str, numbers: np.ndarray) -> tuple[str, tuple[int, ...]] | None:
    """Return the input, or its copy in another layout, that an Affine can scale by channel, and dims (C, ...); or None."""
    count = int(numbers.max()) + 1
    while True:
        dims = numbers.shape[1:]
        if dims[0] == count and (np.moveaxis(numbers[0], 0, -1) == np.arange(count)).all():
            return name, dims
        if (len(dims) == 1 or numbers.size == count) and (numbers.reshape(-1, count) == np.arange(count)).all():
            return name, (count, 1, numbers.size // count)
        mover = graph.sole_consumer(name)
        if mover is None or not mover.only_moves or len(mover.inputs) != 1:
            return None
        name, numbers = mover.output, mover.op.run([numbers], mover)[0]
        if numbers.size % count:
            return None


def with_float_inputs(graph: Graph, scales: InputScales) -> Graph:
    """Return an equivalent copy of a fused graph with these float inputs and the layers that scale their channels."""
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
    """Add the layer that scales the channels of an input, and undo the scaling in the weights of its consumers."""
    name, gain, shift = _scaled_tensor(graph, name), gains.reshape(-1), shifts.reshape(-1)
    numbers = np.broadcast_to(np.arange(gain.size).reshape(gains.shape), graph.shape(name))
    readers, place = weighted_readers(graph, name, numbers), _scalable_copy(graph, name, numbers)
    assert not isinstance(readers, str) and place is not None
    for reader, channels in readers:
        scale_inputs(reader, (1 / gain)[channels], (-shift / gain)[channels])
    source, dims = place
    consumers, first = graph.consumers(source), graph.producer(source)
    index = graph.nodes.index(first) + 1 if first is not None else 0
    params = {"weights": gain.astype(np.float32), "bias": shift.astype(np.float32)}
    layers: list[tuple[str, Op]] = [("scaled", Affine())]
    if graph.shape(source)[1:] != dims:
        layers = [("rows", MemoryView(dims)), ("scaled", Affine()), ("array", MemoryView(graph.shape(source)[1:]))]
    last = source
    for step, (suffix, op) in enumerate(layers):
        fresh, constants = graph.fresh_name(f"{name}_{suffix}"), params if suffix == "scaled" else {}
        last = graph.add(Node(fresh, op, [last], [fresh], constants, helper=True), index + step).output
    for node in consumers:
        node.inputs = [last if one == source else one for one in node.inputs]
