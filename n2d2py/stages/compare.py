"""Stage compare: every layer, float against integers, and Python's integers against the compiled ones.

`-sensitivity N` ranks the layers by what they cost; the same is done unasked where integers lose too much.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import NumType
from n2d2py.data.stimuli import Stimuli
from n2d2py.errors import N2D2Error
from n2d2py.graph import Graph, QuantGraph
from n2d2py.graph.inputs import NO_CONTRACT, InputContract, named_inputs
from n2d2py.operators.convert import Convert
from n2d2py.operators.elemwise import ElemWise
from n2d2py.quant.observe.compare import Accumulator, LayerComparison
from n2d2py.quant.observe.worst import StimulusComparison, WorstStimuli
from n2d2py.quant.search.isolation import isolated
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
    """The samples that `EDGE_SAMPLES` names, along a new first axis; the type of the input cuts what leaves its range."""
    largest = np.full_like(sample, sample.max(initial=0))
    return np.stack([np.zeros_like(sample), largest, *(sample * sample.dtype.type(factor) for factor in (0.1, 0.02, 4))])


@dataclass(frozen=True)
class Comparison:
    """Every layer over all compared stimuli, and the stimuli whose outputs the integers hold worst.

    Attributes:
        slack: share of a layer's range by which the target's own arithmetic may differ.
    """

    layers: list[LayerComparison] = field(default_factory=list)
    stimuli: list[StimulusComparison] = field(default_factory=list)
    slack: float = 0.0


def compare_stage(
    graph: Graph,
    quantized: QuantGraph,
    stimuli: Stimuli,
    compiled: Network | None,
    slack: float = 0.0,
    contract: InputContract = NO_CONTRACT,
) -> Comparison:
    """Every layer over the stimuli, in the network and in isolation; the compiled values too when a library is given.

    Where some layers compute in floating point, each layer in Python gets the compiled values of its inputs: the
    last bit of a sum of reals depends on its order, so that only single layers can be told to be identical. The same
    is done for a target with its own arithmetic, whose layers may differ by `slack` of their range. Packed tensors are compared as
    bytes, with no error. Without slack, samples at the edges (`edge_samples`) must give equal values as well; they are no
    part of any figure. `contract` says what images among the stimuli look like.
    """
    nodes = [node for node in quantized.nodes if not node.op.is_part]
    layers = [(node.name, node.output) for node in nodes]
    held = {*quantized.packed, *quantized.unpacked}
    engine = FloatEngine(graph, taps=list(dict.fromkeys(quantized.origin(tensor) for _, tensor in layers)))
    accumulators = [
        Accumulator(node.name, node.output, quantized.type(node.output), merged=(node.residual.layer,) if node.residual else ())
        for node in nodes
    ]
    worst = WorstStimuli(quantized, contract)
    size = batch_size(graph)
    for x, labels, names in log.progress(stimuli.batches(size), "comparing", total=-(-len(stimuli) // size), unit="batch"):
        real = quantized.with_pieces({**named_inputs(graph, x), **engine.run(x)})
        inputs = quantize_inputs(quantized, [x])
        stored = simulate(quantized, inputs, keep=True)
        real.update({name: stored[name] for name in quantized.packed})
        worst.add(x, labels, names, real, stored)
        alone = (
            {node.output: isolated(quantized, node, real) for node in nodes if node.output not in held}
            if quantized.bits > 0
            else {}
        )
        if slack and compiled is not None:
            given = compiled.stored_layers(inputs)
            found, stored = _by_layer(quantized, inputs, given)
            roundings = _roundings(quantized, given, found)
            for accumulator in accumulators:
                accumulator.add(
                    real[accumulator.tensor],
                    stored[accumulator.tensor],
                    found.get(accumulator.tensor),
                    slack + roundings.get(accumulator.tensor, 0.0),
                    alone.get(accumulator.tensor),
                )
            continue
        found, stored = _found(quantized, inputs, stored, compiled, layers)
        for accumulator in accumulators:
            accumulator.add(
                real[accumulator.tensor],
                stored[accumulator.tensor],
                found.get(accumulator.layer),
                alone=alone.get(accumulator.tensor),
            )
    if compiled is not None and not slack and len(stimuli):
        _check_edges(quantized, stimuli[0], size, compiled, accumulators)
    return Comparison([accumulator.result() for accumulator in accumulators], worst.result(), slack)


def _found(
    quantized: QuantGraph,
    inputs: list[np.ndarray],
    stored: dict[str, np.ndarray],
    compiled: Network | None,
    layers: list[tuple[str, str]],
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """(compiled values by layer, the values that they are compared with by tensor: `stored`, or those of each layer alone)."""
    given = compiled.stored_layers(inputs) if compiled is not None else {}
    found = {name: values.reshape(stored[tensor].shape) for name, tensor in layers if (values := given.get(name)) is not None}
    if quantized.is_mixed and found:
        inside = dict(zip(quantized.fed, inputs, strict=True))
        results = {tensor: np.ma.getdata(found[name]) for name, tensor in layers if name in found}
        stored = _from_compiled(quantized, {**inside, **results, **_states_before(quantized, results)})
    return found, stored


@np.errstate(all="ignore")  # 0 / 0 of a silent sample is what this looks at
def _check_edges(
    quantized: QuantGraph, sample: np.ndarray, size: int, compiled: Network, accumulators: list[Accumulator]
) -> None:
    """Compare compiled and simulated values of the edge samples; these prove nothing but that both are equal."""
    x, layers = edge_samples(sample), [(one.layer, one.tensor) for one in accumulators]
    for first in range(0, len(x), len(x) if quantized.states else size):
        part = slice(first, len(x) if quantized.states else first + size)
        inputs = quantize_inputs(quantized, [x[part]])
        found, stored = _found(quantized, inputs, simulate(quantized, inputs, keep=True), compiled, layers)
        for one in accumulators:
            if one.layer in found:
                one.check_samples(stored[one.tensor], found[one.layer], EDGE_SAMPLES[part])


def _from_compiled(quantized: QuantGraph, compiled: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The stored values that Python computes for each layer from the compiled values of its inputs."""
    return {node.output: run_node(quantized, node, [compiled[name] for name in node.inputs])[0] for node in quantized.nodes}


