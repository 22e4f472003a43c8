"""A convolution and the sum behind it as one layer of a typed network: its structure, its integers, its file."""

from __future__ import annotations

import numpy as np
import pytest
from support.export_networks import random_inputs, residual

from n2d2py.graph import QuantGraph
from n2d2py.passes.integer.residual_add import addable, fuse_residual_adds
from n2d2py.quant.simulator import simulate
from n2d2py.runtime.graph_file import read_graph, write_graph


@pytest.fixture(scope="module")
def networks() -> tuple[QuantGraph, QuantGraph]:
    """A network of integers whose convolution `flat` is added to `stem`, and the same with one layer for both."""
    graph = residual(True)
    return graph, fuse_residual_adds(graph, [("flat", "add")])


def test_one_layer_with_the_name_of_the_convolution_and_the_output_of_the_sum(networks):
    graph, fused = networks
    fused.verify()
    assert [node.name for node in fused.nodes] == [node.name for node in graph.nodes if node.name != "add"]
    node = next(node for node in fused.nodes if node.name == "flat")
    (apart,) = (node for node in graph.nodes if node.name == "flat")
    assert node.inputs == [*apart.inputs, "stem"] and node.outputs == ["add"]
    assert node.residual is not None and node.residual.layer == "add" and node.source[-1] == "add"
    assert set(graph.tensors) - set(fused.tensors) == set(apart.outputs)
    assert apart.residual is None and len(apart.inputs) == 1, "the given network is not changed"


def test_every_integer_is_the_same(networks, tmp_path):
    graph, fused = networks
    inputs = random_inputs(graph, 3)
    expected, found = (simulate(each, inputs, keep=True) for each in networks)
    assert set(found) == set(fused.tensors) and expected["add"].std() > 0
    write_graph(fused, tmp_path / "network.npz")
    again = simulate(read_graph(tmp_path / "network.npz"), inputs, keep=True)
    for name, values in found.items():
        np.testing.assert_array_equal(values, expected[name], err_msg=name)
        np.testing.assert_array_equal(again[name], values, err_msg=name)


def test_only_dense_convolutions_and_sums_of_integers_become_one(networks):
    graph, fused = networks
    fits = addable(graph)
    assert fits("flat", "add") and fits("stem", "add")
    assert not fits("deep", "add") and not fits("flat", "flat") and not fits("add", "add")
    floats = residual(False)
    assert not addable(floats)("flat", "add") and addable(floats, typed=False)("flat", "add")
    assert not addable(fused)("flat", "mean"), "a layer does one sum"
