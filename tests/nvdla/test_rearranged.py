"""Layers that are copies between positions or maxima of maxima: the accelerator gives the integers of Python, each of them."""

from __future__ import annotations

import numpy as np
import pytest
from support.nvdla_networks import RELU, Net, Pool, compiled
from support.nvdla_steps import half_error, samples, steps

from n2d2py.errors import N2D2Error
from n2d2py.operators.deconv import Deconv
from n2d2py.operators.functions import Clip
from n2d2py.operators.resize import Resize
from n2d2py_nvdla.config import CONFIGS
from n2d2py_nvdla.export.layers.pool_stages import maximum_stages
from n2d2py_nvdla.export.rearrange import steps_of

CHOSEN = [pytest.param(name, marks=[] if name in ("nv_small", "nv_large", "nv_full") else pytest.mark.slow) for name in CONFIGS]


def resized(size, activation=None):
    def build(net: Net) -> str:
        return net.add("r", Resize(size), net.conv("a", "x", 20, kernel=(1, 1)), activation=activation)

    return build


@pytest.mark.parametrize("config", CHOSEN)
@pytest.mark.parametrize(
    "size, activation", [((28, 26), None), ((14, 39), None), ((9, 5), None), ((31, 13), None), ((28, 26), Clip(-0.2, 0.4))]
)
def test_the_nearest_neighbour_is_exact(config, size, activation):
    assert steps(resized(size, activation), (6, 14, 13), config)[0].max() < 1e-6


@pytest.mark.parametrize("config", ["nv_small", "nv_full"])
@pytest.mark.parametrize("shape, size", [((40, 1, 3), (1, 2)), ((40, 1, 1), (2, 3)), ((40, 3, 1), (2, 1)), ((9, 1, 5), (1, 1))])
def test_single_pixels_are_copied_atom_by_atom(config, shape, size):
    assert steps(lambda net: net.add("r", Resize(size), "x"), shape, config)[0].max() < 1e-6


@pytest.mark.parametrize("size", [(28, 26), (9, 40)])
def test_the_nearest_neighbour_of_halves(size):
    assert half_error(resized(size), (6, 14, 13)) < 2e-3


def test_interpolation_is_refused_by_name():
    net = Net((6, 14, 13))
    graph = net.done(net.add("r", Resize((28, 26), "Bilinear"), net.conv("a", "x", 8)))
    with pytest.raises(N2D2Error, match=r"E715.*'r'.*resampling of mode Bilinear"):
        compiled(graph, "nv_small", 0, samples((6, 14, 13)))


@pytest.mark.parametrize("inputs, outputs", [(4, 8), (5, 7), (7, 5), (6, 4), (3, 1), (1, 5), (13, 13)])
def test_steps_cover_every_position_once(inputs, outputs):
    positions = np.arange(outputs) * inputs // outputs
    found = np.full(outputs, -1)
    for one in steps_of(positions):
        places = one.result + np.arange(one.count) * one.result_step
        assert np.all(found[places] == -1) and one.source_step > 0
        found[places] = one.source + np.arange(one.count) * one.source_step
    assert np.array_equal(found, positions)
    assert len(steps_of(positions)) <= outputs // np.gcd(inputs, outputs)


