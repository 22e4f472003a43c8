"""Random networks through the whole chain: float against ONNX Runtime, integers against compiled C++."""

import logging
import re
import shutil
import subprocess
import traceback
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from network_generator import Layer, Spec
from support.onnx_models import original_engine

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.exports import ExportFolder, find_target
from n2d2py.exports.cpp.library import Export
from n2d2py.graph import Graph, QuantGraph
from n2d2py.options import read_command
from n2d2py.pipeline import load_network
from n2d2py.quant.observe.compare import first_difference
from n2d2py.quant.simulator import run_node, simulate
from n2d2py.reference.engine import FloatEngine
from n2d2py.reference.executor import run_graph
from n2d2py.stages.calibrate import calibrate_stage
from n2d2py.stages.compare import edge_samples
from n2d2py.stages.export import export_request, export_stage, exported_stimuli, stored_stimuli
from n2d2py.stages.fuse import fuse_stage
from n2d2py.stages.memory import plan_stage
from n2d2py.stages.quantize import quantize_stage

__all__ = ["ROOT", "Failure", "Prepared", "check_compiled", "compile_batch", "prepare", "report", "run_batch"]

ROOT = Path(__file__).resolve().parents[2]
FLOAT_TOLERANCE = 2e-5
LEAST_TOLERANCE = 2e-7
"""What ONNX Runtime's logistic function is off by near 0."""
DEFECTS = ("E099", "E604")
"""Errors that say that the tool is wrong: no refusals."""
_STIMULI = 3
_NO_COLLECTION = ("--param", "ggc-min-heapsize=2000000", "--param", "ggc-min-expand=1000")
"""Flags of GCC: its memory is not tidied up below 2 GB, which takes a quarter of the time of a batch of 25 networks (in 0.7 GB)."""


@dataclass(frozen=True)
class Failure:
    """The first difference of a network, or its error."""

    kind: str
    text: str


@dataclass
class Prepared:
    """A written export, with the typed network and the stored inputs that both sides get."""

    spec: Spec
    folder: Path
    graph: QuantGraph
    inputs: list[np.ndarray]
    namespace: str
    floats: Graph


def quiet() -> None:
    """Only errors are printed."""
    log.setup(quiet=True, verbose=False, strict=False)
    logging.disable(logging.CRITICAL)


def prepare(spec: Spec, folder: Path, name: str) -> Prepared | Failure | N2D2Error:
    """Everything up to the written export; an N2D2Error when the network is refused."""
    try:
        return _prepare(spec, folder, name)
    except N2D2Error as error:
        return Failure(f"defect {error.code}", str(error)) if error.code in DEFECTS else error
    except Exception as error:  # whatever happens to a random network is what is looked for
        return Failure(f"python {_raised_at(error)}", traceback.format_exc(limit=-6))


