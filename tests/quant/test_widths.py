"""How many bits a tensor gets, one case for each rule of `n2d2py.quant.widths`, with what lies beside it."""

from __future__ import annotations

import numpy as np
import pytest

from n2d2py.graph import Graph, Node, Precision
from n2d2py.operators.activation import Activation
from n2d2py.operators.conv import Conv
from n2d2py.operators.convert import Convert
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.fc import Fc
from n2d2py.operators.functions import FUNCTIONS, Clip
from n2d2py.operators.identity import Identity
from n2d2py.quant.histogram import Histogram
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.types import shared_tensors
from n2d2py.quant.widths import asked_bits, width

TANH = FUNCTIONS["Tanh"]()
OPS = {
    "conv": Conv(),
    "fc": Fc(),
    "tanh": Activation(TANH),
    "real": Convert(True),
    "same": Identity(),
    "sum": ElemWise("Sum"),
    "length": ElemWise("EuclideanSum"),
}


def network(text: str, shape: tuple[int, ...] = (2, 4, 4), outputs: str = "") -> Graph:
    """Layers "name:kind(inputs)" behind an input x; all ends are outputs, and those of `outputs`."""
    graph = Graph("net")
    graph.add_input("x", (1, *shape))
    for word in text.split():
        name, rest = word.split(":")
        kind, inputs = rest.rstrip(")").split("(")
        sources, params = inputs.split(","), {}
        if kind in ("conv", "fc"):
            size = int(np.prod(graph.shape(sources[0])[1:]))
            weights = (3, size) if kind == "fc" else (2, graph.shape(sources[0])[1], 1, 1)
            params = {"weights": np.ones(weights, np.float32), "bias": np.zeros(weights[0], np.float32)}
        graph.add(Node(name, OPS[kind], sources, [name], params))
    graph.outputs = [node.output for node in graph.nodes if not graph.consumers(node.output)] + outputs.split()
    return graph


def bits_of(graph: Graph, name: str, spoiled: bool = False, known=None, **options) -> int:
    """Those of a tensor whose values are near its largest one, or, `spoiled`, far below it."""
    histogram = Histogram()
    histogram.add(np.append(np.tile(np.array([1, -1], np.float32), 5000) * (0.001 if spoiled else 0.9), np.float32(1)))
    source = {held: origin for origin, holders in shared_tensors(graph).items() for held in holders}
    final = {source[output] for output in graph.outputs}
    chosen = QuantOptions(**{"input_bits": 0, "output_bits": 0, **options})
    return width(graph, name, source, final, {name: histogram}, known, chosen)


INPUTS: dict[str, tuple[str, dict, int]] = {
    "an even input": ("a:conv(x)", {}, 8),
    "an input of small values": ("a:conv(x)", {"spoiled": True}, 16),
    "of a fully connected layer": ("a:fc(x)", {"spoiled": True}, 16),
    "of a known range": ("a:conv(x)", {"spoiled": True, "known": (-1.0, 1.0)}, 8),
    "that is asked for": ("a:conv(x)", {"input_bits": 16}, 16),
    "of a known range that is asked for": ("a:conv(x)", {"input_bits": 16, "known": (-1.0, 1.0)}, 16),
    "that shall have 8 bits": ("a:conv(x)", {"spoiled": True, "input_bits": 8}, 8),
    "that a function reads": ("a:tanh(x)", {"spoiled": True}, 8),
    "that a function reads too": ("a:conv(x) b:tanh(x)", {"spoiled": True}, 8),
    "that is real besides": ("a:conv(x) b:real(x)", {"spoiled": True}, 16),
    "that is real alone": ("b:real(x)", {"spoiled": True}, 16),
    "that is moved": ("m:same(x) a:conv(m)", {"spoiled": True}, 16),
    "that is moved to a function": ("m:same(x) a:tanh(m)", {"spoiled": True}, 8),
    "that nothing reads": ("m:same(x)", {"spoiled": True}, 8),
    "of 16 bits": ("a:conv(x)", {"bits": 16}, 16),
    "of few bits": ("a:conv(x)", {"wide": frozenset({"x"})}, 16),
}


