"""Stage load: an INI, ONNX or TFLite file becomes a Graph, with its samples and targets."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from n2d2py import log
from n2d2py.arithmetic.frame import read_frame
from n2d2py.contracts.ini import WeightStore, has_quantized_training, open_weights, refuse_quantized_training
from n2d2py.contracts.ini.recipes import unignore_training_keys
from n2d2py.data.database import empty_database, has_database
from n2d2py.data.database.arrays import read_arrays
from n2d2py.data.input_data import InputData, open_data
from n2d2py.data.labels import LabelsMapping, read_labels_mapping
from n2d2py.data.multi_input import open_multi_input
from n2d2py.data.preprocessing import Preprocessing
from n2d2py.data.provider import build_provider, read_environment, write_pre_samples
from n2d2py.data.sources import open_source, source_database, synthetic
from n2d2py.data.stimuli import Stimuli
from n2d2py.errors import Location, N2D2Error, readable, require
from n2d2py.exports import load_params
from n2d2py.frontend.ini.network import build_graph, further_inputs
from n2d2py.frontend.ini.targets import read_post, read_targets
from n2d2py.graph import FilePort, Graph, InputContract, Precision, channels, dims_text, stimulus_shape
from n2d2py.ini import Document, Params, load_document, resolve_path
from n2d2py.naming import MODEL_ENDINGS
from n2d2py.operators.quantize import is_quantized
from n2d2py.postprocessing import parse_post, recognized
from n2d2py.runtime.simulator import ends
from n2d2py.stages.input_options import (
    OnnxMetadata,
    class_names,
    input_text,
    labelled_input,
    preprocessing,
    read_metadata,
    refuse_for_ini,
    refuse_for_several,
)
from n2d2py.stages.options import Data, Labels, LoadOptions
from n2d2py.targets.target import ScoreTarget

if TYPE_CHECKING:
    from n2d2py.frontend.models import Source


@dataclass(frozen=True)
class DataSet:
    """The samples of a run, by the names of N2D2's sets ("Learn", "Validation", "Test").

    Attributes:
        contract: images that the network takes, and class names.
        value_range: range of the real values if it is known without the data, else None.
        steps: a description of the pipeline, one line for each step.
        origin: description of the data for the key of stored statistics; the values have a separate digest.
        learned: returns the Learn set in the order of a seed and an epoch; for training.
        random: the samples are noise.
        draws: training samples differ between epochs.
        noise: returns so many synthetic samples for a model file without data: to compare layers, or to reload a calibration.
    """

    sets: dict[str, Stimuli]
    contract: InputContract = InputContract()
    value_range: tuple[float, float] | None = None
    steps: tuple[str, ...] = ()
    origin: str = ""
    noise: Callable[[int], Stimuli] | None = None
    learned: Callable[[int, int], Stimuli] | None = None
    draws: bool = False
    random: bool = False

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names by label, may be empty."""
        return self.contract.classes

    def get(self, name: str) -> Stimuli | None:
        """Return the set of that name if it has any sample."""
        stimuli = self.sets.get(name)
        return stimuli if stimuli is not None and len(stimuli) else None


@dataclass(frozen=True, repr=False)
class LoadedNetwork:
    """The float graph, its targets, the data, and the files it came from. `metadata`: description of the data in an ONNX file.
    `weights`: origin of the weights of an INI, with the recipes of its layers for training in batches of `batch_size`.
    `restored`: the file computes scales at run time; the layers have the real values instead."""

    graph: Graph
    targets: list[ScoreTarget]
    data: DataSet
    params: Params
    options: LoadOptions
    folder: Path = Path()
    files: list[Path] = field(default_factory=list)
    document: Document | None = None
    mappings: dict[str, LabelsMapping] = field(default_factory=dict)
    metadata: OnnxMetadata = OnnxMetadata()
    weights: WeightStore | None = None
    batch_size: int = 1
    restored: bool = False

    def __repr__(self) -> str:
        return repr(self.graph)

    @property
    def trained_quantized(self) -> bool:
        """True if layers of its INI have quantizers from training (QWeight, QAct)."""
        return self.document is not None and has_quantized_training(self.document)

    @property
    def place(self) -> str:
        """File of the network, for messages; its name if it came from memory."""
        return str(self.files[0]) if self.files else self.graph.name

    def hashes(self) -> dict[str, str]:
        """SHA-256 of each input file by name."""
        return {readable(path.name): hashlib.sha256(path.read_bytes()).hexdigest() for path in self.files if path.is_file()}


