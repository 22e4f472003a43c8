"""Every kind of layer, compiled for every configuration that has its unit, against the integers of the quantized network."""

import numpy as np
import pytest
from support.errors import refused
from support.nvdla_networks import compiled, cosine, expected, run
from support.nvdla_random import random_network
from support.ops import LRN, Activation, Concat, ElemWise, IndexSelect, Pool, Softmax
from support.small_graphs import RELU, Net

from n2d2py.contracts.functions import Clip, LeakyRectifier, Logistic, Swish, Tanh
from n2d2py.errors import N2D2Error
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py_nvdla.check import violations
from n2d2py_nvdla.config import CONFIGS
from n2d2py_nvdla.firmware import FP16, INT8, SDP

SHAPE = (6, 14, 13)


def lrn(net: Net) -> str:
    a = net.conv("a", "x", 20, pads=(1, 1, 1, 1), activation=RELU)
    return net.conv("b", net.add("p", Pool("Max", (2, 2), (2, 2)), net.add("n", LRN(5, 0.2, 0.75, 1.0), a)), 8)


def wide_lrn(net: Net) -> str:
    return net.conv("b", net.add("n", LRN(9, 0.01, 0.5, 2.0), net.conv("a", "x", 11)), 8, kernel=(1, 1))


def sigmoid(net: Net) -> str:
    return net.conv("b", net.add("s", Activation(Logistic()), net.conv("a", "x", 10)), 8)


def tanh(net: Net) -> str:
    return net.conv("b", net.add("s", Activation(Tanh()), net.conv("a", "x", 10)), 8)


def swish(net: Net) -> str:
    return net.conv("b", net.add("s", Activation(Swish()), net.add("p", Pool("Max", (2, 2), (1, 1)), "x")), 8)


def leaky(net: Net) -> str:
    return net.conv("b", net.add("s", Activation(LeakyRectifier(0.2)), net.conv("a", "x", 10)), 8)


def relu6(net: Net) -> str:
    return net.conv("b", net.conv("a", "x", 10, activation=Clip(0.0, 0.8)), 8)


def dilated(net: Net) -> str:
    return net.conv("b", net.conv("a", "x", 12, dilation=(2, 3), activation=RELU), 8, dilation=(3, 2), pads=(3, 2, 3, 2))


def grouped(net: Net) -> str:
    return net.conv("b", net.conv("a", "x", 12, groups=3, activation=RELU), 8, groups=4, pads=(1, 0, 1, 2))


def depthwise(net: Net) -> str:
    a = net.conv("a", "x", 72, kernel=(1, 1), activation=RELU)
    return net.conv("c", net.conv("b", a, 72, groups=72, pads=(1, 1, 1, 1), stride=(2, 2), activation=RELU), 8, kernel=(1, 1))


def concat(net: Net) -> str:
    parts = [net.conv(f"a{n}", "x", n, activation=RELU) for n in (32, 8, 5, 19)]
    return net.conv("d", net.add("c", Concat(), *parts), 8)


def average_without_padding(net: Net) -> str:
    a = net.conv("a", "x", 10, activation=RELU)
    return net.add("p", Pool("Average", (3, 3), (2, 2), (1, 1, 1, 1), count_pad=False), a)


def global_average(net: Net) -> str:
    a = net.conv("a", "x", 10, activation=RELU, pads=(1, 1, 1, 1))
    return net.fc("f", net.add("g", Pool("Average", tuple(net.graph.shape(a)[2:])), a), 7)


def long_global_average(net: Net) -> str:
    a = net.conv("a", "x", 10, kernel=(1, 1), activation=RELU)
    b = net.add("w", Concat(), a, net.conv("b", "x", 10, kernel=(1, 1), activation=RELU))
    size = tuple(net.graph.shape(b)[2:])
    return net.fc("f", net.add("g", Pool("Average", size, size), b), 7)


def global_maximum(net: Net) -> str:
    a = net.conv("a", "x", 10, kernel=(3, 2), activation=RELU)
    return net.fc("f", net.add("g", Pool("Max", tuple(net.graph.shape(a)[2:])), a), 7)


