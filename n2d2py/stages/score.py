"""Stage score: the scores of the float network, of its integers, and of the compiled export."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np

from n2d2py import log
from n2d2py.arithmetic.sensor import StreamSource
from n2d2py.concurrency import ordered_map
from n2d2py.data.stimuli import Batch, Stimuli
from n2d2py.errors import N2D2Error
from n2d2py.exports import StoredStimuli
from n2d2py.graph import Graph, QuantGraph, channels
from n2d2py.graph.inputs import InputSource
from n2d2py.quant.observe.compare import first_difference
from n2d2py.quant.simulator import quantize_inputs, simulate, simulate_all
from n2d2py.quant.statistics import batch_size
from n2d2py.reference.engine import FloatEngine
from n2d2py.runtime import FloatNetwork, Network, Runner, Simulator
from n2d2py.stages.load import LoadedNetwork
from n2d2py.stages.options import ScoreOptions
from n2d2py.stages.score_decisions import (
    DETECTIONS,
    WORDS,
    detection_score,
    detector_of,
    found_boxes,
    read_recordings,
    with_pipeline,
    word_score,
)
from n2d2py.targets import Score, Scorer, write_target_files
from n2d2py.targets.target import ScoreTarget

R = TypeVar("R")

_SLACK = 0.02
"""Share of the range by which integers after layers in floating point may differ: sums are rounded in another order."""


@dataclass
class Scores:
    """Scores by target name, each a list of (row label, score): float, simulated, compiled."""

    rows: dict[str, list[tuple[str, Score]]] = field(default_factory=dict)

    def add(self, label: str, score: Score) -> None:
        """Append a row to the table of the score's target."""
        self.rows.setdefault(score.target, []).append((label, score))


def simulated_name(bits: int) -> str:
    """Row label of the simulated network, such as "simulated int8"."""
    return f"simulated {'int' if bits > 0 else 'float'}{abs(bits)}"


def scored_stimuli(network: LoadedNetwork, options: ScoreOptions) -> Stimuli | None:
    """Return the stimuli of `-test`, `-nb-test` or `-test-index`: the Test set, else Validation; None without any. Raise E513
    when `-test-index` is beyond the set."""
    stimuli = network.data.get("Test")
    if stimuli is None:
        stimuli = network.data.get("Validation")
        if stimuli is not None and options.test:
            log.notice("the test set is empty: the validation set is used")
    if stimuli is None:
        return None
    if options.index >= 0:
        if stimuli.calls:
            what = "-test-index cannot be used, as each call of this model depends on the calls before"
            raise N2D2Error("E513", what, remedy="remove -test-index, or give -nb-test N for the first calls")
        if options.index >= len(stimuli):
            what = f"-test-index {options.index} exceeds the {len(stimuli)} test samples"
            raise N2D2Error("E513", what, remedy=f"give 0 to {len(stimuli) - 1}")
        return stimuli.take([options.index])
    return stimuli.sample_evenly(options.stimuli)


def label_ids(stimuli: Stimuli, first: int, stop: int) -> np.ndarray:
    """Return the label ids of stimuli [first, stop): (N,), or (N, H, W) for each pixel."""
    if stimuli.label_map is None:
        return stimuli.labels[first:stop]
    return np.stack([stimuli.label_map(index) for index in range(first, stop)])


def expected_labels(network: LoadedNetwork, target_name: str, labels: np.ndarray) -> np.ndarray:
    """Return the expected output of each label id, by the target's LabelsMapping when it has one."""
    mapping = network.mappings.get(target_name)
    return labels if mapping is None else mapping.targets(labels)


def expected_outputs(network: LoadedNetwork, target: ScoreTarget, labels: np.ndarray) -> np.ndarray:
    """Return `expected_labels` of a target; raise E451 for a label beyond its classes. A single output has two classes."""
    expected = expected_labels(network, target.name, labels)
    classes = max(channels(network.graph.shape(target.tensor)), 2)
    if not target.as_data and expected.max(initial=-1) >= classes:
        what = f"a sample has label {expected.max()}, but '{target.tensor}' has {classes} classes"
        remedy = "correct the model, or set LabelsMapping"
        if network.document is None:
            remedy = "give labels of these classes with -labels, or one folder a class"
        raise N2D2Error("E451", what, where=target.location or f"[{target.name}]", remedy=remedy)
    return expected


def class_names(network: LoadedNetwork, target: ScoreTarget) -> Sequence[str]:
    """Return the names of the outputs of a target: of the labels that mean each."""
    mapping = network.mappings.get(target.name)
    outputs = max(channels(network.graph.shape(target.tensor)), 2)
    return network.data.classes if mapping is None else mapping.names(outputs)