_TORCH = "export it: torch.onnx.export(model, (example,), 'net.onnx'), or pass the torch.nn.Module to n2d2py.export in Python"
_KERAS = "convert it: python -m tf2onnx.convert --keras FILE --output net.onnx, or tf.lite.TFLiteConverter to .tflite"
_CONVERTERS = {
    **dict.fromkeys((".pt", ".pth", ".pt2", ".ckpt"), _TORCH),
    **dict.fromkeys((".h5", ".hdf5", ".keras"), _KERAS),
    ".pb": "convert it: python -m tf2onnx.convert --saved-model FOLDER --output net.onnx (--graphdef FILE for a frozen graph)",
}
"""Advice for files of other frameworks, by extension."""


def load_stage(path: Source, options: LoadOptions, folder: Path = Path()) -> LoadedNetwork:
    """Read a network from a file, or ONNX from memory; `folder` holds weights and statistics of earlier runs, and new ones.
    Raise E101 and others for a file that cannot be read, E008 for a file other than INI, ONNX and TFLite."""
    params = load_params(options.parameters, options.target)
    if not isinstance(path, Path):
        network = _load_onnx(path, options, params, folder)
    elif not path.exists():
        raise N2D2Error("E101", "the file does not exist", where=Location(str(path)), remedy="correct the path")
    elif path.suffix in MODEL_ENDINGS:
        network = _load_onnx(path, options, params, folder)
    elif path.suffix == ".ini":
        network = _load_ini(path, options, params, folder)
    else:
        what = f"the file type '{path.suffix or path.name}' is not supported"
        remedy = _CONVERTERS.get(path.suffix.lower(), "give an .ini, .onnx or .tflite file")
        raise N2D2Error("E008", what, where=Location(str(path)), remedy=remedy)
    graph = _with_layer_precisions(network.graph, params)
    graph.verify()
    ports = (", ".join(f"{one} {dims_text(graph.shape(one)[1:])}" for one in each) for each in (graph.inputs, graph.outputs))
    log.notice("%s: %d layers, inputs %s, outputs %s", graph.name, sum(not node.helper for node in graph.nodes), *ports)
    _warn_without_effect(network)
    if network.options.post is not None:
        parse_post(network.options.post).bind(*ends(graph), network.data.classes)
    elif post := recognized(*ends(graph), network.data.classes):
        outputs = "', '".join(graph.user_outputs)
        verb = "have" if len(graph.user_outputs) > 1 else "has"
        log.notice("'%s' %s the form of detections: -post %s exports them", outputs, verb, post)
    return _in_calls(replace(network, graph=graph))


def _with_layer_precisions(graph: Graph, params: Params) -> Graph:
    """Return a copy of the graph that knows the precisions of the `[layer]` sections of the export parameters. A section may
    name a layer of the graph, or one that was merged into it."""
    asked = {}
    for name in params.layers:
        values = params.layer_precision(name)
        if any(value is not None for value in values.values()):
            asked[name] = Precision.of(values)
    if not asked:
        return graph
    result = graph.copy()
    result.precisions |= {name: precision.over(result.precisions.get(name)) for name, precision in asked.items()}
    return result


def _warn_without_effect(network: LoadedNetwork) -> None:
    """Print W109 for parameters of states without states, and for ONNX parameters of an INI."""
    params = network.params
    for name in ("States", "StateCalls", "Constants"):
        why = "it applies to ONNX and TFLite files only" if network.document is not None else ""
        if name == "StateCalls" and not network.graph.states:
            why = "the network has no states"
        if why and params.is_given(name) and params[name]:
            log.warning("W109", f"{name} has no effect: {why}", where=params.where(name), remedy="remove it")


