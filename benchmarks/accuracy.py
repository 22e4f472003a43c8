"""Measures how near integers come to floating point, beside ONNX Runtime's static quantization, as a Markdown table.

    python benchmarks/accuracy.py [-calib N] [-test N] [-way "NAME: OPTIONS"]... [-held-out] [-anchors] [-no-onnxruntime] [NET.ini ...]

Both tools calibrate on the same stimuli (the first N, spread evenly, of the validation set) and are scored on the
same ones. Ours are simulated integers, which the compiled export gives bit for bit. ONNX Runtime: QDQ, int8, a
weight scale for each output channel, after its own pre-processing; four ways to choose the ranges.

With -held-out the test set is not touched: the even stimuli of the calibration set calibrate, the odd ones are scored.
Defaults are chosen by that.

With -anchors a second table sets the defaults beside ONNX Runtime's best method on the whole data sets, which are not at hand.

Agreement: share of stimuli with the same top-1 output as floating point. Error: mean |output - float output|.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from common import ROOT, header, machine, row
from static_quantization import write_static
from support.onnx_models import original_engine

from n2d2py import log
from n2d2py.options import read_command
from n2d2py.pipeline import load_network
from n2d2py.quant.simulator import quantize_inputs, simulate_all
from n2d2py.quant.statistics import batch_size
from n2d2py.reference.engine import FloatEngine
from n2d2py.stages.calibrate import calibrate_stage, set_to_calibrate
from n2d2py.stages.fuse import fuse_stage
from n2d2py.stages.load import LoadedNetwork, graph_files
from n2d2py.stages.options import RunOptions
from n2d2py.stages.quantize import quantize_stage
from n2d2py.stages.score import expected_labels, scored_stimuli

WAYS = ("fast: -quality fast", "default:", "best: -quality best")
METHODS = {
    "MinMax": ("MinMax", None),
    "Entropy": ("Entropy", None),
    "Percentile 99.999": ("Percentile", 99.999),
    "Percentile 99.99": ("Percentile", 99.99),
}
ANCHORS = {  # stimuli, float score, score, agreement and error of ONNX Runtime's best of four methods; None: not known
    "kws_dscnn": (1000, 91.3, 91.8, 98.9, None),
    "mobilenet_v1": (1000, 66.3, 66.1, 91.2, 0.255),
    "mobilenet_v2": (1000, 89.3, 89.4, 98.8, 0.066),
    "resnet8": (10000, 75.48, 75.79, 96.7, 0.227),
    "vww_96": (1000, 85.3, 85.1, None, None),
}


@dataclass(frozen=True)
class Case:
    """A network with its data: calibration inputs, test inputs, expected classes (-1: none), float outputs."""

    path: Path
    model: Path | None
    calibration: np.ndarray
    inputs: np.ndarray
    labels: np.ndarray
    real: np.ndarray
    held_out: bool = False


def _loaded(path: Path, words: list[str], held_out: bool) -> tuple[LoadedNetwork, RunOptions]:
    path, options = read_command([str(path), "-seed", "1", "-w", "/dev/null", "-export", "CPP", *words])
    network = load_network(path, options)
    if held_out:
        every = set_to_calibrate(network)
        network.data.sets.update(Validation=every.take(range(0, len(every), 2)), Test=every.take(range(1, len(every), 2)))
    return network, options


def _in_batches(run: Callable[[np.ndarray], np.ndarray], x: np.ndarray, size: int) -> np.ndarray:
    return np.concatenate([run(x[start : start + size]) for start in range(0, len(x), size)]).reshape(len(x), -1)


def prepare(path: Path, calib: int, test: int, held_out: bool = False) -> Case:
    """Loads a network and its data, and computes the float outputs."""
    network, options = _loaded(path, ["-calib", str(calib)], held_out)
    stimuli = scored_stimuli(network, options.score)
    stimuli = stimuli if test < 0 else stimuli.sample_evenly(test)
    x = stimuli.array(64)
    network, _ = fuse_stage(network, integer=True)
    engine, output = FloatEngine(network.graph), network.graph.outputs[0]
    real = _in_batches(lambda part: engine.run(part)[output], x, batch_size(network.graph))
    labels = expected_labels(network, network.targets[0].name, stimuli.labels)
    files = graph_files(network.document)
    calibration = set_to_calibrate(network).sample_evenly(options.calibration.stimuli).array(64)
    return Case(path, files[0] if files else None, calibration, x, labels, real, held_out)


def ours(case: Case, calib: int, words: list[str]) -> np.ndarray:
    """Real values of the outputs (n, C) of the integer network that these options give."""
    network, options = _loaded(case.path, ["-calib", str(calib), *words], case.held_out)
    graph = quantize_stage(calibrate_stage(network, options.calibration), options.quantization).graph
    output, size = graph.outputs[0], batch_size(network.graph)
    stored = simulate_all(graph, quantize_inputs(graph, [case.inputs]), size)[output]
    return graph.type(output).dequantize(stored).reshape(len(stored), -1)


def theirs(case: Case, method: str) -> np.ndarray:
    """Outputs (n, C) of ONNX Runtime's quantization of the same file."""
    kind, percentile = METHODS[method]
    count = len(case.calibration)
    stride = max(n for n in range(1, min(count, 25) + 1) if count % n == 0)
    options = {"CalibStridedMinMax": stride} | ({"CalibPercentile": percentile} if percentile else {})
    with tempfile.TemporaryDirectory() as name:
        quantized = Path(name) / "quantized.onnx"
        write_static(case.model, quantized, case.calibration, kind, **options)
        run = original_engine(quantized)
        return _in_batches(lambda x: run.run(x)[run.outputs[0]], case.inputs, 16)


