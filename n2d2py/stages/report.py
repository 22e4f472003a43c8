"""Stage report: measurements of a build; statistics, plots and report.html of the run; the score tables on stdout.

The report of an export with a pipeline has its stages with what they take, and three samples computed in Python's integers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py import log
from n2d2py.arithmetic.audio import AudioSource, read_audio
from n2d2py.arithmetic.sensor import SensorSource, StreamSource, read_sensor
from n2d2py.data.stimuli import Stimuli
from n2d2py.errors import Location, N2D2Error
from n2d2py.exports import KernelChoice
from n2d2py.graph import InputContract, QuantGraph
from n2d2py.ini.schema import without_defaults
from n2d2py.memory.from_graph import PlannedNetwork
from n2d2py.memory.plan import MemoryPlan
from n2d2py.quant.observe.worst import stimulus_picture, window_picture
from n2d2py.report import MISSES_SHOWN, Footprint, InputImage, ReportData, write_report
from n2d2py.report.pipeline import PipelineData, PipelineSample, PipelineStage, bytes_fact
from n2d2py.runtime import Latency, Network, Runner, Simulator
from n2d2py.stages.calibrate import set_to_calibrate
from n2d2py.stages.compare import Comparison, Sensitivity
from n2d2py.stages.load import LoadedNetwork
from n2d2py.stages.options import RunOptions
from n2d2py.stages.quantize import QuantizedNetwork
from n2d2py.stages.score import Scores
from n2d2py.stages.score_decisions import with_pipeline
from n2d2py.targets import ScoreRow, score_lines, score_table

_EVERY = {True: "for every input", False: "for the first stimulus; other data may take others"}


@dataclass(frozen=True)
class BuildMetrics:
    """Bytes of a build by what they are for, what built it, its time where that was asked for, its instructions where they were
    counted, and the cost of its conversion of frames or sounds, as text."""

    sizes: Mapping[str, int] = field(default_factory=dict)
    compiler: str = ""
    latency: Latency | None = None
    instructions: tuple[str, int, bool] | None = None
    conversion: str = ""


def measured(run: Runner, inferences: int) -> BuildMetrics:
    """Measure a build, its time over `inferences` (0: not at all), and say in a line each what came of it."""
    sizes = run.sizes()
    latency = run.latency(inferences) if inferences else None
    counted, conversion = run.instructions(), run.conversion_cost(inferences)
    if sizes:
        log.notice("%s", Footprint.of_build(sizes, "").line())
    if counted is not None:
        log.notice("instructions: %s per inference on %s, %s", f"{counted[1]:,}", counted[0], _EVERY[counted[2]])
    if latency is not None:
        bound = "" if latency.bound is None else f", {latency.bound:.0f} % of the machine's limit"
        threads = f"{latency.threads} thread{'s' if latency.threads > 1 else ''}"
        log.notice("latency: %.4g us median, %.4g us minimum, %s%s", latency.median_us, latency.least_us, threads, bound)
    if conversion:
        log.notice("conversion of the input: %s", conversion)
    return BuildMetrics(sizes, run.built_with() if sizes else "", latency, counted, conversion)


_SAMPLES = 3  # samples of the pipeline in the report
_INPUTS = 6  # calibration samples in the report
_MISSED_PIXELS = 96  # pixels of the longer side of a misclassified stimulus in the report


@dataclass(frozen=True)
class Checked:
    """Results of a written export: scores, layer comparison, cost of its layers, measurements of its build, pipeline, target
    estimates."""

    scores: Scores = field(default_factory=Scores)
    compared: Comparison = field(default_factory=Comparison)
    sensitivity: Sensitivity = Sensitivity()
    built: BuildMetrics = BuildMetrics()
    stages: PipelineData | None = None
    estimate: Mapping[str, str] = field(default_factory=dict)


def report_stage(
    quantized: QuantizedNetwork,
    memory: PlannedNetwork | None,
    checked: Checked,
    options: RunOptions,
    folder: Path,
    kernels: list[KernelChoice] | None = None,
    tested: Stimuli | None = None,
) -> None:
    """Write everything under statistics/; `tested` are the scored stimuli."""
    network, observed, types = quantized.network, quantized.observed, quantized.types
    scores, compared, metrics = checked.scores, checked.compared, checked.built
    data = ReportData(
        network.graph.name,
        quantized.float_graph,
        memory.graph if memory else quantized.graph,
        dict(options.recorded),
        quantized.options,
        observed.statistics.histograms if observed else {},
        types.thresholds if types else {},
        types.rules if types else {},
        memory.problem if memory else None,
        memory.plan if memory else None,
        [(label.split()[0], score) for rows in scores.rows.values() for label, score in rows],
        compared.layers,
        quantized.fused.lines(),
        [_without_folder(warning) for warning in log.warnings_seen()],
        network.data.steps,
        compared.stimuli,
        {one.layer: one for one in kernels or []},
        quantized.graph,
        built=Footprint.of_build(metrics.sizes, metrics.compiler) if metrics.sizes else None,
        latency=metrics.latency,
        instructions=metrics.instructions,
        losses=checked.sensitivity.losses,
        losses_stimuli=checked.sensitivity.stimuli,
        search=quantized.search,
        images=_missed_images(scores, tested, network.data.contract),
        command=options.command,
        biases=types.biases if types else None,
        contract=network.data.contract,
        inputs=_input_images(network),
        estimate=checked.estimate,
        stages=checked.stages,
    )
    write_report(data, folder / "statistics")


def _missed_images(scores: Scores, tested: Stimuli | None, contract: InputContract) -> dict[int, np.ndarray]:
    """Return the first misclassified stimuli of each target as images, by their number among the tested ones."""
    missed = {
        miss.index for rows in scores.rows.values() for _, score in rows[-1:] for miss in score.misses_by_class(MISSES_SHOWN)
    }
    if tested is None:
        return {}
    images = {number: stimulus_picture(tested[number], contract, _MISSED_PIXELS) for number in sorted(missed)}
    return {number: image for number, image in images.items() if image is not None}


def _input_images(network: LoadedNetwork) -> list[InputImage]:
    """Return a few of the calibration samples; [] unless they are images."""
    stimuli = set_to_calibrate(network)
    if stimuli is None or network.data.random or len(stimuli.shape) != 3:
        return []
    images = []
    chosen = stimuli.sample_evenly(_INPUTS)
    for index in range(len(chosen)):
        sample = chosen[index]
        image = stimulus_picture(sample, network.data.contract)
        if image is not None:
            images.append(InputImage(Path(chosen.names[index]).name, image, float(sample.min()), float(sample.max())))
    return images


def _without_folder(warning: N2D2Error) -> str:
    """Return the line of a warning with the name of its file only, so that the report is the same in every folder."""
    where = warning.where
    if isinstance(where, Location) and where.file:
        where = replace(where, file=Path(where.file).name)
    elif isinstance(where, str):
        where = Path(where).name
    return N2D2Error(warning.code, warning.what, where=where, remedy=warning.remedy).line()


def print_scores(scores: Scores) -> None:
    """Print the table of each target: float, simulated, compiled."""
    for target, rows in scores.rows.items():
        if len(scores.rows) > 1:
            print(f"{target}:")
        print(score_table([ScoreRow(label, score) for label, score in rows]), end="")
        typed = rows[1][1] if len(rows) > 1 else rows[0][1]
        for line in score_lines(typed):
            lines = log.wrapped(line.replace(": ", ":\xa0"), 80, "    ")  # a figure stays with its name
            print("\n".join(lines).replace("\xa0", " "))


def pipeline_data(
    network: LoadedNetwork,
    graph: QuantGraph,
    plan: MemoryPlan | None,
    details: Mapping[str, Any],
    metrics: BuildMetrics,
    tested: Stimuli | None,
) -> PipelineData | None:
    """Return the pipeline of an export whose manifest has `details`; None where it is the network alone, or without samples."""
    words, post = details.get("conversion_bytes"), details.get("post")
    stimuli = tested or set_to_calibrate(network)
    if stimuli is None or (stimuli.raw is None if words is not None else post is None):
        return None
    samples = _samples(with_pipeline(Simulator(graph), network, graph), stimuli.sample_evenly(_SAMPLES), words is not None)
    if not samples:
        return None
    contract = network.data.contract
    bytes_of_input = sum(int(np.prod(graph.shape(name)[1:])) * graph.type(name).bits // 8 for name in graph.user_inputs)
    facts = [] if words is None else [bytes_fact("working memory", words), _cost(metrics.conversion)]
    stages = [PipelineStage(*one) for one in _input_stages(contract, facts)]
    arena = [bytes_fact("arena", plan.arena_bytes)] if plan is not None else []
    text = f"{len(graph.nodes)} layer{'s' * (len(graph.nodes) != 1)}, {'int' if graph.bits > 0 else 'float'}{abs(graph.bits)}"
    stages.append(PipelineStage("Network", text, [bytes_fact("input", bytes_of_input), *arena, _cost(_network_cost(metrics))]))
    stages.append(PipelineStage("Decision", post or "outputs as real values"))
    return PipelineData(stages, samples, contract.classes, words is not None)


def _input_stages(contract: InputContract, facts: list[tuple[str, str]]) -> list[tuple[str, str, list[tuple[str, str]]]]:
    source = contract.source
    if source is None or not facts:
        return [("Input", contract.text, [])]
    if isinstance(source, AudioSource):
        features = without_defaults(source.text, read_audio)
        return [("Sound", f"{source.sound_rate} Hz, 16 bits", []), ("Features", features, facts)]
    if isinstance(source, SensorSource):
        return [("Samples", f"{source.axes} axes, 16 bits", []), ("Window", without_defaults(source.text, read_sensor), facts)]
    return [("Frame", f"{source.format} of any size", []), ("Conversion", source.text, facts)]


def _cost(text: str) -> tuple[str, str]:
    return "cost", text or "not measured"


def _network_cost(metrics: BuildMetrics) -> str:
    if metrics.latency is not None:
        return f"{metrics.latency.median_us:.4g} us, {metrics.latency.source}"
    return f"{metrics.instructions[1]:,} instructions on {metrics.instructions[0]}" if metrics.instructions else ""


def _samples(running: Network, stimuli: Stimuli, raw: bool) -> list[PipelineSample]:
    samples = []
    for index in range(len(stimuli)):
        sample, name = stimuli[index], stimuli.names[index]
        picture = _picture(running, sample)
        if raw and stimuli.raw is not None:
            given = _first_part(stimuli.raw(index), running)
            samples.append(PipelineSample(name, given, picture, running.pipeline(given)))
        elif picture is not None and running.post is not None:
            (info,) = running.info.inputs
            samples.append(PipelineSample(name, picture, None, running.postprocess(info.type.quantize(sample[None]))[0]))
    return samples


def _first_part(raw: np.ndarray, running: Network) -> np.ndarray:
    """Return an image as its camera gives it, or the samples of a stimulus' frames, with silence after the end of a sound."""
    source = running.contract.source
    if not isinstance(source, StreamSource):
        return source.mirror(raw) if source is not None else raw
    size = source.samples(source.frames_of(running.info.inputs[0].stored[1:]).count)
    return np.pad(raw[:size], ((0, max(size - len(raw), 0)), *((0, 0),) * (raw.ndim - 1)))


def _picture(running: Network, sample: np.ndarray) -> np.ndarray | None:
    if isinstance(running.contract.source, StreamSource):
        return window_picture(sample, running.contract.source)
    image = stimulus_picture(sample, running.contract, max(sample.shape))
    return None if image is None else running.contract.red_first(image)
