"""Stage load: the INI or ONNX file becomes a Graph, with its stimuli and targets."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from n2d2py import log
from n2d2py.data.database import Database, empty_database, has_database
from n2d2py.data.labels_mapping import LabelsMapping, read_labels_mapping
from n2d2py.data.pre_samples import write_pre_samples
from n2d2py.data.provider import StimuliProvider, build_provider, read_environment
from n2d2py.data.several import open_several
from n2d2py.data.sources import open_source, source_database, synthetic
from n2d2py.data.stimuli import Stimuli
from n2d2py.errors import Location, N2D2Error, readable
from n2d2py.frontend.ini.network import build_graph, further_inputs
from n2d2py.frontend.ini.targets import ScoreTarget, read_targets
from n2d2py.frontend.ini.trained import refuse_quantized_training
from n2d2py.frontend.ini.weights import open_weights
from n2d2py.graph import Graph
from n2d2py.graph.inputs import Pixels, stimulus_shape
from n2d2py.ini.document import Document, load_document
from n2d2py.ini.paths import resolve_path
from n2d2py.operators.quantize import is_quantized
from n2d2py.stages.precision import with_layer_precisions
from n2d2py.stages.settings import Settings

__all__ = ["DataSet", "Network", "load_stage"]


@dataclass(frozen=True)
class DataSet:
    """The stimuli of a run, by the names of N2D2's sets ("Learn", "Validation", "Test").

    Attributes:
        classes: class names by label, may be empty.
        value_range: range of the real values when it is known without looking, else None.
        steps: the pipeline in words, a line per step.
        origin: what the data are, for the key of stored statistics; their values have a digest of their own.
        pixels: what becomes of a byte of a picture, where the data are pictures and that is known.
        noise: gives that many synthetic stimuli, where a calibration on such ones is reloaded; else None.
    """

    sets: dict[str, Stimuli]
    classes: Sequence[str] = ()
    value_range: tuple[float, float] | None = None
    steps: tuple[str, ...] = ()
    origin: str = ""
    pixels: Pixels | None = None
    noise: Callable[[int], Stimuli] | None = None

    def get(self, name: str) -> Stimuli | None:
        """The set of that name when it holds any stimulus."""
        found = self.sets.get(name)
        return found if found is not None and len(found) else None


@dataclass
class Network:
    """What the load stage gives: the float graph, what is scored, the data, and the files it came from."""

    graph: Graph
    targets: list[ScoreTarget]
    data: DataSet
    files: list[Path] = field(default_factory=list)
    document: Document | None = None
    mappings: dict[str, LabelsMapping] = field(default_factory=dict)

    def hashes(self) -> dict[str, str]:
        """SHA-256 of each input file by its name."""
        return {readable(path.name): hashlib.sha256(path.read_bytes()).hexdigest() for path in self.files if path.is_file()}


def load_stage(settings: Settings) -> Network:
    """Reads the network that the command line names.

    Raises:
        N2D2Error: E101 and others for an unreadable file, E008 for a file that is neither INI nor ONNX.
    """
    path = Path(settings.arguments.network)
    if not path.exists():
        raise N2D2Error("E101", "the file does not exist", where=Location(str(path)), remedy="check the path")
    if path.suffix == ".onnx":
        network = _load_onnx(path, settings)
    elif path.suffix == ".ini":
        network = _load_ini(path, settings)
    else:
        raise N2D2Error(
            "E008",
            f"'{path.suffix or path.name}' is not a known file type",
            where=Location(str(path)),
            remedy="give an .ini or an .onnx file",
        )
    network.graph = graph = with_layer_precisions(network.graph, settings.params)
    graph.verify()
    log.notice(
        "%s: %d layers, inputs %s, outputs %s",
        graph.name,
        sum(not node.helper for node in graph.nodes),
        ", ".join(f"{name} {'x'.join(map(str, graph.shape(name)[1:]))}" for name in graph.inputs),
        ", ".join(f"{name} {'x'.join(map(str, graph.shape(name)[1:]))}" for name in graph.outputs),
    )
    return network


def _load_ini(path: Path, settings: Settings) -> Network:
    document = load_document(path)
    arguments = settings.arguments
    document.described = arguments.describe
    if not document.described:
        refuse_quantized_training(document)
    several = bool(further_inputs(document))
    provider = None
    given = None
    if settings.needs_data and not several:
        given = _given_database(document, settings)
        instead = (given or empty_database()) if arguments.calib_data else None
        provider = build_provider(document, seed=arguments.seed, cache=settings.out, instead=instead)
    without_data = arguments.describe or arguments.memory_report
    shape = provider.shape if provider else read_environment(document, for_data=not without_data).shape
    has_validation = provider is not None and has_database(document) and provider.sizes().get("Validation", 0) > 0
    weights = (
        None
        if arguments.describe
        else open_weights(arguments.w, has_validation=has_validation, folder=settings.out, ignore_missing=arguments.w_ignore)
    )
    graph = build_graph(document, (1, *shape), weights, arguments.seed)
    if weights is not None and weights.initial and arguments.w is None:
        log.warning(
            "W420",
            f"no weights are given: {len(dict.fromkeys(weights.initial))} layers keep their random initial values",
            where=Location(str(path)),
            remedy="give -w PATH, or -w /dev/null if that is meant",
        )
    targets = read_targets(document, graph, describing=arguments.describe)
    for node in [] if arguments.describe else graph.prune():
        log.notice("layer '%s' feeds no target; it is left out", node.name)
    files = list(document.files)
    if weights is not None and weights.path is not None and weights.path.is_file():
        files.append(weights.path)
    files += graph_files(document)
    data = DataSet({}) if provider is None else _provided(provider, given, has_database(document), settings)
    if several and settings.needs_data and settings.arguments.calib_data:
        data = _opened(settings, {name: tuple(graph.shape(name)[1:]) for name in graph.inputs})
    network = Network(graph, targets, data, files, document)
    for target in targets:
        if target.mapping and provider is not None:
            network.mappings[target.name] = _mapping(document, target, provider.labels)
    document.ignored.warn()
    if provider is not None:
        document.notice_unused()
    return network


def graph_files(document: Document) -> list[Path]:
    """The ONNX files that a document names."""
    named = [
        section.text("File")
        for section in document.sections
        if section.has("Type") and section.text("Type") == "ONNX" and section.has("File")
    ]
    return [path for path in (resolve_path(text, document) for text in named) if path is not None]


def _mapping(document: Document, target: ScoreTarget, labels: Sequence[str]) -> LabelsMapping:
    path = resolve_path(target.mapping, document)
    if path is None:
        raise N2D2Error(
            "E401",
            f"the LabelsMapping file '{target.mapping}' does not exist",
            where=target.location,
            remedy="give its path relative to the working directory or to the INI",
        )
    return read_labels_mapping(path, labels)


def _given_database(document: Document, settings: Settings) -> Database | None:
    """The data of `-calib-data` for the pipeline of an INI; None where they are inputs of the network as they are."""
    arguments = settings.arguments
    if not arguments.calib_data or arguments.input_range is not None:
        return None
    transformed = any("Transformation" in section.name.partition(".")[2] for section in document.sections)
    shape = read_environment(document).shape
    return source_database(arguments.calib_data, shape, fit=not transformed)


def _provided(provider: StimuliProvider, given: Database | None, has_own: bool, settings: Settings) -> DataSet:
    """The data of an INI, with those of `-calib-data`: `given`, or as they are; `has_own`: it has a [database]."""
    sizes = provider.sizes()
    sets = {name: provider.stimuli(name) for name, size in sizes.items() if size}
    first = next((name for name in ("Test", "Validation", "Learn") if name in sets), None)
    steps = tuple(str(point) for point in provider.describe(first)) if first else ()
    wanted = settings.arguments.pre_samples
    for step in steps:
        (log.notice if wanted >= 0 else log.detail)("pipeline: %s", step)
    if wanted >= 0:
        written = write_pre_samples(provider, wanted, settings.out / "pre_samples")
        log.notice("written: %d files in %s", len(written), settings.out / "pre_samples")
    provider.write_statistics(settings.out)
    data = DataSet(sets, provider.labels, provider.value_range if first else None, steps, "\n".join(steps), provider.pixels)
    if not settings.arguments.calib_data:
        return data
    if given is not None:
        path = Path(settings.arguments.calib_data)
        if has_own:
            sets["Validation"] = provider.on(given).stimuli("Validation")
            data = replace(data, sets=sets, value_range=None)
        return replace(data, origin=f"{data.origin}{path.name} {len(given.items)}")
    if provider.transforms:
        log.warning(
            "W408",
            "the data of -calib-data are taken as inputs of the network: the transformations of the INI do not apply to them",
            where=settings.arguments.calib_data,
            remedy="give pictures or bytes without -input-range where they should apply",
        )
    opened = _opened(settings, {"": provider.shape})
    added = {"Validation": opened.sets["Validation"]} if has_own else opened.sets
    return replace(data, sets={**sets, **added}, value_range=None, origin=data.origin + opened.origin)


def _opened(settings: Settings, inputs: dict[str, tuple[int, ...]]) -> DataSet:
    """The stimuli of `-calib-data` for inputs of these shapes; they are scored too when all have labels."""
    path = settings.arguments.calib_data
    if len(inputs) > 1:
        stimuli = open_several(path, inputs, _input_range(settings))
    else:
        (shape,) = inputs.values()
        stimuli = open_source(path, shape, _input_range(settings))
    sets = {"Validation": stimuli}
    if (stimuli.labels >= 0).all():
        sets["Test"] = stimuli
    name = readable(Path(path).name)
    low, high = _input_range(settings)
    count = next(iter(inputs.values()))[0] if len(inputs) == 1 else 0
    pictures = count in (1, 3) and Path(path).is_dir()
    pixels = Pixels(((high - low) / 255,) * count, (low,) * count, tuple(range(count))) if pictures else None
    return DataSet(sets, steps=(f"{len(stimuli)} stimuli of {name}",), origin=f"given {low, high}", pixels=pixels)


def _input_range(settings: Settings) -> tuple[float, float]:
    """LOW and HIGH of `-input-range`, 0 and 1 by default."""
    text = settings.arguments.input_range
    if text is None:
        return 0.0, 1.0
    low, _colon, high = text.partition(":")
    try:
        return float(low), float(high)
    except ValueError:
        raise N2D2Error("E003", f"-input-range {text} is not LOW:HIGH", remedy="give two numbers, such as -1:1") from None


def _load_onnx(path: Path, settings: Settings) -> Network:
    """A plain ONNX file: its outputs are scored, its data come from `-calib-data`."""
    from n2d2py.frontend.onnx.importer import import_onnx

    graph = import_onnx(path)
    targets = [ScoreTarget(f"{name}.Target", name) for name in graph.outputs]
    data = DataSet({})
    if settings.needs_data:
        if settings.arguments.calib_data:
            data = _opened(settings, {name: tuple(graph.shape(name)[1:]) for name in graph.inputs})
        elif settings.calibrates and not is_quantized(graph):
            data = _synthetic(stimulus_shape(graph), settings)
    return Network(graph, targets, data, [path])


def _synthetic(shape: tuple[int, ...], settings: Settings) -> DataSet:
    """Noise to calibrate on; as many as were calibrated on before where that is reloaded."""
    arguments, (low, high) = settings.arguments, _input_range(settings)
    noise = partial(synthetic, shape, seed=arguments.seed, input_range=(low, high))
    data = DataSet({}, value_range=(low, high), origin=f"synthetic {arguments.seed} {low} {high}")
    if arguments.calib_reload:
        return replace(data, noise=noise)
    count = arguments.calib if arguments.calib > 0 else 32
    return replace(data, sets={"Validation": noise(count)}, steps=(f"{count} synthetic stimuli",))
