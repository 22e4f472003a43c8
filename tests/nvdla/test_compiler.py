"""The compiler: networks of every kind of layer, for every configuration, against the float network."""

import numpy as np
import pytest
from support.errors import error_line
from support.nvdla_networks import compiled, cosine, expected, run
from support.ops import LRN, Activation, Concat, Deconv, ElemWise, Pool, Resize, Softmax
from support.small_graphs import RELU, Net

from n2d2py.contracts.functions import Logistic, Tanh
from n2d2py_nvdla.config import CONFIGS
from n2d2py_nvdla.export.arithmetic import fixed_point
from n2d2py_nvdla.export.convolution import ConvolutionWindow, split
from n2d2py_nvdla.firmware import FP16, INT8, RUBIK


def residual(net: Net) -> str:
    a = net.conv("a", "x", 16, pads=(1, 1, 1, 1), activation=RELU)
    b = net.conv("b", a, 16, pads=(1, 1, 1, 1), activation=RELU)
    c = net.conv("c", b, 16, pads=(1, 1, 1, 1))
    return net.add("sum", ElemWise("Sum"), c, a, activation=RELU)


def concatenation(net: Net) -> str:
    a = net.conv("a", "x", 32, activation=RELU)
    b = net.conv("b", "x", 64, activation=RELU)
    return net.conv("d", net.add("c", Concat(), a, b), 8)


@pytest.mark.parametrize("precision", [INT8, FP16])
@pytest.mark.parametrize("stride, kernel", [((3, 2), (3, 4)), ((1, 1), (5, 3))])
def test_steps_of_a_transposed_convolution_are_put_together_by_rubik(stride, kernel, precision):
    net = Net((5, 6, 7))
    params = {"weights": net.random.standard_normal((10, 5, *kernel)) / 4, "bias": net.random.standard_normal(10)}
    params = {role: values.astype(np.float32) for role, values in params.items()}
    graph = net.done(net.add("d", Deconv(stride, (0, 1, 0, 1)), "x", params=params))
    x = samples((5, 6, 7), 2)
    for abi in ("v10", "v12"):
        _, lowered, program = compiled(graph, "nv_full", precision, x, abi)
        assert cosine(run(lowered, program, x), expected(graph, x)) > (0.99999 if precision == FP16 else 0.995)
        engines = {op.engine for layer in lowered.layers for chain in layer.chains for op in chain}
        assert (RUBIK in engines) == (stride != (1, 1))


def samples(shape=(3, 12, 10), count: int = 3) -> np.ndarray:
    return np.random.default_rng(5).standard_normal((count, *shape)).astype(np.float32)


@pytest.mark.parametrize("precision", [INT8, FP16])
def test_both_firmwares_give_the_same_bits(precision):
    net = Net((3, 12, 10))
    graph = net.done(residual(net))
    x = samples(count=1)
    results = []
    for abi in ("v10", "v12"):
        _, lowered, program = compiled(graph, "nv_full", precision, x, abi)
        results.append(run(lowered, program, x))
    assert np.array_equal(*results)


@pytest.mark.parametrize("function", [Logistic(), Tanh()])
def test_tables(function):
    for config, precision, slack in (("nv_large", INT8, 0.03), ("nv_full", FP16, 0.004)):
        net = Net((3, 6, 6))
        graph = net.done(net.add("t", Activation(function), net.conv("a", "x", 10)))
        x = samples((3, 6, 6))
        _, lowered, program = compiled(graph, config, precision, x)
        assert len(lowered.layers) == 1  # the table is part of the convolution's pass
        assert np.abs(run(lowered, program, x) - expected(graph, x)).max() < slack


def test_integer_tables_are_exact():
    net = Net((8, 4, 4))
    graph = net.done(net.add("t", Activation(Tanh()), net.add("p", Pool("Max", (1, 1)), "x")))
    x = samples((8, 4, 4))
    quantized, lowered, program = compiled(graph, "nv_large", INT8, x)
    from n2d2py.quant.simulator import quantize_inputs, simulate

    stored = simulate(quantized, quantize_inputs(quantized, [x]))["t"]
    assert np.array_equal(np.rint(run(lowered, program, x) / quantized.type("t").scale), stored)


