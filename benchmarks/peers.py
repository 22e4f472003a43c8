"""Measures integers beside those of other quantizers on the same samples, as a Markdown table with a line for each network.

    python benchmarks/peers.py [-peers PYTHON] [-calib N] [-test N] [-only WAY]... [-results FILE] [-print] [NETWORK ...]

Networks, by name, all by default: those of tests/networks (their data: N2D2_DATA, N2D2_MODELS), those of FOLDER/modern and
FOLDER/field/quant, and those of drawn_networks.py, which are made where they are missing (in N2D2_DRAWN, a folder of the system's temporary
one by default). Each tool calibrates on the same samples and is measured on the same others, against ONNX Runtime on the float file:

- dB of each output: variance of the float values around the mean of their row, to the power of the error;
- agreement: share of largest values of the first output that stay the same; of yolo also the share of its detections (objectness above 0.5)
  that is found.

A result is a line of FILE (peers.jsonl). What FILE has is not computed again, so a run that was stopped goes on. -print computes nothing.

ONNX Runtime: QDQ, unsigned activations, a weight scale for each output channel, after its own pre-processing, each of its
calibration methods. NNCF (of OpenVINO): its defaults, `transformer` (with SmoothQuant) for networks with Softmax inside. Both are
run by ONNX Runtime without fusions, so that no sum saturates on processors without a dot product of bytes. LiteRT (ai-edge-quantizer)
and ncnn quantize what this tool exports in floating point: static int8 by MinMax, and a table of largest magnitudes, since ncnn2table is
not in ncnn's package. Both give the first output. MNN's quantizer is left out: mnnquant of MNN 3.6.1 aborts before it opens a model, and
its command installs packages of its own.

A peer that this interpreter lacks runs in PYTHON, an interpreter with numpy, configobj, jinja2, tqdm, flatbuffers, pillow, onnx, onnxruntime
and the peers: nncf, openvino, ncnn, ai-edge-quantizer, ai-edge-litert. Who is missing there too, and a method that does not run on a network, is
named with the reason.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import accuracy
import numpy as np
from common import DATA, ROOT, machine, session
from static_quantization import write_static

import n2d2py
from n2d2py import log
from n2d2py.quant.observe.judged import relative_errors
from n2d2py.quant.simulator import quantize_inputs, simulate_all
from n2d2py.stages.options import suit_calibration

DRAWN = Path(os.environ.get("N2D2_DRAWN", Path(tempfile.gettempdir()) / "n2d2_drawn"))
METHODS = ("MinMax", "Entropy", "Percentile", "Distribution")
OURS = {"default": [], "-quality best": ["-quality", "best"], "-nbbits 16": ["-nbbits", "16"]}
Outputs = list[np.ndarray]
"""Values (n, ...) of each output of a network."""


@dataclass(frozen=True)
class Network:
    """A float ONNX file with samples (n, ...) to calibrate and to measure, and the function that computes ours."""

    name: str
    file: Path
    calibration: np.ndarray
    inputs: np.ndarray
    ours: Callable[[list[str]], Outputs]


def from_ini(path: Path, calib: int, test: int) -> Network:
    """A network of tests/networks."""
    case = accuracy.prepare(path, calib, test)
    assert case.model is not None
    return Network(path.stem, case.model, case.calibration, case.inputs, lambda words: [accuracy.ours(case, calib, words)])


def from_arrays(name: str, file: Path, given: np.ndarray, inputs: np.ndarray, calib: int, test: int) -> Network:
    """A network with arrays of samples; -1 takes all of them."""
    given, inputs = (x if count < 0 else x[:count] for x, count in ((given, calib), (inputs, test)))

    def ours(words: list[str]) -> Outputs:
        net = n2d2py.load(file)
        options = n2d2py.QuantizationOptions(bits=16 if "16" in words else 8)
        calibration = n2d2py.CalibrationOptions(stimuli=-1, quality="best" if "best" in words else "default")
        observed = n2d2py.calibrate(net, given, options=suit_calibration(calibration, options))
        graph = n2d2py.quantize(net, observed, options=options).graph
        stored = simulate_all(graph, quantize_inputs(graph, [inputs]), 25)
        return [graph.type(output).dequantize(stored[output]) for output in graph.outputs]

    return Network(name, file, given, inputs, ours)


def from_folder(folder: Path, calib: int, test: int) -> Network:
    """A network of the folder `modern`, or of drawn_networks.py."""
    (file,) = folder.glob("*.onnx")
    return from_arrays(folder.name, file, np.load(folder / "calib.npy"), np.load(folder / "eval.npz")["x"], calib, test)


def from_field(file: Path, data: Path, calib: int, test: int) -> Network:
    """A network of the folder `field/quant`, whose samples another one may share."""
    stored = np.load(data)
    return from_arrays(file.stem, file, stored["cal"], stored["x"], calib, test)


def drawn(name: str, calib: int, test: int) -> Network:
    """A network of drawn_networks.py."""
    from drawn_networks import make  # late: it needs PyTorch

    return from_folder(make(name, DRAWN), calib, test)


FIELD = {"concat_then_pixels": "concat_then_pixels", "pixels_then_concat": "concat_then_pixels"}
FIELD |= {"ln_gains_wide": "ln_gains", "ln_gains_flat": "ln_gains", "lstm": "lstm", "lstm_folded": "lstm", "sensors": "sensors"}
"""Networks of `field/quant`, and whose samples they have."""


def sources() -> dict[str, Callable[[int, int], Network]]:
    """By the name of a network, what makes it of the numbers of samples that calibrate and that are measured."""
    found: dict[str, Callable[[int, int], Network]] = {}
    found |= {path.stem: partial(from_ini, path) for path in sorted((ROOT / "tests" / "networks").glob("*.ini"))}
    found |= {path.name: partial(from_folder, path) for path in sorted((DATA / "modern").glob("*/"))}
    quant = DATA / "field" / "quant"
    found |= {
        name: partial(from_field, quant / f"{name}.onnx", quant / f"{data}_data.npz")
        for name, data in FIELD.items()
        if (quant / f"{name}.onnx").is_file()
    }
    if importlib.util.find_spec("torch") is None:  # what was drawn before is there
        return found | {path.parent.name: partial(from_folder, path.parent) for path in sorted(DRAWN.glob("*/eval.npz"))}
    from drawn_networks import FAMILIES

    return found | {name: partial(drawn, name) for name in FAMILIES}


def run_onnx(file: Path, x: np.ndarray) -> Outputs:
    """The outputs of ONNX Runtime, node by node as the file says: fused integer kernels would cost peers 14 dB where they saturate."""
    run = session(file)
    name, size = run.get_inputs()[0].name, run.get_inputs()[0].shape[0]
    size = size if isinstance(size, int) else 16
    parts = [run.run(None, {name: x[k : k + size]}) for k in range(0, len(x), size)]
    return [np.concatenate([np.asarray(one) for one in each]) for each in zip(*parts, strict=True)]


def onnxruntime_outputs(network: Network, method: str) -> Outputs:
    """Of ONNX Runtime's static quantization."""
    with tempfile.TemporaryDirectory() as folder:
        quantized = Path(folder) / "quantized.onnx"
        write_static(network.file, quantized, network.calibration, method)
        return run_onnx(quantized, network.inputs)