def _in_calls(network: LoadedNetwork) -> LoadedNetwork:
    """Return the network with samples as consecutive calls, if it has states."""
    graph, data = network.graph, network.data
    if not graph.states:
        return network
    graph.calls = network.params["StateCalls"]

    def calls(stimuli: Stimuli) -> Stimuli:
        return stimuli.as_calls(graph.calls or max(len(stimuli), 1))

    noise = data.noise
    draw = None if noise is None else lambda count: calls(noise(count))
    return replace(network, data=replace(data, sets={name: calls(one) for name, one in data.sets.items()}, noise=draw))


def with_data(network: LoadedNetwork, data: Data | None, labels: Labels | None, synthetic: int | None = None) -> LoadedNetwork:
    """Return the network with other data, as if loaded with them; without `data` its own, else `synthetic` noise. Raise E4xx
    for data that cannot be read or do not fit."""
    options = replace(network.options, data=data, labels=labels, synthetic=synthetic, read_data=True)
    if data is None:
        if network.data.sets or network.document is not None or synthetic is None or is_quantized(network.graph):
            return network
    elif network.document is not None:
        loaded = load_stage(network.files[0], options, network.folder)
        return replace(network, data=loaded.data, mappings=loaded.mappings, options=options)
    return _in_calls(replace(network, data=_onnx_data(network.graph, options, network.metadata), options=options))


def _load_ini(path: Path, options: LoadOptions, params: Params, folder: Path) -> LoadedNetwork:
    refuse_for_ini(options)
    document = load_document(path)
    document.described = describing = options.extent == "structure"
    if options.post is None:
        options = replace(options, post=read_post(document))
    if not describing:
        refuse_quantized_training(document)
    several = bool(further_inputs(document))
    stimuli = _IniStimuli(document, options, folder) if options.read_data and not several else None
    environment = stimuli.provider if stimuli else read_environment(document, for_data=options.extent == "all")
    weights = None if describing else _open_weights(stimuli, options, folder)
    graph = build_graph(document, (1, *environment.shape), weights, options.seed)
    if weights is not None and weights.initial and options.weights is None and not options.training:
        what = f"weights are missing: {len(dict.fromkeys(weights.initial))} layers keep their random initial values"
        remedy = "give -w PATH, or -w /dev/null to use random weights"
        log.warning("W420", what, where=Location(str(path)), remedy=remedy)
    targets = read_targets(document, graph, describing=describing)
    for node in [] if describing else graph.prune():
        log.notice("layer '%s' is removed, as no target depends on it", node.name)
    files = [*document.files, *graph_files(document)]
    if weights is not None and weights.path is not None and weights.path.is_file():
        files.insert(len(document.files), weights.path)
    data = DataSet({}) if stimuli is None else stimuli.data_set(folder)
    if several and options.read_data and options.data is not None:
        data = _open_data(options, _Inputs.of(graph))
    if options.class_names is not None:
        data = replace(data, contract=replace(data.contract, classes=class_names(options, OnnxMetadata())))
    if options.training:
        unignore_training_keys(document.ignored)
    document.ignored.warn()
    network = LoadedNetwork(graph, targets, data, params, options, folder, files, document, weights=weights)
    if stimuli is None:
        return network
    document.notice_unused()
    labels = stimuli.provider.labels
    mappings = {target.name: _mapping(document, target, labels) for target in targets if target.mapping}
    return replace(network, mappings=mappings, batch_size=stimuli.provider.batch_size)


def graph_files(document: Document) -> list[Path]:
    """Return the ONNX files that a document names, and their encodings."""
    onnx = [one for one in document.sections if one.has("Type") and one.text("Type") == "ONNX"]
    named = [one.text(key) for one in onnx for key in ("File", "Encodings") if one.has(key)]
    return [path for path in (resolve_path(text, document.folder) for text in named) if path is not None]


def _mapping(document: Document, target: ScoreTarget, labels: Sequence[str]) -> LabelsMapping:
    path = resolve_path(target.mapping, document.folder)
    if path is None:
        what = f"the LabelsMapping file '{target.mapping}' does not exist"
        remedy = "give its path relative to the working directory or to the INI"
        raise N2D2Error("E401", what, where=target.location, remedy=remedy)
    return read_labels_mapping(path, labels)


