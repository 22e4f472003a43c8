"""Averages and fully connected layers over whole maps, constants by element, layers in floating point at the end."""

import numpy as np
import pytest
from support.nvdla_networks import compiled, half_error, samples, steps
from support.ops import LRN, ArrayMap, Deconv, Pool, Reshape, Resize
from support.small_graphs import RELU, Net

from n2d2py.contracts.functions import Clip
from n2d2py.errors import N2D2Error
from n2d2py_nvdla.config import CONFIGS
from n2d2py_nvdla.export.layers.pool_stages import maximum_stages
from n2d2py_nvdla.export.rearrange import steps_of
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
        assert found.max() < 1.2 and found.mean() < 0.3
    else:
        assert found.max() < 1.001 and (found > 1e-6).mean() < 0.02


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
    check_copies(steps(resized(size, activation), (6, 14, 13), config)[0])


def check_copies(found: np.ndarray) -> None:
    """No value differs, but copies of those where the convolution's factor of 15 bits rounds the other way."""
    assert found.max() < 1.001 and (found > 1e-6).mean() < 0.01


@pytest.mark.parametrize("config", ["nv_small", "nv_full"])
@pytest.mark.parametrize("shape, size", [((40, 1, 3), (1, 2)), ((40, 1, 1), (2, 3)), ((40, 3, 1), (2, 1)), ((9, 1, 5), (1, 1))])
def test_single_pixels_are_copied_atom_by_atom(config, shape, size):
    assert steps(lambda net: net.add("r", Resize(size), "x"), shape, config)[0].max() < 1e-6


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
    check_copies(steps(build, (6, 37, 40), config)[0])


HALVES = [
    *((build, shape, 4e-3) for build, shape in AVERAGES[:4]),
    *((connected(outputs), shape, 3e-3) for outputs, shape in CONNECTED),
    *((build, (6, 9, 7), 3e-3) for build in (*CONSTANTS, *DECONVOLUTIONS)),
    *((resized(size), (6, 14, 13), 2e-3) for size in ((28, 26), (9, 40))),
    *((build, (6, 37, 40), 2e-3) for build in MAXIMA[:4]),
]


@pytest.mark.parametrize("build, shape, limit", HALVES)
def test_halves(build, shape, limit):
    """All of these layers in floats of 16 bits, on the one configuration that has them."""
    assert half_error(build, shape) < limit


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
