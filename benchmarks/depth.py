"""Exports chains of layers and prints what they cost the tool, as a Markdown table.

    python benchmarks/depth.py [-layers N ...]

A chain is an ONNX file of 1x1 convolutions with 8 channels on 8 x 8 pixels, each with a ReLU, with random weights. It is exported by
`n2d2py chain.onnx -seed 1 -export CPP -nbbits 8 -calib 4`, once for each number of layers. Processor seconds depend less on
other load than seconds do.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from common import TOOL, header, machine, row
from exports import measured
from onnx_net import Net

SHAPE = [1, 8, 8, 8]


def write_chain(layers: int, path: Path) -> None:
    """The network, as an ONNX file."""
    net, name = Net(1), "x"
    for _ in range(layers):
        name = net.add("Relu", net.add("Conv", name, net.drawn(0.5, 8, 8, 1, 1), net.drawn(0.1, 8)))
    net.save(path, SHAPE, name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-layers", nargs="+", type=int, default=[125, 250, 500, 1000, 2000])
    arguments = parser.parse_args()
    print(f"Machine: {machine()}.\n")
    header("layers", "processor s", "s", "processor ms a layer", "MB", texts=0)
    for layers in arguments.layers:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_chain(layers, folder / "chain.onnx")
            cost = measured([*TOOL, *"chain.onnx -seed 1 -export CPP -nbbits 8 -calib 4 -quiet".split()], folder)
        each = 1000 * cost.processor / layers
        row(f"{layers}", f"{cost.processor:.1f}", f"{cost.seconds:.1f}", f"{each:.1f}", f"{cost.megabytes:.0f}")


if __name__ == "__main__":
    main()