def _states_before(quantized: QuantGraph, results: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The states that calls began with, from the results of all of them."""
    outputs = quantized.becoming
    first = reset_states(quantized).items()
    return {
        name: np.concatenate([state, results[output][:-1].reshape(-1, *state.shape[1:])])
        for (name, state), output in zip(first, outputs, strict=True)
    }


def _by_layer(
    quantized: QuantGraph, inputs: list[np.ndarray], layers: dict[str, np.ndarray]
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """(stored values that the target found, those that Python computes from the target's values), by tensor.

    What the target merged into the next layer is computed in Python.
    """
    merged = {node.output for node in quantized.nodes} - set(layers)
    quantized = _widened(quantized, merged)
    found = {
        name: quantized.type(name).quantize(values.reshape(len(values), *quantized.shape(name)[1:]))
        for name, values in layers.items()
    }
    for name in _left_real(quantized, layers, found):
        del found[name]
    found.update(_held(quantized, found))
    values = dict(zip(quantized.fed, inputs, strict=True))
    expected: dict[str, np.ndarray] = {}
    for node in quantized.nodes:
        for name, result in zip(node.outputs, run_node(quantized, node, [values[one] for one in node.inputs]), strict=True):
            expected[name] = result
            values[name] = found.get(name, result)
    return found, expected


def _left_real(graph: QuantGraph, layers: dict[str, np.ndarray], found: dict[str, np.ndarray]) -> list[str]:
    """Results of conversions to integers that the target leaves to the next layer: its numbers are none that integers stand for."""
    names = [
        node.output for node in graph.nodes if isinstance(node.op, Convert) and not node.op.to_float and node.output in found
    ]
    kinds = {name: graph.type(name) for name in names}
    return [
        name
        for name, kind in kinds.items()
        if np.abs(layers[name].reshape(found[name].shape) - kind.dequantize(found[name])).max(initial=0) > kind.scale / 100
    ]


def _held(graph: QuantGraph, found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Real numbers made of integers, by tensor, within the range of these integers: some targets take -128 for what is cut at -127."""
    held: dict[str, np.ndarray] = {}
    for node in graph.nodes:
        if isinstance(node.op, Convert) and node.op.to_float and node.output in found:
            kind = graph.type(node.inputs[0])
            ends = kind.dequantize(np.array([kind.qmin, kind.qmax]))
            held[node.output] = np.clip(found[node.output], *ends).astype(found[node.output].dtype)
    return held


def _roundings(graph: QuantGraph, layers: dict[str, np.ndarray], found: dict[str, np.ndarray]) -> dict[str, float]:
    """By the result of each sum, the share of its range that the rounding of its inputs makes: a target may add what it never rounded.

    Numbers of like size that are subtracted leave a small difference, of which half a step of the inputs is much.
    """
    lost: dict[str, float] = {}
    for name, values in layers.items():
        kind = graph.type(name)
        if name in found and not (kind.is_float or kind.plain):
            away = np.abs(values.reshape(found[name].shape) - kind.dequantize(found[name]))
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
    """The network with 16 bits for the integers of `merged` tensors, which no 8 bits cut on the target."""
    if graph.bits != 8:
        return graph
    tensors = {
        name: replace(one, type=replace(one.type, bits=16)) if name in merged else one for name, one in graph.tensors.items()
    }
    nodes = [
        replace(node, clamp=tuple(_widen(edge, graph.type(node.output)) for edge in node.clamp))
        if node.clamp is not None and len(node.outputs) == 1 and node.output in merged
        else node
        for node in graph.nodes
    ]
    return replace(graph, tensors=tensors, nodes=nodes)


def _widen(edge: int, kind: NumType) -> int:
    """An end of a range that is the end of the type is the end of the wider one."""
    return {kind.qmin: kind.qmin * 256 if kind.signed else 0, kind.qmax: kind.qmax * 256}.get(edge, edge)


def summary(comparisons: list[LayerComparison], bits: int, slack: float = 0.0) -> str:
    """One line: whether all layers agree, else the first that does not and where.

    Integers (`bits` > 0) must be identical; floating-point values equal within 1e-4 of the layer's largest.
    """
    run = [c for c in comparisons if c.identical is not None]
    if not run:
        return "compiled values were not compared"
    if different := _first_difference(run):
        return different
    if slack:
        same = sum(c.exact is True for c in run)
        within = f"{len(run)} layers: values within {100 * slack:g} % of the range of Python's, layer by layer"
        return f"{within}; {'all' if same == len(run) else same} of them identical"
    how = "identical to Python's" if bits > 0 else "equal to Python's within 1e-4 of the largest"
    missing = sum(c.missing > 0 for c in run)
    note = f"; {missing} of them without the lines that no layer reads" if missing else ""
    return f"{len(run)} layers: compiled values {how}, also for samples at the edges{note}"


def refuse_differences(comparisons: list[LayerComparison]) -> None:
    """Raise E812 when the compiled values of a layer are not those of Python, by the measure of `summary`."""
    if different := _first_difference(comparisons):
        raise N2D2Error("E812", different, where="-compare", remedy="report this defect of n2d2py")


def _first_difference(comparisons: list[LayerComparison]) -> str:
    """The first layer that differs and where; "" when none does."""
    for comparison in comparisons:
        d = comparison.difference
        if d is not None:
            return (
                f"layer '{comparison.layer}' differs first, at element {d.place}: Python {d.expected:g}, compiled {d.found:g}"
            )
    return ""


@dataclass(frozen=True)
class Sensitivity:
    """Cost of each layer, the worst first, over so many stimuli; `text` says it to the user."""

    text: str = ""
    losses: tuple[LayerLoss, ...] = ()
    stimuli: int = 0


LARGE_LOSS = 2.0
"""Points of the float score; integers that lose more are explained."""

_STIMULI = 10
_WORST = 5


def sensitivity_stage(
    quantized: QuantizedNetwork, asked: int, stimuli: Stimuli | None, scores: Scores, folder: Path
) -> Sensitivity:
    """The requested analysis, over `asked` stimuli, or what a large loss calls for; nothing when neither is so.

    With it statistics/sensitivity.csv is written.
    """
    lost = points_lost(scores)
    if quantized.types is None or stimuli is None or not (asked or lost > LARGE_LOSS):
        return Sensitivity()
    chosen = stimuli.sample_evenly(asked or _STIMULI)
    inputs = np.concatenate([x for x, _, _ in chosen.batches(16)])
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
    """The largest loss of a target's top-1 score, AUC or mAP in percent from float to simulated, in points; 0 without."""
    found = [0.0]
    for rows in scores.rows.values():
        by_label = {label.split()[0]: score for label, score in rows}
        first, second = by_label.get("float"), by_label.get("simulated")
        if first is None or second is None:
            continue
        if first.boxes is not None and second.boxes is not None:
            found.append((first.boxes.percent or 0.0) - (second.boxes.percent or 0.0))
        elif first.errors is None and first.count:
            found.append(100.0 * (first.correct / first.count - second.correct / max(second.count, 1)))
    return max(found)
