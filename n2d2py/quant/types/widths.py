"""Bit width of each tensor."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from n2d2py.arithmetic.histogram import Histogram
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.graph import Graph, Node
from n2d2py.graph.describe import layer_macs
from n2d2py.graph.precision import TargetForm
from n2d2py.graph.shapes import elements
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.arrays.matmul import ArrayMatMul
from n2d2py.operators.arrays.recurrent import ArrayRecurrent
from n2d2py.operators.concat import Concat, is_real_concat
from n2d2py.operators.conv import Conv, Fc
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.normalize import Normalize
from n2d2py.operators.pointwise import Activation, AddConstants, Affine
from n2d2py.operators.pool import Pool
from n2d2py.operators.quantize import Convert
from n2d2py.operators.softmax import Softmax
from n2d2py.quant.types.float_inputs import is_requantized_input, needs_16_bits, would_clip
from n2d2py.quant.types.spectra import is_magnitude


def width(
    graph: Graph,
    name: str,
    source: dict[str, str],
    final: set[str],
    histograms: Mapping[str, Histogram],
    known: tuple[float, float] | None,
    options: QuantOptions,
) -> int:
    """Return the bit width of a tensor.

    `QuantBits` of its layers comes first, then the width of the network. These have 16 bits in an 8-bit network:
    - tensors in `options.wide`, such as spectra (quant/types/spectra.py) and outputs that 8 bits would spoil;
    - residual streams, attention weights and sequences of hidden states: no weights multiply them, and their errors accumulate;
    - inputs and magnitudes of spectra that 8 bits would spoil, or that only recurrent layers consume;
    - outputs, and the input of an output Softmax, as `options.output_bits` says; 0 selects 16 for vectors of scores.
    """
    holders = [tensor for tensor, origin in source.items() if origin == name]
    requested = requested_bits(graph, holders)
    if requested is not None:
        return requested
    if name in options.wide:
        return 16
    readers = [node for tensor in holders for node in graph.consumers(tensor) if not node.op.moves_values]
    accumulates_errors = (
        _is_residual_stream(graph, name, set()) or _are_attention_weights(graph, name) or is_sequence(graph, name)
    )
    if options.bits == 8 and options.wide_concats and accumulates_errors:
        return 16
    is_input = name in graph.inputs or is_magnitude(graph.producer(name)) or is_requantized_input(graph, name)
    if options.bits == 8 and is_input and readers:
        only_recurrent = all(isinstance(node.op, ArrayRecurrent) for node in readers)
        histogram = histograms[name] if known is None else None
        lost = histogram is not None and (
            only_recurrent
            or needs_16_bits(histogram.largest, histogram.deviation**2)
            or would_clip(graph, name, histogram.count)
        )
        if options.input_bits == 16 or (options.input_bits == 0 and lost):
            return 16
    last = (name in final and not readers) or feeds_output_softmax(graph, name)
    if options.bits == 8 and last and name not in graph.inputs:
        return options.output_bits or (16 if _are_scores(graph, name) else 8)
    return options.bits


_DECODERS = (Activation, AddConstants, Affine, ArrayMap, Concat, ElemWise, Normalize)
_WORK_OF_ELEMENT = 750
"""Multiply-accumulates of the network for each element that gets 16 bits: 2 % of the instructions of a detector on x86."""


def decoding_tensors(graph: Graph, spoiled: Collection[str]) -> frozenset[str]:
    """Return the tensors between the last weighted layers and the outputs, such as those that decode the boxes of a detector.

    Those of the outputs `spoiled`, which 8 bits would spoil, are among them. With 16 bits the others cost little: each is at most
    half as large as the largest tensor, and all together are small compared with the work of the network. The smallest come
    first, of equal ones those next to the outputs.
    """
    counts: dict[str, int] = {}
    decoded, needed = set(graph.outputs), set(spoiled)
    for node in reversed(graph.nodes):
        for name in node.outputs:
            readers = graph.consumers(name)
            if name in decoded or not readers or not all(_decodes(one) and one.output in decoded for one in readers):
                continue
            decoded.add(name)
            if all(one.output in needed for one in readers):
                needed.add(name)
            if not node.op.moves_values:
                counts[name] = elements(graph.shape(name))
    largest = max((elements(tensor.shape) for tensor in graph.tensors.values()), default=0)
    left, chosen = sum(layer_macs(graph, node) for node in graph.nodes), needed.intersection(counts)
    for name in sorted(counts, key=counts.__getitem__):
        left -= _WORK_OF_ELEMENT * counts[name]
        if left >= 0 and 2 * counts[name] <= largest:
            chosen.add(name)
    return frozenset(chosen)


_MOST_READING = 0.02
"""Share of the multiply-accumulates of a network that the layers after averages of 16 bits may have."""


def averaged_tensors(graph: Graph) -> frozenset[str]:
    """Return the averages of whole maps that only the last layers consume, if these are a small part of the work.

    An average is more precise than the values it is taken of, so 8 bits may be the largest error of a classifier.
    """
    work = {node.name: layer_macs(graph, node) for node in graph.nodes}
    limit = _MOST_READING * sum(work.values())

    def reads(node: Node) -> bool:
        is_last = graph.is_last(node.output) or feeds_output_softmax(graph, node.output)
        return isinstance(node.op, (Conv, Fc)) and is_last and work[node.name] <= limit

    averages = (node.output for node in graph.nodes if isinstance(node.op, Pool) and node.op.mode == "Average")
    return frozenset(
        name
        for name in averages
        if elements(graph.shape(name)) == graph.shape(name)[1]
        and name not in graph.outputs
        and graph.feeds_only(name, reads, lambda node: node.op.moves_values)
    )


def _decodes(node: Node) -> bool:
    """True if a layer computes element by element or moves values."""
    return node.op.moves_values or isinstance(node.op, _DECODERS)


def is_sequence(graph: Graph, name: str) -> bool:
    """True for results of recurrent layers, concatenated or not, that only recurrent layers or the last layer consume."""
    producer = graph.producer(name)
    if producer is None or not isinstance(producer.op, (ArrayRecurrent, Concat)) or name in graph.outputs:
        return False
    states = _are_hidden_states(graph, name)

    def takes(node: Node) -> bool:
        return isinstance(node.op, ArrayRecurrent) or (
            states and isinstance(node.op, (Conv, Fc)) and graph.is_last(node.output)
        )

    def copies(node: Node) -> bool:
        moves = node.op.moves_values or isinstance(node.op, Concat)
        return moves and node.activation is None and node.output not in graph.outputs

    return graph.feeds_only(name, takes, copies)


def _are_hidden_states(graph: Graph, name: str) -> bool:
    """True if all values come from recurrent layers."""
    producer = graph.producer(name)
    if producer is None or isinstance(producer.op, ArrayRecurrent):
        return producer is not None
    passes = isinstance(producer.op, Concat) or producer.op.moves_values
    return passes and producer.activation is None and all(_are_hidden_states(graph, each) for each in producer.inputs)


def _are_attention_weights(graph: Graph, name: str) -> bool:
    """True if a tensor is the output of a Softmax that only matrix products of two activations consume."""
    producer = graph.producer(name)
    shares = producer is not None and isinstance(producer.op, Softmax) and name not in graph.outputs
    return shares and graph.feeds_only(name, lambda node: isinstance(node.op, ArrayMatMul))


_NORMALISED = (Normalize, Softmax)
_SUMS = (AddConstants, ElemWise)


def _is_residual_stream(graph: Graph, name: str, visited: set[str]) -> bool:
    """True if only normalizations, softmaxes and sums with such consumers read a tensor: a residual stream."""
    if name in visited:
        return True
    visited.add(name)
    producer = graph.producer(name)
    if producer is None or not (
        _is_sum_or_concat(producer) or isinstance(producer.op, (ArrayMatMul, Conv, Convert)) or producer.op.moves_values
    ):
        return False
    return name not in graph.outputs and graph.feeds_only(name, lambda node: _continues_stream(graph, node, visited))


def _is_sum_or_concat(node: Node) -> bool:
    """True if a layer adds rows of a stream or concatenates them."""
    rows = isinstance(node.op, Concat) and (node.op.rows > 1 or not node.op.concatenates_reals)
    return rows or isinstance(node.op, _SUMS)


def _continues_stream(graph: Graph, node: Node, visited: set[str]) -> bool:
    if isinstance(node.op, _NORMALISED):
        return True
    plain = not (isinstance(node.op, ElemWise) and node.op.operation != "Sum")
    follows = (_is_sum_or_concat(node) or node.op.moves_values) and plain and node.activation is None
    return follows and _is_residual_stream(graph, node.output, visited)


def _are_scores(graph: Graph, name: str) -> bool:
    """True if the tensor is a vector of weighted sums, or one for each recurrent step: 16 bits cost little there."""
    producer, shape = graph.producer(name), graph.shape(name)
    if producer is None or not isinstance(producer.op, (Conv, Fc)):
        return False
    return elements(shape) == shape[1] or _are_hidden_states(graph, producer.inputs[0])


_HALF = 127 / 256
"""127 steps of an 8-bit probability."""


def is_spoiled_output(graph: Graph, name: str, source: Mapping[str, str], histograms: Mapping[str, Histogram]) -> bool:
    """True if 8 bits leave too little of an output, such as depths or spectra, or of its widest part.

    Probabilities of a Softmax have steps of 1 / 256. They keep them if any is above one half.
    """
    """True if 8 bits leave too little of an output, such as depths, spectra, or boxes next to scores; probabilities of a
    Softmax keep 8 bits."""
    producer = graph.producer(name)
    if producer is not None and isinstance(producer.op, Softmax):
        measured = histograms.get(name)
        return measured is not None and measured.largest < _HALF and needs_16_bits(_HALF, measured.deviation**2)
    measured = [one for part in _joined_parts(graph, name, source) if (one := histograms.get(part)) is not None]
    count = sum(one.count for one in measured)
    within = sum(one.count * one.deviation**2 for one in measured) / max(count, 1)
    return count > 0 and needs_16_bits(max(one.largest for one in measured), within)


def _joined_parts(graph: Graph, name: str, source: Mapping[str, str]) -> list[str]:
    """Return the computed tensors that a Concat and those before it join; the tensor itself if none computes it."""
    producer = graph.producer(name)
    if producer is None or not is_real_concat(producer):
        return [name]
    return [part for each in producer.inputs for part in _joined_parts(graph, source.get(each, each), source)]


def feeds_output_softmax(graph: Graph, name: str) -> bool:
    """True if only softmaxes at outputs of the network consume a tensor or its copies."""
    return graph.feeds_only(
        name,
        lambda node: (
            isinstance(node.op, Softmax) and graph.precision(node).target is not TargetForm.REAL and graph.is_last(node.output)
        ),
        lambda node: node.op.moves_values,
    )


def requested_bits(graph: Graph, names: Sequence[str]) -> int | None:
    """Return the largest `QuantBits` of the layers that produce or consume any of these tensors; None without any."""
    layers = [node for name in names for node in (graph.producer(name), *graph.consumers(name)) if node is not None]
    return max((bits for node in layers if (bits := graph.precision(node).bits) is not None), default=None)