def residual(net: Net) -> str:
    a = net.conv("a", "x", 12, pads=(1, 1, 1, 1), activation=RELU)
    return net.add("s", ElemWise("Sum"), net.conv("b", a, 12, pads=(1, 1, 1, 1)), a, activation=RELU)


def gate(net: Net) -> str:
    a, b = net.conv("a", "x", 10, activation=RELU), net.conv("b", "x", 10, activation=RELU)
    squeezed = net.add("g", Pool("Average", tuple(net.graph.shape(b)[2:])), b)
    return net.conv("c", net.add("m", ElemWise("Prod"), a, squeezed), 8)


def minimum(net: Net) -> str:
    return net.conv("c", net.add("m", ElemWise("Min"), net.conv("a", "x", 10), net.conv("b", "x", 10)), 8)


def chain(net: Net) -> str:
    a = net.conv("a", "x", 12, activation=RELU, pads=(1, 1, 1, 1))
    b = net.conv("b", net.add("p", Pool("Max", (2, 2), (2, 2)), a), 20, stride=(2, 1), activation=Clip(0.0, 1.0))
    return net.fc("f", b, 10)


def two_branches(net: Net) -> str:
    a = net.conv("a", "x", 9, kernel=(1, 1))
    b = net.conv("b", "x", 9, pads=(1, 1, 1, 1))
    return net.conv("c", net.add("sum", ElemWise("Sum"), a, b), 6)


def gains(net: Net) -> str:
    return net.affine("b", net.add("p", Pool("Max", (2, 2), (1, 1)), net.conv("a", "x", 10)))


def maximum(net: Net) -> str:
    return net.add("m", ElemWise("Max"), net.conv("a", "x", 10), net.conv("b", "x", 10))


TABLES = (sigmoid, tanh, swish)
NETWORKS = (
    lrn,
    wide_lrn,
    *TABLES,
    leaky,
    relu6,
    dilated,
    grouped,
    depthwise,
    concat,
    average_without_padding,
    global_average,
    long_global_average,
    global_maximum,
    residual,
    gate,
    minimum,
    maximum,
    chain,
    two_branches,
    gains,
)
FAST = {"nv_small", "nv_full"}


def targets():
    for network in NETWORKS:
        for name, config in CONFIGS.items():
            if network in TABLES and not config.has_y:
                continue
            marks = [] if name in FAST else [pytest.mark.slow]
            yield pytest.param(network, name, INT8, id=f"{network.__name__}-{name}-int8", marks=marks)
        yield pytest.param(network, "nv_full", FP16, id=f"{network.__name__}-nv_full-fp16")


def samples(shape=SHAPE) -> np.ndarray:
    return np.random.default_rng(5).standard_normal((2, *shape)).astype(np.float32)


@pytest.mark.parametrize("network, config, precision", list(targets()))
def test_layers(network, config, precision):
    net = Net(SHAPE)
    graph = net.done(network(net))
    x = samples()
    quantized, lowered, program = compiled(graph, config, precision, x)
    found = run(lowered, program, x)
    if precision == FP16:
        assert cosine(found, expected(graph, x)) > 0.99999
        return
    name = graph.outputs[0]
    stored = simulate(quantized, quantize_inputs(quantized, [x]))[name].reshape(found.shape)
    real = stored * quantized.type(name).scale
    steps = np.abs(found - real) / max(quantized.type(name).scale, lowered.outputs[name][1])
    assert steps.max() <= 4 and steps.mean() < 0.7, (steps.max(), steps.mean())