def _raised_at(error: Exception) -> str:
    """Type of an exception, and the file and function that raised it: another one is another failure."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {last.name} of {Path(last.filename).name}"


def _prepare(spec: Spec, folder: Path, name: str) -> Prepared | Failure:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.ini"
    path.write_text(spec.ini())
    models = {layer.name: _written_model(layer, folder) for layer in spec.layers if layer.model}
    (folder / "params.ini").write_text(spec.parameter_text())
    words = f"-seed {spec.seed} -w /dev/null -export CPP -calib 8 -db-export 0".split()
    path, options = read_command(
        [str(path), *words, *spec.options, "-export-parameters", str(folder / "params.ini"), "-o", str(folder)]
    )
    network = load_network(path, options)
    x = np.random.default_rng(spec.seed).random((_STIMULI, *network.graph.shape(network.graph.inputs[0])[1:]), np.float32)
    failure = _compare_floats(network.graph, network.graph, x, "imported") or _compare_models(network.graph, spec, models, x)
    fused, _ = fuse_stage(network, integer=options.quantization.integer)
    failure = failure or _compare_floats(network.graph, fused.graph, x, "fused")
    if failure is not None:
        return failure
    calibrated = calibrate_stage(network, options.calibration) if options.quantization.integer else network
    quantized = quantize_stage(calibrated, options.quantization)
    fused, graph = quantized.network, quantized.graph
    target = find_target("CPP")
    memory = plan_stage(graph, network.params, target)
    none, _ = exported_stimuli(None, 0)
    request = export_request(fused, graph, memory, stored_stimuli(fused, graph, none), options.recorded)
    prepared = target.prepare(request)
    manifest = target.manifest(prepared)
    written = folder / "export"
    with ExportFolder(written, manifest) as inside:
        export_stage(target, prepared, inside)
    return Prepared(spec, written, graph, _stored_inputs(graph, spec.seed), manifest.details["namespace"], fused.graph)


def _stored_inputs(graph: QuantGraph, seed: int) -> list[np.ndarray]:
    rng, made = np.random.default_rng(seed), []
    for name in graph.inputs:
        kind, shape = graph.type(name), (_STIMULI, *graph.shape(name)[1:])
        made.append(
            rng.random(shape).astype(kind.dtype)
            if kind.is_float
            else rng.integers(kind.qmin, kind.qmax, shape, kind.dtype, endpoint=True)
        )
        made[-1] = np.concatenate([made[-1], kind.quantize(edge_samples(kind.dequantize(made[-1][0])))])
    return made


def _compare_floats(reference: Graph, graph: Graph, x: np.ndarray, what: str) -> Failure | None:
    """The outputs of ONNX Runtime on `reference` and of NumPy on `graph`."""
    expected = FloatEngine(reference, threads=1).run(x)
    found = run_graph(graph, {graph.inputs[0]: x})
    for before, after in zip(reference.outputs, graph.outputs, strict=True):
        values = expected[before]
        made = found[after]
        tolerance = max(FLOAT_TOLERANCE * float(np.abs(values).max()), LEAST_TOLERANCE)
        worst = float(np.abs(values - made.reshape(values.shape)).max())
        if not worst <= tolerance and not worst <= tolerance + _rounding(graph, x, after):
            return Failure(f"float {what}", f"{what} network, output {before}: NumPy differs from ONNX Runtime by {worst:g}")
    return None


def _rounding(graph: Graph, x: np.ndarray, name: str) -> float:
    """What rounding to float32 may change in an output: eight times what it changes in NumPy, and what a factor makes of `LEAST_TOLERANCE`.

    Differences of nearly equal numbers keep the roundings of these, which are large beside the result. At most `FLOAT_TOLERANCE`
    of the largest number inside the network: what a step turns over is no rounding.
    """
    narrow, wide = (
        run_graph(graph, {graph.inputs[0]: x.astype(dtype)}, list(graph.tensors)) for dtype in (np.float32, np.float64)
    )
    changed = float(np.abs(narrow[name] - wide[name]).max())
    largest = max(float(np.abs(values).max()) for values in narrow.values() if values.dtype.kind == "f")
    return min(8 * changed + LEAST_TOLERANCE * largest, FLOAT_TOLERANCE * largest)


def _written_model(layer: Layer, folder: Path) -> Path:
    path = folder / f"{layer.name}.onnx"
    onnx.save(onnx.parser.parse_model(layer.model), path)
    return path


def _compare_models(graph: Graph, spec: Spec, models: dict[str, Path], x: np.ndarray) -> Failure | None:
    """What the import made of each ONNX section, against ONNX Runtime on its file."""
    if not models:
        return None
    engine = FloatEngine(graph, taps=list(graph.tensors), threads=1)
    values = {graph.inputs[0]: x, **engine.run(x)}
    for layer in spec.layers:
        if layer.model:
            names = [graph.aliases.get(name, name) for name in (*layer.parents, layer.name)]
            if any(name not in values for name in names):
                continue
            run = original_engine(models[layer.name])
            given = {
                name: values[source].reshape(len(x), *shape[1:])
                for (name, shape), source in zip(_declared_inputs(models[layer.name]), names[:-1], strict=True)
            }
            expected, found = run.run(given)[layer.name], values[names[-1]]
            tolerance = max(FLOAT_TOLERANCE * float(np.abs(expected).max()), LEAST_TOLERANCE)
            worst = float(np.abs(expected - found.reshape(expected.shape)).max())
            if not worst <= tolerance:
                return Failure("float model", f"{layer.name}: the imported network differs from the ONNX file by {worst:g}")
    return None


def _declared_inputs(path: Path) -> list[tuple[str, list[int]]]:
    """Names and shapes of the inputs of a model; a vector feeds an image of one pixel."""
    values = onnx.load(path).graph.input
    return [(value.name, [axis.dim_value for axis in value.type.tensor_type.shape.dim]) for value in values]


def _inlined(path: Path, folders: list[Path], seen: set[Path]) -> str:
    """The text of a source with the project's own headers in place; those of the kernels stay included."""

    def replace(match: re.Match) -> str:
        found = next((folder / match[1] for folder in (path.parent, *folders) if (folder / match[1]).is_file()), None)
        if found is None:
            return match[0]
        if found in seen:
            return ""
        seen.add(found)
        return _inlined(found, folders, seen)

    return re.sub(r'(?m)^#include "([^"]+)"$', replace, path.read_text())


