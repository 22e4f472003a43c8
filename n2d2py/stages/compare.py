"""Stage compare: every layer, float against integers, and Python's integers against the compiled ones.

`-sensitivity N` ranks the layers by their cost; it also runs if integers lose too much.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from n2d2py import log
from n2d2py.data.stimuli import Stimuli
from n2d2py.errors import N2D2Error
from n2d2py.graph import NO_CONTRACT, Graph, InputContract, QuantGraph, named_inputs
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.quantize import Convert
from n2d2py.quant.observe.compare import Accumulator, LayerComparison
from n2d2py.quant.observe.worst import StimulusComparison, WorstStimuli
from n2d2py.quant.search.isolation import run_isolated_layer
from n2d2py.quant.search.sensitivity import LayerLoss, layer_losses
from n2d2py.quant.simulator import quantize_inputs, reset_states, run_node, simulate
from n2d2py.quant.statistics import batch_size
from n2d2py.reference.engine import FloatEngine
from n2d2py.report import sensitivity_advice, sensitivity_csv, sensitivity_text
from n2d2py.runtime import Network
from n2d2py.stages.quantize import QuantizedNetwork
from n2d2py.stages.score import Scores

EDGE_SAMPLES = ("the sample of zeros", "a constant sample", "a sample times 0.1", "a sample times 0.02", "a sample times 4")


def edge_samples(sample: np.ndarray) -> np.ndarray:
    """Return the samples that `EDGE_SAMPLES` names, along a new first axis, clipped to the type of the input."""
    largest = np.full_like(sample, sample.max(initial=0))
    return np.stack([np.zeros_like(sample), largest, *(sample * sample.dtype.type(factor) for factor in (0.1, 0.02, 4))])


@dataclass(frozen=True)
class Comparison:
    """Every layer over all compared samples, and the samples with the worst outputs. `slack`: share of a layer's range by which
    the target's own arithmetic may differ."""

    layers: list[LayerComparison] = field(default_factory=list)
    stimuli: list[StimulusComparison] = field(default_factory=list)
    slack: float = 0.0


Arrays = dict[str, np.ndarray]
"""Values by tensor, or by layer."""


def compare_stage(
    graph: Graph,
    quantized: QuantGraph,
    stimuli: Stimuli,
    compiled: Network | None,
    slack: float = 0.0,
    contract: InputContract = NO_CONTRACT,
) -> Comparison:
    """Compare every layer over the samples, in the network and isolated, and with compiled values if a library is given.

    If some layers compute in floating point, each layer in Python gets the compiled values of its inputs: the last bit of a
    real sum depends on its order, so only single layers can be identical. The same applies to a target with its own arithmetic,
    whose layers may differ by `slack` of their range. Packed tensors are compared as bytes, with no error. Without slack, edge
    samples (`edge_samples`) must be equal as well; they count in no figure. `contract` describes images among the samples.
    """
    nodes = [node for node in quantized.nodes if not node.op.is_part]
    layers = [(node.name, node.output) for node in nodes]
    is_packed = {*quantized.packed, *quantized.unpacked}
    engine = FloatEngine(graph, taps=list(dict.fromkeys(quantized.origin(tensor) for _, tensor in layers)))
    accumulators = [
        Accumulator(node.name, node.output, quantized.type(node.output), merged=(node.residual.layer,) if node.residual else ())
        for node in nodes
    ]
    worst = WorstStimuli(quantized, contract)
    for x, labels, names in stimuli.watched_batches(batch_size(graph), "comparing"):
        real = quantized.with_pieces({**named_inputs(graph, x), **engine.run(x)})
        inputs = quantize_inputs(quantized, [x])
        stored = simulate(quantized, inputs, keep=True)
        real.update({name: stored[name] for name in quantized.packed})
        worst.add(x, labels, names, real, stored)
        isolated = [node for node in nodes if node.output not in is_packed] if quantized.bits > 0 else []
        alone = {node.output: run_isolated_layer(quantized, node, real) for node in isolated}
        allowed: dict[str, float] = {}
        if slack and compiled is not None:
            compiled_values = compiled.stored_layers(inputs)
            values, stored = _by_layer(quantized, inputs, compiled_values)
            roundings = _rounding_shares(quantized, compiled_values, values)
            allowed = {name: slack + roundings.get(name, 0.0) for _, name in layers}
        else:
            by_layer, stored = _values_to_compare(quantized, inputs, stored, compiled, layers)
            values = {name: by_layer[layer] for layer, name in layers if layer in by_layer}
        for one in accumulators:
            name = one.tensor
            one.add(real[name], stored[name], values.get(name), allowed.get(name, 0.0), alone.get(name))
    if compiled is not None and not slack and len(stimuli):
        _check_edges(quantized, stimuli[0], batch_size(graph), compiled, accumulators)
    return Comparison([accumulator.result() for accumulator in accumulators], worst.result(), slack)


