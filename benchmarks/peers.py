"""Measures integers beside those of other quantizers on the same images, as a Markdown table.

    N2D2_DATA=FOLDER PYTHON benchmarks/peers.py [-calib N] [-test N] [-only WAY]... [NETWORK ...]

Networks: those of tests/networks (their data: N2D2_DATA, N2D2_MODELS) and those of FOLDER/modern, by name; all by default.
Each tool calibrates on the same stimuli and is measured on the same others, against ONNX Runtime on the float file:

- dB: power of the float outputs to that of the error; error: mean |output - float output|;
- agreement: share of largest outputs that stay the same; of yolo also the share of its detections (objectness above 0.5) that is found.

ONNX Runtime: QDQ, unsigned activations, a weight scale for each output channel, after its own pre-processing, each of its
calibration methods. NNCF (of OpenVINO): its defaults, `transformer` for networks with Softmax inside. Both are
run by ONNX Runtime without fusions, so that no sum saturates on processors without a dot product of bytes. A peer that
PYTHON does not have, and a method that does not run on a network, is a line with the reason. LiteRT's quantizer reads .tflite files of
floating-point networks: it takes NAME.tflite in the folder N2D2_TFLITE, inputs in the layout that the file has.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import accuracy  # noqa: E402
from exports import machine  # noqa: E402
from static_quantization import write_static  # noqa: E402

import n2d2py  # noqa: E402
from n2d2py import log  # noqa: E402
from n2d2py.quant.simulator import quantize_inputs, simulate_all  # noqa: E402
from n2d2py.stages.options import suited  # noqa: E402

DATA = Path(os.environ.get("N2D2_DATA", ROOT.parent / "shared" / "data"))
METHODS = ("MinMax", "Entropy", "Percentile", "Distribution")
OURS = {
    "default": [],
    "-no-bias-correction": ["-no-bias-correction"],
    "-quality best": ["-quality", "best"],
    "-nbbits 16": ["-nbbits", "16"],
    "-nbbits 16 -no-cle": ["-nbbits", "16", "-no-cle"],
}


@dataclass(frozen=True)
class Network:
    """A float ONNX file with stimuli (n, ...) to calibrate and to measure, and how ours are computed."""

    name: str
    file: Path
    calibration: np.ndarray
    inputs: np.ndarray
    ours: Callable[[list[str]], np.ndarray]


def from_ini(path: Path, calib: int, test: int) -> Network:
    """A network of tests/networks."""
    case = accuracy.prepare(path, calib, test)
    assert case.model is not None
    return Network(path.stem, case.model, case.calibration, case.inputs, lambda words: accuracy.ours(case, calib, words))


def from_folder(folder: Path, calib: int, test: int) -> Network:
    """A network of the folder `modern`."""
    (file,) = folder.glob("*.onnx")
    given, inputs = np.load(folder / "calib.npy"), np.load(folder / "eval.npz")["x"]
    given, inputs = (x if count < 0 else x[:count] for x, count in ((given, calib), (inputs, test)))

    def ours(words: list[str]) -> np.ndarray:
        quality = "best" if "best" in words else "default"
        bits = 16 if "16" in words else 8
        net = n2d2py.load(file)
        options = n2d2py.QuantizationOptions(bits=bits, **({"correct_bias": False} if "-no-bias-correction" in words else {}))
        calibration = n2d2py.CalibrationOptions(stimuli=-1, quality=quality, equalize="-no-cle" not in words)
        observed = n2d2py.calibrate(net, given, options=suited(calibration, options))
        graph = n2d2py.quantize(net, observed, options=options).graph
        stored = simulate_all(graph, quantize_inputs(graph, [inputs]), 25)[graph.outputs[0]]
        return graph.type(graph.outputs[0]).dequantize(stored)

    return Network(folder.name, file, given, inputs, ours)


def run_onnx(file: Path, x: np.ndarray) -> np.ndarray:
    """The first output (n, ...) of ONNX Runtime, node by node as the file says.

    Fused integer kernels would saturate sums of byte products on processors without a dot product of bytes, which costs peers 14 dB.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    name, size = session.get_inputs()[0].name, session.get_inputs()[0].shape[0]
    size = size if isinstance(size, int) else 16
    return np.concatenate([np.asarray(session.run(None, {name: x[k : k + size]})[0]) for k in range(0, len(x), size)])


def onnxruntime_outputs(network: Network, method: str) -> np.ndarray:
    """Of ONNX Runtime's static quantization."""
    with tempfile.TemporaryDirectory() as folder:
        quantized = Path(folder) / "quantized.onnx"
        write_static(network.file, quantized, network.calibration, method)
        return run_onnx(quantized, network.inputs)


