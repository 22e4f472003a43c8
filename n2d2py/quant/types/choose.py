"""Decides the number type of every tensor from the statistics."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from n2d2py.arithmetic import FLOAT32, NumType, plain_type
from n2d2py.arithmetic.histogram import LEAST_RANGE, Histogram, activation_threshold
from n2d2py.contracts.functions import FUNCTIONS, ChannelClip, Clip, Tanh
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.errors import N2D2Error
from n2d2py.graph import Graph, Node
from n2d2py.operators import Activation, ArrayRecurrent, Pool, Softmax, is_real_concat
from n2d2py.operators.linear import nonnegative_tensors
from n2d2py.quant.observe.corrections import BiasCorrections
from n2d2py.quant.types import widths
from n2d2py.quant.types.concat import choose_concat_types, fill_values, widen_to_fills
from n2d2py.quant.types.dynamic_range import coarse_tensors, is_magnitude, spectrum_tensors
from n2d2py.quant.types.float_fallback import float_tensors
from n2d2py.quant.types.float_inputs import is_requantized_input, needs_16_bits, would_clip
from n2d2py.quant.types.ranges import finer_type, least_error_type
from n2d2py.quant.types.recurrent_states import States, recurrent_range

InputRanges = Mapping[str, tuple[float, float] | None]
"""Known value range by input; None if it is calibrated."""

_HEADROOM = 2.0
"""Largest range of a 16-bit tensor, as a multiple of the largest value seen: a bit spent on values that calibration did not see."""


@dataclass(frozen=True)
class TensorTypes:
    """Number types of the tensors of a network.

    Attributes:
        thresholds: clipping threshold of each calibrated tensor, a real number.
        coarse: warnings about Concats (W505) and fill values (W506) that get too few integer steps.
        biases: result of the bias correction; None without correction.
        cells: range of the cell states, by the output of the recurrent layer.
        rules: name of the rule in `RULES` that chose the type, by tensor.
    """

    types: dict[str, NumType]
    thresholds: dict[str, float]
    coarse: tuple[N2D2Error, ...] = ()
    biases: BiasCorrections | None = None
    cells: Mapping[str, float] = field(default_factory=dict)
    rules: Mapping[str, str] = field(default_factory=dict)


def calibrated_tensors(graph: Graph) -> list[str]:
    """Return the tensors that need a calibration range: inputs and computed integer tensors."""
    real = {*float_tensors(graph), *(name for name, tensor in graph.tensors.items() if tensor.kind)}
    computed = [
        name
        for node in graph.nodes
        if not node.op.moves_values and not is_real_concat(node)
        for name in node.outputs
        if name not in real
    ]
    pooled = [node.output for node in graph.nodes if isinstance(node.op, Pool) and node.op.mode == "Max"]
    return [name for name in dict.fromkeys(graph.inputs + computed + pooled) if name not in real]


def _sources(graph: Graph) -> dict[str, str]:
    """Return, for each tensor, the tensor that its integers are copied from; itself if a layer computes them."""
    source = {name: name for name in graph.inputs}
    for node in graph.nodes:
        for name in node.outputs:
            source[name] = source[node.inputs[0]] if node.op.moves_values else name
    return source


def shared_tensors(graph: Graph) -> dict[str, list[str]]:
    """Return, for each computed tensor, all tensors that hold its integers, including itself."""
    holders: dict[str, list[str]] = {}
    for name, origin in _sources(graph).items():
        holders.setdefault(origin, []).append(name)
    return holders


def _tensor_of_histogram(graph: Graph, name: str) -> str:
    """Return the tensor whose histogram gives the range of `name`: the pool's output if only a max pool consumes it."""
    reader = graph.sole_consumer(name)
    if reader is not None and isinstance(reader.op, Pool) and reader.op.mode == "Max" and reader.activation is None:
        return reader.output
    return name


def _computing_consumers(graph: Graph, source: dict[str, str]) -> dict[str, list[Node]]:
    consumers: dict[str, list[Node]] = {}
    for node in graph.nodes:
        if not node.op.moves_values:
            for origin in dict.fromkeys(source[name] for name in node.inputs if name in source):
                consumers.setdefault(origin, []).append(node)
    return consumers


_BOUNDED = ("Erf", "Logistic", "Softsign", "Tanh")
"""Functions with results of magnitude 1 at most."""


