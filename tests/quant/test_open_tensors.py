"""Which tensors of a trained network are rounded to 8 bits: those that a layer reads as real numbers, once each."""

from __future__ import annotations

import numpy as np
import pytest

from n2d2py.arithmetic import NumType
from n2d2py.graph import Graph, Node
from n2d2py.operators.concat import Concat
from n2d2py.operators.conv import Conv
from n2d2py.operators.identity import Identity
from n2d2py.operators.pool import Pool
from n2d2py.operators.quantize import Quantize
from n2d2py.quant.trained import complete_trained, unmeasured_inputs

STEPS = NumType(8, scale=0.5)


def network(*layers: tuple[str, str], kind: str = "") -> Graph:
    """An input x, layers as (name and kind, inputs), all ends as outputs. Kinds: conv, quant, same, pool, join."""
    graph = Graph("net")
    graph.add_input("x", (1, 2, 4, 4), kind)
    for text, inputs in layers:
        name, made = text.split(":")
        params = {}
        if made == "conv":
            channels = graph.shape(inputs)[1]
            params = {"weights": np.ones((2, channels, 1, 1), np.float32), "bias": np.zeros(2, np.float32)}
        op = {
            "conv": Conv(),
            "quant": Quantize(STEPS),
            "same": Identity(),
            "pool": Pool("Max", (2, 2), (2, 2)),
            "join": Concat(),
        }[made]
        graph.add(Node(name, op, inputs.split(), [name], params))
    read = {name for node in graph.nodes for name in node.inputs}
    graph.outputs = [node.output for node in graph.nodes if node.output not in read]
    return graph


def rounded(graph: Graph, measured: tuple[str, ...] = (), ranges: dict | None = None) -> dict[str, list[str]]:
    """By tensor that is rounded here, the layers that read it rounded."""
    before = {node.name for node in graph.nodes}
    after = complete_trained(graph, ranges or {}, dict.fromkeys(measured, (-1.0, 1.0)))
    return {
        node.inputs[0]: sorted(reader.name for reader in after.consumers(node.output))
        for node in after.nodes
        if node.name not in before and isinstance(node.op, Quantize)
    }


CASES: dict[str, tuple[list[tuple[str, str]], tuple[str, ...], dict[str, list[str]]]] = {
    "an input": ([("a:conv", "x")], ("x",), {"x": ["a"]}),
    "an input that is not measured": ([("a:conv", "x")], (), {}),
    "an input behind a quantizer": ([("q:quant", "x"), ("a:conv", "q")], ("x",), {}),
    "an input with a quantizer and a layer": ([("q:quant", "x"), ("a:conv", "q"), ("b:conv", "x")], ("x",), {"x": ["b"]}),
    "a layer": ([("a:conv", "x"), ("b:conv", "a")], ("a",), {"a": ["b"]}),
    "a layer that is an output": ([("a:conv", "x")], ("a",), {}),
    "a quantizer": ([("a:conv", "x"), ("q:quant", "a"), ("b:conv", "q")], ("a", "q"), {}),
    "the same as a quantizer": ([("a:conv", "x"), ("q:quant", "a"), ("s:same", "q"), ("b:conv", "s")], ("q", "s"), {}),
    "the same as a layer": ([("a:conv", "x"), ("s:same", "a"), ("b:conv", "s")], ("s",), {}),
    "the same as an input": ([("s:same", "x"), ("b:conv", "s")], ("x", "s"), {"x": ["s"]}),
    "a pool": ([("a:conv", "x"), ("p:pool", "a"), ("b:conv", "p")], ("p",), {}),
    "a concatenation": ([("a:conv", "x"), ("j:join", "a x"), ("b:conv", "j")], ("j",), {}),
    "a layer with two readers": ([("a:conv", "x"), ("b:conv", "a"), ("c:conv", "a")], ("a",), {"a": ["b", "c"]}),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_rounded(case):
    layers, measured, wanted = CASES[case]
    assert rounded(network(*layers), measured) == wanted


def test_integers_of_the_file_are_not_rounded():
    graph = network(("s:same", "x"), kind="int64")
    assert rounded(graph, ("x", "s")) == {} and unmeasured_inputs(graph, {}) == []


def test_a_range_that_is_given_goes_before_the_measured_one():
    graph = network(("a:conv", "x"))
    for ranges, measured, low, scale in (
        ({"x": (0.0, 2.0)}, {"x": (-1.0, 1.0)}, 0, 2 / 255),
        ({"x": None}, {"x": (-1.0, 0.5)}, -127, 1 / 127),
        ({}, {"x": (-1.0, 3.0)}, -127, 3 / 127),
        ({}, {"x": (0.0, 0.0)}, 0, 1 / 255),
        ({}, {"x": (-2.0, -1.0)}, -127, 2 / 127),
    ):
        (kind,) = (node.op.type for node in complete_trained(graph, ranges, measured).nodes if isinstance(node.op, Quantize))
        assert (kind.bits, kind.qmin) == (8, low) and kind.scale == pytest.approx(scale, rel=1e-6)


@pytest.mark.parametrize(
    ("layers", "ranges", "wanted"),
    [
        ([("a:conv", "x")], {}, ["x"]),
        ([("a:conv", "x")], {"x": None}, ["x"]),
        ([("a:conv", "x")], {"x": (0.0, 1.0)}, []),
        ([("q:quant", "x"), ("a:conv", "q")], {}, []),
        ([("q:quant", "x"), ("a:conv", "q"), ("b:conv", "x")], {}, ["x"]),
    ],
)
def test_inputs_whose_range_is_not_known(layers, ranges, wanted):
    assert unmeasured_inputs(network(*layers), ranges) == wanted


def test_weights_that_nothing_quantized_get_a_scale_for_each_output():
    graph = network(("a:conv", "x"), ("b:conv", "a"))
    values = np.array([[[[0.5]], [[-2.54]]], [[[0.0]], [[0.0]]]], np.float32)
    graph.node("a").params = {**graph.node("a").params, "weights": values}
    graph.node("b").params = {**graph.node("b").params, "weight_scales": np.ones(2, np.float32)}
    after = complete_trained(graph, {}, {})
    found = after.node("a").params
    np.testing.assert_allclose(found["weight_scales"], [0.02, 1 / 127], rtol=1e-6)
    np.testing.assert_allclose(found["weights"], values, atol=1e-6)
    np.testing.assert_array_equal(after.node("b").params["weight_scales"], 1)
