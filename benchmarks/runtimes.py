"""Runs our integers in other runtimes, beside the integers of these runtimes' own quantizers, as a Markdown table.

    N2D2_DATA=FOLDER N2D2_MODELS=FOLDER/models python benchmarks/runtimes.py [-calib N] [-test N] [-export NAME ...] [NET.ini | NAME ...]

NET.ini: by default all of tests/networks with an ONNX file. NAME: a network of FOLDER/modern (benchmarks/modern.py), by default all.
The export ONNX runs in ONNX Runtime as users get it, all its optimizations on, the export TFLite in LiteRT (where ai-edge-litert is
installed) with the kernels of XNNPACK, outputs and layers. Where openvino is installed, the export ONNX runs there too, with LP_TRANSFORMS_MODE=NO (docs/reference/targets/onnx.md says why).
ONNX Runtime's own quantizer: QDQ, uint8 activations, int8 weights by output channel, MinMax, on the same stimuli
(benchmarks/accuracy.py). The export NCNN runs in ncnn as its README says, and with packed channels whatever that says, beside a table of
the largest magnitudes (benchmarks/ncnn_table.py). LiteRT's own quantizer: ai-edge-quantizer, where that is installed (benchmarks/litert_quantizer.py).

Layers: share of the elements of all layers that are the same integers as in the simulator, and within one step, each layer computed
from the runtime's inputs of it; real numbers of a network for ncnn are the same within 1e-6 of the largest, and a step is 1/127 of it. Top-1 as simulated: the share of stimuli whose largest output is that of the simulator; of networks without labels also the signal
over the difference from the simulator's outputs.
Agreement: with floating point; error: mean |output - float output|.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import onnxruntime
from accuracy import Case, prepare, theirs
from common import ROOT, header, machine, row, session
from litert_quantizer import by_their_quantizer, installed
from ncnn_table import by_largest

import n2d2py
from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.exports import ExportRequest, StoredStimuli, find_target
from n2d2py.graph import QuantGraph
from n2d2py.quant.simulator import quantize_inputs, run_node, simulate_all
from n2d2py.runtime.runner import Runner
from n2d2py_ncnn.target import NcnnRunner

BATCH = 10
COMPARED = 20
"""Stimuli of which every layer is compared."""


def layers(graph: QuantGraph, run: Runner, x: np.ndarray) -> tuple[float, float]:
    """(share of equal integers, share within one step) of all layers of integers, each from the runtime's inputs of it."""
    stored = quantize_inputs(graph, [x])
    values = dict(zip(graph.inputs, stored, strict=True))
    found = run.network().stored_layers(stored)
    same, near, count = 0, 0, 0
    sums = any(graph.sums_integers(node) for node in graph.nodes)
    for node in graph.nodes:
        for name, expected in zip(node.outputs, run_node(graph, node, [values[one] for one in node.inputs]), strict=True):
            kind, values[name] = graph.type(name), expected
            if kind.plain or name not in found or (kind.is_float and not sums):
                continue
            values[name] = kind.quantize(found[name]).reshape(expected.shape)
            step = max(float(np.abs(expected).max()), 1e-30) / 127 if kind.is_float else 1
            off = np.abs(values[name].astype(np.float64) - expected) / step
            same, near = same + int((off <= (127e-6 if kind.is_float else 0)).sum()), near + int((off <= 1).sum())
            count += off.size
    return same / max(count, 1), near / max(count, 1)


def by_openvino(folder: Path, graph: QuantGraph, x: np.ndarray) -> np.ndarray:
    """The real results of the first output, by OpenVINO with sums of products that do not saturate."""
    openvino = import_module("openvino")
    (path,) = folder.glob("*.onnx")
    settings = {"INFERENCE_PRECISION_HINT": "f32", "LP_TRANSFORMS_MODE": "NO", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}
    core = openvino.Core()
    run = core.compile_model(core.read_model(path), "CPU", settings)
    starts = range(0, len(x), BATCH)
    return np.concatenate([run(x[start : start + BATCH].reshape(-1, *graph.shape(graph.inputs[0])[1:]))[0] for start in starts])