def test_normalization_and_softmax():
    net = Net((20, 1, 1))
    a = net.add("n", LRN(5, 1e-2, 0.75, 1.0), net.conv("a", "x", 20, kernel=(1, 1)))
    graph = net.done(net.add("s", Softmax(), a))
    x = samples((20, 1, 1)) * 4
    for abi in ("v10", "v12"):
        _, lowered, program = compiled(graph, "nv_full", FP16, x, abi)
        assert len(program.tasks) == 2
        assert np.abs(run(lowered, program, x) - expected(graph, x)).max() < 1e-3


def test_a_residual_block_takes_one_pass_for_each_convolution():
    net = Net((3, 12, 10))
    _, lowered, _ = compiled(net.done(residual(net)), "nv_small", INT8, samples())
    assert [len(layer.chains) for layer in lowered.layers] == [1, 1, 1]


def test_concatenations_of_whole_atoms_cost_nothing():
    net = Net((3, 12, 10))
    _, lowered, _ = compiled(net.done(concatenation(net)), "nv_full", FP16, samples())
    assert [layer.name for layer in lowered.layers] == ["a", "b", "d"]


def test_large_layers_are_split():
    net = Net((64, 40, 30))
    a = net.conv("a", "x", 200, pads=(1, 1, 1, 1), activation=RELU)
    graph = net.done(net.conv("b", a, 24, stride=(2, 2)))
    x = samples((64, 40, 30), 1)
    _, lowered, program = compiled(graph, "nv_small", INT8, x)
    assert all(len(layer.chains) > 1 for layer in lowered.layers)
    assert cosine(run(lowered, program, x), expected(graph, x)) > 0.999


def test_a_split_keeps_to_the_buffer():
    for name, config in CONFIGS.items():
        found = split(config, INT8, (256, 30, 30), 512, (3, 3), 30, ConvolutionWindow(pads=(1, 1, 1, 1)), config.lanes(INT8))
        assert found is not None and found.kernels % config.lanes(INT8) == 0, name
    assert split(CONFIGS["nv_small"], INT8, (8192, 64, 64), 8, (3, 3), 62, ConvolutionWindow(), 8) is None


def test_memory_is_reused():
    from n2d2py_nvdla.export.place import place

    net = Net((8, 20, 20))
    last = "x"
    for i in range(8):
        last = net.conv(f"c{i}", last, 16 + 8 * (i % 3), pads=(1, 1, 1, 1))
    _, lowered, _ = compiled(net.done(last), "nv_small", INT8, samples((8, 20, 20)))
    placement = place(lowered)
    assert placement.size <= 1.1 * placement.live


@pytest.mark.parametrize(
    "network, config, precision, reason",
    [
        (lambda n: n.conv("a", "x", 4, stride=(9, 9), kernel=(1, 1)), "nv_full", FP16, "the limits are 32, 8 and 32"),
        (lambda n: n.add("a", Resize((24, 20), "Bilinear"), "x"), "nv_full", FP16, "resampling of mode Bilinear"),
        (lambda n: n.add("a", ElemWise("EuclideanSum"), "x", "x"), "nv_full", FP16, "EuclideanSum of 2 inputs"),
        (lambda n: n.conv("b", n.add("a", Softmax(), "x"), 2), "nv_full", FP16, "softmax over all channels of one position"),
    ],
)
def test_refusals_have_reasons(network, config, precision, reason):
    net = Net((3, 12, 10))
    graph = net.done(network(net))
    line = error_line(compiled, graph, config, precision, samples())
    assert "E715" in line and reason in line


def test_fixed_point():
    m, t = fixed_point(np.array([0.5, 0.001]))
    assert np.allclose(m / 2.0**t, [0.5, 0.001], atol=2.0 ** -(t + 1)) and m.max() <= 32767 and t >= 14
    assert fixed_point(0.99999)[0][0] <= 32767
    assert fixed_point(0.0)[0][0] == 0