def stream_scores(
    network: LoadedNetwork, graph: Graph, quantized: QuantGraph | None, streams: Path, folder: Path, scores: Scores
) -> None:
    """Add the scores of the words in the recordings of the folder `streams`; writes the decided words into `folder`."""
    running: dict[str, tuple[Network, Graph | QuantGraph]] = {"float": (FloatNetwork(graph), graph)}
    if quantized is not None:
        running[simulated_name(quantized.bits)] = Simulator(quantized), quantized
    for label, (one, typed) in running.items():
        scores.add(label, stream_score(network, typed, one, streams))
    write_target_files(folder, scores.rows[WORDS][-1][1], "test" if quantized is None else "export")


def stream_score(network: LoadedNetwork, graph: Graph | QuantGraph, running: Network, streams: Path) -> Score:
    """Return the score of the words that `running`, which runs `graph`, finds in the recordings of the folder `streams`."""
    return word_score(with_pipeline(running, network, graph), read_recordings(streams, network), network.data.classes)


def score_stage(
    network: LoadedNetwork, graph: Graph, quantized: QuantGraph | None, stimuli: Stimuli, folder: Path, as_json: bool = False
) -> Scores:
    """Score the float graph and, when given, the typed one over all stimuli; writes the target folders (`as_json`: with the
    results of every stimulus as JSON). Batches are worked on by all cores; results do not depend on their number."""
    if stimuli.boxes is not None:
        return _detection_scores(network, graph, quantized, stimuli, folder)
    tensors, scorers = [target.tensor for target in network.targets], _scorers(network, quantized)
    for (x, labels, names), results in _run_batches(graph, quantized, stimuli, tensors, lambda *batch: batch):
        for index, target in enumerate(network.targets):
            expected = expected_labels(network, target.name, labels)
            for by_target, values in zip(scorers.values(), results, strict=True):
                by_target[index].add(values[target.tensor], expected, names, inputs=x)
    scores = Scores()
    for index, target in enumerate(network.targets):
        found = {label: by_target[index].result() for label, by_target in scorers.items()}
        for label, score in found.items():
            scores.add(label, score)
        if network.document is None:
            warn_of_score(found["float"], network.data.contract.source)
        tag = "test" if quantized is None else "export"
        write_target_files(folder, list(found.values())[-1], tag, target.hue, as_json)
    return scores


def _scorers(network: LoadedNetwork, quantized: QuantGraph | None) -> dict[str, list[Scorer]]:
    """Return a scorer for each target, by the label of what computes the outputs."""
    scorers = {"float": [Scorer(target, class_names(network, target)) for target in network.targets]}
    if quantized is not None:
        kinds = [(target, quantized.type(target.tensor)) for target in network.targets]
        scorers[simulated_name(quantized.bits)] = [Scorer(one, class_names(network, one), type=kind) for one, kind in kinds]
    return scorers