def cells_of(case: Case, way: str, found: np.ndarray, seconds: float) -> list[str]:
    """The cells of one line of the table."""
    classes = case.real.shape[1] > 1 and (case.labels >= 0).all() and case.real[0].size != case.inputs[0].size
    score = f"{100 * np.mean(found.argmax(axis=1) == case.labels):.1f}" if classes else "-"
    agreement = f"{100 * np.mean(found.argmax(axis=1) == case.real.argmax(axis=1)):.1f}" if classes else "-"
    error = np.abs(found - case.real)
    return [case.path.stem, way, score, agreement, f"{error.mean():.4f}", f"{seconds:.1f}"]


def anchor_row(case: Case, found: np.ndarray) -> list[str]:
    """The cells of one line of the table of anchors."""

    def text(value: float | None, digits: int) -> str:
        return "-" if value is None else f"{value:+.{digits}f}" if digits == 2 else f"{value:.{digits}f}"

    count, there, score, agreement, error = ANCHORS[case.path.stem]
    ours, real = (100 * np.mean(outputs.argmax(axis=1) == case.labels) for outputs in (found, case.real))
    agreed = 100 * np.mean(found.argmax(axis=1) == case.real.argmax(axis=1))
    return [
        case.path.stem,
        f"{len(found)} / {count}",
        f"{real:.1f} / {there}",
        f"{ours - real:+.2f} / {text(score - there, 2)}",
        f"{agreed:.1f} / {text(agreement, 1)}",
        f"{np.abs(found - case.real).mean():.3f} / {text(error, 3)}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", type=Path)
    parser.add_argument("-calib", type=int, default=100)
    parser.add_argument("-test", type=int, default=-1)
    parser.add_argument("-way", action="append", help='a row of ours, as "NAME: OPTIONS"')
    parser.add_argument("-held-out", action="store_true")
    parser.add_argument("-anchors", action="store_true")
    parser.add_argument("-no-onnxruntime", action="store_true")
    arguments = parser.parse_args()
    log.setup(quiet=True, verbose=False, strict=False)
    logging.disable(logging.WARNING)
    print(f"Machine: {machine()}. {arguments.calib} calibration stimuli.\n")
    header("network", "quantization", "score %", "agreement %", "error", "s", texts=2)
    anchored: list[list[str]] = []
    for path in arguments.networks or sorted((ROOT / "tests" / "networks").glob("*.ini")):
        case = prepare(path.resolve(), arguments.calib, arguments.test, arguments.held_out)
        ways: list[tuple[str, Callable[[], np.ndarray]]] = [("float", lambda: case.real)]
        for text in arguments.way or WAYS:
            name, _, options = text.partition(":")
            words = options.split()
            ways.append((name, lambda words=words: ours(case, arguments.calib, words)))
        if case.model is not None and not arguments.no_onnxruntime:
            ways += [(f"ONNX Runtime, {method}", lambda method=method: theirs(case, method)) for method in METHODS]
        for name, compute in ways:
            start = time.perf_counter()
            found = compute()
            row(*cells_of(case, name, found, time.perf_counter() - start))
            if arguments.anchors and name == "default" and case.path.stem in ANCHORS:
                anchored.append(anchor_row(case, found))
    if anchored:
        print("\nOurs here / ONNX Runtime's best on the whole sets:\n")
        header("network", "stimuli", "float score", "points lost or gained", "agreement", "error")
        for cells in anchored:
            row(*cells)


if __name__ == "__main__":
    main()