def cells(
    name: str,
    target: str,
    graph: QuantGraph,
    x: np.ndarray,
    real: np.ndarray,
    own: np.ndarray | None,
    labels: np.ndarray | None,
    settings: Mapping[str, bool] | None = None,
    **parameters: bool,
) -> Iterator[list[str]]:
    """The lines of an export, one for each runtime that runs it; `own`: the outputs of the target's runtime by its own quantizer;
    `settings`: of ncnn."""
    shown = ", ".join([target, *(f"{key}={int(value)}" for key, value in {**parameters, **(settings or {})}.items())])
    export, output = find_target(target), graph.outputs[0]
    stored = quantize_inputs(graph, [x])
    stimuli = StoredStimuli(tuple(stored), (np.zeros((len(x), 1), np.int32),))
    prepared = export.prepare(ExportRequest(graph, stimuli, parameters=parameters))
    try:
        prepared.check()
    except N2D2Error as error:
        yield [name, shown, str(len(x)), f"{error.code}: {error.what[:60]}", *["-"] * 7]
        return
    kind = graph.type(output)
    with tempfile.TemporaryDirectory() as folder:
        export.write(prepared, Path(folder))
        assert export.runner is not None
        with export.runner(Path(folder), export.details(prepared)) as run:
            if settings is not None and isinstance(run, NcnnRunner):
                run.settings = {**run.settings, **settings}
            same, near = layers(graph, run, x[:COMPARED])
            outputs = kind.dequantize(run.outputs(graph, len(x))[output])
        found = [(shown, outputs, own, [f"{100 * same:.2f}", f"{100 * near:.3f}"])]
        if target == "ONNX" and find_spec("openvino") is not None:
            found.append((f"{target}, OpenVINO", by_openvino(Path(folder), graph, x), None, ["-", "-"]))
    simulated = kind.dequantize(simulate_all(graph, stored, BATCH)[output]).reshape(len(x), -1)

    def top(values: np.ndarray) -> np.ndarray:
        return values.reshape(len(values), graph.shape(output)[1], -1).argmax(axis=1)

    def of(values: np.ndarray | None) -> list[str]:
        if values is None:
            return ["-", "-"]
        return [f"{100 * np.mean(top(values) == top(real)):.1f}", f"{np.abs(values - real).mean():.4f}"]

    for runtime, outputs, theirs_too, shares in found:
        ours = outputs.reshape(len(x), -1)
        score = "-"
        if labels is not None:
            score = " / ".join(
                "-" if values is None else f"{100 * np.mean(values.argmax(axis=1) == labels):.1f}"
                for values in (real, ours, theirs_too)
            )
        agreed = f"{100 * np.mean(top(ours) == top(simulated)):.2f}"
        if labels is None:
            noise = float(np.square(ours - simulated).sum())
            agreed += f" ({10 * np.log10(np.square(simulated).sum() / noise):.1f} dB)" if noise else " (equal)"
        yield [name, runtime, str(len(x)), *shares, agreed, score, *of(ours), *of(theirs_too)]


def by_its_own(target: str, net: n2d2py.Model, case: Case) -> np.ndarray | None:
    """The outputs (N, elements) of a target's runtime by its own quantizer, for NCNN by the plain table; None where there are none."""
    if target == "ONNX":
        return theirs(case, "MinMax")
    if target == "TFLite" and not installed():
        return None
    found = {"TFLite": by_their_quantizer, "NCNN": by_largest}[target](
        n2d2py.quantize(net, bits=-32).graph, case.calibration, case.inputs
    )
    return None if found is None else found.reshape(len(case.inputs), -1)


PACKAGES = {"ONNX": "onnxruntime", "TFLite": "ai_edge_litert", "NCNN": "ncnn"}


def lines(
    case: Case, calib: int, given: np.ndarray | None, labels: np.ndarray | None, targets: Sequence[str]
) -> Iterator[list[str]]:
    """The lines of a network: one for each runtime."""
    for target in targets:
        if find_spec(PACKAGES[target]) is None:
            continue
        net = n2d2py.load(case.path, target)
        options = n2d2py.CalibrationOptions(stimuli=calib if given is None else -1)
        calibrated = n2d2py.calibrate(net, given, options=options)
        own = by_its_own(target, net, case)
        graph = n2d2py.quantize(net, calibrated).graph
        common = case.path.stem, target, graph, case.inputs, case.real
        yield from cells(*common, own, labels)
        if target == "NCNN":
            yield from cells(*common, None, labels, {"use_packing_layout": True})


def of_modern(folder: Path, count: int, targets: Sequence[str]) -> Iterator[list[str]]:
    """The lines of a network of the folder `modern`."""
    (file,) = folder.glob("*.onnx")
    x, given = np.load(folder / "eval.npz")["x"], np.load(folder / "calib.npy")
    x = x if count < 0 else x[:count]
    run = session(file, True)
    name = run.get_inputs()[0].name
    parts = [np.asarray(run.run(None, {name: x[start : start + BATCH]})[0]) for start in range(0, len(x), BATCH)]
    real = np.concatenate(parts).reshape(len(x), -1)
    for line in lines(Case(file, file, given, x, np.full(len(x), -1), real), -1, given, None, targets):
        yield [folder.name, *line[1:]]


def main(words: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*")
    parser.add_argument("-calib", type=int, default=100)
    parser.add_argument("-test", type=int, default=-1)
    parser.add_argument("-export", action="append", choices=list(PACKAGES), default=None)
    arguments = parser.parse_args(words)
    log.setup(quiet=True, verbose=False, strict=False)
    logging.disable(logging.WARNING)
    data = Path(os.environ["N2D2_DATA"]) / "modern"
    names = arguments.networks or [
        *map(str, sorted((ROOT / "tests" / "networks").glob("*.ini"))),
        *sorted(path.name for path in data.iterdir() if path.is_dir()),
    ]
    targets = arguments.export or list(PACKAGES)
    print(f"Machine: {machine()}. {arguments.calib} calibration stimuli. ONNX Runtime {onnxruntime.__version__}.\n")
    titles = ["network", "export", "stimuli", "layers equal %", "within a step %", "top-1 as simulated %"]
    titles += ["score %: float / ours / its own", "agreement %, ours", "error", "agreement %, its own", "error"]
    header(*titles, texts=2)
    for name in names:
        if name.endswith(".ini"):
            case = prepare(Path(name).resolve(), arguments.calib, arguments.test)
            if case.model is None:
                continue
            classes = case.real.shape[1] > 1 and (case.labels >= 0).all() and case.real[0].size != case.inputs[0].size
            found = lines(case, arguments.calib, None, case.labels if classes else None, targets)
        else:
            found = of_modern(data / name, arguments.test, targets)
        for line in found:
            row(*line)


if __name__ == "__main__":
    main()
