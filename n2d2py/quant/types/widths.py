"""Bit width of each tensor."""

from collections.abc import Collection, Mapping, Sequence

from n2d2py.arithmetic.histogram import Histogram
from n2d2py.graph import Graph, Node, TargetForm, elements, layer_macs
from n2d2py.operators import ArrayMap, ArrayMatMul, ArrayRecurrent, Conv, Convert, ElemWise, Fc, Normalize, Pool, Softmax
from n2d2py.operators.concat import Concat, is_real_concat
from n2d2py.operators.pointwise import Activation, AddConstants, Affine
from n2d2py.quant.types.float_inputs import needs_16_bits


def accumulates_errors(graph: Graph, name: str) -> bool:
    """True for residual streams, attention weights and sequences of hidden states: no weights multiply them."""
    return _is_residual_stream(graph, name, set()) or _are_attention_weights(graph, name) or is_sequence(graph, name)


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
"""Share of the multiply-accumulates of a network that the layers after 16-bit averages may have."""


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
    rows = isinstance(node.op, Concat) and (node.op.rows > 1 or not node.op.concatenates_reals)
    return rows or isinstance(node.op, _SUMS)


def _continues_stream(graph: Graph, node: Node, visited: set[str]) -> bool:
    if isinstance(node.op, _NORMALISED):
        return True
    plain = not (isinstance(node.op, ElemWise) and node.op.operation != "Sum")
    follows = (_is_sum_or_concat(node) or node.op.moves_values) and plain and node.activation is None
    return follows and _is_residual_stream(graph, node.output, visited)


def are_scores(graph: Graph, name: str) -> bool:
    """True if the tensor is a vector of weighted sums, or one for each recurrent step: 16 bits cost little there."""
    producer, shape = graph.producer(name), graph.shape(name)
    if producer is None or not isinstance(producer.op, (Conv, Fc)):
        return False
    return elements(shape) == shape[1] or _are_hidden_states(graph, producer.inputs[0])


_HALF = 127 / 256
"""127 steps of an 8-bit probability."""


def is_spoiled_output(graph: Graph, name: str, source: Mapping[str, str], histograms: Mapping[str, Histogram]) -> bool:
    """True if 8 bits leave too little of an output, such as depths, spectra, or boxes next to scores.

    Probabilities of a Softmax have steps of 1 / 256. They keep them if any is above one half.
    """
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