def _run_batches(
    graph: Graph,
    quantized: QuantGraph | None,
    stimuli: Stimuli,
    tensors: Sequence[str],
    finish: Callable[[Batch, list[dict[str, np.ndarray]]], R],
) -> Iterator[R]:
    """Yield finish(batch with label ids, values) for each batch; values: of the tensors in the float network, and as stored in
    the typed one."""
    engine, size = FloatEngine(graph, taps=tensors, threads=1), stimuli.calls or batch_size(graph)

    def run(numbered: tuple[int, Batch]) -> R:
        start, (x, _, names) = numbered
        results = [engine.run(x)]
        if quantized is not None:
            results.append(simulate(quantized, quantize_inputs(quantized, [x])))
        batch = x, label_ids(stimuli, start, start + len(x)), names
        return finish(batch, [{name: values[name] for name in tensors} for values in results])

    batches = ordered_map(run, zip(range(0, len(stimuli), size), stimuli.batches(size), strict=True))
    yield from log.progress(batches, "testing", total=-(-len(stimuli) // size), unit="batch")


def _detection_scores(
    network: LoadedNetwork, graph: Graph, quantized: QuantGraph | None, stimuli: Stimuli, folder: Path
) -> Scores:
    graphs = {"float": graph} if quantized is None else {"float": graph, simulated_name(quantized.bits): quantized}
    detectors = [one for one in (detector_of(network, one) for one in graphs.values()) if one is not None]

    def boxes(batch: Batch, results: list[dict[str, np.ndarray]]) -> list[list[np.ndarray]]:
        return [found_boxes(each, list(values.values())) for each, values in zip(detectors, results, strict=True)]

    outputs = list(_run_batches(graph, quantized, stimuli, graph.user_outputs, boxes))
    scores = Scores()
    for label, detector, each in zip(graphs, detectors, zip(*outputs, strict=True), strict=True):
        scores.add(label, detection_score(detector.names, [one for batch in each for one in batch], stimuli))
    write_target_files(folder, scores.rows[DETECTIONS][-1][1], "test" if quantized is None else "export")
    return scores


def compiled_scores(
    network: LoadedNetwork,
    graph: QuantGraph,
    project: Runner,
    stored: StoredStimuli,
    tested: tuple[Stimuli, np.ndarray],
    scores: Scores,
) -> None:
    """Add the running export's scores on the exported stimuli, and check its outputs against the simulation. Integers must be
    identical, unless layers before them compute in floating point. `tested`: the tested stimuli, and the places of the exported
    ones among them. Raise E812 when a compiled output differs from the simulated one."""
    outputs = project.outputs(graph, stored.count)
    simulated = simulate_all(graph, stored.inputs, batch_size(network.graph))
    for name in graph.user_outputs:
        if project.slack:
            _check_direction(project.label, name, graph, simulated[name], outputs[name])
            continue
        difference = first_difference(simulated[name], outputs[name], graph.type(name), _SLACK if graph.is_mixed else 0.0)
        if difference is not None:
            place = f"at element {list(difference.index)}: Python {difference.expected:g}, {project.label} {difference.found:g}"
            what = f"{project.label} output '{name}' differs from the simulated output {place}"
            raise N2D2Error("E812", what, remedy="run again with -compare to find the first layer, and report this defect")
    stimuli, positions = tested
    if (detector := detector_of(network, graph)) is not None and stimuli.boxes is not None:
        difference = found_boxes(detector, [outputs[name] for name in graph.user_outputs])
        scores.add(project.label, detection_score(detector.names, difference, stimuli.take(positions), positions))
        return
    parts = [graph.type(name).dequantize(values) for name, values in zip(graph.user_inputs, stored.inputs, strict=True)]
    real = parts[0] if len(parts) == 1 else np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)
    for target, labels in zip(network.targets, stored.labels, strict=True):
        scorer = Scorer(target, class_names(network, target), type=graph.type(target.tensor))
        shape = outputs[target.tensor].shape
        pixels = labels.shape[1] > 1 and not target.as_data
        expected = labels.reshape(len(labels), *shape[2:]) if pixels else labels[:, 0]
        scorer.add(outputs[target.tensor], expected, stored.names, inputs=real, indices=positions)
        scores.add(project.label, scorer.result())


def _check_direction(label: str, name: str, graph: QuantGraph, simulated: np.ndarray, compiled: np.ndarray) -> None:
    """Raise E812 when an output of a target with its own arithmetic differs from the simulated one. Its roundings add up over
    the layers, so that only the direction can be compared: a cosine below 0.9 is a fault."""
    a, b = (graph.type(name).dequantize(values).astype(np.float64).reshape(-1) for values in (simulated, compiled))
    norm = float(np.linalg.norm(a) * np.linalg.norm(b))
    cosine = float(a @ b) / norm if norm else 1.0
    log.notice("%s '%s': cosine %.6f with the simulated output", label, name, cosine)
    if cosine < 0.9:
        what = f"{label} output '{name}' differs from the simulated output: their cosine is {cosine:.3f}"
        raise N2D2Error("E812", what, remedy="run again with -compare to find the first layer, and report this defect")


_FEWEST = 20  # labelled stimuli below which nothing can be said


def warn_of_score(score: Score, source: InputSource | None) -> None:
    """W409 for a float network that finds no more labels than chance, W410 for labels one class off; `source` makes its
    input."""
    if score.errors is not None or score.pixels is not None or len(score.classes) < 2:
        return
    counted = score.labels >= 0
    labels, estimates = score.labels[counted], score.estimated[counted]
    count, classes = len(labels), len(score.classes)
    if count < _FEWEST or len(np.unique(labels)) < 2:
        return
    correct = int(np.count_nonzero(labels == estimates))
    shifted = {step: int(np.count_nonzero(estimates - labels == step)) for step in (-1, 1)}
    step = max(shifted, key=lambda one: shifted[one])
    if classes > 2 and shifted[step] > max((count - correct) / 2, 2 * correct, 3 * (classes > 3) + count / classes * 2):
        side = "above" if step > 0 else "below"
        what = f"{shifted[step]} of {count} samples are classified one class {side} their label"
        names = "with folders, name all outputs with -class-names, including a background class"
        log.warning("W410", what, where=f"[{score.target}]", remedy=f"number the labels like the outputs; {names}")
        return
    shares = (np.bincount(values, minlength=classes) / count for values in (labels, estimates))
    chance = float(np.prod(list(shares), axis=0).sum())
    if correct <= count * chance + 2 * np.sqrt(count * chance * (1 - chance)):
        what = f"the float model classifies {correct} of {count} samples correctly, no more than chance ({100 * chance:.0f} %)"
        images = "preprocessing (-mean, -std and -scale or -input-range, -bgr)"
        keys = f"keys of {source.option}" if isinstance(source, StreamSource) else images
        remedy = f"check the {keys} and the order of the classes"
        log.warning("W409", what, where=f"[{score.target}]", remedy=remedy)