def nncf_outputs(network: Network) -> np.ndarray:
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


def litert_outputs(network: Network) -> np.ndarray:
    """Of LiteRT's quantizer, static int8, run by LiteRT."""
    from ai_edge_litert.interpreter import Interpreter
    from ai_edge_quantizer import quantizer, recipe

    file = Path(os.environ.get("N2D2_TFLITE", ".")) / f"{network.name}.tflite"
    if not file.is_file():
        raise FileNotFoundError(f"no {file.name} in N2D2_TFLITE, and the quantizer reads nothing else")
    made = quantizer.Quantizer(str(file), recipe.static_wi8_ai8())
    runner = Interpreter(str(file))
    (key, signature), *_ = runner.get_signature_list().items()
    name, first = signature["inputs"][0], runner.get_input_details()[0]["shape"]

    def laid_out(x: np.ndarray) -> np.ndarray:
        x = x[None]
        return x if x.shape == tuple(first) else np.moveaxis(x, 1, -1).copy()

    observed = made.calibrate({key: [{name: laid_out(x)} for x in network.calibration]})
    content = bytes(made.quantize(observed).quantized_model)
    run = Interpreter(model_content=content).get_signature_runner(key)
    return np.concatenate([next(iter(run(**{name: laid_out(x)}).values())) for x in network.inputs])


def cells(name: str, real: np.ndarray, found: np.ndarray) -> list[str]:
    """dB, error, agreement, detections."""
    found = found.reshape(real.shape).astype(np.float64)
    power = np.square(found - real).sum()
    decibels = 10 * np.log10(np.square(real, dtype=np.float64).sum() / power) if power else np.inf
    classes = real.shape[1] > 1 and name != "ad_autoencoder"
    agreement = f"{100 * (found.argmax(1) == real.argmax(1)).mean():.2f}" if classes else "-"
    detections = "-"
    if name == "yolo":
        there, seen = real[:, 4] > 0.5, found[:, 4] > 0.5
        detections = f"{100 * (there & seen).sum() / there.sum():.1f}, {(seen & ~there).sum()} false"
    return [f"{decibels:.2f}", f"{np.abs(found - real).mean():.5f}", agreement, detections]


def peers(network: Network) -> dict[str, tuple[str, Callable[[], np.ndarray]]]:
    """Name -> (module that it needs, its outputs)."""
    ways: dict[str, tuple[str, Callable[[], np.ndarray]]] = {
        f"ONNX Runtime {one}": ("onnxruntime", partial(onnxruntime_outputs, network, one)) for one in METHODS
    }
    ways["NNCF"] = ("nncf", partial(nncf_outputs, network))
    ways["LiteRT"] = ("ai_edge_quantizer", partial(litert_outputs, network))
    return ways


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*")
    parser.add_argument("-calib", type=int, default=100)
    parser.add_argument("-test", type=int, default=100)
    parser.add_argument("-only", action="append", help="rows whose name has this in it")
    arguments = parser.parse_args()
    log.setup(quiet=True)
    logging.disable(logging.WARNING)
    inis = {path.stem: path for path in sorted((ROOT / "tests" / "networks").glob("*.ini"))}
    folders = {path.name: path for path in sorted((DATA / "modern").iterdir()) if path.is_dir()}
    print(f"{machine()}; {arguments.calib} stimuli to calibrate, {arguments.test} to measure\n")
    print("| network | quantizer | dB | error | agreement % | detections % | s |\n|---|---|" + "---:|" * 5, flush=True)
    for name in arguments.networks or [*inis, *folders]:
        make = from_ini if name in inis else from_folder
        network = make((inis | folders)[name], arguments.calib, arguments.test)
        real = run_onnx(network.file, network.inputs)
        ways: dict[str, tuple[str, Callable[[], np.ndarray]]] = {
            way: ("n2d2py", partial(network.ours, words)) for way, words in OURS.items()
        }
        ways |= peers(network)
        for way, (module, compute) in ways.items():
            if arguments.only and not any(text in way for text in arguments.only):
                continue
            if importlib.util.find_spec(module) is None:
                print(f"| {name} | {way} | {module} is not installed |", flush=True)
                continue
            start = time.perf_counter()
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    found = compute()
                shown = cells(name, real, found)
            except Exception as error:  # whatever a peer raises is a line of the table
                if module == "n2d2py":
                    raise
                said = " ".join(str(error).split())[:90]
                print(f"| {name} | {way} | does not run: {type(error).__name__}: {said} |", flush=True)
                continue
            print(f"| {name} | {way} | {' | '.join(shown)} | {time.perf_counter() - start:.1f} |", flush=True)


if __name__ == "__main__":
    main()