class _IniStimuli:
    """The stimuli of an INI. `provider`: its pipeline over its database, or over the data of `-calib-data`. `override`: the
    data of `-calib-data` that pass through the pipeline. `has_own`: the database is that of the INI."""

    def __init__(self, document: Document, options: LoadOptions, folder: Path):
        """Open the database and the pipeline; `folder` has the statistics of earlier runs."""
        self.options, self.override, instead = options, None, None
        if options.data is not None:
            if options.input_range is None:  # else the data are network inputs already
                transformed = any("Transformation" in section.name.partition(".")[2] for section in document.sections)
                shape = read_environment(document).shape
                data, _ = labelled_input(options, class_names(options, OnnxMetadata()))
                self.override = source_database(data, shape, fit=not transformed)
            instead = self.override or empty_database()
        learning = options.training == "now"
        provider = build_provider(document, seed=options.seed, cache=folder, instead=instead, learning=learning)
        if options.input_format is not None:
            provider = provider.with_frames(read_frame(options.input_format))
        self.provider, self.has_own = provider, has_database(document) and provider.database is not instead

    @property
    def has_validation(self) -> bool:
        """True if the database of the INI has a validation set."""
        return self.has_own and self.provider.sizes().get("Validation", 0) > 0

    def data_set(self, folder: Path) -> DataSet:
        """Return the data of the INI combined with `-calib-data`; write statistics and `-pre-samples` into `folder`."""
        provider, options = self.provider, self.options
        sets = {name: provider.stimuli(name) for name, size in provider.sizes().items() if size}
        first = next((name for name in ("Test", "Validation", "Learn") if name in sets), None)
        steps = tuple(str(point) for point in provider.describe(first)) if first else ()
        wanted = options.pre_samples
        for step in steps:
            (log.notice if wanted >= 0 else log.detail)("pipeline: %s", step)
        if wanted >= 0:
            written = write_pre_samples(provider, wanted, folder / "pre_samples")
            log.notice("written: %d files in %s", len(written), folder / "pre_samples")
        provider.write_statistics(folder)
        data = DataSet(
            sets,
            provider.contract,
            provider.value_range if first else None,
            steps,
            "\n".join(steps),
            learned=provider.training_stimuli if options.training == "now" and "Learn" in sets else None,
            draws=provider.draws,
            random=options.data is None and provider.database.type == "Random_Database",
        )
        return data if options.data is None else self._with_given(data, open_data(options.data))

    def _with_given(self, data: DataSet, given: InputData) -> DataSet:
        """Return the data of the INI with those of `-calib-data`, which calibrate."""
        provider = self.provider
        if self.override is not None:
            if self.has_own:
                validation = provider.with_database(self.override).stimuli("Validation")
                data = replace(data, sets={**data.sets, "Validation": validation}, value_range=None)
            return replace(data, origin=f"{data.origin}{given.name} {len(self.override.items)}")
        if provider.transforms:
            what = "the data of -calib-data are used as model inputs without the transformations of the INI"
            remedy = "give images or bytes without -input-range to apply the transformations"
            log.warning("W408", what, where=str(given.path), remedy=remedy)
        opened = _open_data(self.options, _Inputs({"": provider.shape}))
        added = {"Validation": opened.sets["Validation"]} if self.has_own else opened.sets
        return replace(data, sets={**data.sets, **added}, value_range=None, origin=data.origin + opened.origin)


def _open_weights(stimuli: _IniStimuli | None, options: LoadOptions, folder: Path) -> WeightStore:
    """Return the weights of an INI: those of `-w`, else those that a training left in `folder`."""
    path, has_validation = options.weights, stimuli is not None and stimuli.has_validation
    path = None if path is None else str(path)
    weights = open_weights(path, has_validation=has_validation, folder=folder, ignore_missing=options.ignore_missing)
    if options.training == "now":
        weights.recipes = {}
    return weights