@pytest.mark.parametrize("case", INPUTS)
def test_inputs(case):
    text, options, wanted = INPUTS[case]
    assert bits_of(network(text), "x", **options) == wanted


LENGTHS: dict[str, tuple[str, dict, int]] = {
    "magnitudes": ("a:conv(x) m:length(a,x) b:conv(m)", {"spoiled": True}, 16),
    "even magnitudes": ("a:conv(x) m:length(a,x) b:conv(m)", {}, 8),
    "a sum": ("a:conv(x) m:sum(a,x) b:conv(m)", {"spoiled": True}, 8),
    "a convolution": ("m:conv(x) b:conv(m)", {"spoiled": True}, 8),
    "magnitudes that are asked for": ("a:conv(x) m:length(a,x) b:conv(m)", {"input_bits": 16}, 16),
}


@pytest.mark.parametrize("case", LENGTHS)
def test_magnitudes_are_as_inputs(case):
    text, options, wanted = LENGTHS[case]
    assert bits_of(network(text), "m", **options) == wanted


OUTPUTS: dict[str, tuple[str, str, dict, int]] = {
    "scores": ("y:fc(x)", "y", {}, 16),
    "scores of 8 bits": ("y:fc(x)", "y", {"output_bits": 8}, 8),
    "an image": ("y:conv(x)", "y", {}, 8),
    "an image of 16 bits": ("y:conv(x)", "y", {"output_bits": 16}, 16),
    "a function of scores": ("a:fc(x) y:tanh(a)", "y", {}, 8),
    "scores that are moved": ("a:fc(x) y:same(a)", "a", {}, 16),
    "scores inside": ("a:fc(x) y:tanh(a)", "a", {}, 8),
    "inside, with wide outputs": ("a:conv(x) y:tanh(a)", "a", {"output_bits": 16}, 8),
    "a network of 16 bits": ("y:fc(x)", "y", {"bits": 16, "output_bits": 8}, 16),
}


@pytest.mark.parametrize("case", OUTPUTS)
def test_outputs(case):
    text, name, options, wanted = OUTPUTS[case]
    assert bits_of(network(text), name, **options) == wanted


def test_outputs_that_are_read_besides_are_as_those_inside():
    assert bits_of(network("a:fc(x) y:tanh(a)", outputs="a"), "a") == 8
    assert bits_of(network("y:fc(x)"), "y", output_bits=16) == 16
    assert bits_of(network("a:fc(x) y:tanh(a)", outputs="a"), "a", output_bits=16) == 8
    assert bits_of(network("m:same(x)", outputs="x"), "x", output_bits=16) == 8
    assert bits_of(network("y:conv(x)", (3, 1, 1)), "y") == 16


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ({}, None),
        ({"a": 16}, 16),
        ({"b": 4}, 4),
        ({"a": 8, "b": 16}, 16),
        ({"c": 16}, None),
        ({"a": 16, "b": 8}, 16),
        ({"m": 16}, 16),
    ],
)
def test_the_widest_that_a_layer_beside_a_tensor_asks_for(asked, wanted):
    """Those that write it and those that read it, moved or not."""
    graph = network("a:conv(x) m:same(a) b:conv(m) c:conv(b)")
    for name, bits in asked.items():
        graph.precisions[name] = Precision(bits=bits)
    assert asked_bits(graph, ["a", "m"]) == wanted
    assert bits_of(graph, "a") == (8 if wanted is None else wanted)


def test_clipped_tensors_are_as_others():
    graph = network("a:conv(x) b:conv(a)")
    graph.node("a").activation = Clip(0.0, 6.0)
    assert bits_of(graph, "a", spoiled=True) == 8