def deconvolution(kernel, stride, pads, dilation=(1, 1), groups=1, outputs=10, activation=None):
    def build(net: Net) -> str:
        a = net.conv("a", "x", 6, kernel=(1, 1), activation=RELU)
        weights = (net.random.standard_normal((outputs, 6 // groups, *kernel)) / 6).astype(np.float32)
        bias = (net.random.standard_normal(outputs) / 4).astype(np.float32)
        op = Deconv(stride, pads, dilation, groups)
        return net.add("d", op, a, params={"weights": weights, "bias": bias}, activation=activation)

    return build


DECONVOLUTIONS = [
    deconvolution((3, 3), (2, 2), (1, 1, 1, 1)),
    deconvolution((3, 3), (2, 2), (1, 1, 0, 0)),
    deconvolution((4, 4), (2, 2), (1, 1, 1, 1)),
    deconvolution((5, 3), (3, 2), (0, 1, 2, 0)),
    deconvolution((3, 3), (2, 2), (1, 1, 0, 0), groups=6, outputs=6),
    deconvolution((2, 2), (3, 3), (0, 0, 0, 0)),
    deconvolution((3, 3), (2, 2), (2, 2, 2, 2), dilation=(2, 2)),
    deconvolution((3, 3), (1, 1), (1, 1, 1, 1)),
    deconvolution((3, 3), (2, 2), (1, 1, -1, -1), activation=Clip(-0.3, 0.4)),
]


@pytest.mark.parametrize("config", CHOSEN)
@pytest.mark.parametrize("build", DECONVOLUTIONS)
def test_transposed_convolutions(config, build):
    """As any convolution: the factor of 15 bits rounds one result in a thousand to its neighbour."""
    found, quantized, lowered = steps(build, (6, 9, 7), config)
    assert found.max() < 1.001 and (found > 1e-6).mean() < 2e-3
    assert lowered.outputs["d"][1] == quantized.type("d").scale


@pytest.mark.parametrize("build", DECONVOLUTIONS)
def test_transposed_convolutions_of_halves(build):
    assert half_error(build, (6, 9, 7)) < 3e-3


def maximum(kernel, stride, pads, activation=None):
    def build(net: Net) -> str:
        return net.add("p", Pool("Max", kernel, stride, pads), net.conv("a", "x", 11, kernel=(1, 1)), activation=activation)

    return build


MAXIMA = [
    maximum((13, 9), (1, 1), (6, 4, 6, 4)),
    maximum((11, 11), (10, 9), (0, 0, 0, 0)),
    maximum((5, 5), (2, 2), (2, 2, 2, 2), RELU),
    maximum((3, 15), (2, 4), (1, 7, 1, 7)),
    maximum((9, 9), (2, 3), (8, 8, 8, 8)),
    maximum((11, 13), (11, 13), (0, 0, 0, 0)),
    maximum((2, 2), (9, 2), (0, 0, 0, 0)),
    maximum((37, 40), (1, 3), (10, 0, 0, 1)),
    maximum((16, 16), (16, 16), (0, 0, 0, 0)),
]


@pytest.mark.parametrize("config", CHOSEN)
@pytest.mark.parametrize("build", MAXIMA)
def test_large_maxima_are_exact(config, build):
    assert steps(build, (6, 37, 40), config)[0].max() < 1e-6


@pytest.mark.parametrize("build", MAXIMA[:4])
def test_large_maxima_of_halves(build):
    assert half_error(build, (6, 37, 40)) < 2e-3


def test_stages_of_a_maximum_are_the_maximum():
    """Every size, kernel, stride and padding of an axis, by loops over positions."""
    random = np.random.default_rng(3)
    for _ in range(600):
        size, kernel, stride = (int(random.integers(1, top)) for top in (40, 30, 13))
        pad = int(random.integers(0, kernel))
        outputs = (size + pad + int(random.integers(0, kernel)) - kernel) // stride + 1
        if outputs < 1 or (outputs - 1) * stride - pad >= size:
            continue
        values = random.standard_normal(size)
        wanted = [values[max(0, i * stride - pad) : i * stride - pad + kernel].max() for i in range(outputs)]
        axis = maximum_stages(size, kernel, stride, pad, outputs)
        current = values[: axis.used]
        for k, s, before, count in axis.stages:
            windows = [current[max(0, i * s - before) : i * s - before + k] for i in range(count)]
            assert k <= 8 and s <= 8 and before <= 7 and all(len(window) for window in windows)
            current = np.array([window.max() for window in windows])
        assert np.array_equal(current[:: axis.step], wanted), (size, kernel, stride, pad, outputs)


def clipped(activation):
    def build(net: Net) -> str:
        return net.conv("b", net.conv("a", "x", 12, activation=activation), 9, activation=activation)

    return build


@pytest.mark.parametrize("config", ["nv_small", "nv_large", "nv_full"])
@pytest.mark.parametrize("activation", [Clip(-0.5, 0.7), Clip(0.1, 0.7), Clip(-0.4)])
def test_clips_to_two_limits(config, activation):
    found, _, _ = steps(clipped(activation), (6, 9, 7), config)
    assert found.max() < 2.001 and (found > 1e-6).mean() < 2e-2
    if config == "nv_full":
        assert half_error(clipped(activation), (6, 9, 7)) < 3e-3
