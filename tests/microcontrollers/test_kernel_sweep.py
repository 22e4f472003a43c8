"""Kernels of the DSP extension, of MVE and of RV32 against Python's integers: many layers, each with an input of its own, in one program."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.board_export import make
from support.export_networks import request, separate_plan
from support.kernel_rescale import doubling
from support.ops import Conv, ElemWise, Fc, Pool
from support.tables import few_fast

from n2d2py.arithmetic import FixedPointRescale, NumType
from n2d2py.contracts.cpp.forms import lanes
from n2d2py.contracts.operator import Op
from n2d2py.exports import ExportFolder, StoredStimuli, find_target
from n2d2py.exports.mcu.boards import board
from n2d2py.graph import Aligned, QuantGraph, QuantNode, QuantTensor, Rescaled, Weighted
from n2d2py.graph.forms import Form

FULL = NumType(8, full=True, scale=0.05, zero_point=-7)
KINDS = (
    NumType(8, signed=False, scale=1 / 128),
    NumType(8, signed=False, scale=1 / 128, zero_point=93),
    NumType(8, scale=0.0625),
    FULL,
    NumType(8, full=True, scale=0.05, zero_point=-128),
)
WIDE = (NumType(16, scale=1 / 512), NumType(16, signed=False, scale=1 / 512))


class Layers:
    """A network of layers side by side."""

    def __init__(self, seed: int):
        self.rng, self.graph = np.random.default_rng(seed), QuantGraph("sweep", 8)

    def conv(
        self,
        size: tuple[int, int],
        channels: int,
        weights: np.ndarray,
        stride: Sequence[int] = (1, 1),
        pads: Sequence[int] = (0, 0, 0, 0),
        dilation: Sequence[int] = (1, 1),
        kinds: tuple[NumType, NumType] = KINDS[:2],
        clamp: tuple[int, int] | None = None,
        groups: int = 1,
    ) -> None:
        """A convolution whose results spread over more than the range of its output."""
        number, (kind, output), rng = len(self.graph.nodes), kinds, self.rng
        source, name = f"x{number}", f"layer{number}"
        reach = np.abs(weights.reshape(len(weights), -1)).sum(axis=1)
        bias = rng.integers(-3000, 3000, len(weights))
        node = QuantNode(
            name,
            Conv((stride[0], stride[1]), (pads[0], pads[1], pads[2], pads[3]), (dilation[0], dilation[1]), groups),
            [source],
            [name],
            Weighted(weights, bias),
        )
        node.bound = int((255 * reach + np.abs(bias)).max())
        spread = np.sqrt(np.maximum(reach, 1) * 127.0) * 60
        factors = rng.uniform(0.5, 2, len(weights)) * (127 if output.bits == 8 else 30000) / spread
        rule = number % 4 if output.bits == 8 else 0  # the high word of a product, or as TFLite's kernels
        node.rescale = FixedPointRescale(np.rint(np.minimum(factors, 0.499) * 2**32).astype(np.int64), 32, 31)
        if rule:
            node.rescale = doubling(np.minimum(factors, 0.4999), rule < 3)
        low = output.zero_point if rule == 1 else output.qmin  # no results below 0
        node.clamp = clamp or (low, output.qmax)
        self.graph.inputs.append(source)
        self.graph.tensors[source] = QuantTensor(source, (1, channels, *size), kind)
        shape = node.op.output_shapes([(1, channels, *size)], node)[0]
        self.graph.tensors[name] = QuantTensor(name, shape, output)
        self.graph.nodes.append(node)
        self.graph.outputs.append(name)

    def fc(self, shape: tuple[int, int, int], weights: np.ndarray, kinds: tuple[NumType, NumType]) -> None:
        """A fully connected layer on an input of channels, lines and columns."""
        self.conv((1, 1), weights.shape[1], weights[:, :, None, None], kinds=kinds)
        node = self.graph.nodes[-1]
        source = node.inputs[0]
        self.graph.tensors[source] = QuantTensor(source, (1, *shape), kinds[0])
        params = node.params
        self.graph.nodes[-1] = replace(node, op=Fc(), form=Weighted(params["weights"][:, :, 0, 0], params["bias"]))
        self.graph.tensors[node.output] = QuantTensor(node.output, (1, len(weights)), kinds[1])

    def other(
        self, op: Op, form: Form, shape: Sequence[int], kinds: Sequence[NumType], bound: int, factors: Sequence[float]
    ) -> None:
        """A layer without weights, whose inputs have one shape; the last of `kinds` is that of its output."""
        number = len(self.graph.nodes)
        name, sources = f"layer{number}", [f"x{number}_{i}" for i in range(len(kinds) - 1)]
        node = QuantNode(name, op, sources, [name], form)
        node.bound = bound
        node.rescale = FixedPointRescale(np.rint(np.minimum(factors, 0.499) * 2**32).astype(np.int64), 32, 31)
        node.clamp = (5, 99) if number % 4 == 3 else (kinds[-1].qmin, kinds[-1].qmax)
        self.graph.inputs += sources
        for source, kind in zip(sources, kinds, strict=False):
            self.graph.tensors[source] = QuantTensor(source, (1, *shape), kind)
        made = op.output_shapes([(1, *shape)] * len(sources), node)[0]
        self.graph.tensors[name] = QuantTensor(name, made, kinds[-1])
        self.graph.nodes.append(node)
        self.graph.outputs.append(name)

    def random(self, outputs: int, *shape: int, low: int = -127, high: int = 127) -> np.ndarray:
        return self.rng.integers(low, high, (outputs, *shape), endpoint=True)

    def export(self, folder: Path, **parameters: object) -> dict[str, str]:
        """Writes the export, with more export parameters, with inputs at both ends of their range, and random ones; returns the kernel of each
        layer."""
        graph, rng = self.graph, self.rng
        graph.verify()
        inputs = []
        for name in graph.inputs:
            kind, shape = graph.type(name), graph.shape(name)[1:]
            values = rng.integers(kind.qmin, kind.qmax, (3, *shape), endpoint=True)
            values[0], values[1] = kind.qmax, kind.qmin
            inputs.append(values.astype(kind.dtype))
        stimuli = StoredStimuli(tuple(inputs), (), ())
        made = request(
            graph, stimuli=stimuli, targets=(), plan=separate_plan(graph), parameters={"TestVectors": 3, **parameters}
        )
        target = find_target("CPP_MCU")
        prepared = target.prepare(made)
        with ExportFolder(folder, target.manifest(prepared)) as written:
            kernels = target.write(prepared, written) or []
        return {choice.layer: f"{choice.kernel} {choice.reason}" for choice in kernels}


def convolutions(seed: int, count: int) -> Layers:
    """Shapes, strides, paddings, dilations, odd sizes, K from 1 to 500, all number types, clamps."""
    layers = Layers(seed)
    rng = layers.rng
    for number in range(count):
        channels, outputs = int(rng.choice([1, 2, 3, 4, 5, 8, 12, 16, 20])), int(rng.integers(1, 18))
        kernel = (1, 1) if number % 4 == 0 else tuple(int(k) for k in rng.integers(1, 5, 2))
        dilation = tuple(int(d) for d in rng.choice([1, 1, 1, 2], 2))
        extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
        size = (int(rng.integers(extent[0], 9) if extent[0] < 9 else 9), int(rng.integers(extent[1], 9)))
        pads = tuple(int(p) for p in rng.integers(0, min(extent) if max(extent) > 1 else 1, 4)) if max(extent) > 1 else (0,) * 4
        kinds = (KINDS[int(rng.integers(len(KINDS)))], KINDS[int(rng.integers(len(KINDS)))])
        weights = layers.random(outputs, channels, *kernel)
        if number % 5 == 1:
            weights[:] = rng.choice([-127, 127])
        if number % 7 == 2:
            weights[-1] = 0
        clamp = (5, 99) if number % 6 == 3 else None
        stride = tuple(int(s) for s in rng.integers(1, 4, 2))
        layers.conv(size, channels, weights, stride, pads, dilation, kinds, clamp)
    return layers


def depthwise(seed: int, count: int) -> Layers:
    """Channels by four, kernels from 1 x 1 to 5 x 5, some of 1 x 9 and 9 x 1, strides, paddings beyond the input, all number types."""
    layers = Layers(seed)
    rng = layers.rng
    for number in range(count):
        channels = int(rng.choice([4, 8, 12, 32]))
        kernel = (3, 3) if number % 2 else tuple(int(k) for k in rng.integers(1, 6, 2))
        if number % 10 == 2:
            kernel = (1, 9) if number % 20 == 2 else (9, 1)
        dilation = (2, 1) if number % 9 == 4 else (1, 1)
        extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
        size = (int(rng.integers(extent[0], extent[0] + 5)), int(rng.integers(extent[1], extent[1] + 5)))
        pads = [int(rng.integers(0, extent[side % 2])) for side in range(4)]
        kinds = (KINDS[int(rng.integers(len(KINDS)))], KINDS[int(rng.integers(len(KINDS)))])
        weights = layers.random(channels, 1, *kernel, low=-128)
        if number % 5 == 1:
            weights[:] = rng.choice([-128, 127])
        clamp = (5, 99) if number % 6 == 3 else None
        layers.conv(size, channels, weights, rng.integers(1, 3, 2).tolist(), pads, dilation, kinds, clamp, channels)
    return layers


CORES = (
    "cortex-m4",
    "cortex-m55",
    pytest.param("rv32imc", marks=pytest.mark.slow),
    pytest.param("rv32imc_zve32x", marks=pytest.mark.slow),
)
LANES, PIXELS, PAIRS = "dot products of vectors; two weights a lane", "two pixels a word", "two taps a word"
ROW_PAIRS = "two rows a word"
COLUMNS, OUTPUTS = "channels along a line", "vectors of outputs"
SEEDS = [(1, "-O0"), *(pytest.param(seed, option, marks=pytest.mark.slow) for seed in (2, 3) for option in ("-O2", "-Os"))]
"""The compiler takes half as long without optimization."""
OPTIONS = ["-O0", pytest.param("-O2", marks=pytest.mark.slow)]


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("seed, option", SEEDS)
def test_convolutions(seed, option, core, tmp_path):
    kernels = convolutions(seed, 24).export(tmp_path / "export")
    assert {kernel.split(" bytes")[0] for kernel in kernels.values()} == {f"{LANES}; {PIXELS}; {OUTPUTS}"}
    assert "24 layers: identical" in make(tmp_path / "export", core, "test", f"OPT={option}")


@pytest.mark.parametrize("option", OPTIONS)
def test_channels_of_whole_vectors(option, tmp_path):
    """Channels around multiples of 16, windows around multiples of eight vectors, pixels that are no multiple of four."""
    layers = Layers(6)
    shapes = [
        (16, 1, 4),
        (32, 1, 3),
        (64, 1, 2),
        (128, 1, 7),
        (144, 1, 2),
        (16, 3, 5),
        (48, 3, 2),
        (15, 1, 1),
        (17, 3, 3),
        (160, 2, 6),
    ]
    for number, (channels, kernel, outputs) in enumerate([*shapes, *shapes]):
        kinds = (KINDS[number % 5], KINDS[number // 2 % 5])
        weights = layers.random(outputs, channels, kernel, kernel, low=-128)
        pads = [int(p) for p in layers.rng.integers(0, kernel, 4)]
        size = (int(layers.rng.integers(kernel, 7)), int(layers.rng.integers(kernel, 7)))
        clamp = (5, 99) if number % 6 == 3 else None
        layers.conv(size, channels, weights, layers.rng.integers(1, 3, 2).tolist(), pads, kinds=kinds, clamp=clamp)
    kernels = layers.export(tmp_path / "export")
    assert all(kernel.startswith("dot products of vectors") for kernel in kernels.values())
    assert "20 layers: identical" in make(tmp_path / "export", "cortex-m55", "test", f"OPT={option}")


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("seed, option", SEEDS)
def test_depthwise(seed, option, core, tmp_path):
    kernels = depthwise(seed, 20).export(tmp_path / "export")
    names = [kernel.split(" bytes")[0] for kernel in kernels.values()]
    assert all(PAIRS in name and OUTPUTS in name for name in names) and sum("vectors of channels" in name for name in names) > 5
    assert "20 layers: identical" in make(tmp_path / "export", core, "test", f"OPT={option}")


@pytest.mark.parametrize("core", ["cortex-m4", pytest.param("cortex-m7", marks=pytest.mark.slow)])
def test_two_rows_a_word(core, tmp_path):
    """Lines of several chunks and ends of these, one line alone, strides, padding on all sides, weights at their limits, all number types."""
    layers = Layers(12)
    widths = (3, 5, 6, 23, 24, 25, 26, 49, 50, 7, 51, 12)
    for number, width in enumerate(widths):
        weights = layers.random(4 + 4 * (number % 2), 1, 3, 3, low=-128)
        if number % 5 == 1:
            weights[:] = layers.rng.choice([-128, 127])
        stride = (1 + number // 3 % 3, 1 + number % 2)
        pads = [int(p) for p in layers.rng.integers(0, 3, 4)]
        kinds = (KINDS[number % 5], KINDS[number // 2 % 5])
        clamp = (5, 99) if number % 4 == 3 else None
        layers.conv((1 + number % 5 + 2, 2 * width), len(weights), weights, stride, pads, (1, 1), kinds, clamp, len(weights))
    kernels = layers.export(tmp_path / "export")
    assert all(ROW_PAIRS in kernel for kernel in kernels.values())
    assert "12 layers: identical" in make(tmp_path / "export", core, "test")


@pytest.mark.parametrize("option", OPTIONS)
def test_channels_of_vectors(option, tmp_path):
    """3 x 3 of any number of channels: tails, two pixels of eight channels, strides, padding, all number types."""
    layers = Layers(7)
    channels = [1, 3, 8, 8, 8, 8, 15, 16, 17, 24, 40]
    for number, count in enumerate([*channels, *channels]):
        kinds = (KINDS[number % 5], KINDS[number // 3 % 5])
        weights = layers.random(count, 1, 3, 3, low=-127)
        if number % 5 == 1:
            weights[:] = layers.rng.choice([-127, 127])
        stride = (int(layers.rng.integers(1, 4)), 1 + number // 2 % 2)
        pads = [int(p) for p in layers.rng.integers(0, 3, 4)]
        size = (int(layers.rng.integers(3, 8)), int(layers.rng.integers(3, 9)))
        layers.conv(size, count, weights, stride, pads, (1, 1), kinds, (5, 99) if number % 6 == 3 else None, count)
    weights = layers.random(8, 1, 3, 3)
    weights[5, 0, 0, 2] = weights[5, 0, 0, 1] = -128  # two taps whose products leave 16 bits together
    layers.conv((5, 5), 8, weights, kinds=(FULL, FULL), groups=8)
    kernels = list(layers.export(tmp_path / "export").values())
    assert all("vectors of channels" in kernel for kernel in kernels[:-1])
    assert PAIRS in kernels[-1] and "two weights of -128 may leave 16 bits" in kernels[-1]
    assert "23 layers: identical" in make(tmp_path / "export", "cortex-m55", "test", f"OPT={option}")


@pytest.mark.parametrize("core", few_fast(["cortex-m4", "rv32imc", "cortex-m55", "rv32imc_zve32x"], 2))
def test_fully_connected(core, tmp_path):
    layers = Layers(5)
    for number in range(26):
        shape = (int(layers.rng.integers(1, 20)), int(layers.rng.integers(1, 4)), int(layers.rng.integers(1, 4)))
        kinds = (KINDS[number % 5], KINDS[number // 2 % 5] if number < 20 else WIDE[number % 2])
        outputs = int(layers.rng.integers(1, 14)) if number < 20 else int(layers.rng.integers(50, 140))  # in turns of 64
        layers.fc(shape, layers.random(outputs, int(np.prod(shape))), kinds)
    kernels = layers.export(tmp_path / "export")
    assert {kernel.split(" bytes")[0] for kernel in kernels.values()} == {f"{LANES}; {OUTPUTS}"}
    assert "26 layers: identical" in make(tmp_path / "export", core, "test")


@pytest.mark.parametrize("bits", [128, pytest.param(256, marks=pytest.mark.slow), pytest.param(1024, marks=pytest.mark.slow)])
def test_vectors_of_outputs(bits, tmp_path):
    """Zve32x: dense, depthwise and fully connected layers of a few to many outputs, by vectors of several lengths."""
    layers = Layers(11)
    for number in range(15):
        channels, outputs = int(layers.rng.integers(1, 40)), int(layers.rng.integers(1, 140))
        kinds, kernel = (KINDS[number % 5], KINDS[number // 3 % 5]), 1 + number % 3
        pads = [int(pad) for pad in layers.rng.integers(0, kernel, 4)]
        size = (int(layers.rng.integers(kernel, 6)), int(layers.rng.integers(kernel, 6)))
        stride = layers.rng.integers(1, 3, 2).tolist()
        clamp = (5, 99) if number % 7 == 3 else None
        layers.conv(
            size, channels, layers.random(outputs, channels, kernel, kernel, low=-128), stride, pads, (1, 1), kinds, clamp
        )
        layers.conv(
            size, outputs, layers.random(outputs, 1, kernel, kernel, low=-128), stride, pads, (1, 1), kinds, clamp, outputs
        )
    for number in range(10):
        kinds = (KINDS[number % 5], KINDS[number // 2 % 5] if number < 6 else WIDE[number % 2])
        layers.fc((number + 1, 2, 1), layers.random(20 * number + 1, 2 * number + 2, low=-128), kinds)
    kernels = layers.export(tmp_path / "export")
    assert all(OUTPUTS in kernel.split(" bytes")[0] for kernel in kernels.values())
    emulator = board("riscv-vectors").emulator.replace("vlen=128", f"vlen={bits}")
    assert "40 layers: identical" in make(tmp_path / "export", "rv32imc_zve32x", "test", f"QEMU={emulator}")


@pytest.mark.parametrize("option", [*OPTIONS, pytest.param("-Os", marks=pytest.mark.slow)])
def test_channels_along_a_line(option, tmp_path):
    """RV32: 3 x 3 with and without padding at each side, strides of 1 and 2 along a line, one to eight columns, all number types."""
    layers = Layers(10)
    for number in range(36):
        count = int(layers.rng.integers(1, 20))
        kinds = (KINDS[number % 5], KINDS[number // 3 % 5])
        weights = layers.random(count, 1, 3, 3, low=-128)
        if number % 6 == 1:
            weights[:] = layers.rng.choice([-128, 127])
        pads = layers.rng.integers(0, 2, 4).tolist()
        size = [max(3 - pads[side] - pads[side + 2], 1 + number // 7 % 8, int(layers.rng.integers(1, 6))) for side in (0, 1)]
        stride = (int(layers.rng.integers(1, 4)), 1 + number % 2)
        layers.conv(
            (size[0], size[1]), count, weights, stride, pads, (1, 1), kinds, (5, 99) if number % 7 == 3 else None, count
        )
    kernels = layers.export(tmp_path / "export")
    assert all(COLUMNS in kernel.split(" bytes")[0] for kernel in kernels.values())
    assert "36 layers: identical" in make(tmp_path / "export", "rv32imc", "test", f"OPT={option}")


def test_two_pixels_a_word(tmp_path):
    """RV32: windows of four and of six pixels, more taps than a word has flags, groups of four and of eight taps, whole and divided, sums of
    a group at their bound, outputs that are odd; layers that it is not exact for."""
    layers = Layers(9)
    shapes = [(76, 3, 5), (700, 1, 8), (1100, 1, 4), (227, 3, 11), (16, 3, 12), (32, 1, 7), (255, 1, 2), (13, 3, 3), (3, 3, 8)]
    for number, (channels, kernel, outputs) in enumerate([*shapes, *shapes, *shapes]):
        kinds = (KINDS[number % 5], KINDS[(number + 2) % 5])
        pads = (1, 1, 1, 1) if kernel > 1 else (0, 0, 0, 0)
        most = (127, 30, 60)[number // len(shapes)]
        weights = layers.random(outputs, channels, kernel, kernel, low=-most, high=most)
        layers.conv((3, 5 + number % 3), channels, weights, (1, 1), pads, kinds=kinds)
    for value in (127, -127):
        layers.conv((2, 7), 24, np.full((3, 24, 1, 1), value), kinds=(KINDS[0], FULL))
    weights = layers.random(4, 8, 1, 1, low=-3, high=3)
    weights[:, ::2], weights[:, 1::4] = -128, 127  # 255: their sum fits
    layers.conv((2, 2), 8, weights, kinds=(KINDS[0], FULL))
    weights = weights.copy()
    weights[1, 1] = -128
    layers.conv((2, 2), 8, weights, kinds=(KINDS[0], FULL))
    layers.conv((2, 2), 8, layers.random(4, 8, 1, 1, low=-9, high=9), kinds=(KINDS[0], FULL))
    layers.graph.nodes[-1].rescale = FixedPointRescale(np.full(4, (1 << 31) - 1), 32, 31)
    kernels = list(layers.export(tmp_path / "export").values())
    assert "no two pixels a word: two weights of -128 may leave 16 bits" in kernels.pop(-2)
    assert all(PIXELS in kernel.split(" bytes")[0] for kernel in kernels)
    assert "32 layers: identical" in make(tmp_path / "export", "rv32imc", "test")


WINOGRAD = "Winograd by pairs of channels"


def tiles(seed: int, count: int) -> Layers:
    """3 x 3 with stride 1: odd and even sizes from one pixel on, padding at each side beyond a pixel too, channels around the 16 that are
    unrolled, outputs of any number, weights at both ends, all number types."""
    layers = Layers(seed)
    rng = layers.rng
    for number in range(count):
        channels, outputs = int(rng.choice([4, 8, 12, 16, 20, 28, 32, 36, 48])), int(rng.integers(1, 26))
        pads = (1, 1, 1, 1) if number % 3 else tuple(int(pad) for pad in rng.integers(0, 3, 4))
        least = [max(1, 3 - pads[side] - pads[side + 2]) for side in (0, 1)]
        size = (int(rng.integers(least[0], 10)), int(rng.integers(least[1], 12)))
        kinds = (KINDS[int(rng.integers(len(KINDS)))], KINDS[int(rng.integers(len(KINDS)))])
        weights = layers.random(outputs, channels, 3, 3, low=-128)
        if number % 5 == 1:
            weights[:] = rng.choice([-128, 127])
        if number % 7 == 2 and outputs > 1:
            weights[-1] = 0
        layers.conv(size, channels, weights, pads=pads, kinds=kinds, clamp=(5, 99) if number % 6 == 3 else None)
    return layers


@pytest.mark.parametrize(
    "core, seed, option",
    [
        ("cortex-m4", 1, "-O0"),
        *(pytest.param("cortex-m4", 2, option, marks=pytest.mark.slow) for option in ("-Os", "-O2", "-O3")),
        *(pytest.param(core, 4, "-O2", marks=pytest.mark.slow) for core in ("cortex-m7", "cortex-m33", "cortex-m55")),
    ],
)
def test_winograd(core, seed, option, tmp_path, monkeypatch):
    """The form by Winograd of every layer that it is exact for, whether it is faster or not."""
    monkeypatch.setattr(lanes, "faster", lambda facts: "")
    kernels = tiles(seed, 40).export(tmp_path / "export", SpeedForFlash=True)
    assert all(WINOGRAD in kernel.split(" bytes")[0] for kernel in kernels.values())
    assert "40 layers: identical" in make(tmp_path / "export", core, "test", f"OPT={option}")


def test_layers_without_winograd(tmp_path):
    """Each says why; they run the kernels that they have without it."""
    layers = Layers(12)
    pads = (1, 1, 1, 1)
    layers.conv((9, 9), 16, layers.random(16, 16, 3, 3), pads=pads)
    for channels, kernel, stride, dilation in ((16, 3, 2, 1), (16, 3, 1, 2), (16, 1, 1, 1), (16, 5, 1, 1), (6, 3, 1, 1)):
        layers.conv((9, 9), channels, layers.random(16, channels, kernel, kernel), (stride, stride), pads, (dilation, dilation))
    layers.conv((4, 3), 16, layers.random(16, 16, 3, 3))
    layers.conv((9, 9), 16, layers.random(16, 4, 3, 3), pads=pads, groups=4)
    kernels = list(layers.export(tmp_path / "export", SpeedForFlash=True).values())
    windows = f"no {WINOGRAD}: it takes windows of 3 x 3 that lie side by side, stride 1, of one group"
    assert kernels[0].startswith(WINOGRAD)
    assert all(windows in kernel for kernel in (*kernels[1:5], kernels[7]))
    assert f"no {WINOGRAD}: it takes channels by four, not 6" in kernels[5]
    assert re.search(rf"no {WINOGRAD}: it would take about \d\d\d? % of the instructions", kernels[6])
    assert all("two weights a lane" in kernel.split(" bytes")[0] for kernel in kernels[:7])
    assert "8 layers: identical" in make(tmp_path / "export", "cortex-m4", "test")


def test_winograd_at_its_bound():
    """Four times a sum fits 32 bits; four channels more, and the layer has no such form."""
    for kind, weight, channels in ((KINDS[0], 127, 1840), (FULL, -128, 3640)):
        most = 36 * weight * (-128 if kind.signed else 255)  # of four times a sum, by channel
        assert most * channels < 2**31 <= most * (channels + 4)
        assert lanes.inexact(np.full((1, 3, 3, channels), weight), kind) == ""
        reason = lanes.inexact(np.full((1, 3, 3, channels + 4), weight), kind)
        assert reason == "four times its sums may exceed 32 bits"


@pytest.mark.parametrize("core", ["cortex-m4", pytest.param("cortex-m55", marks=pytest.mark.slow)])
def test_lanes_at_their_bound(core, tmp_path):
    """Sums of output B below 2^23 are exact; one weight more, and the layer has no lanes."""
    layers = Layers(4)
    for channels in (256, 258, 262):
        weights = np.full((4, channels, 1, 1), 127)
        weights[2:] = -127
        layers.conv((2, 3), channels, weights, kinds=(KINDS[0], FULL))
    layers.conv((2, 2), 8, layers.random(4, 8, 1, 1, low=-128), kinds=(KINDS[0], FULL))
    weights = layers.random(4, 8, 1, 1)
    weights[0], weights[2] = -5, -128
    layers.conv((2, 2), 8, weights, kinds=(KINDS[0], FULL))
    weights = layers.random(4, 8, 1, 1)
    weights[0], weights[2] = 5, -128
    layers.conv((2, 2), 8, weights, kinds=(KINDS[0], FULL))
    for channels in (1, 2, 4):  # results that fit 16 bits before they are clamped, and others
        layers.conv((2, 3), channels, np.array([127, -127, 127, -127])[:, None, None, None].repeat(channels, axis=1))
        layers.graph.nodes[-1].rescale = FixedPointRescale(np.full(4, int(0.499 * 2**32)), 32, 31)
    kernels = list(layers.export(tmp_path / "export").values())
    assert all(kernels[layer].startswith(LANES) for layer in (0, 1, 5))
    proved, none = "bytes, sums that are proved", "no two weights a lane"
    assert kernels[2] == f"dot products of vectors; {PIXELS}; {OUTPUTS} {proved}; {none}: a sum may reach 2^23"
    assert kernels[4] == (
        f"dot products of vectors; {OUTPUTS} {proved}; {none}: a weight of -128 shares its lane with a negative one; "
        "no two pixels a word: two weights of -128 may leave 16 bits"
    )
    assert "9 layers: identical" in make(tmp_path / "export", core, "test")


@pytest.mark.parametrize("core", ["cortex-m55", pytest.param("cortex-m4", marks=pytest.mark.slow)])
def test_sums_and_pools(core, tmp_path):
    """Sums of two and three tensors and average pools: odd sizes, channels of any number, all number types, 16 bits."""
    layers, wide = Layers(8), NumType(16, scale=0.001)
    rng = layers.rng
    for number in range(12):
        shape = [int(size) for size in (rng.choice([1, 3, 4, 8, 20]), rng.integers(1, 6), rng.integers(1, 6))]
        count = 3 if number % 6 == 5 else 2
        kinds = [KINDS[(number * (1 + i % 2)) % 5] for i in range(count)] + [wide if number == 7 else KINDS[number // 2 % 5]]
        multipliers = rng.integers(-16384, 16384, count)
        bound = int(np.abs(multipliers).sum()) * 256 + 5000
        form = Aligned(multipliers.astype(np.int32), np.array([int(rng.integers(-5000, 5000))], np.int32))
        layers.other(ElemWise("Sum"), form, shape, kinds, bound, [300 / bound])
    for number in range(12):
        channels, size = int(rng.choice([1, 4, 6, 8, 64, 68])), [int(rng.integers(3, 8)), int(rng.integers(3, 8))]
        kernel = (size[0], size[1]) if number % 2 else (2 + number % 3 // 2, 3)
        pads, counted = (0, 0, 0, 0) if number % 4 < 2 or number % 2 else (1, 1, 0, 1), number % 3 > 0
        op = Pool("Average", kernel, (1, 1 + number % 2), pads, counted)
        counts = [kernel[0] * kernel[1]] if counted or not any(pads) else range(1, kernel[0] * kernel[1] + 1)
        kinds = (wide if number == 8 else KINDS[number % 5], KINDS[number // 3 % 5])
        bound = kernel[0] * kernel[1] * (65536 if number == 8 else 512)
        layers.other(op, Rescaled(), [channels, *size], kinds, bound, [0.8 / count for count in counts])
    kernels = layers.export(tmp_path / "export")
    assert {kernel.split(" the compiler")[0] for kernel in kernels.values()} == {"vectors of sums"}
    assert "24 layers: identical" in make(tmp_path / "export", core, "test")
