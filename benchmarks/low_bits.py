"""Measures weights of few bits without training, on the shared networks, as a Markdown table.

    N2D2_DATA=FOLDER python benchmarks/low_bits.py [-nearest] [-thorough] [-bits 8,4,3,2] [-budget | -steps | -stimuli 50,100] [NETWORK ...]

Top-1 of the float network and of the simulated integers (8-bit activations), agreement of the two, SQNR of the outputs. Stimuli that
calibrate are not measured. With -nearest weights are rounded to the nearest too, for comparison; with -thorough up to
256 stimuli round them in place of 64, as with the command. With -budget instead: 4 bits in all layers, and the widths that -flash-budget
chooses at as many bytes. With -steps instead: all layers of so many bits, rounded with some of the steps alone.
With -stimuli instead: weights rounded with so many stimuli (256 at most); each quarter is measured with weights of the others.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from common import DATA
from PIL import Image

import n2d2py
from n2d2py.arithmetic.weights import round_nearest
from n2d2py.quant.calibration import quantize_observed
from n2d2py.quant.correct import layers as correct
from n2d2py.quant.observe.moments import Moments
from n2d2py.quant.simulator import quantize_inputs, simulate_all
from n2d2py.quant.weights.narrow import with_weight_bits
from n2d2py.quant.weights.rounding import CompensatedRounding, descend
from n2d2py.reference.engine import FloatEngine

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


def modern(name: str) -> Sets:
    """100 stimuli that calibrate, 100 that are measured."""
    folder = DATA / "modern" / name
    measured = np.load(folder / "eval.npz")
    return np.load(folder / "calib.npy"), measured["x"], measured["y"]


NETWORKS: dict[str, Callable[[], Sets]] = {
    "resnet8": cifar10,
    "mobilenet_v1_0.5_160": lambda: imagenet(160, lambda p: (p - 128) / 128),
    "mobilenet_v2_1.0_224": lambda: imagenet(224, lambda p: p / 127.5 - 1),
    "vww_96": vww,
    "kws_dscnn": kws,
    "effnet": lambda: modern("effnet"),
    "vit": lambda: modern("vit"),
}


def _model(name: str) -> Path:
    path = DATA / "models" / f"{name}.onnx"
    return path if path.exists() else DATA / "modern" / name / f"{name}.ts.onnx"


def _in_batches(run: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    return np.concatenate([run(x[start : start + 25]).reshape(-1) for start in range(0, len(x), 25)]).reshape(len(x), -1)


class Measured:
    """One network with its calibration, and what quantized graphs of it give on the stimuli that are measured."""

    def __init__(self, name: str, thorough: bool, sets: Sets | None = None):
        given, self.x, self.labels = sets or NETWORKS[name]()
        self.name = name
        self.net = n2d2py.load(_model(name))
        self.calibrated = n2d2py.calibrate(self.net, given, options=n2d2py.CalibrationOptions(stimuli=-1, thorough=thorough))
        engine = FloatEngine(self.net.graph)
        self.real = _in_batches(lambda part: engine.run(part)[self.net.graph.outputs[0]], self.x)
        if sets is None:
            print(f"| {name} | float | | {100 * (self.real.argmax(1) == self.labels).mean():.1f} | | | |", flush=True)

    def quantized(self, **options) -> n2d2py.QuantizedModel:
        return n2d2py.quantize(self.net, self.calibrated, options=n2d2py.QuantizationOptions(**options))

    def results(self, graph) -> np.ndarray:
        stored = simulate_all(graph, quantize_inputs(graph, [self.x]), 25)[graph.outputs[0]]
        return graph.type(graph.outputs[0]).dequantize(stored).reshape(self.real.shape)

    def tell(self, graph, what: str, way: str, last: str) -> None:
        print_line(self.name, what, way, self.results(graph), self.real, self.labels, last)


def print_line(name: str, what: str, way: str, found: np.ndarray, real: np.ndarray, labels: np.ndarray, last: str) -> None:
    decibels = 10 * np.log10(np.square(real).sum() / np.square(found - real).sum())
    top, agreed = (100 * (found.argmax(1) == other).mean() for other in (labels, real.argmax(1)))
    print(f"| {name} | {what} | {way} | {top:.1f} | {agreed:.1f} | {decibels:.1f} | {last} |", flush=True)


def measure(name: str, bits: list[int], ways: list[str], thorough: bool = False) -> None:
    """Prints the lines of one network."""
    measured = Measured(name, thorough)
    for width in bits:
        for way in ways:
            start = time.perf_counter()
            graph = measured.quantized(weight_bits=width, rounding=way).graph
            measured.tell(graph, f"w{width}a8", way, f"{time.perf_counter() - start:.1f}")


def measure_stimuli(name: str, bits: list[int], counts: list[int]) -> None:
    """Prints what rounding with so many stimuli gives; each quarter of those measured is rounded with others, drawn from the rest."""
    given, x, labels = NETWORKS[name]()
    quarters, order = np.arange(len(x)) % 4, np.random.default_rng(0).permutation(len(x) + len(given))
    for width in bits:
        for count in counts:
            parts = []
            for quarter in range(4):
                known = [i for i in order if i >= len(x) or quarters[i] != quarter][:count]
                pool, own = np.concatenate([x, given])[known], quarters == quarter
                measured = Measured(name, True, (pool, x[own], labels[own]))
                graph = measured.quantized(weight_bits=width, rounding="adaptive").graph
                parts.append((measured.results(graph), measured.real, measured.labels))
            found, real, targets = (np.concatenate(each) for each in zip(*parts, strict=True))
            print_line(name, f"w{width}a8, {count} stimuli", "adaptive", found, real, targets, "")


def measure_budget(name: str, thorough: bool = False) -> None:
    """Prints what 4 bits in all layers give, and the widths chosen at their bytes; both rounded on all stimuli that calibrate."""
    measured = Measured(name, thorough)
    search = measured.quantized(flash_budget=1 << 40).quantized.search
    uniform = next(one for one in search.measured if one.name == "all 4 bits")
    found = measured.quantized(flash_budget=uniform.bytes).quantized
    observed = replace(found.observed, graph=with_weight_bits(found.observed.graph, uniform.widths))
    measured.tell(quantize_observed(observed, found.options)[0], "4 bits in all", "adaptive", f"{uniform.bytes:,} bytes")
    taken, counts = found.search.taken, Counter(found.search.taken.widths.values())
    bits = ", ".join(f"{counts[each]} of {each} bits" for each in sorted(counts, reverse=True))
    measured.tell(found.graph, "-flash-budget", "adaptive", f"{taken.bytes:,} bytes: {bits}")


STEPS = {
    "coordinate descent": ("descent",),
    "GPTQ": ("gptq",),
    "GPTQ, coordinate descent": ("gptq", "descent"),
    "inputs, coordinate descent": ("inputs", "descent"),
    "inputs, GPTQ": ("inputs", "gptq"),
    "inputs, GPTQ, coordinate descent": ("inputs", "gptq", "descent"),
    "all, with the range of weights rounded together": ("inputs", "gptq", "descent", "range"),
}


def _rounding_of(steps: tuple[str, ...]) -> type[CompensatedRounding]:
    """The rounding with these steps alone."""

    class Some(CompensatedRounding):
        def __init__(self, moments: Moments):
            super().__init__(moments if "inputs" in steps else replace(moments, drift=None))

        def __call__(self, rows: np.ndarray, scales: np.ndarray, levels: int) -> np.ndarray:
            start, target = round_nearest(rows, scales, levels), self._target(rows / scales[:, None])
            if "gptq" in steps:
                kept, self._shift = self._shift, None
                start = super().__call__(target.reshape(rows.shape), np.ones(len(rows)), levels)
                self._shift = kept
            if "descent" in steps:
                start = descend(target, start.reshape(target.shape), self._covariance.matrix(), levels)
            return start.reshape(rows.shape)

        def magnitudes(self, rows: np.ndarray, largest: np.ndarray, levels: int) -> np.ndarray:
            return (super().magnitudes if "range" in steps else self._best_of_nearest)(rows, largest, levels)

    return Some


def measure_steps(name: str, bits: list[int], thorough: bool) -> None:
    """Prints what the steps of the rounding are worth, all layers in few bits."""
    measured = Measured(name, thorough)
    found = measured.quantized(weight_bits=4, rounding="adaptive").quantized
    layers = [node.name for node in found.observed.graph.nodes if "weights" in node.params]
    for what, steps in STEPS.items():
        correct.CompensatedRounding = _rounding_of(steps)
        for width in bits:
            observed = replace(found.observed, graph=with_weight_bits(found.observed.graph, dict.fromkeys(layers, width)))
            measured.tell(quantize_observed(observed, found.options)[0], f"w{width}a8", what, "")


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*")
    parser.add_argument("-bits", default="8,4,3,2")
    for flag in ("nearest", "thorough", "budget", "steps"):
        parser.add_argument(f"-{flag}", action="store_true")
    parser.add_argument("-stimuli", default="")
    chosen = parser.parse_args()
    ways = (["nearest"] if chosen.nearest else []) + ["adaptive"]
    print("| network | | rounding | top-1 | agreement | SQNR dB | s |\n|---|---|---|---:|---:|---:|---:|")
    for name in chosen.networks or NETWORKS:
        bits = [int(each) for each in chosen.bits.split(",")]
        if chosen.stimuli:
            measure_stimuli(name, bits, [int(each) for each in chosen.stimuli.split(",")])
        elif chosen.budget:
            measure_budget(name, chosen.thorough)
        elif chosen.steps:
            measure_steps(name, bits, chosen.thorough)
        else:
            measure(name, bits, ways, chosen.thorough)


if __name__ == "__main__":
    main()