def _activation_limit(producer: Node | None) -> float:
    """Return the largest magnitude of a layer's results by its function or fused activation; infinity without a limit."""
    if producer is None:
        return np.inf
    function = producer.activation or (producer.op.function if isinstance(producer.op, Activation) else None)
    if isinstance(function, ChannelClip):
        return min(function.highs)
    if isinstance(function, Clip):
        return max(abs(function.low), abs(function.high))
    return 1.0 if _is_softmax_output(producer) or (function is not None and function.kind in _BOUNDED) else np.inf


def _is_softmax_output(producer: Node | None) -> bool:
    """True if a tensor is the output of a Softmax. It is never clipped: few large probabilities matter, and most are small."""
    return producer is not None and isinstance(producer.op, Softmax) and not producer.op.log


class _Facts:
    """Facts about a network that the rules in `RULES` use.

    Attributes:
        source: for each quantized tensor, the tensor that its integers are copied from.
        states: types and ranges of recurrent states.
        real: tensors in floating point.
        positive: tensors that cannot be negative; empty if unsigned types are off.
        final: tensors whose integers are an output of the network.
        declared: types that the file of the network declares for its inputs.
        padding, readers: by tensor, the layers that pad it with a constant, and the layers that compute with it.
        types: the types chosen so far. Tensors of plain integers have theirs from the start.
        coarse: warnings about fill values far outside the range of the tensor that they pad.
    """

    def __init__(self, graph: Graph, histograms: Mapping[str, Histogram], ranges: InputRanges, options: QuantOptions):
        self.graph, self.histograms, self.ranges, self.options = graph, histograms, ranges, options
        self.source = {name: origin for name, origin in _sources(graph).items() if not graph.kind(name)}
        self.states = States(graph, self.source, histograms)
        self.final = {self.source[name] for name in graph.outputs if name in self.source}
        self.readers = _computing_consumers(graph, self.source)
        if options.bits == 8:
            self.options = replace(options, wide=options.wide | self._tensors_of_16_bits())
        lowest = {name: histogram.minimum for name, histogram in histograms.items()}  # states in floating point have none
        lowest |= {name: interval[0] for name, interval in ranges.items() if interval is not None}
        # samples may begin with zeros only
        lowest |= {name: -np.inf for name in self.states.tensors if ranges.get(name) is None}
        inputs = {name for name in graph.inputs if not graph.kind(name) and lowest.get(name, -1) >= 0}
        ports = zip(graph.user_inputs, graph.user_input_ports, strict=True)
        self.real = float_tensors(graph)
        self.positive = nonnegative_tensors(graph, inputs) if options.unsigned else set()
        self.declared = {name: port.type for name, port in ports if port.type is not None}
        self.padding = fill_values(graph, self.source)
        self.types = {name: plain_type(tensor.kind) for name, tensor in graph.tensors.items() if tensor.kind}
        self.coarse: list[N2D2Error] = []

    def _tensors_of_16_bits(self) -> frozenset[str]:
        """Return the tensors with 16 bits in an 8-bit network: spectra, divisors, states, spoiled outputs, asked inputs."""
        graph, options = self.graph, self.options
        wide = spectrum_tensors(graph) | {name for name in coarse_tensors(graph) if self.ranges.get(name) is None}
        spectra = {self.source[name] for name in wide if name in self.source} if options.wide_concats else frozenset()
        spoiled = [] if options.output_bits == 8 else [name for name in graph.outputs if self._is_spoiled(name)]
        decoding: frozenset[str] = frozenset()
        if options.wide_concats and options.output_bits != 8:
            decoding = widths.decoding_tensors(graph, spoiled) - self.final | widths.averaged_tensors(graph)
        asked_inputs = set(graph.inputs) - set(graph.state_inputs) if options.input_asked else ()
        # states that the application feeds back accumulate errors like internal states
        fed_back = {*graph.inputs, *self.final}.intersection(self.states.tensors)
        outputs = {self.source[name] for name in spoiled}
        return frozenset(spectra).union(decoding, outputs, asked_inputs, fed_back, self.states.wide, self.states.changed)

    def _is_spoiled(self, output: str) -> bool:
        origin = self.source.get(output)
        if origin is None or self.readers.get(origin):
            return False
        return widths.is_spoiled_output(self.graph, origin, self.source, self.histograms)

    def bits(self, name: str) -> int:
        """Return the bit width of a tensor.

        `QuantBits` of its layers comes first, then the width of the network. These have 16 bits in an 8-bit network:
        - tensors in `options.wide`, such as spectra and outputs that 8 bits would spoil;
        - residual streams, attention weights and sequences of hidden states, whose errors accumulate;
        - inputs and magnitudes of spectra that 8 bits would spoil, or that only recurrent layers consume;
        - outputs, and the input of an output Softmax, as `options.output_bits` says; 0 selects 16 for vectors of scores.
        """
        graph, options = self.graph, self.options
        holders = [tensor for tensor, origin in self.source.items() if origin == name]
        requested = widths.requested_bits(graph, holders)
        if requested is not None or name in options.wide or options.bits != 8:
            return requested or (16 if name in options.wide else options.bits)
        readers = [node for tensor in holders for node in graph.consumers(tensor) if not node.op.moves_values]
        if options.wide_concats and widths.accumulates_errors(graph, name):
            return 16
        is_input = name in graph.inputs or is_magnitude(graph.producer(name)) or is_requantized_input(graph, name)
        if is_input and readers and (options.input_bits or self._bits_of_input(name, readers)) == 16:
            return 16
        last = (name in self.final and not readers) or widths.feeds_output_softmax(graph, name)
        if last and name not in graph.inputs:
            return options.output_bits or (16 if widths.are_scores(graph, name) else 8)
        return 8

    def _bits_of_input(self, name: str, readers: Sequence[Node]) -> int:
        """Return 16 for an input that 8 bits would spoil, else 8."""
        if self.ranges.get(name) is not None:
            return 8
        seen, only_recurrent = self.histograms[name], all(isinstance(node.op, ArrayRecurrent) for node in readers)
        spoiled = needs_16_bits(seen.largest, seen.deviation**2) or would_clip(self.graph, name, seen.count)
        return 16 if only_recurrent or spoiled else 8

    def is_measured(self, name: str) -> bool:
        return self.ranges.get(name) is None and not self.padding.get(name)

    def kind(self, name: str) -> NumType:
        """Return the width and signedness of a tensor, with scale 1."""
        bits, fills = self.bits(name), (node.op.fill for node in self.padding.get(name, ()))
        signed = name not in self.positive or any(fill < 0 for fill in fills)
        # the kernels multiply pairs of signed 16-bit integers
        multiplied_in_pairs = bits == 16 and self.options.bits == 8 and _is_softmax_output(self.graph.producer(name))
        return NumType(bits, signed or multiplied_in_pairs)

    def scaled(self, name: str, kind: NumType, limit: float) -> NumType:
        """Return the type scaled to the largest magnitude `limit`, within the layer's activation, widened to fill values."""
        limit = max(min(limit, _activation_limit(self.graph.producer(name)) or limit), LEAST_RANGE)
        limit, beyond = widen_to_fills(limit, self.padding.get(name, ()))
        self.coarse.extend(beyond)
        return kind.with_scale(limit / kind.qmax)


