"""Random small networks with unusual weights, stimuli, options and precisions, each by its seed.

Weights and stimuli are multiples of powers of two, so that their sums are exact in any order, on any machine.
"""

from __future__ import annotations

import random

import numpy as np
from onnx import numpy_helper, parser

from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.graph import Graph, Precision
from n2d2py.passes import fuse
from n2d2py.quant.options import QuantOptions

WEIGHTS = ("plain", "plain", "zero channel", "outlier", "one", "tiny", "negative", "equal", "wide channels")
STIMULI = (
    "plain",
    "plain",
    "zero",
    "constant",
    "outlier",
    "negative",
    "positive",
    "tiny",
    "huge",
    "dead channel",
    "one",
    "met",
)


def drawn_weights(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> np.ndarray:
    """Eighths, at most 1 but for what the kind says."""
    values = rng.integers(-8, 9, shape) / 8
    if kind == "zero channel":
        values[rng.integers(shape[0])] = 0
    elif kind == "outlier":
        values.reshape(-1)[rng.integers(values.size)] = 32
    elif kind == "one":
        values = np.where(rng.random(shape) < 1.5 / shape[-1], values, 0)
    elif kind == "tiny":
        values = values / 4096
    elif kind == "negative":
        values = -np.abs(values)
    elif kind == "equal":
        values = np.full(shape, 0.375)
    elif kind == "wide channels":
        values = values * 2.0 ** rng.integers(-6, 4, (shape[0],) + (1,) * (len(shape) - 1))
    return values.astype(np.float32)


def drawn_stimuli(seed: int, channels: int, size: int) -> np.ndarray:
    """Sixteenths, of one of the kinds; one stimulus, or a few."""
    rng = np.random.default_rng(seed + 900)
    kind = STIMULI[seed % len(STIMULI)]
    values = rng.integers(-24, 25, (1 if seed % 7 == 3 else 6, channels, size, size)) / 16
    if kind in ("zero", "constant"):
        values[:] = 0 if kind == "zero" else 0.75
    elif kind == "outlier":
        values.reshape(-1)[rng.integers(values.size)] = 96
    elif kind in ("negative", "positive"):
        values = np.abs(values) * (-1 if kind == "negative" else 1)
    elif kind in ("tiny", "huge"):
        values = values * (2.0**-14 if kind == "tiny" else 1024)
    elif kind == "dead channel":
        values[:, rng.integers(channels)] = 0
    elif kind == "one":
        values[1:] = 0
    elif kind == "met":
        values = np.clip(values, -1, 127 / 128)
    return values.astype(np.float32)


class _Text:
    """The lines of a network, with the constants that they name."""

    def __init__(self, seed: int):
        self.rng, self.array = random.Random(seed), np.random.default_rng(seed)
        self.lines: list[str] = []
        self.constants: dict[str, np.ndarray] = {}
        self.kind = WEIGHTS[self.rng.randrange(len(WEIGHTS))]
        self.weighted: list[str] = []

    def constant(self, value: np.ndarray) -> str:
        name = f"k{len(self.constants)}"
        self.constants[name] = value
        return name

    def line(self, text: str) -> str:
        name = f"t{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def conv(self, x: str, inputs: int, outputs: int, kernel: int, groups: int = 1, stride: int = 1) -> str:
        w = self.constant(drawn_weights(self.array, (outputs, inputs // groups, kernel, kernel), self.kind))
        bias = f", {self.constant(drawn_weights(self.array, (outputs,), 'plain'))}" if self.rng.random() < 0.7 else ""
        form = (
            f"group = {groups}, strides = [{stride},{stride}], pads = [{kernel // 2},{kernel // 2},{kernel // 2},{kernel // 2}]"
        )
        self.weighted.append(f"t{len(self.lines)}")
        return self.line(f"Conv <{form}> ({x}, {w}{bias})")


def drawn_network(seed: int) -> tuple[Graph, np.ndarray]:
    """A fused float network and its stimuli."""
    text = _Text(seed)
    rng, channels, size = text.rng, text.rng.choice((1, 2, 4, 4)), text.rng.choice((2, 4, 6))
    stimuli, entry = drawn_stimuli(seed, channels, size), size
    inputs, x = channels, "x"
    made: list[tuple[str, int, int]] = []
    for _ in range(rng.randint(3, 7)):
        kind = rng.choice(("conv", "conv", "depthwise", "act", "act", "pool", "sum", "sum", "concat", "affine", "pad", "other"))
        peers = [name for name, c, s in made if (c, s) == (channels, size)]
        if kind == "conv":
            outputs = rng.choice((1, 2, 4, 6))
            x, channels = text.conv(x, channels, outputs, rng.choice((1, 3))), outputs
        elif kind == "depthwise":
            times = rng.choice((1, 1, 2))
            x = text.conv(x, channels, channels * times, 3, channels)
            channels *= times
        elif kind == "act":
            x = _activation(text, x)
        elif kind == "pool" and size >= 4:
            x = text.line(f"{rng.choice(('MaxPool', 'AveragePool'))} <kernel_shape = [2,2], strides = [2,2]> ({x})")
            size //= 2
        elif kind == "sum" and peers:
            x = text.line(f"{rng.choice(('Add', 'Add', 'Sub', 'Mul', 'Max', 'Min'))} ({x}, {rng.choice(peers)})")
        elif kind == "concat" and peers:
            x, channels = text.line(f"Concat <axis = 1> ({x}, {rng.choice(peers)})"), channels * 2
        elif kind == "affine":
            value = drawn_weights(text.array, (channels, 1, 1), rng.choice(("plain", "wide channels")))
            x = text.line(f"{rng.choice(('Mul', 'Add'))} ({x}, {text.constant(value)})")
        elif kind == "pad":
            pads, fill = text.constant(np.array([0, 0, 1, 0, 0, 0, 1, 0])), text.constant(np.float32(rng.choice((0, -0.5, 4))))
            x = text.line(f"Pad ({x}, {pads}, {fill})")
            made.clear()
            x, size = (
                text.line(
                    f"Slice ({x}, {text.constant(np.array([1]))}, {text.constant(np.array([size + 1]))},"
                    f" {text.constant(np.array([2]))})"
                ),
                size,
            )
        elif kind == "other":
            x = text.line(f"{rng.choice(('Floor', 'Abs', 'Neg', 'Identity'))} ({x})")
        made.append((x, channels, size))
    if rng.random() < 0.4:
        mean = text.line(f"GlobalAveragePool ({x})")
        x = text.line(f"Flatten ({mean})")
        w = text.constant(drawn_weights(text.array, (3, channels), text.kind))
        text.weighted.append(f"t{len(text.lines)}")
        x = text.line(f"Gemm <transB = 1> ({x}, {w})")
    else:
        x = text.conv(x, channels, 2, 1)
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> drawn (float[N,{inputs},{entry},{entry}] x) => (float[N] {x}) {{ '
        + "\n".join(text.lines)
        + " }"
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    model.graph.initializer.extend(numpy_helper.from_array(value, key) for key, value in text.constants.items())
    graph = import_onnx(model)
    graph.precisions.update(_precisions(rng, text.weighted))
    return fuse(graph, integer=True)[0], stimuli


def _activation(text: _Text, x: str) -> str:
    kind = text.rng.choice(("Relu", "Relu", "Clip", "LeakyRelu", "HardSigmoid", "PRelu1", "ThresholdedRelu"))
    if kind == "Clip":
        low, high = text.rng.choice(((0, 6), (0, 0.5), (-1, 1), (-0.25, 2)))
        return text.line(f"Clip ({x}, {text.constant(np.float32(low))}, {text.constant(np.float32(high))})")
    if kind == "PRelu1":
        return text.line(f"PRelu ({x}, {text.constant(np.float32([[[0.25]]]))})")
    form = {"LeakyRelu": " <alpha = 0.125>", "HardSigmoid": " <alpha = 0.25>", "ThresholdedRelu": " <alpha = 0.5>"}
    return text.line(f"{kind}{form.get(kind, '')} ({x})")


def _precisions(rng: random.Random, weighted: list[str]) -> dict[str, Precision]:
    if rng.random() < 0.5:
        return {}
    return {
        name: Precision(
            bits=rng.choice((None, None, 8, 16)),
            weight_bits=rng.choice((None, 2, 3, 4, 5, 6, 7, 8, 16)),
            quantize=rng.choice((None, None, None, True, False)),
        )
        for name in weighted
        if rng.random() < 0.6
    }


def drawn_options(seed: int) -> QuantOptions:
    """Options of the command line, some of them unlike the defaults."""
    rng = random.Random(seed + 77)
    return QuantOptions(
        bits=rng.choice((8, 8, 8, 16)),
        act_clipping=rng.choice(("MSE", "MSE", "None", "KL-Divergence", "Quantile")),
        quantile=rng.choice((0.9, 0.99, 0.9999, 1.0)),
        wt_clipping=rng.choice(("None", "None", "MSE", "KL-Divergence")),
        rescaling=rng.choice(("Floating-point", "Floating-point", "Fixed-point", "Single-shift", "Double-shift")),
        per_output=rng.random() < 0.7,
        unsigned=rng.random() < 0.8,
        equalize=rng.random() < 0.7,
        correct_bias=rng.random() < 0.4,
        input_bits=rng.choice((8, 8, 0, 16)),
        input_asked=rng.random() < 0.1,
        output_bits=rng.choice((8, 8, 0, 16)),
        mixed=rng.random() < 0.3,
        wide_weights=rng.random() < 0.3,
        wide_joins=rng.random() < 0.7,
        sequential=rng.random() < 0.3,
        reduce_range=rng.random() < 0.25,
        adaptive_rounding=rng.random() < 0.35,
        zero_points=rng.random() < 0.7,
        unit_ranges=rng.random() < 0.2,
        full_range=rng.random() < 0.2,
    )