@dataclass(frozen=True)
class _Inputs:
    """The inputs of a network that take given data: the shapes of samples by name, those with integers such as ids, their forms
    in the file, the name of the network, and the metadata of its file."""

    shapes: dict[str, tuple[int, ...]]
    integers: Collection[str] = ()
    ports: Mapping[str, FilePort] = field(default_factory=dict)
    network: str = ""
    metadata: OnnxMetadata = OnnxMetadata()

    @staticmethod
    def of(graph: Graph) -> _Inputs:
        shapes = {name: tuple(graph.shape(name)[1:]) for name in graph.user_inputs}
        return _Inputs(shapes, {name for name in shapes if graph.kind(name)})


def _open_data(options: LoadOptions, inputs: _Inputs) -> DataSet:
    """Return the samples of given data; labelled samples are scored too."""
    data, names = labelled_input(options, class_names(options, inputs.metadata))
    if len(inputs.shapes) > 1:
        refuse_for_several(options, len(inputs.shapes))
        stimuli = open_multi_input(data, inputs.shapes, options.input_range or (0.0, 1.0), inputs.integers, inputs.ports)
        how = preprocessing(LoadOptions(input_range=options.input_range), (), inputs.metadata, inputs.network)
        contract = InputContract(classes=tuple(names))
    else:
        stimuli, how, contract = _open_input(data, tuple(names), options, inputs)
    sets = {"Validation": stimuli}
    known = stimuli.labels >= 0
    if stimuli.boxes is not None:
        sets["Test"] = stimuli.take([index for index, each in enumerate(stimuli.boxes) if each is not None])
    elif known.all():
        sets["Test"] = stimuli
    elif known.any() and data.is_folder:
        sets["Test"] = stimuli.take(np.flatnonzero(known))
    return DataSet(sets, contract, steps=(f"{len(stimuli)} stimuli of {readable(data.name)}",), origin=_data_origin(how))


def _open_input(
    data: InputData, classes: tuple[str, ...], options: LoadOptions, inputs: _Inputs
) -> tuple[Stimuli, Preprocessing, InputContract]:
    """Return the samples for a network with one input, their preprocessing, and the description of the input."""
    ((name, whole),) = inputs.shapes.items()
    port, shape, is_transposed = inputs.ports.get(name), whole, False
    is_images = data.is_folder and options.audio is None and options.sensor is None
    if is_images and port is not None and len(shape) == 3:
        is_transposed, shape = port.image_axes != (0, 1, 2), tuple(shape[axis] for axis in port.image_axes)
    kind = None if port is None or options.input_range is not None else port.type
    how = preprocessing(options, shape, inputs.metadata, inputs.network, name in inputs.integers, kind)
    if is_transposed and how.source is not None:
        what = f"-input-format requires an input (N, C, H, W) or (N, H, W, C), but '{name}' has other axes"
        raise N2D2Error("E417", what, remedy="remove it")
    stimuli = open_source(data, whole, how, port)
    reals = not data.is_folder and read_arrays(data)[0].dtype.kind in "bf"
    bytes_known = not is_transposed and (not reals or how.from_metadata or how.declared is not None)
    contract = how.contract(shape, classes, how.bgr if is_images else inputs.metadata.bgr, bytes_known)
    unit = "images" if is_images else "sounds" if options.audio else "windows" if options.sensor else "samples"
    layout = "nhwc" if port is not None and port.channels_last else "nchw"
    log.notice("%s", input_text(how, shape, data, reals, f"{len(stimuli)} {unit}{_label_text(stimuli)}", layout))
    return stimuli, how, contract


def _label_text(stimuli: Stimuli) -> str:
    if stimuli.boxes is not None:
        return f" with {sum(len(one) for one in stimuli.boxes if one is not None)} boxes"
    labels = stimuli.labels[stimuli.labels >= 0]
    return f" of {len(set(labels.tolist()))} classes" if len(labels) else " without labels"


def _data_origin(how: Preprocessing) -> str:
    """Return the settings that determine the values of given data, for the key of stored statistics."""
    plain = Preprocessing(how.input_range, declared=how.declared)
    return f"given {how.input_range}" + ("" if how == plain else f" {replace(how, declared=None)}")