def compile_batch(batch: list[Prepared], folder: Path, flags: tuple[str, ...] = ("-O0",)) -> Failure | Path:
    """All exports of a batch as one library, of one source: the kernels are read by the compiler only once."""
    texts = []
    for prepared in batch:
        folders, seen = [prepared.folder / "include", prepared.folder / "dnn" / "include"], set()
        texts += [_inlined(path, folders, seen) for path in sorted((prepared.folder / "dnn").rglob("*.cpp"))]
    folder.mkdir(parents=True, exist_ok=True)
    unit, library = folder / "unit.cpp", folder / "unit.so"
    unit.write_text("\n".join(texts))
    done = subprocess.run(
        [
            "g++",
            "-std=c++11",
            *flags,
            *_NO_COLLECTION,
            *"-march=native -Wall -Wextra -Wconversion -Werror -fPIC -fno-exceptions -fno-rtti -I".split(),
            ROOT / "kernels",
            "-shared",
            "-o",
            library,
            unit,
        ],
        text=True,
        capture_output=True,
    )
    return library if done.returncode == 0 else Failure("compiler", done.stderr[-3000:])


def check_compiled(prepared: Prepared, library: Path) -> Failure | None:
    """Every layer of the compiled network against Python, bit for bit; floating point to 1e-4 of the largest."""
    graph = prepared.graph
    export = Export(library, prepared.namespace)
    found = export.layers(*prepared.inputs)
    values = simulate(graph, prepared.inputs, keep=True)
    shaped = {node.output: found[node.name].reshape(values[node.output].shape) for node in graph.nodes if node.name in found}
    given = {
        **dict(zip(graph.inputs, prepared.inputs, strict=True)),
        **{name: np.ma.getdata(made) for name, made in shaped.items()},
    }
    for node in graph.nodes:
        expected = run_node(graph, node, [given[name] for name in node.inputs])[0] if graph.is_mixed else values[node.output]
        if node.output not in shaped:  # a convolution that does the next layer's sum
            given[node.output] = expected
            continue
        different = first_difference(expected, shaped[node.output], graph.type(node.output))
        if different is not None:
            return Failure(
                f"compiled {node.op.kind}",
                f"layer {node.name} ({node.op}) at {different.index}: Python {different.expected:g}, C++ {different.found:g}",
            )
    return _check_finite(prepared, values) or _check_each_output(export, prepared.inputs)


def _check_finite(prepared: Prepared, values: dict[str, np.ndarray]) -> Failure | None:
    """Outputs in floating point are finite where the float network's are."""
    graph, floats = prepared.graph, prepared.floats
    given = {name: graph.type(name).dequantize(x) for name, x in zip(graph.inputs, prepared.inputs, strict=True)}
    names = [(name, real) for name, real in zip(graph.outputs, floats.outputs, strict=True) if graph.type(name).is_float]
    expected = run_graph(floats, given) if any(not np.isfinite(values[name]).all() for name, _ in names) else {}
    for name, real in names if expected else []:
        if not np.isfinite(values[name][np.isfinite(expected[real])]).all():
            return Failure("not finite", f"the output {name} is not finite where the float network's is")
    return None


def _check_each_output(export: Export, inputs: list[np.ndarray]) -> Failure | None:
    """Each output computed alone against the whole inference: the same values."""
    names = [info.name for info in export.info.outputs]
    if len(names) == 1:
        return None
    for name, expected in zip(names, export.run_raw(*inputs), strict=True):
        if not np.array_equal(export.run_raw(*inputs, outputs=name), expected, equal_nan=expected.dtype.kind == "f"):
            return Failure("output alone", f"the output {name} alone differs from that of the whole inference")
    return None


def run_batch(specs: list[Spec], folder: Path, flags: tuple[str, ...] = ("-O0",)) -> list[Failure | N2D2Error | None]:
    """The outcome of each network; None for a correct one. The folder is removed."""
    quiet()
    outcomes: list[Failure | N2D2Error | None] = [None] * len(specs)
    ready: list[tuple[int, Prepared]] = []
    for index, spec in enumerate(specs):
        made = prepare(spec, folder / str(index), f"net{index}")
        if isinstance(made, Prepared):
            ready.append((index, made))
        else:
            outcomes[index] = made
    library = compile_batch([prepared for _, prepared in ready], folder, flags) if ready else folder
    for index, prepared in ready:
        if not isinstance(library, Failure):
            outcomes[index] = check_compiled(prepared, library)
        elif len(ready) == 1:
            outcomes[index] = library
        else:  # which of them it is
            alone = compile_batch([prepared], folder / f"alone{index}", flags)
            outcomes[index] = alone if isinstance(alone, Failure) else check_compiled(prepared, alone)
    shutil.rmtree(folder)
    return outcomes


def report(spec: Spec, failure: Failure) -> str:
    """The failure with all that reproduces it."""
    models = "".join(
        f"; {layer.name}.onnx, as onnx.parser.parse_model reads it\n{layer.model}\n" for layer in spec.layers if layer.model
    )
    return (
        f"seed {spec.seed}: {failure.kind}: {failure.text}\n\n{spec.command()}\n\n; net.ini\n{spec.ini()}\n"
        f"{models}; params.ini\n{spec.parameter_text()}"
    )