def _values_to_compare(
    quantized: QuantGraph, inputs: list[np.ndarray], stored: Arrays, compiled: Network | None, layers: list[tuple[str, str]]
) -> tuple[Arrays, Arrays]:
    """Return compiled values by layer, and the values to compare with by tensor: `stored`, or those that Python computes for
    each layer from the compiled values of its inputs."""
    compiled_values = compiled.stored_layers(inputs) if compiled is not None else {}
    compared = [(name, tensor) for name, tensor in layers if name in compiled_values]
    values_by_tensor = {name: compiled_values[name].reshape(stored[tensor].shape) for name, tensor in compared}
    if quantized.is_mixed and values_by_tensor:
        results = {tensor: np.ma.getdata(values_by_tensor[name]) for name, tensor in compared}
        known = {**dict(zip(quantized.user_inputs, inputs, strict=True)), **results, **_states_before(quantized, results)}
        inputs_of = [(node, [known[name] for name in node.inputs]) for node in quantized.nodes]
        stored = {node.output: run_node(quantized, node, values)[0] for node, values in inputs_of}
    return values_by_tensor, stored


@np.errstate(all="ignore")  # 0 / 0 of a silent sample is what this looks at
def _check_edges(
    quantized: QuantGraph, sample: np.ndarray, size: int, compiled: Network, accumulators: list[Accumulator]
) -> None:
    x, layers = edge_samples(sample), [(one.layer, one.tensor) for one in accumulators]
    for first in range(0, len(x), len(x) if quantized.states else size):
        part = slice(first, len(x) if quantized.states else first + size)
        inputs = quantize_inputs(quantized, [x[part]])
        values, stored = _values_to_compare(quantized, inputs, simulate(quantized, inputs, keep=True), compiled, layers)
        for one in accumulators:
            if one.layer in values:
                one.check_samples(stored[one.tensor], values[one.layer], EDGE_SAMPLES[part])


def _states_before(quantized: QuantGraph, results: Arrays) -> Arrays:
    """Return the states before each call from the results of all calls."""
    outputs = quantized.state_outputs
    first = reset_states(quantized).items()
    return {
        name: np.concatenate([state, results[output][:-1].reshape(-1, *state.shape[1:])])
        for (name, state), output in zip(first, outputs, strict=True)
    }


def _by_layer(quantized: QuantGraph, inputs: list[np.ndarray], layers: Arrays) -> tuple[Arrays, Arrays]:
    """Return stored values of the target, and those that Python computes from them, by tensor. Tensors that the target fused
    into the next layer are computed in Python."""
    merged = {node.output for node in quantized.nodes} - set(layers)
    quantized = _widened(quantized, merged)
    values_by_layer = {
        name: quantized.type(name).quantize(values.reshape(len(values), *quantized.shape(name)[1:]))
        for name, values in layers.items()
    }
    for name in _left_real(quantized, layers, values_by_layer):
        del values_by_layer[name]
    values_by_layer.update(_clipped_to_integers(quantized, values_by_layer))
    values = dict(zip(quantized.user_inputs, inputs, strict=True))
    expected: Arrays = {}
    for node in quantized.nodes:
        for name, result in zip(node.outputs, run_node(quantized, node, [values[one] for one in node.inputs]), strict=True):
            expected[name] = result
            values[name] = values_by_layer.get(name, result)
    return values_by_layer, expected


def _left_real(graph: QuantGraph, layers: Arrays, values: Arrays) -> list[str]:
    """Return results of integer conversions that the target leaves to the next layer, so its values are not on the integer
    grid."""
    left = []
    for node in graph.nodes:
        name = node.output
        if isinstance(node.op, Convert) and not node.op.to_float and name in values:
            kind, real = graph.type(name), layers[name].reshape(values[name].shape)
            if np.abs(real - kind.dequantize(values[name])).max(initial=0) > kind.scale / 100:
                left.append(name)
    return left


def _clipped_to_integers(graph: QuantGraph, values: Arrays) -> Arrays:
    """Return real values of integers, by tensor, clipped to the range of these integers: some targets allow -128 where -127 is
    the limit."""
    clipped: Arrays = {}
    for node in graph.nodes:
        if isinstance(node.op, Convert) and node.op.to_float and node.output in values:
            kind = graph.type(node.inputs[0])
            ends = kind.dequantize(np.array([kind.qmin, kind.qmax]))
            clipped[node.output] = np.clip(values[node.output], *ends).astype(values[node.output].dtype)
    return clipped


def _rounding_shares(graph: QuantGraph, layers: Arrays, compiled_values: Arrays) -> dict[str, float]:
    """Return, by the result of each sum, the share of its range that rounding of its inputs causes: a target may add unrounded
    values."""
    lost: dict[str, float] = {}
    for name, values in layers.items():
        kind = graph.type(name)
        if name in compiled_values and not (kind.is_float or kind.plain):
            away = np.abs(values.reshape(compiled_values[name].shape) - kind.dequantize(compiled_values[name]))
            lost[name] = float(np.minimum(away, kind.scale / 2).max(initial=0.0))
    shares: dict[str, float] = {}
    for node in graph.nodes:
        kind = graph.type(node.output)
        if isinstance(node.op, ElemWise) and node.op.operation == "Sum" and not (kind.is_float or kind.plain):
            weights, _ = node.op.coefficients(len(node.inputs))
            total = sum(abs(weight) * lost.get(name, 0.0) for weight, name in zip(weights, node.inputs, strict=True))
            shares[node.output] = total / (kind.scale * (kind.qmax - kind.qmin))
    return shares