def nncf_outputs(network: Network) -> Outputs:
    """Of NNCF's post-training quantization of the ONNX file."""
    import nncf
    import onnx

    nncf.set_log_level(logging.ERROR)
    model = onnx.load(network.file)
    kind = nncf.ModelType.TRANSFORMER if "Softmax" in [node.op_type for node in model.graph.node][:-1] else None
    data = nncf.Dataset([{model.graph.input[0].name: one[None]} for one in network.calibration])
    quantized = nncf.quantize(model, data, subset_size=len(network.calibration), model_type=kind)
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(quantized, Path(folder) / "quantized.onnx")
        return run_onnx(Path(folder) / "quantized.onnx", network.inputs)


def exported_outputs(quantize: Callable[..., np.ndarray | None], network: Network) -> Outputs:
    """Of a quantizer of networks that this tool exports in floating point."""
    found = quantize(n2d2py.quantize(n2d2py.load(network.file), bits=-32).graph, network.calibration, network.inputs)
    if found is None:
        raise ValueError("the float network has no such export")
    return [found]


def litert_outputs(network: Network) -> Outputs:
    """Of LiteRT's quantizer, static int8, run by LiteRT."""
    from litert_quantizer import by_their_quantizer

    return exported_outputs(by_their_quantizer, network)


def ncnn_outputs(network: Network) -> Outputs:
    """Of ncnn with a table of largest magnitudes."""
    from ncnn_table import by_largest

    return exported_outputs(by_largest, network)


def judge(name: str, real: Outputs, found: Outputs) -> dict[str, object]:
    """Decibels of each output, agreement and detections in per cent."""
    outputs = {str(k): (x, y.reshape(x.shape).astype(np.float64)) for k, (x, y) in enumerate(zip(real, found, strict=False))}
    errors = relative_errors({k: x for k, (x, _) in outputs.items()}, {k: y for k, (_, y) in outputs.items()})
    result: dict[str, object] = {"dB": [round(float(-10 * np.log10(max(error, 1e-12))), 2) for error, _ in errors.values()]}
    exact, near = outputs["0"]
    if exact.ndim > 1 and exact.shape[1] > 1:
        result["agreement"] = round(100 * float((near.argmax(1) == exact.argmax(1)).mean()), 2)
    if name == "yolo":
        there, seen = exact[:, 4] > 0.5, near[:, 4] > 0.5
        result["detections"] = f"{100 * (there & seen).sum() / there.sum():.1f} %, {(seen & ~there).sum()} false"
    return result