# Rules: return the type of a tensor, or None if the rule does not apply.
def _unit_type(facts: _Facts, name: str) -> NumType | None:
    """Fixed-point runtimes require one type for results in [0, 1] and one for [-1, 1]."""
    producer = facts.graph.producer(name)
    if producer is None or producer.activation is not None or not (facts.options.unit_ranges and facts.is_measured(name)):
        return None
    function = producer.op.function if isinstance(producer.op, Activation) else None
    is_unsigned = _is_softmax_output(producer) or function == FUNCTIONS["Logistic"]()
    if not (is_unsigned or function == Tanh()) or facts.bits(name) != 8:
        return None
    if is_unsigned:
        return NumType(8, False).with_scale(1 / 256) if facts.options.unsigned else None
    return NumType(8).with_scale(1 / 128)


def _probability_type(facts: _Facts, name: str) -> NumType | None:
    """Softmax outputs of the network have a power of two as scale: 1/256 in 8 bits."""
    if name not in facts.final or not _is_softmax_output(facts.graph.producer(name)) or not facts.is_measured(name):
        return None
    kind = NumType(facts.bits(name), name not in facts.positive)
    return kind.with_scale(2.0 ** (kind.signed - kind.bits))


def _known_range_type(facts: _Facts, name: str) -> NumType | None:
    interval = facts.ranges.get(name)
    if interval is None:
        return None
    symmetric = facts.scaled(name, facts.kind(name), max(map(abs, interval)))
    if facts.padding.get(name):
        return symmetric
    return finer_type(symmetric, *interval, facts.readers.get(name, ()), facts.options, share=1.0)


