"""Exports chains of layers and prints what they cost the tool, as a Markdown table.

    python benchmarks/depth.py [-layers N ...]

A chain is an ONNX file of 1x1 convolutions with 8 channels on 8 x 8 pixels, each with a ReLU, with random weights. It is exported by
`n2d2py chain.onnx -seed 1 -export CPP -nbbits 8 -calib 4`, once for each number of layers. Processor seconds depend less on
other load than seconds do.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from exports import machine, measured  # noqa: E402

SHAPE = (1, 8, 8, 8)


def write_chain(layers: int, path: Path) -> None:
    """The network, as an ONNX file."""
    rng = np.random.default_rng(1)
    nodes, constants, name = [], [], "input"
    for i in range(layers):
        weights = rng.normal(0, 0.5, (SHAPE[1], SHAPE[1], 1, 1)).astype(np.float32)
        bias = rng.normal(0, 0.1, SHAPE[1]).astype(np.float32)
        constants += [numpy_helper.from_array(weights, f"weights{i}"), numpy_helper.from_array(bias, f"bias{i}")]
        nodes += [
            helper.make_node("Conv", [name, f"weights{i}", f"bias{i}"], [f"sum{i}"], name=f"conv{i}"),
            helper.make_node("Relu", [f"sum{i}"], [f"relu{i}"], name=f"relu{i}"),
        ]
        name = f"relu{i}"
    ends = [[helper.make_tensor_value_info(end, TensorProto.FLOAT, SHAPE)] for end in ("input", name)]
    graph = helper.make_graph(nodes, "chain", *ends, constants)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-layers", nargs="+", type=int, default=[125, 250, 500, 1000, 2000])
    arguments = parser.parse_args()
    print(f"Machine: {machine()}.\n")
    print("| layers | processor s | s | processor ms a layer | MB |\n|---:|---:|---:|---:|---:|", flush=True)
    for layers in arguments.layers:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_chain(layers, folder / "chain.onnx")
            words = "-m n2d2py chain.onnx -seed 1 -export CPP -nbbits 8 -calib 4 -quiet".split()
            cost = measured([sys.executable, *words], folder)
        each = 1000 * cost.processor / layers
        print(f"| {layers} | {cost.processor:.1f} | {cost.seconds:.1f} | {each:.1f} | {cost.megabytes:.0f} |", flush=True)


if __name__ == "__main__":
    main()
