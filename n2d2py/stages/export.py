"""Stage export: the typed network and its memory plan become a project."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py import log
from n2d2py.arithmetic.audio import AudioSource
from n2d2py.arithmetic.frame import FrameSource
from n2d2py.data.stimuli import Stimuli, even_positions
from n2d2py.errors import N2D2Error, suggest
from n2d2py.exports import ExportRequest, KernelChoice, Prepared, ScoredOutput, StoredStimuli, Target, find_target, target_names
from n2d2py.exports.weights import WEIGHTS_FOLDER, is_big, write_weights
from n2d2py.graph import QuantGraph, Shape, channels, elements, height, width
from n2d2py.ini.params import GENERAL, PRECISION_KEYS, Params
from n2d2py.memory.from_graph import PlannedNetwork
from n2d2py.quant.simulator import quantize_inputs
from n2d2py.quant.statistics import batch_size
from n2d2py.stages.load import LoadedNetwork
from n2d2py.stages.score import expected_outputs, label_ids
from n2d2py.targets.pixels import fit_labels
from n2d2py.targets.target import ScoreTarget


def export_folder_name(kind: str, bits: int) -> str:
    """Return target and precision, as in export_KIND_int8 or export_KIND_float32."""
    return f"export_{kind}_{'int' if bits > 0 else 'float'}{abs(bits)}"


def exported_stimuli(stimuli: Stimuli | None, count: int) -> tuple[Stimuli | None, np.ndarray]:
    """Return the `-db-export` samples, evenly spaced over the test set, and their indices."""
    if stimuli is None or count == 0:
        return None, np.zeros(0, np.int64)
    chosen = stimuli.sample_evenly(count)
    spread = chosen is not stimuli and not stimuli.calls
    return chosen, even_positions(len(stimuli), count) if spread else np.arange(len(chosen))


def stored_stimuli(network: LoadedNetwork, graph: QuantGraph, stimuli: Stimuli | None) -> StoredStimuli:
    """Return the stored integers (or floats) of samples, with the expected outputs of each target."""
    if stimuli is None:
        return StoredStimuli()
    parts = [quantize_inputs(graph, [x]) for x, _, _ in stimuli.batches(max(8, batch_size(network.graph)))]
    ids = label_ids(stimuli, 0, len(stimuli))
    labels = tuple(_target_labels(network, target, graph.shape(target.tensor), ids) for target in network.targets)
    return StoredStimuli(tuple(np.concatenate(values) for values in zip(*parts, strict=True)), labels, tuple(stimuli.names))


def check_labels(network: LoadedNetwork, stimuli: Stimuli) -> None:
    """Raise E451 for a label beyond the outputs of a target, before calibration."""
    for target in network.targets:
        expected_outputs(network, target, stimuli.labels)


def check_app(network: LoadedNetwork, target: Target[Any], app: str | None) -> None:
    """Raise E707 if the application `app` is not possible."""
    if app is None:
        return
    graph, source = network.graph, network.data.contract.source
    possible = "camera" if isinstance(source, FrameSource) else "microphone" if isinstance(source, AudioSource) else "sensor"
    shapes = [graph.shape(name) for name in graph.user_outputs]
    results = network.options.post or any(elements(shape) == channels(shape) for shape in shapes)
    able = [name for name in target_names() if find_target(name).has_apps]
    needs = {"camera": "give -input-format and images, or", "microphone": "give -audio and sounds, or"}
    problems = (
        (not target.has_apps, f"{target.name} contains no applications", f"use -export {' or '.join(able)}"),
        (len(graph.user_inputs) != 1, "the model has several inputs", "choose one by -inputs"),
        (not results, "no output has one value for each class", "choose one by -outputs, or give -post"),
        (network.params["WeightsFile"], "the weights are in a separate file", "remove WeightsFile"),
        (app != possible, f"the input is not that of a {app}", f"{needs.get(app, 'use')} -app {possible}"),
    )
    for is_so, what, remedy in problems:
        if is_so:
            raise N2D2Error("E707", f"-app {app}: {what}", where=network.place, remedy=remedy)


def _target_labels(network: LoadedNetwork, target: ScoreTarget, shape: Shape, labels: np.ndarray) -> np.ndarray:
    """Return the expected output at each position of a target, int32 (N, positions). -1 means none, if an image has one label
    but the output several positions. `labels` are ids (N,), or (N, H, W) for each pixel. Raise E451 for a label beyond the
    outputs."""
    expected = expected_outputs(network, target, labels)
    positions = height(shape) * width(shape)
    if labels.ndim == 3 and not target.as_data:
        at = fit_labels(expected, (height(shape), width(shape)), max(channels(shape), 2))
        return at.reshape(len(labels), positions).astype(np.int32)
    if labels.ndim == 3:
        expected = np.full(len(labels), -1, np.int64)
    known = expected if target.as_data or positions == 1 else np.full_like(expected, -1)
    return np.repeat(known.astype(np.int32)[:, None], positions, axis=1)


def export_request(
    network: LoadedNetwork,
    graph: QuantGraph,
    memory: PlannedNetwork | None,
    stimuli: StoredStimuli,
    recorded: Mapping[str, object],
    app: str | None = None,
) -> ExportRequest:
    """Return the input of a target; `recorded` are the options of the run by name."""
    params = network.params
    params.check_layers([name for node in graph.nodes for name in (node.name, *node.source)])
    targets = tuple(ScoredOutput(target.tensor, target.top_n, target.binary_threshold) for target in network.targets)
    problem, plan = (None, None) if memory is None else (memory.problem, memory.plan)
    layers = {name: dict(values) for name, values in params.layers.items()}
    manifest = {"options": recorded, "hashes": network.hashes(), "layer_parameters": layers}
    source = {"contract": network.data.contract, "post": network.options.post, "app": app}
    return ExportRequest(graph, stimuli, targets, problem, plan, params.as_dict(), **manifest, **source)


def export_stage(target: Target[Any], prepared: Prepared[Any], folder: Path, text: str = "auto") -> list[KernelChoice]:
    """Write the project and, with `ExportOptions.weights_text`, its parameters as text into the folder. Returns the kernel of
    each layer, if the target has a choice."""
    request = prepared.request
    source, post = request.contract.source, request.post
    parts = [f"the conversion of the input ({source.text})"] if source is not None and not target.converts_inputs else []
    parts += ["the post-processing of -post"] if post and not target.post_processes else []
    if parts:
        what = f"the export {target.name} does not contain {' and '.join(parts)}"
        log.warning("W704", what, remedy="do it in the application, or export a C++ project")
    kernels = target.write(prepared, folder) or []
    if text == "always" or (text == "auto" and not is_big(request.graph)):
        write_weights(request.graph, folder / WEIGHTS_FOLDER)
    log.notice("export %s: %d layers, %d samples", target.name, len(request.graph.nodes), request.stimuli.count)
    return kernels


def warn_without_effect(params: Params, target: Target[Any], graph: QuantGraph) -> None:
    """Warn W109 for each export parameter, and each parameter of a layer, that has no effect on the export, W102 for keys of
    layers that it does not know. A default value is not a demand."""
    overruled = target.overruled(params.as_dict(), graph)
    for key in params.schema.keys:
        if params.is_given(key.name) and params[key.name] != key.default:
            if target.parameters.key(key.name) is None and GENERAL.key(key.name) is None:
                _warn(params, key.name, f"the {target.name} export does not read it")
            elif key.name in overruled:
                _warn(params, key.name, overruled[key.name])
    for name in params.foreign:
        _warn(params, name, f"the {target.name} export does not read it")
    for layer in params.layers:
        _check_layer(params, layer, target, graph)


def _warn(params: Params, name: str, why: str, layer: str | None = None) -> None:
    where = params.where(name) if layer is None else params.where_layer(layer)
    log.warning("W109", f"{name} has no effect: {why}", where=where, remedy="remove it")


def _check_layer(params: Params, layer: str, target: Target[Any], graph: QuantGraph) -> None:
    node = next((node for node in graph.nodes if layer in (node.name, *node.source)), None)
    if node is None:
        return  # that is another warning
    precision = params.layer_precision(layer)
    for name in params.layers[layer]:
        known = [key.name for key in (*PRECISION_KEYS, *target.layer_parameters.keys)]
        if name not in known:
            what = f"key '{name}' is unknown for a layer of the {target.name} export; it is ignored"
            remedy = suggest(name, known)
            log.warning("W102", what, where=params.where_layer(layer), remedy=remedy)
        elif precision.get(name) is None:
            continue
        elif graph.bits <= 0 or graph.bits > 16:
            _warn(params, name, "the export has no integers of 8 or 16 bits", layer)
        elif name == "QuantWeightBits" and "weights" not in node.params:
            _warn(params, name, f"{node.op.kind} has no weights", layer)
