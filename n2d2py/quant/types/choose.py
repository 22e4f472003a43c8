"""Decides the number type of every tensor from the statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from n2d2py.arithmetic import FLOAT32, NumType, plain_type
from n2d2py.graph import Graph, Node
from n2d2py.operators.activation import Activation
from n2d2py.operators.affine import Affine
from n2d2py.operators.concat import joins
from n2d2py.operators.convert import Convert
from n2d2py.operators.deconv import Deconv
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.functions import FUNCTIONS, ChannelClip, Clip, Tanh
from n2d2py.operators.pool import Pool
from n2d2py.operators.softmax import Softmax
from n2d2py.quant.observe.corrections import BiasCorrections
from n2d2py.quant.observe.histogram import LEAST_RANGE, Histogram
from n2d2py.quant.observe.thresholds import activation_threshold
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.types.concat import CoarseJoin, fill_values, type_concats, with_fills
from n2d2py.quant.types.float_fallback import float_tensors
from n2d2py.quant.types.guards import coarse_tensors
from n2d2py.quant.types.ranges import ZERO_POINT_GAIN, Counts, least_error_interval, least_error_reach
from n2d2py.quant.types.recurrent_states import StateReaches, StateTypes, recurrent_reach
from n2d2py.quant.types.spectra import wide_tensors
from n2d2py.quant.types.widths import is_scored, width

_HEADROOM = 2.0
"""Range of a 16-bit tensor, as a multiple of the largest value seen: a bit spent on values that calibration did not see."""


@dataclass(frozen=True)
class TensorTypes:
    """types: number type of each tensor; thresholds: largest real magnitude that the calibrated ones hold.

    `coarse` are the Concats and the fill values whose integers are too coarse for what they hold; `biases` says which biases were
    corrected and why, None where none should be. `cells` are ranges of cell states, by the output of a recurrent layer. `rules` says
    which rule decided, by the tensors that layers compute.
    """

    types: dict[str, NumType]
    thresholds: dict[str, float]
    coarse: tuple[CoarseJoin, ...] = ()
    biases: BiasCorrections | None = None
    cells: Mapping[str, float] = field(default_factory=dict)
    rules: Mapping[str, str] = field(default_factory=dict)


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
    """True if a tensor holds shares of 1. The largest of them decide what is attended to, though most are small: none is clipped."""
    return producer is not None and isinstance(producer.op, Softmax) and not producer.op.log


def _unit_type(producer: Node | None, unsigned: bool) -> NumType | None:
    """The 8-bit type for results between 0 and 1, or -1 and 1, whatever part of that they reach."""
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
    """The 8-bit type of the least error, for a tensor whose range the statistics give: with a zero point, or without."""
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


@dataclass(frozen=True)
class _Knowledge:
    """Facts for the rules of number types.

    Attributes:
        ranges: known value range of inputs (None: measured).
        source: for each tensor of real numbers the one whose integers it holds.
        real: tensors in floating point.
        positive: tensors that cannot be negative, where those have unsigned integers.
        final: tensors whose integers an output of the network holds.
        declared: types that the file of the network gives its inputs.
        padding, readers: by tensor, the layers that pad it with a constant, and those that compute with it.
        types: what was chosen so far; the kinds of integers that are not quantized numbers are there from the beginning.
        coarse: grows by the fill values that are far beyond the tensor that they pad.
    """

    graph: Graph
    histograms: Mapping[str, Histogram]
    ranges: Mapping[str, tuple[float, float] | None]
    options: QuantOptions
    source: dict[str, str]
    states: StateTypes
    reached: StateReaches
    real: set[str]
    positive: set[str]
    final: set[str]
    declared: Mapping[str, NumType]
    padding: Mapping[str, list[Node]]
    readers: Mapping[str, list[Node]]
    types: dict[str, NumType]
    coarse: list[CoarseJoin] = field(default_factory=list)

    @staticmethod
    def of(
        graph: Graph,
        histograms: Mapping[str, Histogram],
        ranges: Mapping[str, tuple[float, float] | None],
        options: QuantOptions,
    ) -> _Knowledge:
        source = {name: origin for name, origin in _sources(graph).items() if not graph.kind(name)}
        states, reached = StateTypes.of(graph, source), StateReaches.of(graph, source, histograms)
        if options.bits == 8:
            options = replace(options, wide=options.wide | _wide(graph, ranges, options, source, states, reached))
        lowest = {name: histogram.minimum for name, histogram in histograms.items()}  # states in floating point have none
        lowest |= {name: known[0] for name, known in ranges.items() if known is not None}
        lowest |= {name: -np.inf for name in reached.tensors if ranges.get(name) is None}  # stimuli may begin with zeros alone
        inputs = {name for name in graph.inputs if not graph.kind(name) and lowest.get(name, -1) >= 0}
        ports = zip(graph.fed, graph.fed_ports, strict=True)
        return _Knowledge(
            graph,
            histograms,
            ranges,
            options,
            source,
            states,
            reached,
            float_tensors(graph),
            nonnegative_tensors(graph, inputs) if options.unsigned else set(),
            {source[name] for name in graph.outputs if name in source},
            {name: port.type for name, port in ports if port.type is not None},
            fill_values(graph, source),
            _readers(graph, source),
            {name: plain_type(tensor.kind) for name, tensor in graph.tensors.items() if tensor.kind},
        )

    def to_choose(self) -> list[str]:
        """The tensors whose integers some layer computes, but for joins, which depend on what they join."""
        made = dict.fromkeys(self.source.values())
        return [name for name in made if name in self.real or (node := self.graph.producer(name)) is None or not joins(node)]

    def bits(self, name: str) -> int:
        return width(self.graph, name, self.source, self.final, self.histograms, self.ranges.get(name), self.options)

    def is_measured(self, name: str) -> bool:
        """True if calibration alone says what range a tensor has."""
        return self.ranges.get(name) is None and not self.padding.get(name)

    def is_edge(self, name: str) -> bool:
        """True if a tensor is an input or an output, whose values are never clipped."""
        return name in self.final or name in self.graph.inputs or is_scored(self.graph, name)

    def kind(self, name: str) -> NumType:
        """Width and sign of a tensor."""
        bits, fills = self.bits(name), (node.op.fill for node in self.padding.get(name, ()))
        signed = name not in self.positive or any(fill < 0 for fill in fills)
        # pairs of signed 16-bit integers are multiplied at once
        pairs = bits == 16 and self.options.bits == 8 and _is_shared(self.graph.producer(name))
        return NumType(bits, signed or pairs)

    def scaled(self, name: str, kind: NumType, reach: float) -> NumType:
        """The type with the scale of a largest value, less what a limit in the layer cuts, and more where constants pad it."""
        reach = max(min(reach, _clipped_reach(self.graph.producer(name)) or reach), LEAST_RANGE)
        reach, beyond = with_fills(reach, self.padding.get(name, ()))
        self.coarse.extend(beyond)
        return kind.with_scale(reach / kind.qmax)


def _wide(
    graph: Graph,
    ranges: Mapping[str, tuple[float, float] | None],
    options: QuantOptions,
    source: dict[str, str],
    states: StateTypes,
    reached: StateReaches,
) -> frozenset[str]:
    """The tensors that have 16 bits in a network of 8: spectra, guarded divisors, states, inputs where that is asked for."""
    wide = wide_tensors(graph) | {name for name in coarse_tensors(graph) if ranges.get(name) is None}
    spectra = {source[name] for name in wide if name in source} if options.wide_joins else frozenset()
    # states that the application gives back: their errors come back as those of kept ones
    ends = {*graph.inputs, *(source[name] for name in graph.outputs if name in source)}
    asked = set(graph.inputs) - set(graph.kept) if options.input_asked else frozenset()
    return states.wide | spectra | asked | ends.intersection(reached.tensors) | reached.changed


# ---- the rules: the type of a tensor, or None where another rule decides -----------------------------
def _floating(known: _Knowledge, name: str) -> NumType | None:
    return FLOAT32 if name in known.real else None


def _declared(known: _Knowledge, name: str) -> NumType | None:
    return known.declared.get(name)


def _state(known: _Knowledge, name: str) -> NumType | None:
    """A tensor that a kept state is joined with has the type of what the state was taken from."""
    return known.states.of_join(name, known.types)


def _unit(known: _Knowledge, name: str) -> NumType | None:
    """Runtimes in fixed point demand one type of what lies between 0 and 1, or -1 and 1."""
    if not (known.options.unit_ranges and known.is_measured(name) and known.bits(name) == 8):
        return None
    return _unit_type(known.graph.producer(name), known.options.unsigned)


def _probabilities(known: _Knowledge, name: str) -> NumType | None:
    """A power of two as scale, 1/256 in 8 bits."""
    if name not in known.final or not _is_shared(known.graph.producer(name)) or not known.is_measured(name):
        return None
    kind = NumType(known.bits(name), name not in known.positive)
    return kind.with_scale(2.0 ** (kind.signed - kind.bits))


def _known_range(known: _Knowledge, name: str) -> NumType | None:
    interval = known.ranges.get(name)
    return None if interval is None else known.scaled(name, known.kind(name), max(map(abs, interval)))


def _sixteen_bits(known: _Knowledge, name: str) -> NumType | None:
    """Headroom beyond the largest value, and nothing is clipped; hidden states and shares end at 1."""
    kind, producer = known.kind(name), known.graph.producer(name)
    if kind.bits != 16:
        return None
    largest = max(known.histograms[_measured(known.graph, name)].largest, known.reached.tensors.get(name, 0.0))
    reach = 1.0 if name in known.reached.hidden and largest <= 1 else _HEADROOM * largest or 1.0
    reach = recurrent_reach(producer, reach) if name in known.states.wide else reach
    return known.scaled(name, kind, min(reach, 1.0) if _is_shared(producer) else reach)


def _calibrated(known: _Knowledge, name: str) -> NumType:
    """The range of the clipping mode, and the interval of the least error where the values may be clipped."""
    kind, producer, options = known.kind(name), known.graph.producer(name), known.options
    histogram, whole = known.histograms[_measured(known.graph, name)], known.is_edge(name) or _is_shared(producer)
    clipping = "None" if whole else options.act_clipping
    threshold = activation_threshold(histogram, clipping, kind.qmax, options.quantile)
    symmetric = known.scaled(name, kind, max(threshold, known.reached.tensors.get(name, 0.0)))
    limited = producer is not None and isinstance(producer.activation, ChannelClip)
    if whole or limited or known.padding.get(name) or not histogram.largest:
        return symmetric
    return _least_error_type(histogram, symmetric, known.readers.get(name, ()), options)


CALIBRATED = "calibrated"
RULES: Mapping[str, Callable[[_Knowledge, str], NumType | None]] = {
    "floating point": _floating,
    "type of the file": _declared,
    "type of a state": _state,
    "unit range": _unit,
    "probabilities": _probabilities,
    "known range": _known_range,
    "16 bits": _sixteen_bits,
    CALIBRATED: _calibrated,
}
"""Who decides the type of a tensor, by the name that the report has for it: the first rule that gives one."""


def choose_types(
    graph: Graph, histograms: dict[str, Histogram], ranges: dict[str, tuple[float, float] | None], options: QuantOptions
) -> TensorTypes:
    """Integer types for all tensors, by `RULES`.

    `ranges` gives the known value range of inputs (None: measured). Tensors that hold moved values share their source's type; concat
    inputs share the output's type where their ranges are alike, else the concat rescales them.
    """
    known = _Knowledge.of(graph, histograms, ranges, options)
    source, types, rules = known.source, known.types, {}
    for name in known.to_choose():
        rules[name], types[name] = next((rule, kind) for rule, choose in RULES.items() if (kind := choose(known, name)))
    thresholds = {name: types[name].reach for name in rules if name not in known.real}
    seen = {name: histogram.largest for name, histogram in histograms.items()}
    coarse = [*known.coarse, *type_concats(graph, source, types, known.positive, seen, known.options)]
    types.update(known.states.of_inputs(types))
    for name, origin in source.items():
        types[name] = types[origin]
    if options.full_range:
        types = {name: _full(kind) for name, kind in types.items()}
    cells = {name: _HEADROOM * cell for name, cell in known.reached.cells.items()}
    return TensorTypes(types, thresholds, tuple(coarse), cells=cells, rules=rules)