@pytest.mark.parametrize(
    "mode, kernel, stride, pads, width",
    [
        ("Max", (3, 3), (1, 2), (1, 1, 1, 1), 150),
        ("Average", (5, 3), (1, 1), (2, 1, 2, 1), 70),
        ("Max", (2, 2), (2, 2), (0, 0, 0, 0), 300),
        ("Average", (3, 4), (2, 4), (1, 2, 0, 1), 270),
    ],
)
@pytest.mark.parametrize("config, precision", [("nv_full", FP16), ("nv_full", INT8), ("nv_small", INT8)])
def test_wide_pools_are_split_by_columns(mode, kernel, stride, pads, width, config, precision):
    from n2d2py_nvdla.config import widest_pool

    net = Net((5, 12, width))
    graph = net.done(net.add("p", Pool(mode, kernel, stride, pads), "x"))
    x = samples((5, 12, width))
    _, lowered, program = compiled(graph, config, precision, x)
    most = widest_pool(CONFIGS[config], precision, kernel[0], stride[0])
    ops = [op for _, op in program.dla_operations()]
    assert len(ops) == -(-graph.shape("p")[3] // most)
    assert len(ops) > 1 or config == "nv_small"
    found, wanted = run(lowered, program, x), expected(graph, x)
    slack = 2e-3 * np.abs(wanted).max() if precision == FP16 else 1.51 * lowered.outputs["p"][1]
    assert found.shape == wanted.shape and np.abs(found - wanted).max() <= slack


@pytest.mark.parametrize("config, precision", [("nv_full", FP16), ("nv_small", INT8)])
def test_a_flattened_output(config, precision):
    from n2d2py.operators.reshape import Reshape

    net = Net(SHAPE)
    a = net.conv("a", "x", 10, activation=RELU)
    graph = net.done(net.add("r", Reshape((10,)), net.add("g", Pool("Average", tuple(net.graph.shape(a)[2:])), a)))
    x = samples()
    _, lowered, program = compiled(graph, config, precision, x)
    assert cosine(run(lowered, program, x), expected(graph, x)) > (0.99999 if precision == FP16 else 0.995)


@pytest.mark.parametrize("config", [name for name, one in CONFIGS.items() if not one.has_y])
def test_tables_are_refused_without_the_unit(config):
    net = Net(SHAPE)
    graph = net.done(sigmoid(net))
    assert refused(f"E715.*{config} has no look-up table for Logistic", lambda: compiled(graph, config, INT8, samples()))


@pytest.mark.parametrize("config", CONFIGS)
def test_softmax_on_the_cpu(config):
    """int8: bytes of 1/127 that the emulator cuts; the same class, and a step from the truth."""
    net = Net((6, 1, 1))
    graph = net.done(net.add("s", Softmax(), net.conv("a", "x", 10, kernel=(1, 1))))
    x = 2 * samples((6, 1, 1))
    _, lowered, program = compiled(graph, config, INT8, x)
    found, wanted = run(lowered, program, x), expected(graph, x)
    assert len(program.tasks) == 2 and np.abs(found - wanted).max() < 3 / 127
    assert np.array_equal(found.argmax(axis=1), wanted.argmax(axis=1))


THREE = [("nv_small", INT8), ("nv_large", INT8), ("nv_full", INT8), ("nv_full", FP16)]


@pytest.mark.parametrize("config, precision", THREE)
def test_tables_of_single_pixels_have_the_stride_of_a_group(config, precision):
    """The C-model of NVIDIA stops at any other surface stride."""
    net = Net((20, 4, 4))
    graph = net.done(net.fc("g", net.fc("f", "x", 70), 45))
    x = samples((20, 4, 4))
    _, lowered, program = compiled(graph, config, precision, x)
    one = CONFIGS[config]
    size = 4 if precision == INT8 else 2  # bias and factor, or a bias
    strides = [
        int(op.surface["x1_data"]["surf_stride"])
        for _, op in program.dla_operations()
        if op.engine == SDP and op.op["x1_op"]["mode"]
    ]
    assert set(strides) == {one.lanes(precision) * size} and len(strides) >= 2
    assert cosine(run(lowered, program, x), expected(graph, x)) > 0.995
    for _, op in program.dla_operations():
        if op.engine == SDP:
            op.surface["x1_data"]["surf_stride"] *= 2
    wrong = violations(program, one)
    assert len(wrong) == len(strides) and all("the surface stride of x1_data is" in line for line in wrong)


def test_single_pixels_of_larger_maps_are_not_left_alone():
    """A last line of one pixel and several atoms is computed together with the line before it."""
    net = Net((4096, 241, 1))
    graph = net.done(net.conv("a", "x", 16, (1, 1)))
    x = samples((4096, 241, 1))
    _, lowered, program = compiled(graph, "nv_small", INT8, x)
    parts = [(chain[1].cubes["dst_data"].row, chain[1].cubes["dst_data"].rows) for chain in lowered.layers[0].chains]
    assert parts[-2:] == [(224, 16), (239, 2)]
    assert cosine(run(lowered, program, x), expected(graph, x)) > 0.995


def random_pool(seed: int) -> tuple[Net, bool]:
    """A pool of any shape; whether it has several windows along both axes, or none that is out of reach."""
    random = np.random.default_rng(seed)
    kernel = tuple(int(random.integers(1, 19 if random.integers(4) == 0 else 9)) for _ in range(2))
    stride = tuple(int(random.integers(1, 13 if random.integers(4) == 0 else 9)) for _ in range(2))
    pads = tuple(int(random.integers(0, min(k, 8))) if random.integers(2) else 0 for k in (*kernel, *kernel))
    size = tuple(int(random.integers(max(1, k - a), 40)) for k, a in zip(kernel, pads[:2], strict=True))
    net = Net((int(random.integers(1, 40)), *size))
    mode = "Max" if random.integers(3) == 0 else "Average"
    net.add("p", Pool(mode, kernel, stride, pads, count_pad=bool(random.integers(2))), "x")
    return net, mode == "Max"


@pytest.mark.parametrize("config, precision", THREE)
@pytest.mark.parametrize("first", [0, pytest.param(100, marks=pytest.mark.slow)])
def test_pools_of_any_shape(first, config, precision):
    """They are right, or refused with a reason; never a loadable that is not valid."""
    refused = 0
    for seed in range(first, first + (40 if first == 0 else 200)):
        net, exact = random_pool(seed)
        graph, x = net.done("p"), samples(tuple(net.graph.shape("x")[1:]))
        try:
            _, lowered, program = compiled(graph, config, precision, x)
        except N2D2Error as problem:
            assert problem.code == "E715"
            refused += 1
            continue
        found, wanted = run(lowered, program, x), expected(graph, x)
        assert found.shape == wanted.shape
        if precision == FP16:
            assert np.abs(found - wanted).max() <= 0.01 * np.abs(wanted).max(), seed
        elif exact:
            assert np.abs(found - wanted).max() <= 0.51 * lowered.inputs["x"][1], seed
        elif net.graph.node("p").op.count_pad:
            assert np.abs(found - wanted).max() <= 1.5 * lowered.inputs["x"][1], seed
    assert refused < (40 if first == 0 else 200) // 2


@pytest.mark.parametrize("config", ["nv_small", "nv_large", "nv_full"])
def test_an_average_with_one_window_and_columns_behind_it(config):
    net = Net((8, 13, 7))
    graph = net.done(net.add("p", Pool("Average", (6, 3), (2, 6), (1, 0, 1, 0), count_pad=True), "x"))
    x = samples((8, 13, 7))
    _, lowered, program = compiled(graph, config, INT8, x)
    found, wanted = run(lowered, program, x), expected(graph, x)
    assert np.abs(found - wanted).max() <= 1.5 * lowered.outputs["p"][1]


TAKEN = {
    "shuffle": ((3, 1, 0, 2, 7, 9, 9), None, None),
    "whole atoms": (tuple(range(32, 64)), None, None),
    "half of an atom": (tuple(range(32, 36)), None, None),
    "inside of atoms": (tuple(range(3, 50)), None, None),
    "every other channel": (tuple(range(0, 64, 2)), None, None),
    "lines": (None, (2, 3, 4), None),
    "every other line and column": (None, (1, 3, 5), (0, 2, 4)),
    "one pixel": (None, (4,), (3,)),
    "a corner": ((5, 6), (0, 1), (5, 6)),
    "one channel": ((63,), None, None),
}


@pytest.mark.parametrize("config, precision", THREE)
@pytest.mark.parametrize("case", TAKEN)
@pytest.mark.parametrize("last", [False, True])
def test_chosen_channels_lines_and_columns(case, last, config, precision):
    net = Net((64, 6, 7))
    y = net.add("t", IndexSelect(TAKEN[case]), net.conv("a", "x", 64, (1, 1), activation=RELU))
    graph = net.done(y if last else net.conv("b", y, 5, (1, 1)))
    x = samples((64, 6, 7))
    quantized, lowered, program = compiled(graph, config, precision, x)
    found, name = run(lowered, program, x), graph.outputs[0]
    if precision == FP16:
        assert cosine(found, expected(graph, x)) > 0.99999
        return
    wanted = simulate(quantized, quantize_inputs(quantized, [x]))[name].reshape(found.shape) * quantized.type(name).scale
    assert np.abs(found - wanted).max() <= 1.01 * quantized.type(name).scale


def test_whole_atoms_of_channels_cost_nothing():
    net = Net((16, 6, 7))
    y = net.conv("a", "x", 64, activation=RELU)
    graph = net.done(net.conv("b", net.add("t", IndexSelect((tuple(range(32, 64)), None, None)), y), 5))
    _, lowered, _ = compiled(graph, "nv_large", INT8, samples((16, 6, 7)))
    assert [layer.name for layer in lowered.layers] == ["a", "b"]


@pytest.mark.parametrize(
    "indices", [(None, (3, 2, 1), None), (None, (0, 1, 3), None), (None, None, (0, 0, 1)), (None, (0, 9), None)]
)
def test_lines_in_another_order_are_refused(indices):
    net = Net((8, 12, 6))
    graph = net.done(net.add("t", IndexSelect(indices), net.conv("a", "x", 8, (1, 1))))
    with pytest.raises(N2D2Error, match=r"E715.*lines or columns in an order of their own, or more than 8 apart"):
        compiled(graph, "nv_small", INT8, samples((8, 12, 6)))


TARGETS = (("nv_small", INT8), ("nv_large", INT8), ("nv_full", INT8), ("nv_full", FP16))
LIMITS = {"int8": 6.01, "average": 20, "fp16": 0.005}


def measure(seed: int) -> tuple[str, float]:
    """(kind, largest error) of a network: steps of the output against the Python integers; fp16: parts of the range.

    An average pool keeps the scale of its input, which the Python integers do not: a kind of its own. Sums differ by a
    few steps where the integers limit an operand that the hardware adds before it limits.
    """
    config, precision = TARGETS[seed % len(TARGETS)]
    other = seed // len(TARGETS)
    graph = random_network(seed, 2 + other % 6, other % 5 == 0)
    x = np.random.default_rng(seed + 1).standard_normal((2, *graph.shape("x")[1:])).astype(np.float32)
    quantized, lowered, program = compiled(graph, config, precision, x)
    found, name = run(lowered, program, x), graph.outputs[0]
    if other % 5 == 0 and config == "nv_small":
        assert max(len(layer.chains) for layer in lowered.layers) > 1  # its weights do not fit at once
    if precision == FP16:
        wanted = expected(graph, x)
        return "fp16", float(np.abs(found - wanted).max() / max(np.abs(wanted).max(), 1e-3))
    scale = quantized.type(name).scale
    stored = simulate(quantized, quantize_inputs(quantized, [x]))[name].reshape(found.shape)
    steps = np.abs(found - stored * scale).max() / max(scale, lowered.outputs[name][1])
    average = any(node.op.kind == "Pool" and node.op.mode == "Average" for node in graph.nodes)
    return "average" if average else "int8", float(steps)


def check(seed: int) -> None:
    kind, error = measure(seed)
    assert error <= LIMITS[kind], (seed, kind, error)


@pytest.mark.parametrize("seed", range(24))
def test_random_networks(seed):
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1250, 10))
def test_many_random_networks(first):
    for seed in range(first, first + 10):
        check(seed)
