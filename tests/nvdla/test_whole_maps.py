"""Averages and fully connected layers over whole maps, constants by element, layers in floating point at the end."""

from __future__ import annotations

import numpy as np
import pytest
from support.nvdla_networks import RELU, Net, Pool, compiled
from support.nvdla_steps import half_error, samples, steps

from n2d2py.errors import N2D2Error
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.functions import Clip
from n2d2py.operators.lrn import LRN
from n2d2py.operators.reshape import Reshape
from n2d2py_nvdla.firmware import CONV, INT8

CONFIGURATIONS = ["nv_small", "nv_large", "nv_full"]


def average(kernel, pads=(0, 0, 0, 0), activation=None, **fields):
    def build(net: Net) -> str:
        return net.add("p", Pool("Average", kernel, (1, 1), pads, **fields), "x", activation=activation)

    return build


AVERAGES = [
    (average((37, 40)), (11, 37, 40)),
    (average((56, 56)), (20, 56, 56)),
    (average((23, 37), activation=Clip(-0.01, 0.02)), (40, 23, 37)),
    (average((42, 43), (3, 2, 2, 1)), (6, 37, 40)),
    (average((42, 43), (3, 2, 2, 1), count_pad=False), (6, 37, 40)),
    (average((9, 5)), (9, 9, 5)),
    (average((130, 100)), (2, 130, 100)),
]


@pytest.mark.parametrize("config", CONFIGURATIONS)
@pytest.mark.parametrize("build, shape", AVERAGES)
def test_averages_of_maps_are_those_of_python(config, build, shape):
    """One rounding of the whole sum: no value differs, but where the factor of 15 bits rounds the other way."""
    found, quantized, lowered = steps(build, shape, config)
    assert lowered.outputs["p"][1] == quantized.type("p").scale
    assert found.max() < 1.001 and np.count_nonzero(found > 1e-6) <= 1


@pytest.mark.parametrize("build, shape", AVERAGES[:4])
def test_averages_of_maps_of_halves(build, shape):
    assert half_error(build, shape) < 4e-3


def connected(outputs: int):
    def build(net: Net) -> str:
        return net.fc("f", "x", outputs)

    return build


CONNECTED = [(10, (4, 36, 40)), (21, (40, 40, 8)), (10, (8, 1, 187)), (11, (4, 37, 41)), (40, (8, 64, 20))]


@pytest.mark.parametrize("config", CONFIGURATIONS)
@pytest.mark.parametrize("outputs, shape", CONNECTED)
def test_fully_connected_layers_on_wide_maps(config, outputs, shape):
    found, quantized, lowered = steps(connected(outputs), shape, config)
    assert lowered.outputs["f"][1] == quantized.type("f").scale
    assert found.max() < 1.001 and np.count_nonzero(found > 1e-6) <= 1


@pytest.mark.parametrize("outputs, shape", CONNECTED)
def test_fully_connected_layers_on_wide_maps_of_halves(outputs, shape):
    assert half_error(connected(outputs), shape) < 3e-3


def test_kernels_that_fill_the_buffer_are_computed_a_few_at_a_time():
    net = Net((32, 30, 30))
    _, _lowered, program = compiled(net.done(connected(10)(net)), "nv_small", INT8, samples((32, 30, 30)))
    ops = [op for _, op in program.dla_operations() if op.engine == CONV]
    assert len(ops) > 3 and max(int(op.op["bytes_per_kernel"]) for op in ops) == 32 * 30 * 30
    assert steps(connected(10), (32, 30, 30), "nv_small")[0].max() < 1.001


def test_a_kernel_larger_than_the_buffer_is_refused_by_name():
    net = Net((64, 56, 56))
    graph = net.done(connected(10)(net))
    with pytest.raises(N2D2Error, match=r"E715.*'f'.*map of 56x56 with 64 channels does not fit"):
        compiled(graph, "nv_small", INT8, samples((64, 56, 56)))


def constant(function: str, slots=(0, -1), activation=None, behind: bool = True):
    """A layer by element between two reshapes, as ONNX gives it."""

    def build(net: Net) -> str:
        a = net.conv("a", "x", 11, kernel=(1, 1))
        shape = net.graph.shape(a)[1:]
        size = int(np.prod(shape))
        values = net.random.uniform(-1, 1, (1, *shape)).astype(np.float32)
        op = ArrayMap(function, shape, (shape, shape), slots)
        flat = net.add("flat", Reshape((size,)), a)
        moved = net.add("by_element", op, flat, params={f"operand{slots.index(-1)}": values}, activation=activation)
        image = net.add("image", Reshape(shape), moved)
        return net.conv("b", image, 8, kernel=(1, 1)) if behind else image

    return build


CONSTANTS = [
    constant("Add"),
    constant("Sub"),
    constant("Sub", (-1, 0)),
    constant("Mul"),
    constant("Add", (-1, 0), behind=False),
    constant("Mul", behind=False),
]


@pytest.mark.parametrize("config", CONFIGURATIONS)
@pytest.mark.parametrize("build", CONSTANTS)
def test_a_constant_for_every_element(config, build):
    """Behind it a step more or less; at the end of the network half a step of a scale that holds every value."""
    found, quantized, lowered = steps(build, (6, 9, 7), config)
    name = next(iter(lowered.outputs))
    if quantized.type(name).is_float:
        assert found.max() < 1.1 and found.mean() < 0.3
    else:
        assert found.max() < 1.001 and (found > 1e-6).mean() < 0.02


@pytest.mark.parametrize("build", CONSTANTS)
def test_a_constant_for_every_half(build):
    assert half_error(build, (6, 9, 7)) < 3e-3


@pytest.mark.parametrize("config", CONFIGURATIONS)
def test_a_normalization_at_the_end(config):
    """Its scale holds every value that can result: nothing saturates."""

    def build(net: Net) -> str:
        return net.add("n", LRN(5, 0.2, 0.75, 2.0), net.conv("a", "x", 16, activation=RELU))

    found, quantized, lowered = steps(build, (6, 9, 7), config)
    assert quantized.type("n").is_float and found.max() < 1.6 and found.mean() < 0.35
    assert lowered.outputs["n"][1] == pytest.approx(quantized.type("a").scale * 2.0**-0.75)


@pytest.mark.parametrize("config", CONFIGURATIONS)
@pytest.mark.parametrize("kernel, pads, stride", [((3, 3), (1, 1, 1, 1), (1, 1)), ((5, 7), (0, 3, 2, 1), (2, 3))])
def test_grey_images_are_pixels(config, kernel, pads, stride):
    def build(net: Net) -> str:
        return net.conv("a", "x", 20, kernel=kernel, pads=pads, stride=stride)

    found, _, lowered = steps(build, (1, 33, 30), config)
    buffer = lowered.inputs["x"][0]
    assert buffer.image and buffer.size == 33 * 32
    assert found.max() < 1.001 and (found > 1e-6).mean() < 2e-3


def test_what_else_reads_an_image_keeps_it_in_atoms():
    def build(net: Net) -> str:
        return net.fc("f", net.add("p", Pool("Max", (2, 2), (2, 2)), "x"), 5)

    _, _, lowered = steps(build, (1, 12, 12), "nv_small")
    assert not lowered.inputs["x"][0].image and lowered.inputs["x"][0].size == 12 * 12 * 8
