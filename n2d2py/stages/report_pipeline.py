"""The pipeline of an export for its report: stages with what they take, and three samples computed in Python's integers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from n2d2py.arithmetic.audio import AudioSource, read_audio
from n2d2py.arithmetic.sensor import SensorSource, read_sensor
from n2d2py.arithmetic.stream import StreamSource
from n2d2py.data.stimuli import Stimuli
from n2d2py.graph import InputContract, QuantGraph
from n2d2py.ini.schema import without_defaults
from n2d2py.memory.plan import MemoryPlan
from n2d2py.quant.observe.worst import stimulus_picture, window_picture
from n2d2py.report.pipeline import PipelineData, PipelineSample, PipelineStage, bytes_fact
from n2d2py.runtime import Network, Simulator
from n2d2py.stages.calibrate import set_to_calibrate
from n2d2py.stages.load import LoadedNetwork
from n2d2py.stages.report import BuildMetrics
from n2d2py.stages.score_boxes import with_pipeline

_SAMPLES = 3


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
    """Return the stages before the network; `facts` are those of the conversion, none where the export has none."""
    source = contract.source
    if source is None or not facts:
        return [("Input", contract.text, [])]
    if isinstance(source, AudioSource):
        return [
            ("Sound", f"{source.sound_rate} Hz, 16 bits", []),
            ("Features", without_defaults(source.text, read_audio), facts),
        ]
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
    """Return an input as an image."""
    if isinstance(running.contract.source, StreamSource):
        return window_picture(sample, running.contract.source)
    image = stimulus_picture(sample, running.contract, max(sample.shape))
    return None if image is None else running.contract.red_first(image)
