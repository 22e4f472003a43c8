"""What int8 networks with depthwise convolutions take in ncnn with and without packed channels (docs/reference/targets/ncnn.md says why they are turned off).

    N2D2_DATA=FOLDER N2D2_MODELS=FOLDER/models python benchmarks/ncnn_packing.py [-calib N] NET.ini ...

Both run one after the other on one core, so that other work on the machine slows both; the ratio is the median of theirs.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from importlib import import_module
from pathlib import Path

import numpy as np
from common import header, machine, row

import n2d2py
from n2d2py.exports import ExportRequest, StoredStimuli, find_target
from n2d2py.quant.simulator import quantize_inputs
from n2d2py_ncnn.target import NcnnRunner, open_network

ROUNDS, WARM = 60, 5


def times(path: Path, calib: int) -> np.ndarray:
    """Milliseconds (rounds, 2) of an inference with and without packed channels."""
    model = n2d2py.load(path, "NCNN")
    graph = n2d2py.quantize(model, n2d2py.calibrate(model, options=n2d2py.CalibrationOptions(stimuli=calib))).graph
    rng, (name,) = np.random.default_rng(1), graph.inputs
    (stored,) = quantize_inputs(graph, [rng.uniform(-1, 1, graph.shape(name)).astype(np.float32)])
    target, library = find_target("NCNN"), import_module("ncnn")
    prepared = target.prepare(ExportRequest(graph, StoredStimuli((stored,), (np.zeros((1, 1), np.int32),))))
    details = target.details(prepared)
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        target.write(prepared, folder)
        settings = NcnnRunner.settings
        nets = [open_network(folder, details, {**settings, "use_packing_layout": packed}) for packed in (True, False)]
    x = library.Mat(np.ascontiguousarray(graph.type(name).dequantize(stored[0]), np.float32)).clone()
    found = np.zeros((ROUNDS, len(nets)))
    for number in range(ROUNDS):
        for column, net in enumerate(nets):
            start = time.perf_counter()
            extractor = net.create_extractor()
            extractor.input(details["blobs"][name], x)
            extractor.extract(details["blobs"][graph.outputs[0]])
            found[number, column] = 1e3 * (time.perf_counter() - start)
    return found[WARM:]


def main() -> None:
    """Prints a line for each network."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="+", type=Path)
    parser.add_argument("-calib", type=int, default=16)
    arguments = parser.parse_args()
    print(f"Machine: {machine()}.\n")
    header("network", "packed, ms", "not packed, ms", "ratio")
    for path in arguments.networks:
        found = times(path.resolve(), arguments.calib)
        packed, apart = np.median(found, axis=0)
        row(path.stem, f"{packed:.2f}", f"{apart:.2f}", f"{np.median(found[:, 1] / found[:, 0]):.2f}")


if __name__ == "__main__":
    main()
