"""The anomaly detector in integers: area under the ROC of floating point and of integers, on clips made for it.

    python benchmarks/anomaly.py [-seeds N]

The recordings that the network was trained on are not at hand. Clips are made from what it knows: random spectra, put through
the network until it reproduces them, then a deviation for each clip, larger on the average for half of them, so that floating
point separates them about as well as it is said to separate the real ones (0.88). 248 clips of 20 windows; the score of a clip
is the mean squared error over its windows; 100 windows of other normal clips calibrate. This says what the integers add to the
network's own error, not how good the network is.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from common import header, machine, row
from support.onnx_models import original_engine

from n2d2py import log
from n2d2py.options import read_command
from n2d2py.pipeline import load_network
from n2d2py.quant.simulator import quantize_inputs, simulate_all
from n2d2py.stages.calibrate import calibrate_stage
from n2d2py.stages.quantize import quantize_stage

CLIPS, WINDOWS, VALUES = 248, 20, 640
WAYS = {"fast": "-quality fast", "default": "", "best": "-quality best", "8 bits in and out": "-input-bits 8 -output-bits 8"}


def windows(run, rng: np.random.Generator, count: int) -> np.ndarray:
    """Log-mel windows (count, 640) that the network reproduces, in decibels."""
    bands = np.repeat(rng.normal(-35, 12, (count, 1, 128)), 5, axis=1)
    x = np.clip(bands + rng.normal(0, 4, (count, 5, 128)), -81, 12).reshape(count, VALUES).astype(np.float32)
    for _ in range(20):
        x = np.clip(run(x), -81, 12)
    return x


def clips(run, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(windows to calibrate on, windows of all clips, whether each clip is an anomaly)."""
    rng = np.random.default_rng(seed)
    anomalous = np.arange(CLIPS) % 2 == 1
    size = np.exp(rng.normal(np.where(anomalous, np.log(3.0) + 0.5, np.log(3.0)), 0.3))
    made = windows(run, rng, CLIPS * WINDOWS)
    made += np.repeat(size, WINDOWS)[:, None] * rng.normal(size=made.shape)
    calibration = windows(run, rng, 100)
    calibration += 3 * rng.normal(size=calibration.shape)
    return calibration.astype(np.float32), made.astype(np.float32), anomalous


def auc(scores: np.ndarray, anomalous: np.ndarray) -> float:
    """Share of pairs of an anomaly and a normal clip in which the anomaly scores higher."""
    return float(np.mean(scores[anomalous][:, None] > scores[~anomalous][None, :]))


def clip_scores(x: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """Mean squared error over the windows of each clip."""
    return np.square(outputs - x, dtype=np.float64).mean(axis=1).reshape(CLIPS, WINDOWS).mean(axis=1)


def integers(model: Path, calibration: np.ndarray, x: np.ndarray, words: list[str]) -> np.ndarray:
    """Real values of the outputs of the integer network."""
    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "calibration.npy"
        np.save(data, calibration)
        path, options = read_command([str(model), *f"-export CPP -calib -1 -seed 1 -calib-data {data}".split(), *words])
        calibrated = calibrate_stage(load_network(path, options), options.calibration)
        graph = quantize_stage(calibrated, options.quantization).graph
    inputs = quantize_inputs(graph, [x.reshape(len(x), *graph.shape(graph.inputs[0])[1:])])
    stored = simulate_all(graph, inputs, 256)[graph.outputs[0]]
    return graph.type(graph.outputs[0]).dequantize(stored).reshape(len(x), -1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-seeds", type=int, default=3)
    arguments = parser.parse_args()
    log.setup(quiet=True, verbose=False, strict=False)
    logging.disable(logging.WARNING)
    model = Path(os.environ["N2D2_MODELS"]) / "ad_autoencoder.onnx"
    engine = original_engine(model)

    def run(x: np.ndarray) -> np.ndarray:
        return engine.run(x)[engine.outputs[0]]

    print(f"Machine: {machine()}. {CLIPS} clips of {WINDOWS} windows.\n")
    header("clips", "quantization", "AUC", "difference", "error of the outputs", texts=2)
    for seed in range(arguments.seeds):
        calibration, x, anomalous = clips(run, seed)
        real = run(x)
        base = auc(clip_scores(x, real), anomalous)
        row(f"{seed}", "float", f"{base:.4f}", "", "")
        for name, options in WAYS.items():
            found = integers(model, calibration, x, options.split())
            area = auc(clip_scores(x, found), anomalous)
            row(f"{seed}", name, f"{area:.4f}", f"{area - base:+.4f}", f"{np.abs(found - real).mean():.4f}")


if __name__ == "__main__":
    main()
