"""How far int8 runtimes are from the integers that a quantized network stands for, as Markdown tables.

    python benchmarks/saturation.py [-n N] [-peers PYTHON] [MODEL.onnx ...]

Without a dot product instruction x86 multiplies bytes by vpmaddubsw, whose sums of two products saturate to 16 bits; a runtime that uses
it for all weights computes other integers. First one convolution, 1x1 with 64 inputs and 16 outputs, random weights from -127 to 127,
inputs over the whole range and over half of it; then whole networks (QDQ), without names those of $N2D2_MODELS.

The reference is, for the convolution, sums of 64-bit integers; for networks ONNX Runtime without graph optimizations, which computes
every DequantizeLinear and convolution in floating point, as the file says (our integers are compared with it by quantized.py). A step is
the scale of the output. "off": share of output values that are not within half a step; "farthest": the largest difference in steps;
"top-1": share of inputs with another largest output. Peers are run by PYTHON, an interpreter with onnxruntime, openvino and onnx: those that it
lacks are left out. Besides saturation a network shows what else a runtime does otherwise: OpenVINO computes layers in floating point where it does not
keep integers between them. Inputs are the images or vectors of $N2D2_DATA where the network has some, else noise in [0, 1].
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from common import header, machine, row, session

INPUTS, OUTPUTS, STEP = 64, 16, 2048.0


# ---- peers: run in an interpreter of their own -------------------------------------------------
def _onnxruntime(model: str, exact: bool):
    run = session(Path(model), True, 1, exact)
    return lambda x: run.run(None, {run.get_inputs()[0].name: x})[0]


def _openvino(model: str):
    import openvino

    core = openvino.Core()
    network = core.read_model(model)
    network.reshape([1, *[size.get_length() for size in list(network.inputs[0].partial_shape)[1:]]])
    compiled = core.compile_model(network, "CPU", {"INFERENCE_NUM_THREADS": 1})
    return lambda x: compiled(x)[0]


PEERS = {
    "onnxruntime": lambda model: _onnxruntime(model, False),
    "onnxruntime-exact": lambda model: _onnxruntime(model, True),
    "openvino": _openvino,
}


def worker(peer: str, model: str, inputs: str, outputs: str) -> None:
    """Writes what a peer makes of each input of a .npy file."""
    run = PEERS[peer](model)
    np.save(outputs, np.concatenate([run(x[None]) for x in np.load(inputs)]))


def answers(python: str, peer: str, model: Path, x: np.ndarray) -> np.ndarray | None:
    """The outputs of a peer for inputs (N, ...), None where it does not run here."""
    with tempfile.TemporaryDirectory() as name:
        np.save(f"{name}/x.npy", x)
        for limits in ({}, {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_VNNI"}):  # AMX is named by machines that do not let it be used
            words = [python, __file__, "-worker", peer, str(model), f"{name}/x.npy", f"{name}/y.npy"]
            done = subprocess.run(words, env={**os.environ, **limits}, stderr=subprocess.DEVNULL)
            if done.returncode == 0:
                return np.load(f"{name}/y.npy")
    return None


# ---- references --------------------------------------------------------------------------------
def convolution(path: Path, weights: np.ndarray) -> None:
    """The QDQ model of one 1x1 convolution of unsigned bytes, scales 1, outputs in steps of STEP."""
    from support.onnx_models import node_model

    constants = {"one": np.float32(1), "zero_u": np.uint8(0), "zero_s": np.int8(0), "step": np.float32(STEP)}
    nodes = [
        ("QuantizeLinear", ["x", "one", "zero_u"], "xq"),
        ("DequantizeLinear", ["xq", "one", "zero_u"], "xr"),
        ("DequantizeLinear", ["w", "one", "zero_s"], "wr"),
        ("Conv", ["xr", "wr"], "c"),
        ("QuantizeLinear", ["c", "step", "zero_s"], "cq"),
        ("DequantizeLinear", ["cq", "step", "zero_s"], "y"),
    ]
    constants["w"] = weights.reshape(OUTPUTS, INPUTS, 1, 1).astype(np.int8)
    path.write_bytes(node_model(nodes, constants, [1, INPUTS, 8, 8], opset=13))


def reference(model: Path, x: np.ndarray) -> tuple[np.ndarray, float]:
    """What a QDQ network stands for: its outputs for inputs (N, ...), and the scale of the output."""
    import onnx
    from onnx import numpy_helper

    run = session(model)
    name = run.get_inputs()[0].name
    graph = onnx.load(model).graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    makers = {output: node for node in graph.node for output in node.output}
    node = makers[graph.output[0].name]
    while node.op_type != "DequantizeLinear":
        node = makers[node.input[0]]
    step = float(numpy_helper.to_array(constants[node.input[1]]).max())
    return np.concatenate([run.run(None, {name: one[None]})[0] for one in x]), step


def inputs_of(model: Path, count: int) -> np.ndarray:
    """Inputs (N, ...) of a network: of its data, or noise."""
    from quantized import stimuli

    port = session(model).get_inputs()[0]
    shape = tuple(size if isinstance(size, int) else 1 for size in port.shape[1:])
    found = stimuli(model, shape, count)
    return found if found.shape[1:] == shape else np.random.default_rng(1).random((count, *shape), np.float32)


def print_lines(python: str, title: str, model: Path, x: np.ndarray, wanted: np.ndarray, step: float) -> None:
    """Prints the line of each peer; the largest outputs are compared of networks alone."""
    for peer in PEERS:
        found = answers(python, peer, model, x)
        if found is None:
            continue
        steps, other = np.abs(found.reshape(wanted.shape) - wanted) / step, "-"
        if wanted.ndim == 2 and wanted[0].size > 1:
            other = f"{100 * np.mean(found.reshape(wanted.shape).argmax(1) != wanted.argmax(1)):.1f} %"
        row(title, peer, f"{100 * np.mean(steps > 0.5):.2f} %", f"{steps.max():.1f}", other)


def main() -> None:
    if sys.argv[1:2] == ["-worker"]:
        worker(*sys.argv[2:6])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("-n", type=int, default=50)
    parser.add_argument("-peers", default=sys.executable, metavar="PYTHON")
    arguments = parser.parse_args()
    print(f"Machine: {machine()}.\n")
    header("network", "runtime", "off", "farthest", "top-1", texts=2)
    rng = np.random.default_rng(0)
    weights = rng.integers(-127, 128, (OUTPUTS, INPUTS))
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "convolution_qdq.onnx"
        convolution(path, weights)
        for largest in (255, 127):
            x = rng.integers(0, largest + 1, (8, INPUTS, 8, 8))
            sums = np.einsum("oc,nchw->nohw", weights, x)
            wanted = np.clip(np.rint(sums / STEP), -128, 127) * STEP
            print_lines(arguments.peers, f"one convolution, inputs 0 to {largest}", path, x.astype(np.float32), wanted, STEP)
    for model in arguments.models or sorted(Path(os.environ.get("N2D2_MODELS", ".")).glob("*_qdq*.onnx")):
        x = inputs_of(model, arguments.n)
        wanted, step = reference(model, x)
        print_lines(arguments.peers, f"{model.stem}, {len(x)} inputs", model, x, wanted.reshape(len(x), -1), step)


if __name__ == "__main__":
    main()