def _load_onnx(path: Source, options: LoadOptions, params: Params, folder: Path) -> LoadedNetwork:
    """Load an ONNX or TFLite file, or ONNX in memory: its outputs are scored, its data are given."""
    require("onnx", f"'{path.name if isinstance(path, Path) else 'an ONNX model'}'", "onnx")
    from n2d2py.frontend.models import load_model
    from n2d2py.frontend.onnx.cut import Cut
    from n2d2py.frontend.onnx.dynamic import restore_dynamic
    from n2d2py.frontend.onnx.importer import import_onnx
    from n2d2py.frontend.onnx.model import ImportOptions
    from n2d2py.frontend.onnx.states import find_states, fix_inputs
    from n2d2py.stages.input_sizes import size_inputs

    encodings = None if options.encodings is None else Path(options.encodings)
    cut = Cut.of(options.inputs, options.outputs)
    model = load_model(path, ImportOptions(encodings=encodings, cut=cut))
    fix_inputs(model, options.constants or params["Constants"])
    find_states(model, params["States"])
    size_inputs(model, options)
    restored = restore_dynamic(model, not options.run_time_scales)
    graph = import_onnx(model)
    targets = [ScoreTarget(f"{name}.Target", name) for name in graph.user_outputs]
    metadata = read_metadata({entry.key: entry.value for entry in model.proto.metadata_props})
    files = [one for one in (path, encodings) if isinstance(one, Path)]
    data = _onnx_data(graph, options, metadata)
    return LoadedNetwork(graph, targets, data, params, options, folder, files, metadata=metadata, restored=restored)


def _check_names(graph: Graph, options: LoadOptions, data: DataSet) -> None:
    outputs = {name: max(channels(graph.shape(name)), 2) for name in graph.user_outputs}
    if any(one.boxes is not None for one in data.sets.values()):
        return
    if options.post is None and options.class_names is not None and len(data.classes) not in outputs.values():
        name, count = next(iter(outputs.items()))
        what = f"-class-names has {len(data.classes)} names, but '{name}' has {count} classes"
        raise N2D2Error("E410", what, remedy="name every output, including a background class")


def _declared_contract(graph: Graph, options: LoadOptions, metadata: OnnxMetadata) -> InputContract:
    """Return the contract of a file without data, by its metadata and the type of its input."""
    names, port = class_names(options, metadata), graph.user_input_ports[0]
    shape = tuple(graph.shape(graph.user_inputs[0])[1:])
    if len(graph.user_inputs) > 1 or port.image_axes != (0, 1, 2):
        return InputContract(classes=names)
    how = preprocessing(options, shape, metadata, graph.name, bool(graph.kind(graph.user_inputs[0])), port.type, silent=True)
    known = how.from_metadata or how.declared is not None or how.by_formula or how.source is not None
    return how.contract(shape, names, options.bgr or metadata.bgr, known)


def _onnx_data(graph: Graph, options: LoadOptions, metadata: OnnxMetadata) -> DataSet:
    if options.read_data and options.data is not None:
        ports = dict(zip(graph.user_inputs, graph.user_input_ports, strict=True))
        data = _open_data(options, replace(_Inputs.of(graph), ports=ports, network=graph.name, metadata=metadata))
        _check_names(graph, options, data)
        return data
    contract = _declared_contract(graph, options, metadata)
    declared = {port.type.interval for port in graph.user_input_ports if port.type is not None}
    low, high = options.input_range or (declared.pop() if len(declared) == 1 and len(graph.user_inputs) == 1 else (0.0, 1.0))
    noise = partial(synthetic, stimulus_shape(graph), seed=options.seed, input_range=(low, high))
    if options.synthetic is None or options.data is not None or is_quantized(graph):
        return DataSet({}, contract, noise=noise)
    if not options.read_data:
        return DataSet({}, contract, value_range=(low, high))
    data = DataSet({}, contract, value_range=(low, high), origin=f"synthetic {options.seed} {low} {high}", random=True)
    if not options.synthetic:
        return replace(data, noise=noise)
    return replace(data, sets={"Validation": noise(options.synthetic)}, steps=(f"{options.synthetic} synthetic stimuli",))
