"""Measures how near integers come to floating point on networks with SiLU, attention and detection heads, as a Markdown table.

    N2D2_DATA=FOLDER python benchmarks/modern.py [NETWORK ...]

FOLDER/modern has a folder for each network: an ONNX file, calib.npy (stimuli that calibrate), eval.npz (x: those that are
measured). SQNR of all outputs against ONNX Runtime on the float file, and the share of outputs whose largest channel is the
same; of yolo the share of detections (objectness above 0.5) that is found.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from common import DATA, header, machine, row, session

import n2d2py
from n2d2py.quant.simulator import quantize_inputs, simulate_all
from n2d2py.stages.options import suit_calibration

WAYS = {
    "8 bits": {},
    "8 bits, -no-zero-points": {"zero_points": False},
    "8 bits, -no-bias-correction": {"correct_bias": False},
    "16 bits": {"bits": 16},
}


def measure(folder: Path, way: dict) -> str:
    """One cell: SQNR, agreement, detections."""
    (file,) = folder.glob("*.onnx")
    stimuli, given = np.load(folder / "eval.npz")["x"][:100], np.load(folder / "calib.npy")
    run = session(file, True)
    real = np.asarray(run.run(None, {run.get_inputs()[0].name: stimuli})[0])
    net = n2d2py.load(file)
    options = n2d2py.QuantizationOptions(**way)
    calibrated = n2d2py.calibrate(net, given, options=suit_calibration(n2d2py.CalibrationOptions(stimuli=-1), options))
    graph = n2d2py.quantize(net, calibrated, options=options).graph
    stored = simulate_all(graph, quantize_inputs(graph, [stimuli]), 25)[graph.outputs[0]]
    found = graph.type(graph.outputs[0]).dequantize(stored).reshape(real.shape)
    decibels = 10 * np.log10(np.square(real).sum() / np.square(found - real).sum())
    text = f"{decibels:.1f} dB, {100 * (found.argmax(1) == real.argmax(1)).mean():.4g} %"
    if folder.name == "yolo":
        there, seen = real[:, 4] > 0.5, found[:, 4] > 0.5
        text += f", {100 * (there & seen).sum() / there.sum():.1f} % of detections, {(seen & ~there).sum()} false"
    return text


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*")
    chosen = parser.parse_args().networks
    header("network", *WAYS)
    for name in chosen or sorted(path.name for path in (DATA / "modern").iterdir() if path.is_dir()):
        row(name, *(measure(DATA / "modern" / name, way) for way in WAYS.values()))
    print(f"\n{machine()}")


if __name__ == "__main__":
    main()
