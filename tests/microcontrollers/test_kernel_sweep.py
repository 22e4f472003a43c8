"""Kernels of the DSP extension against Python's integers: many layers, each with an input of its own, in one program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.board_export import make, need_core
from support.export_networks import request, separate_plan

from n2d2py.arithmetic import FixedPointRescale, NumType
from n2d2py.export import ExportFolder, StoredStimuli, find_target
from n2d2py.graph import QuantGraph, QuantNode, QuantTensor
from n2d2py.graph.forms import Weighted
from n2d2py.operators.conv import Conv
from n2d2py.operators.fc import Fc

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
        node.rescale = FixedPointRescale(np.rint(np.minimum(factors, 0.499) * 2**32).astype(np.int64), 32, 31)
        node.clamp = clamp or (output.qmin, output.qmax)
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

    def random(self, outputs: int, *shape: int, low: int = -127, high: int = 127) -> np.ndarray:
        return self.rng.integers(low, high, (outputs, *shape), endpoint=True)

    def export(self, folder: Path) -> dict[str, str]:
        """Writes the export with inputs at both ends of their range, and random ones; returns the kernel of each layer."""
        graph, rng = self.graph, self.rng
        graph.verify()
        inputs = []
        for name in graph.inputs:
            kind, shape = graph.type(name), graph.shape(name)[1:]
            values = rng.integers(kind.qmin, kind.qmax, (3, *shape), endpoint=True)
            values[0], values[1] = kind.qmax, kind.qmin
            inputs.append(values.astype(kind.dtype))
        stimuli = StoredStimuli(tuple(inputs), (), ())
        made = request(graph, stimuli=stimuli, targets=(), plan=separate_plan(graph), parameters={"TestVectors": 3})
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
    """Channels by four, kernels from 1 x 1 to 5 x 4, strides, paddings beyond the input, all number types."""
    layers = Layers(seed)
    rng = layers.rng
    for number in range(count):
        channels = int(rng.choice([4, 8, 12, 32]))
        kernel = (3, 3) if number % 2 else tuple(int(k) for k in rng.integers(1, 6, 2))
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


SLOW = [pytest.param(seed, option, marks=pytest.mark.slow) for seed in (2, 3) for option in ("-O2", "-Os")]


@pytest.mark.parametrize("seed, option", [(1, "-O2"), *SLOW])
def test_convolutions(seed, option, tmp_path):
    need_core("cortex-m4")
    kernels = convolutions(seed, 40).export(tmp_path / "export")
    assert {kernel.split(" bytes")[0] for kernel in kernels.values()} == {"two weights a lane"}
    assert "40 layers: identical" in make(tmp_path / "export", "cortex-m4", "test", f"OPT={option}")


@pytest.mark.parametrize("seed, option", [(1, "-O2"), *SLOW])
def test_depthwise(seed, option, tmp_path):
    need_core("cortex-m4")
    kernels = depthwise(seed, 30).export(tmp_path / "export")
    assert {kernel.split(" bytes")[0] for kernel in kernels.values()} == {"two taps a word"}
    assert "30 layers: identical" in make(tmp_path / "export", "cortex-m4", "test", f"OPT={option}")


def test_fully_connected(tmp_path):
    need_core("cortex-m4")
    layers = Layers(5)
    for number in range(26):
        shape = (int(layers.rng.integers(1, 20)), int(layers.rng.integers(1, 4)), int(layers.rng.integers(1, 4)))
        kinds = (KINDS[number % 5], KINDS[number // 2 % 5] if number < 20 else WIDE[number % 2])
        outputs = int(layers.rng.integers(1, 14)) if number < 20 else int(layers.rng.integers(50, 140))  # in turns of 64
        layers.fc(shape, layers.random(outputs, int(np.prod(shape))), kinds)
    kernels = layers.export(tmp_path / "export")
    assert {kernel.split(" bytes")[0] for kernel in kernels.values()} == {"two weights a lane"}
    assert "26 layers: identical" in make(tmp_path / "export", "cortex-m4", "test")


def test_lanes_at_their_bound(tmp_path):
    """Sums of output B below 2^23 are exact; one weight more, and the layer has the portable kernel."""
    need_core("cortex-m4")
    layers = Layers(4)
    for channels in (256, 258, 262):
        weights = np.full((4, channels, 1, 1), 127)
        weights[2:] = -127
        layers.conv((2, 3), channels, weights, kinds=(KINDS[0], FULL))
    layers.conv((2, 2), 8, layers.random(4, 8, 1, 1, low=-128), kinds=(KINDS[0], FULL))
    weights = layers.random(4, 8, 1, 1)
    weights[0], weights[1] = -5, -128
    layers.conv((2, 2), 8, weights, kinds=(KINDS[0], FULL))
    weights = layers.random(4, 8, 1, 1)
    weights[0], weights[1] = 5, -128
    layers.conv((2, 2), 8, weights, kinds=(KINDS[0], FULL))
    kernels = list(layers.export(tmp_path / "export").values())
    assert kernels[0].startswith("two weights") and kernels[1].startswith("two weights")
    assert kernels[2] == "portable no two weights a lane: a sum may reach 2^23"
    assert kernels[4] == "portable no two weights a lane: a weight of -128 shares its lane with a negative one"
    assert kernels[5].startswith("two weights")
    assert "6 layers: identical" in make(tmp_path / "export", "cortex-m4", "test")
