"""Rules of the quantization, one table each: what 32-bit integers compute, what cannot be read."""

import numpy as np
import pytest
from support.errors import error_line, error_of, refused
from support.ops import LRN, Activation, Fc, Identity, Padding, Pool, Reshape, Transpose
from support.small_graphs import graph_of
from support.tables import every

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.histogram import Histogram
from n2d2py.contracts.functions import Clip
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.graph import Graph, Node
from n2d2py.quant.calibration import quantize
from n2d2py.quant.quantize import float_graph, form_integers
from n2d2py.quant.statistics import Statistics
from n2d2py.quant.types.choose import TensorTypes

RELU, ABOVE, BELOW = Clip(0.0), Clip(0.5, 2.0), Clip(-1.0, 2.0)


def two_inputs(op, inputs=("p", "q"), activation=None) -> Graph:
    """y = op(p, q) of two images."""
    graph = Graph("net")
    for name in ("p", "q"):
        graph.add_input(name, (1, 4, 6, 6))
    graph.add(Node("y", op, list(inputs), ["y"], {}, activation))
    graph.outputs = ["y"]
    return graph


PLAIN = {
    "max pool": (Pool("Max", (2, 2), (2, 2)), None, True),
    "mean pool": (Pool("Average", (2, 2)), None, False),
    "identity": (Identity(), None, True),
    "other shape": (Reshape((144,)), None, True),
    "turned": (Transpose((0, 2, 3, 1)), None, True),
    "max pool, rectified": (Pool("Max", (2, 2)), RELU, False),
    "zeros around": (Padding((1, 1, 1, 1)), None, False),
    "rectified": (Activation(RELU), None, False),
}


@every(("op", "activation", "taken"), PLAIN.values(), ids=PLAIN)
def test_layers_of_32_bit_integers_as_they_are(op, activation, taken):
    graph = two_inputs(op, ("p",), activation)
    if not taken:
        assert "in 32-bit integers" in error_line(float_graph, graph, 32)
        return
    found = float_graph(graph, 32)
    assert (found.name, found.bits, found.inputs, found.outputs) == ("net", 32, ["p", "q"], ["y"])
    assert {str(found.type(name).dtype) for name in ("p", "y")} == {"int32"}
    (node,) = found.nodes
    assert (node.name, node.op, node.inputs, node.outputs) == ("y", op, ["p"], ["y"])
    assert node.clamp == (-(2**31), 2**31 - 1)


def test_weights_in_binary16_have_a_largest_magnitude():
    for largest, fits in ((65519.0, True), (-65519.0, True), (65520.0, False), (-1e6, False)):
        params = {"weights": np.array([[1.0, largest]], np.float32), "bias": np.zeros(1, np.float32)}
        graph = graph_of({"p": (1, 2)}, Node("y", Fc(), ["p"], ["y"], params))
        if fits:
            stored = float_graph(graph, -16).nodes[0].params["weights"]
            assert stored.dtype == np.float16 and stored[0, 1] == np.float16(largest)
        else:
            assert refused("E519.*'y'.*65504", float_graph, graph, -16)


@pytest.mark.parametrize(("content", "code"), [(None, "E501"), (b"PK\x03\x04 no archive", "E502"), (b"", "E502")])
def test_statistics_that_cannot_be_read(tmp_path, content, code):
    path = tmp_path / "statistics.npz"
    if content is not None:
        path.write_bytes(content)
    assert code in error_line(Statistics.load, path, "key")


@pytest.mark.parametrize("bits", [8, 16])
def test_sums_of_weights_stay_within_their_bits(bits):
    """Weights that could leave 32 bits become coarser, by no more than that takes; with 16 bits sums have 64."""
    graph, count = Graph("net"), 140_000
    graph.add_input("p", (1, count))
    weights = np.ones((2, count), np.float32)
    weights[1] /= 128
    graph.add(Node("y", Fc(), ["p"], ["y"], {"weights": weights, "bias": np.zeros(2, np.float32)}))
    graph.outputs = ["y"]
    histograms = {name: Histogram() for name in ("p", "y")}
    histograms["p"].add(np.array([0.0, 1.0], np.float32))
    histograms["y"].add(np.array([0.0, 1e5], np.float32))
    node = quantize(graph, histograms, QuantOptions(bits=bits))[0].nodes[0]
    stored = np.abs(node.params["weights"].astype(np.int64)).max(axis=1)
    if bits == 8:
        assert 2**31 * 0.98 < node.bound < 2**31 and stored.tolist() == [60, 60]
    else:
        assert node.bound > 2**40 and stored.tolist() == [32767, 32767]


def test_all_layers_without_integers_are_refused_together():
    """Not only the first one."""
    graph = Graph("g")
    graph.add_input("x", (1, 3, 2, 2))
    for name in ("one", "two"):
        graph.add(Node(name, LRN(), ["x"], [name]))
    graph.outputs = ["one", "two"]
    types = TensorTypes(dict.fromkeys(graph.tensors, NumType(8, scale=0.1)), {})
    error = error_of(lambda: form_integers(graph, types, QuantOptions(), {}))
    assert ["'one'" in error.errors[0].what, "'two'" in error.errors[1].what] == [True, True]