Way = tuple[str, Callable[[Network], Outputs]]
"""The module that a quantizer needs, and the function that computes its outputs."""
PEERS: dict[str, Way] = {
    **{f"ONNX Runtime {one}": ("onnxruntime", partial(onnxruntime_outputs, method=one)) for one in METHODS},
    "NNCF": ("nncf", nncf_outputs),
    "LiteRT": ("ai_edge_quantizer", litert_outputs),
    "ncnn": ("ncnn", ncnn_outputs),
}
WAYS: dict[str, Way] = {
    way: ("n2d2py", lambda network, words=words: network.ours(words)) for way, words in OURS.items()
} | PEERS


def measure(network: Network, way: str, real: Outputs) -> dict[str, object]:
    """A line of the file of results, of a quantizer that this interpreter has."""
    module, compute = WAYS[way]
    row: dict[str, object] = {"network": network.name, "way": way}
    start = time.process_time()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            found = compute(network)
        row |= judge(network.name, real, found)
    except Exception as error:  # whatever a peer raises is a line of the table
        if module == "n2d2py":
            raise
        return row | {"missing": f"{type(error).__name__}: {' '.join(str(error).split())[:90]}"}
    return row | {"seconds": round(time.process_time() - start, 1)}


def measure_elsewhere(name: str, way: str, arguments: argparse.Namespace) -> dict[str, object]:
    """A line of the file of results, of a quantizer that only the interpreter of -peers may have."""
    row: dict[str, object] = {"network": name, "way": way}
    if arguments.peers is None:
        return row | {"missing": f"{WAYS[way][0]} is not installed"}
    words = ["-calib", str(arguments.calib), "-test", str(arguments.test), "-only", way]
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.jsonl"
        command = [arguments.peers, __file__, name, *words, "-results", str(results)]
        done = subprocess.run(command, env={**os.environ, "N2D2_DRAWN": str(DRAWN)}, capture_output=True, text=True)
        if results.is_file():
            return json.loads(results.read_text())
    return row | {"missing": (done.stderr.strip().splitlines() or ["nothing came"])[-1][:90]}


def _shown(rows: Sequence[dict]) -> str:
    """The best of some quantizers: by the sum of decibels of the outputs."""
    measured = [row for row in rows if "dB" in row]
    if not measured:
        return "-"
    row = max(measured, key=lambda one: sum(one["dB"]))
    text = ", ".join(f"{value:.1f}" for value in row["dB"])
    text += f" ({row['agreement']:.4g} %)" if "agreement" in row else ""
    text += f", {row['detections']}" if "detections" in row else ""
    return text + (f" {row['way'].split()[-1]}" if len(rows) > 1 else "")


def page(names: Sequence[str], results: Sequence[dict]) -> str:
    """The table, and below it who is missing where."""
    columns = {
        name: [way for way in WAYS if way.startswith(name)] for name in (*OURS, "ONNX Runtime", "NNCF", "LiteRT", "ncnn")
    }
    lines = [f"| network | {' | '.join(columns)} |", "|---|" + "---:|" * len(columns)]
    for name in names:
        cells = [
            _shown([row for row in results if row["network"] == name and row["way"] in words]) for words in columns.values()
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    missing: dict[tuple[str, str], list[str]] = {}
    for row in results:
        if "missing" in row and row["network"] in names:
            missing.setdefault((row["way"], row["missing"]), []).append(row["network"])
    return "\n".join([*lines, "", *(f"- {way}: {why} ({', '.join(each)})" for (way, why), each in missing.items())])


def main() -> None:
    """Measures what the file of results has not, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*")
    parser.add_argument("-peers", metavar="PYTHON", help="interpreter of the peers that this one lacks")
    parser.add_argument("-calib", type=int, default=100)
    parser.add_argument("-test", type=int, default=100)
    parser.add_argument("-only", action="append", help="quantizers whose name has this in it")
    parser.add_argument("-results", type=Path, default=Path("peers.jsonl"))
    parser.add_argument("-print", action="store_true")
    arguments = parser.parse_args()
    log.setup(quiet=True)
    logging.disable(logging.WARNING)
    known = sources()
    names = arguments.networks or list(known)
    results = [json.loads(line) for line in arguments.results.read_text().splitlines()] if arguments.results.is_file() else []
    done = {(row["network"], row["way"]) for row in results}
    for name in [] if arguments.print else names:
        network, real = None, []
        for way in WAYS:
            if (name, way) in done or (arguments.only and not any(text in way for text in arguments.only)):
                continue
            if importlib.util.find_spec(WAYS[way][0]) is None:
                row = measure_elsewhere(name, way, arguments)
            else:
                if network is None:
                    network = known[name](arguments.calib, arguments.test)
                    real = run_onnx(network.file, network.inputs)
                row = measure(network, way, real)
            results.append(row)
            with arguments.results.open("a") as file:
                print(json.dumps(row), file=file)
            print(json.dumps(row), file=sys.stderr, flush=True)
    print(f"{machine()}; {arguments.calib} samples to calibrate, {arguments.test} to measure\n\n{page(names, results)}")


if __name__ == "__main__":
    main()
