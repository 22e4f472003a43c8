"""Runs our integers in other runtimes, beside the integers of these runtimes' own quantizers, as a Markdown table.

    N2D2_DATA=FOLDER N2D2_MODELS=FOLDER/models python benchmarks/runtimes.py [-calib N] [-test N] [NET.ini | NAME ...]

NET.ini: by default all of tests/networks with an ONNX file. NAME: a network of FOLDER/modern (benchmarks/modern.py), by default all.
The export ONNX runs in ONNX Runtime as users get it, all its optimizations on. Its own quantizer: QDQ, uint8 activations, int8 weights
by output channel, MinMax, on the same stimuli (benchmarks/accuracy.py).

Layers: share of the elements of all layers that are the same integers as in the simulator, and within one step, each layer computed
from the runtime's inputs of it. Top-1 as simulated: the share of stimuli whose largest output is that of the simulator.
Agreement: with floating point; error: mean |output - float output|.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import onnxruntime

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from accuracy import Case, prepare, theirs  # noqa: E402
from exports import machine  # noqa: E402

import n2d2py  # noqa: E402
from n2d2py import log  # noqa: E402
from n2d2py.exports.onnx.model import QdqModel, write_model  # noqa: E402
from n2d2py.graph import QuantGraph  # noqa: E402
from n2d2py.quant.simulator import quantize_inputs, run_node, simulate_all  # noqa: E402

BATCH = 10
COMPARED = 20
"""Stimuli of which every layer is compared."""


def session(model: bytes) -> onnxruntime.InferenceSession:
    """ONNX Runtime as the README of an export says."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def layers(graph: QuantGraph, made: QdqModel, x: np.ndarray) -> tuple[float, float]:
    """(share of equal integers, share within one step) of all layers of integers."""
    import onnx

    model = onnx.ModelProto.FromString(made.model.SerializeToString())
    known = {value.name for value in model.graph.output}
    taps = {name: made.stored.get(name, name) for node in graph.nodes for name in node.outputs}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in set(taps.values()) - known)
    run, same, near, count = session(model.SerializeToString()), 0, 0, 0
    for start in range(0, len(x), BATCH):
        part = x[start : start + BATCH]
        stored = quantize_inputs(graph, [part])
        values = dict(zip(graph.inputs, stored, strict=True))
        feed = {name: graph.type(name).dequantize(one) for name, one in values.items()}
        found = dict(zip(taps, run.run(list(taps.values()), feed), strict=True))
        for node in graph.nodes:
            for name, expected in zip(node.outputs, run_node(graph, node, [values[one] for one in node.inputs]), strict=True):
                kind, seen = graph.type(name), found[name]
                values[name] = expected
                if kind.is_float or kind.plain or name not in made.stored:
                    continue
                seen = np.clip(seen, kind.qmin, kind.qmax).astype(kind.dtype).reshape(expected.shape)
                off = np.abs(seen.astype(np.int64) - expected)
                same, near, count = same + int((off == 0).sum()), near + int((off <= 1).sum()), count + off.size
                values[name] = seen
    return same / max(count, 1), near / max(count, 1)


def cells(
    name: str, graph: QuantGraph, x: np.ndarray, real: np.ndarray, own: np.ndarray | None, labels: np.ndarray | None
) -> list[str]:
    """One line of the table; `own`: the outputs of the runtime's own quantization."""
    made = write_model(graph, {}, {})
    run, output = session(made.model.SerializeToString()), graph.outputs[0]
    feeds = [quantize_inputs(graph, [x[start : start + BATCH]]) for start in range(0, len(x), BATCH)]
    parts = [
        run.run([output], {one: graph.type(one).dequantize(v) for one, v in zip(graph.inputs, feed, strict=True)})[0]
        for feed in feeds
    ]
    found = np.concatenate(parts).reshape(len(x), -1)
    kind = graph.type(output)
    simulated = kind.dequantize(simulate_all(graph, quantize_inputs(graph, [x]), BATCH)[output]).reshape(len(x), -1)
    same, near = layers(graph, made, x[:COMPARED])

    def top(values: np.ndarray) -> np.ndarray:
        shape = graph.shape(output)
        return values.reshape(len(values), shape[1], -1).argmax(axis=1)

    def of(values: np.ndarray | None) -> list[str]:
        if values is None:
            return ["-", "-"]
        return [f"{100 * np.mean(top(values) == top(real)):.1f}", f"{np.abs(values - real).mean():.4f}"]

    score = "-"
    if labels is not None:
        score = " / ".join(
            f"{100 * np.mean(values.argmax(axis=1) == labels):.1f}" for values in (real, found, own) if values is not None
        )
    shares = [f"{100 * same:.2f}", f"{100 * near:.3f}", f"{100 * np.mean(top(found) == top(simulated)):.2f}"]
    return [name, str(len(x)), *shares, score, *of(found), *of(own)]


def of_case(case: Case, calib: int) -> list[str]:
    """A line for a network of an INI."""
    net = n2d2py.load(case.path)
    calibrated = n2d2py.calibrate(net, options=n2d2py.CalibrationOptions(stimuli=calib))
    graph = n2d2py.quantize(net, calibrated).graph
    classes = case.real.shape[1] > 1 and (case.labels >= 0).all() and case.real[0].size != case.inputs[0].size
    return cells(case.path.stem, graph, case.inputs, case.real, theirs(case, "MinMax"), case.labels if classes else None)


def of_modern(folder: Path, count: int) -> list[str]:
    """A line for a network of the folder `modern`."""
    (file,) = folder.glob("*.onnx")
    x, given = np.load(folder / "eval.npz")["x"], np.load(folder / "calib.npy")
    x = x if count < 0 else x[:count]
    float_run = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    real = np.concatenate(
        [
            np.asarray(float_run.run(None, {float_run.get_inputs()[0].name: x[start : start + BATCH]})[0])
            for start in range(0, len(x), BATCH)
        ]
    ).reshape(len(x), -1)
    net = n2d2py.load(file)
    calibrated = n2d2py.calibrate(net, given, options=n2d2py.CalibrationOptions(stimuli=-1))
    case = Case(file, file, given, x, np.full(len(x), -1), real)
    return cells(folder.name, n2d2py.quantize(net, calibrated).graph, x, real, theirs(case, "MinMax"), None)


def main(words: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*")
    parser.add_argument("-calib", type=int, default=100)
    parser.add_argument("-test", type=int, default=-1)
    arguments = parser.parse_args(words)
    log.setup(quiet=True, verbose=False, strict=False)
    logging.disable(logging.WARNING)
    data = Path(os.environ["N2D2_DATA"]) / "modern"
    names = arguments.networks or [
        *map(str, sorted((ROOT / "tests" / "networks").glob("*.ini"))),
        *sorted(path.name for path in data.iterdir() if path.is_dir()),
    ]
    print(f"Machine: {machine()}. {arguments.calib} calibration stimuli. ONNX Runtime {onnxruntime.__version__}.\n")
    header = ["network", "stimuli", "layers equal %", "within a step %", "top-1 as simulated %"]
    header += ["score %: float / ours / its own", "agreement %, ours", "error", "agreement %, its own", "error"]
    print("| " + " | ".join(header) + " |\n|---" + "|---:" * (len(header) - 1) + "|")
    for name in names:
        if name.endswith(".ini"):
            case = prepare(Path(name).resolve(), arguments.calib, arguments.test)
            if case.model is None:
                continue
            line = of_case(case, arguments.calib)
        else:
            line = of_modern(data / name, arguments.test)
        print("| " + " | ".join(line) + " |", flush=True)


if __name__ == "__main__":
    main()
