"""Decides the number type of every tensor from the statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from n2d2py.arithmetic import FLOAT32, NumType, plain_type
from n2d2py.graph import Graph, Node
from n2d2py.operators.activation import Activation
from n2d2py.operators.affine import Affine
from n2d2py.operators.arrays.concat import joins
from n2d2py.operators.arrays.norm import ArraySoftmax
from n2d2py.operators.convert import Convert
from n2d2py.operators.deconv import Deconv
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.functions import FUNCTIONS, ChannelClip, Clip, Tanh
from n2d2py.operators.pool import Pool
from n2d2py.quant.corrections import BiasCorrections
from n2d2py.quant.float_fallback import float_tensors
from n2d2py.quant.guards import coarse_tensors
from n2d2py.quant.histogram import LEAST_RANGE, Histogram
from n2d2py.quant.joins import CoarseJoin, fill_values, type_concats, with_fills
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.ranges import ZERO_POINT_GAIN, Counts, least_error_interval, least_error_reach
from n2d2py.quant.spectra import wide_tensors
from n2d2py.quant.states import KeptStates, StateReaches, recurrent_reach
from n2d2py.quant.thresholds import activation_threshold
from n2d2py.quant.widths import is_scored, width

_HEADROOM = 2.0
"""Range of a tensor of 16 bits, as a multiple of the largest value seen: a bit spent on values that calibration did not see."""


@dataclass(frozen=True)
class TensorTypes:
    """types: number type of each tensor; thresholds: largest real magnitude that the calibrated ones hold.

    `coarse` are the Concats and the fill values whose integers are too coarse for what they hold; `biases` says which biases were
    corrected and why, None where none should be. `cells` are ranges of cell states, by the output of a recurrent layer.
    """

    types: dict[str, NumType]
    thresholds: dict[str, float]
    coarse: tuple[CoarseJoin, ...] = ()
    biases: BiasCorrections | None = None
    cells: Mapping[str, float] = field(default_factory=dict)


def _moves(node) -> bool:
    return node.op.moves_values


def calibrated_tensors(graph: Graph) -> list[str]:
    """The tensors whose range must be measured: all integers that some layer computes, and the inputs."""
    real = {*float_tensors(graph), *(name for name, tensor in graph.tensors.items() if tensor.kind)}
    made = [name for node in graph.nodes if not _moves(node) and not joins(node) for name in node.outputs if name not in real]
    pooled = [node.output for node in graph.nodes if isinstance(node.op, Pool) and node.op.mode == "Max"]
    return [name for name in dict.fromkeys(graph.inputs + made + pooled) if name not in real]


def nonnegative_tensors(graph: Graph, inputs: set[str]) -> set[str]:
    """Tensors that cannot be negative, given which inputs cannot: by activation and by what preserves it."""
    known = set(inputs)
    for node in graph.nodes:
        all_known = all(name in known for name in node.inputs)
        activation = node.activation or (node.op.function if isinstance(node.op, Activation) else None)
        preserves = (_moves(node) and getattr(node.op, "fill", 0) >= 0) or joins(node) or isinstance(node.op, (Pool, Convert))
        if isinstance(node.op, Affine):
            preserves = all(values.min(initial=0) >= 0 for values in node.params.values())
        if isinstance(node.op, ElemWise):
            weights, shifts = node.op.coefficients(len(node.inputs))
            plain = min(weights) >= 0 and min(shifts) >= 0
            preserves = plain or node.op.operation in ("Prod", "Max", "Min")
            all_known = (
                all_known or node.op.operation == "EuclideanSum" or (node.op.operation == "AbsSum" and min(weights) >= 0)
            )
        if (
            node.op.nonnegative
            or _is_shared(node)
            or (activation is not None and activation.nonnegative)
            or (preserves and all_known and activation is None)
            or (preserves and all_known and activation is not None and activation.is_clamp)
        ):
            known.update(node.outputs)
    return known


def _sources(graph: Graph) -> dict[str, str]:
    """For each tensor, the tensor whose integers it holds unchanged (itself unless values are moved)."""
    source = {name: name for name in graph.inputs}
    for node in graph.nodes:
        for name in node.outputs:
            source[name] = source[node.inputs[0]] if _moves(node) else name
    return source


def shared_tensors(graph: Graph) -> dict[str, list[str]]:
    """Each tensor that some layer computes, and all that hold its integers unchanged, itself among them."""
    holders: dict[str, list[str]] = {}
    for name, origin in _sources(graph).items():
        holders.setdefault(origin, []).append(name)
    return holders


def _measured(graph: Graph, name: str) -> str:
    """The tensor whose histogram rates `name`: the pooled one when only a max pool reads it."""
    reader = graph.sole_consumer(name)
    if reader is not None and isinstance(reader.op, Pool) and reader.op.mode == "Max" and reader.activation is None:
        return reader.output
    return name


def _readers(graph: Graph, source: dict[str, str]) -> dict[str, list[Node]]:
    """By the tensor that some layer computes, the layers that compute with its integers."""
    found: dict[str, list[Node]] = {}
    for node in graph.nodes:
        if not _moves(node):
            for origin in dict.fromkeys(source[name] for name in node.inputs if name in source):
                found.setdefault(origin, []).append(node)
    return found


def _clipped_reach(producer: Node | None) -> float:
    """The largest output that the rectifier of a layer lets through; 0 has every scale."""
    activation = producer.activation if producer is not None else None
    if isinstance(activation, ChannelClip):
        return min(activation.highs)
    return max(abs(activation.low), abs(activation.high)) if isinstance(activation, Clip) else np.inf


def _is_shared(producer: Node | None) -> bool:
    """Whether a tensor holds shares of 1. The largest of them decide what is attended to, though most are small: none is clipped."""
    return producer is not None and isinstance(producer.op, ArraySoftmax) and not producer.op.log


def _unit_type(producer: Node | None, unsigned: bool) -> NumType | None:
    """The type of 8 bits for results between 0 and 1, or -1 and 1, whatever part of that they reach."""
    if producer is None or producer.activation is not None:
        return None
    function = producer.op.function if isinstance(producer.op, Activation) else None
    if _is_shared(producer) or function == FUNCTIONS["Logistic"]():
        return NumType(8, False).with_scale(1 / 256) if unsigned else None
    return NumType(8).with_scale(1 / 128) if function == Tanh() else None


def _full(kind: NumType) -> NumType:
    """The type with its least integer."""
    return replace(kind, full=True) if kind.signed and not (kind.is_float or kind.plain) else kind


def _least_error_type(histogram: Histogram, symmetric: NumType, readers: Sequence[Node], options: QuantOptions) -> NumType:
    """The type of 8 bits of the least error, for a tensor whose range the statistics give: with a zero point, or without."""
    if options.act_clipping != "MSE" or symmetric.bits != 8:
        return symmetric
    functions = [node.op.function for node in readers if isinstance(node.op, Activation)]
    counts = Counts.of(histogram, functions if len(functions) == len(readers) else ())
    if counts.readers:
        symmetric = symmetric.with_scale(least_error_reach(counts, symmetric) / symmetric.qmax)
    if not (options.unsigned and options.zero_points and symmetric.signed) or any(
        isinstance(node.op, Deconv) for node in readers
    ):
        return symmetric
    shifted = least_error_interval(counts, symmetric.bits)
    return shifted if counts.error(shifted) < ZERO_POINT_GAIN * counts.error(symmetric) else symmetric


def choose_types(
    graph: Graph, histograms: dict[str, Histogram], ranges: dict[str, tuple[float, float] | None], options: QuantOptions
) -> TensorTypes:
    """Integer types for all tensors.

    `ranges` gives the known value range of inputs (None: measured). Inputs, outputs and what a Softmax at an output reads are never
    clipped; results of such a Softmax have a power of two as scale, 1/256 in 8 bits. Tensors that hold moved values share their source's type; concat inputs share the
    output's type where their ranges are alike, else the concat rescales them.
    """
    source = {name: origin for name, origin in _sources(graph).items() if not graph.kind(name)}
    states = KeptStates.of(graph, source)
    reached = StateReaches.of(graph, source, histograms)
    if options.bits == 8:
        wide = wide_tensors(graph) | {name for name in coarse_tensors(graph) if ranges.get(name) is None}
        spectra = {source[name] for name in wide if name in source} if options.wide_joins else frozenset()
        # states that the application gives back: their errors come back as those of kept ones
        ends = {*graph.inputs, *(source[name] for name in graph.outputs if name in source)}
        fed_back = ends.intersection(reached.tensors) | reached.changed
        asked = set(graph.inputs) - set(graph.kept) if options.input_asked else frozenset()
        options = replace(options, wide=options.wide | states.wide | spectra | asked | fed_back)
    lowest = {name: histogram.minimum for name, histogram in histograms.items()}  # states in floating point have none
    lowest |= {name: known[0] for name, known in ranges.items() if known is not None}
    lowest |= {name: -np.inf for name in reached.tensors if ranges.get(name) is None}  # stimuli may begin with zeros alone
    inputs = {name for name in graph.inputs if not graph.kind(name) and lowest.get(name, -1) >= 0}
    positive = nonnegative_tensors(graph, inputs) if options.unsigned else set()
    final = {source[name] for name in graph.outputs if name in source}
    real = float_tensors(graph)
    types: dict[str, NumType] = {name: plain_type(tensor.kind) for name, tensor in graph.tensors.items() if tensor.kind}
    declared = {name: port.type for name, port in zip(graph.fed, graph.fed_ports, strict=True) if port.type is not None}
    thresholds: dict[str, float] = {}
    padding, coarse = fill_values(graph, source), []
    readers = _readers(graph, source)
    for name in dict.fromkeys(source.values()):
        producer = graph.producer(name)
        if name in real:
            types[name] = FLOAT32
            continue
        if name in declared:
            types[name], thresholds[name] = declared[name], declared[name].reach
            continue
        if producer is not None and joins(producer):
            continue
        if (kind := states.of_join(name, types)) is not None:
            types[name], thresholds[name] = kind, kind.reach
            continue
        signed = name not in positive or any(node.op.fill < 0 for node in padding.get(name, ()))
        known = ranges.get(name)
        bits = width(graph, name, source, final, histograms, known, options)
        free = options.unit_ranges and bits == 8 and known is None and not padding.get(name)
        if free and (unit := _unit_type(producer, options.unsigned)) is not None:
            types[name], thresholds[name] = unit, unit.reach
            continue
        if name in final and _is_shared(producer) and known is None and not padding.get(name):
            kind = NumType(bits, name not in positive)
            types[name] = kind.with_scale(2.0 ** (kind.signed - bits))
            thresholds[name] = types[name].reach
            continue
        # pairs of signed integers of 16 bits are multiplied at once
        kind = NumType(bits, signed or (bits == 16 and options.bits == 8 and _is_shared(producer)))
        histogram = histograms[_measured(graph, name)]
        edge = name in final or name in graph.inputs or is_scored(graph, name)
        if known is not None:
            threshold = max(abs(known[0]), abs(known[1]))
        elif kind.bits == 16:
            largest = max(histogram.largest, reached.tensors.get(name, 0.0))
            threshold = 1.0 if name in reached.hidden and largest <= 1 else _HEADROOM * largest or 1.0
            threshold = recurrent_reach(producer, threshold) if name in states.wide else threshold
            threshold = min(threshold, 1.0) if _is_shared(producer) else threshold
        else:
            clipping = "None" if edge or _is_shared(producer) else options.act_clipping
            threshold = activation_threshold(histogram, clipping, kind.qmax, options.quantile)
            threshold = max(threshold, reached.tensors.get(name, 0.0))
        threshold = max(min(threshold, _clipped_reach(producer) or threshold), LEAST_RANGE)
        threshold, beyond = with_fills(threshold, padding.get(name, ()))
        coarse += beyond
        types[name] = kind.with_scale(threshold / kind.qmax)
        if (
            known is None
            and not (
                edge or _is_shared(producer) or padding.get(name) or (producer and isinstance(producer.activation, ChannelClip))
            )
            and histogram.largest
        ):
            types[name] = _least_error_type(histogram, types[name], readers.get(name, ()), options)
        thresholds[name] = types[name].reach
    seen = {name: histogram.largest for name, histogram in histograms.items()}
    coarse += type_concats(graph, source, types, positive, seen, options)
    types.update(states.of_inputs(types))
    for name, origin in source.items():
        types[name] = types[origin]
    if options.full_range:
        types = {name: _full(kind) for name, kind in types.items()}
    return TensorTypes(types, thresholds, tuple(coarse), cells={name: _HEADROOM * cell for name, cell in reached.cells.items()})
