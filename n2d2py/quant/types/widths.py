"""Bits of a tensor, by its layers and by inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from n2d2py.graph import Graph, Node
from n2d2py.graph.precision import TargetForm
from n2d2py.graph.shapes import elements
from n2d2py.operators.add_constants import AddConstants
from n2d2py.operators.arrays.matmul import ArrayMatMul
from n2d2py.operators.arrays.recurrent import ArrayRecurrent
from n2d2py.operators.concat import Concat
from n2d2py.operators.conv import Conv
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.fc import Fc
from n2d2py.operators.normalize import Normalize
from n2d2py.operators.softmax import Softmax
from n2d2py.quant.observe.histogram import Histogram
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.types.float_inputs import is_clipped, is_given, is_spoiled
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
    """Bits of a tensor: what its layers ask for, else those of the network, for inputs and outputs what options say.

    What a Softmax at an output reads has the width of an output. An input, and magnitudes, have 16 bits
    where 8 lose, and where recurrent layers alone read them, whose states have as many. Inside, the tensors that only normalisations and
    softmaxes read, or sums whose results they read, have 16 bits: no weights multiply these, and their errors add up from block to
    block of a transformer. So have the states that one recurrent layer gives to the next one, or to the scores, of each step too. Spectra, and what they are made of, are among `options.wide` (quant/types/spectra.py).
    """
    holders = [tensor for tensor, origin in source.items() if origin == name]
    asked = asked_bits(graph, holders)
    if asked is not None:
        return asked
    if name in options.wide:
        return 16
    readers = [node for tensor in holders for node in graph.consumers(tensor) if not node.op.moves_values]
    if options.bits == 8 and options.wide_joins and _keeps_sixteen(graph, name):
        return 16
    given = name in graph.inputs or is_magnitude(graph.producer(name)) or is_given(graph, name)
    if options.bits == 8 and given and readers:
        recurs = all(isinstance(node.op, ArrayRecurrent) for node in readers)
        lost = known is None and (recurs or _is_lost(graph, name, histograms[name]))
        if options.input_bits == 16 or (options.input_bits == 0 and lost):
            return 16
    last = (name in final and not readers) or is_scored(graph, name)
    if options.bits == 8 and last and name not in graph.inputs:
        return options.output_bits or (16 if _is_scores(graph, name) else 8)
    return options.bits


def _is_lost(graph: Graph, name: str, histogram: Histogram) -> bool:
    return is_spoiled(histogram.largest, histogram.deviation**2) or is_clipped(graph, name, histogram.count)


def _keeps_sixteen(graph: Graph, name: str) -> bool:
    return _is_stream(graph, name, set()) or _are_shares(graph, name) or is_sequence(graph, name)


def is_sequence(graph: Graph, name: str) -> bool:
    """True if recurrent layers alone, or the last layer of the network too, read what recurrent layers give, joined or not."""
    producer = graph.producer(name)
    made = producer is not None and isinstance(producer.op, (ArrayRecurrent, Concat))
    return made and _feeds_recurrent(graph, name, _are_states(graph, name))


def _are_states(graph: Graph, name: str) -> bool:
    """True if recurrent layers alone make the values."""
    producer = graph.producer(name)
    if producer is None or isinstance(producer.op, ArrayRecurrent):
        return producer is not None
    passes = isinstance(producer.op, Concat) or producer.op.moves_values
    return passes and producer.activation is None and all(_are_states(graph, each) for each in producer.inputs)


def _feeds_recurrent(graph: Graph, name: str, scores: bool) -> bool:
    readers = graph.consumers(name)
    return name not in graph.outputs and bool(readers) and all(_passes_on(graph, node, scores) for node in readers)


def _passes_on(graph: Graph, node: Node, scores: bool) -> bool:
    if isinstance(node.op, ArrayRecurrent) or (scores and isinstance(node.op, (Conv, Fc)) and graph.is_last(node.output)):
        return True
    joins = node.op.moves_values or isinstance(node.op, Concat)
    return joins and node.activation is None and _feeds_recurrent(graph, node.output, scores)


def _are_shares(graph: Graph, name: str) -> bool:
    """True if a tensor holds the shares of a softmax, of which products of two activations make sums."""
    producer, readers = graph.producer(name), graph.consumers(name)
    shared = producer is not None and isinstance(producer.op, Softmax) and name not in graph.outputs
    return shared and bool(readers) and all(isinstance(node.op, ArrayMatMul) for node in readers)


_NORMALISED = (Normalize, Softmax)
_SUMS = (AddConstants, ElemWise)


def _is_stream(graph: Graph, name: str, seen: set[str]) -> bool:
    """True if a tensor that no weighted layer makes is read by normalisations and softmaxes alone, or by sums such as these."""
    if name in seen:
        return True
    seen.add(name)
    producer = graph.producer(name)
    if producer is None or not (_sums(producer) or isinstance(producer.op, (ArrayMatMul, Conv)) or producer.op.moves_values):
        return False
    readers = graph.consumers(name)
    return name not in graph.outputs and bool(readers) and all(_keeps(graph, node, seen) for node in readers)


def _sums(node: Node) -> bool:
    """True if a layer sums or joins the rows of a stream."""
    rows = isinstance(node.op, Concat) and (node.op.rows > 1 or not node.op.joins_reals)
    return rows or isinstance(node.op, _SUMS)


def _keeps(graph: Graph, node: Node, seen: set[str]) -> bool:
    if isinstance(node.op, _NORMALISED):
        return True
    plain = not (isinstance(node.op, ElemWise) and node.op.operation != "Sum")
    follows = (_sums(node) or node.op.moves_values) and plain and node.activation is None
    return follows and _is_stream(graph, node.output, seen)


def _is_scores(graph: Graph, name: str) -> bool:
    """True if the tensor is a vector of weighted sums, or one for each step of recurrent layers, which cost little to keep in 16 bits."""
    producer, shape = graph.producer(name), graph.shape(name)
    if producer is None or not isinstance(producer.op, (Conv, Fc)):
        return False
    return elements(shape) == shape[1] or _are_states(graph, producer.inputs[0])


def is_scored(graph: Graph, name: str) -> bool:
    """True if softmaxes at outputs of the network alone read a tensor, moved or not."""
    readers = graph.consumers(name)
    return bool(readers) and all(
        graph.is_last(node.output)
        if isinstance(node.op, Softmax) and graph.precision(node).target is not TargetForm.REAL
        else node.op.moves_values and is_scored(graph, node.output)
        for node in readers
    )


def asked_bits(graph: Graph, names: Sequence[str]) -> int | None:
    """The widest `QuantBits` of the layers that write or read any of these tensors; None when none has it."""
    layers = [node for name in names for node in (graph.producer(name), *graph.consumers(name)) if node is not None]
    return max((bits for node in layers if (bits := graph.precision(node).bits) is not None), default=None)