def _sixteen_bit_type(facts: _Facts, name: str) -> NumType | None:
    """16-bit types have headroom above the largest value and never clip. Hidden states and probabilities end at 1."""
    kind, producer = facts.kind(name), facts.graph.producer(name)
    if kind.bits != 16:
        return None
    histogram, state = facts.histograms[_tensor_of_histogram(facts.graph, name)], facts.states.tensors.get(name)
    largest = max(histogram.largest, state or 0.0)
    headroom = histogram.headroom(_HEADROOM) if state is None and name not in facts.states.wide else _HEADROOM
    limit = 1.0 if name in facts.states.hidden and largest <= 1 else headroom * largest or 1.0
    limit = recurrent_range(producer, limit) if name in facts.states.wide else limit
    return facts.scaled(name, kind, min(limit, 1.0) if _is_softmax_output(producer) else limit)


def _calibrated_type(facts: _Facts, name: str) -> NumType:
    """Return the range of `-act-clipping`; for values that may be clipped, the range with the least error."""
    kind, producer, options = facts.kind(name), facts.graph.producer(name), facts.options
    histogram = facts.histograms[_tensor_of_histogram(facts.graph, name)]
    is_end = producer is None or name in facts.final  # never clipped
    whole = is_end or widths.feeds_output_softmax(facts.graph, name) or _is_softmax_output(producer)
    clipping = "None" if producer is None else options.act_clipping  # inputs may be bytes, which one step holds exactly
    expected = histogram if producer is None else histogram.expected(_activation_limit(producer))
    threshold = activation_threshold(expected if clipping == "MSE" else histogram, clipping, kind.qmax, options.quantile)
    known = histogram.largest if whole else facts.states.tensors.get(name, 0.0)
    symmetric = facts.scaled(name, kind, max(threshold, known))
    limited = producer is not None and isinstance(producer.activation, ChannelClip)
    if (whole and not is_end) or limited or facts.padding.get(name) or not histogram.largest:
        return symmetric
    seen = (histogram.minimum, histogram.maximum) if is_end else None
    return least_error_type(expected, symmetric, facts.readers.get(name, ()), options, seen)


CALIBRATED = "calibrated"
RULES: Mapping[str, Callable[[_Facts, str], NumType | None]] = {
    "floating point": lambda facts, name: FLOAT32 if name in facts.real else None,
    "type of the file": lambda facts, name: facts.declared.get(name),
    "type of a state": lambda facts, name: facts.states.type_of_concat(name, facts.types),
    "unit range": _unit_type,
    "probabilities": _probability_type,
    "known range": _known_range_type,
    "16 bits": _sixteen_bit_type,
    CALIBRATED: _calibrated_type,
}
"""The rules by the name that the report shows. The first rule that returns a type decides."""


def choose_types(graph: Graph, histograms: Mapping[str, Histogram], ranges: InputRanges, options: QuantOptions) -> TensorTypes:
    """Choose a number type for each tensor by `RULES`.

    Copies of a tensor share its type. Inputs of a Concat share the type of its output if their ranges are similar; otherwise
    the Concat rescales them.
    """
    facts = _Facts(graph, histograms, ranges, options)
    source, types, rules = facts.source, facts.types, {}
    for name in dict.fromkeys(source.values()):
        producer = graph.producer(name)
        if name not in facts.real and producer is not None and is_real_concat(producer):
            continue  # its type follows its inputs
        rules[name], types[name] = next((rule, kind) for rule, choose in RULES.items() if (kind := choose(facts, name)))
    thresholds = {name: types[name].max_abs for name in rules if name not in facts.real}
    coarse = [*facts.coarse, *choose_concat_types(graph, source, types, facts.positive, histograms, facts.options)]
    types.update({name: types[origin] for name, origin in facts.states.pairs})
    for name, origin in source.items():
        types[name] = types[origin]
    if options.full_range:
        signed = {name: kind for name, kind in types.items() if kind.signed and not (kind.is_float or kind.plain)}
        types |= {name: replace(kind, full=True) for name, kind in signed.items()}
    cells = {name: _HEADROOM * cell for name, cell in facts.states.cells.items()}
    return TensorTypes(types, thresholds, tuple(coarse), cells=cells, rules=rules)
