"""Measures weights of few bits without training, on the shared networks, as a Markdown table.

    N2D2_DATA=FOLDER python benchmarks/low_bits.py [-nearest] [-thorough] [-bits 8,4,3,2] [NETWORK ...]

Top-1 of the float network and of the simulated integers (8-bit activations), agreement of the two, SQNR of the outputs. Stimuli that
calibrate are not measured. With -nearest weights are rounded to the nearest too, for comparison; with -thorough up to
256 stimuli round them in place of 64, as with the command.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import n2d2py  # noqa: E402
from n2d2py.quant.simulator import quantize_inputs, simulate_all  # noqa: E402
from n2d2py.reference.engine import FloatEngine  # noqa: E402

DATA = Path(os.environ.get("N2D2_DATA", ROOT.parent / "shared" / "data"))
Sets = tuple[np.ndarray, np.ndarray, np.ndarray]


def _pixels(path: Path, size: int = 0) -> np.ndarray:
    image = Image.open(path).convert("RGB")
    image = image.resize((size, size), Image.Resampling.BILINEAR) if size else image
    return np.asarray(image, np.float32).transpose(2, 0, 1)


def cifar10() -> Sets:
    """200 stimuli that calibrate, 1,000 that are measured with their labels."""
    train = sorted((DATA / "cifar10" / "train").rglob("*.png"))
    chosen = [train[i] for i in np.linspace(0, len(train) - 1, 200).round().astype(int)]
    files = sorted((DATA / "cifar10" / "test").rglob("*.png"))
    names = sorted({path.parent.name for path in files})
    labels = np.array([names.index(path.parent.name) for path in files])
    return np.stack([_pixels(path) for path in chosen]), np.stack([_pixels(path) for path in files]), labels


def imagenet(size: int, scaled: Callable[[np.ndarray], np.ndarray]) -> Sets:
    """100 stimuli that calibrate, 300 that are measured; class k + 1 is label k."""

    def read(name: str) -> tuple[np.ndarray, np.ndarray]:
        lines = [line.split() for line in (DATA / "imagenet" / name).read_text().splitlines()]
        x = np.stack([scaled(_pixels(DATA / "imagenet" / file, 0 if size == 224 else size)) for file, _ in lines])
        return x, np.array([int(label) + 1 for _, label in lines])

    return read("calib.txt")[0], *read("eval.txt")


def vww() -> Sets:
    """The even pictures calibrate, the odd ones are measured."""
    lines = [line.split() for line in (DATA / "vww" / "labels.txt").read_text().splitlines()]
    x = np.stack([_pixels(DATA / "vww" / file) / 255 for file, _ in lines])
    return x[::2], x[1::2], np.array([int(label) for _, label in lines])[1::2]


def kws() -> Sets:
    """The even words calibrate, the odd ones are measured."""
    data = np.load(DATA / "kws" / "kws_mfcc.npz")
    return data["x"][::2], data["x"][1::2], data["y"][1::2]


NETWORKS: dict[str, Callable[[], Sets]] = {
    "resnet8": cifar10,
    "mobilenet_v1_0.5_160": lambda: imagenet(160, lambda p: (p - 128) / 128),
    "mobilenet_v2_1.0_224": lambda: imagenet(224, lambda p: p / 127.5 - 1),
    "vww_96": vww,
    "kws_dscnn": kws,
}


def _in_batches(run: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    return np.concatenate([run(x[start : start + 25]).reshape(-1) for start in range(0, len(x), 25)]).reshape(len(x), -1)


def measure(name: str, bits: list[int], ways: list[str], thorough: bool = False) -> None:
    """Prints the lines of one network."""
    given, x, labels = NETWORKS[name]()
    net = n2d2py.load(DATA / "models" / f"{name}.onnx")
    calibrated = n2d2py.calibrate(net, given, options=n2d2py.CalibrationOptions(stimuli=-1, thorough=thorough))
    engine = FloatEngine(net.graph)
    real = _in_batches(lambda part: engine.run(part)[net.graph.outputs[0]], x)
    print(f"| {name} | float | | {100 * (real.argmax(1) == labels).mean():.1f} | | | |", flush=True)
    for width in bits:
        for way in ways:
            start = time.perf_counter()
            options = n2d2py.QuantizationOptions(weight_bits=width, rounding=way)
            graph = n2d2py.quantize(net, calibrated, options=options).graph
            seconds = time.perf_counter() - start
            stored = simulate_all(graph, quantize_inputs(graph, [x]), 25)[graph.outputs[0]]
            found = graph.type(graph.outputs[0]).dequantize(stored).reshape(real.shape)
            decibels = 10 * np.log10(np.square(real).sum() / np.square(found - real).sum())
            top, agreed = (100 * (found.argmax(1) == other).mean() for other in (labels, real.argmax(1)))
            print(f"| {name} | w{width}a8 | {way} | {top:.1f} | {agreed:.1f} | {decibels:.1f} | {seconds:.1f} |", flush=True)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*")
    parser.add_argument("-bits", default="8,4,3,2")
    parser.add_argument("-nearest", action="store_true")
    parser.add_argument("-thorough", action="store_true")
    chosen = parser.parse_args()
    ways = (["nearest"] if chosen.nearest else []) + ["adaptive"]
    print("| network | | rounding | top-1 | agreement | SQNR dB | s |\n|---|---|---|---:|---:|---:|---:|")
    for name in chosen.networks or NETWORKS:
        measure(name, [int(bits) for bits in chosen.bits.split(",")], ways, chosen.thorough)


if __name__ == "__main__":
    main()