def _widened(graph: QuantGraph, merged: set[str]) -> QuantGraph:
    """Return the network with 16 bits for the integers of `merged` tensors, which the target does not saturate to 8 bits."""
    if graph.bits != 8:
        return graph
    tensors = {
        name: replace(one, type=replace(one.type, bits=16)) if name in merged else one for name, one in graph.tensors.items()
    }
    nodes = []
    for node in graph.nodes:
        if node.clamp is not None and len(node.outputs) == 1 and node.output in merged:
            kind = graph.type(node.output)
            ends = {kind.qmin: kind.qmin * 256 if kind.signed else 0, kind.qmax: kind.qmax * 256}
            node = replace(node, clamp=tuple(ends.get(edge, edge) for edge in node.clamp))
        nodes.append(node)
    return replace(graph, tensors=tensors, nodes=nodes)


def summary(comparisons: list[LayerComparison], bits: int, slack: float = 0.0) -> str:
    """Return one line: all layers agree, or the first that does not and where. Integers (`bits` > 0) must be identical; floats
    equal within 1e-4 of the layer's largest."""
    run = [c for c in comparisons if c.identical is not None]
    if not run:
        return "compiled values were not compared"
    if different := _first_difference(run):
        return different
    if slack:
        same = sum(c.exact is True for c in run)
        tolerance = f"{len(run)} layers: values within {100 * slack:g} % of the range of Python's, layer by layer"
        return f"{tolerance}; {'all' if same == len(run) else same} of them identical"
    how = "identical to Python's" if bits > 0 else "equal to Python's within 1e-4 of the largest"
    missing = sum(c.missing > 0 for c in run)
    note = f"; {missing} of them without the lines that no layer reads" if missing else ""
    return f"{len(run)} layers: compiled values {how}, also for samples at the edges{note}"


def refuse_differences(comparisons: list[LayerComparison]) -> None:
    """Raise E812 if compiled values of a layer differ from those of Python, by the measure of `summary`."""
    if different := _first_difference(comparisons):
        raise N2D2Error("E812", different, where="-compare", remedy="report this defect of n2d2py")


def _first_difference(comparisons: list[LayerComparison]) -> str:
    """Return the first layer that differs and where; "" without any."""
    for layer, d in ((one.layer, one.difference) for one in comparisons):
        if d is not None:
            return f"layer '{layer}' differs first, at element {d.place}: Python {d.expected:g}, compiled {d.found:g}"
    return ""


@dataclass(frozen=True)
class Sensitivity:
    """Cost of each layer, the worst first, over so many samples; `text` is for the user."""

    text: str = ""
    losses: tuple[LayerLoss, ...] = ()
    stimuli: int = 0


LARGE_LOSS = 2.0
"""Loss of the float score, in points, above which the layers are analysed."""

_STIMULI = 10
_WORST = 5


def sensitivity_stage(
    quantized: QuantizedNetwork, asked: int, stimuli: Stimuli | None, scores: Scores, folder: Path
) -> Sensitivity:
    """Run the requested analysis over `asked` samples, or one because of a large loss; else nothing. It writes
    statistics/sensitivity.csv."""
    lost = points_lost(scores)
    if quantized.types is None or stimuli is None or not (asked or lost > LARGE_LOSS):
        return Sensitivity()
    chosen = stimuli.sample_evenly(asked or _STIMULI)
    inputs = chosen.array(16)
    biases = quantized.types.biases
    losses = layer_losses(quantized.float_graph, quantized.graph, inputs, biases.shifts if biases else None)
    (folder / "statistics").mkdir(parents=True, exist_ok=True)
    (folder / "statistics" / "sensitivity.csv").write_text(sensitivity_csv(losses))
    text = sensitivity_text(losses) if asked else ""
    if lost > LARGE_LOSS:
        what = f"the integers score {lost:.2f} points less than floating point"
        log.warning("W504", what, remedy="read below which layers cost most and what to try" if losses else None)
        text += sensitivity_advice(losses[:_WORST], quantized.quality)
    return Sensitivity(text, tuple(losses), len(chosen))


def points_lost(scores: Scores) -> float:
    """Return the largest loss of a top-1 score, AUC, mAP or word accuracy from float to simulated, in points; 0 without any."""
    losses = [0.0]
    for rows in scores.rows.values():
        by_label = {label.split()[0]: score for label, score in rows}
        first, second = by_label.get("float"), by_label.get("simulated")
        if first is None or second is None:
            continue
        if first.detections is not None and second.detections is not None:
            losses.append((first.percent or 0.0) - (second.percent or 0.0))
        elif first.errors is None and first.count:
            losses.append(100.0 * (first.correct / first.count - second.correct / max(second.count, 1)))
    return max(losses)
