"""What an integer network leaves in floating point: the table, its shares, the warning, and -strict."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from support import report_networks as networks

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.graph import Graph, Node, Precision
from n2d2py.operators.activation import Activation
from n2d2py.operators.functions import Tanh
from n2d2py.operators.lrn import LRN
from n2d2py.quant.calibration import prepare, quantize
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.quantize import float_graph
from n2d2py.report.in_float import float_layers_csv, float_layers_in, float_layers_text, float_shares
from n2d2py.stages.quantize import tell_in_float


def with_lrn(**precisions: Precision) -> Graph:
    """conv (8 of 3x3x3) - LRN - fc (4): 8 x 8 x 3 in."""
    b = networks.Builder("net", 8, 8, 3)
    x = b.conv("conv", b.input, 8, 3)
    b.graph.add(Node("norm", LRN(3, 1e-4, 0.75, 1.0), [x], ["norm"]))
    graph = b.done(b.fc("fc", "norm", 4))
    graph.precisions = dict(precisions)
    return graph


def typed(graph: Graph):
    """(typed network, float network of the same layers)."""
    real = prepare(graph, per_output=True, equalized=False)
    return quantize(real, networks.random_histograms(real), QuantOptions())[0], real


def test_the_layers_without_integers_and_their_shares():
    graph, real = typed(with_lrn())
    (one,) = float_layers_in(graph, real)
    assert (one.layer, one.operator, one.reason, one.asked) == ("norm", "LRN", "no integer form", False)
    work = {
        node.name: node.op.macs([graph.shape(n) for n in node.inputs], graph.shape(node.output), node) for node in graph.nodes
    }
    assert one.macs == pytest.approx(work["norm"] / sum(work.values())) and one.macs > 0
    constants = 8 * 27 + 4 * 8 + 4 * 512 + 4 * 4  # weights of a byte, biases of four
    outputs = 512 + 4 * 512 + 4 * 512 + 512 + graph.tensors["fc"].bytes  # conv, as floats, norm, as integers, fc
    assert one.bytes == pytest.approx(4 * 512 / (constants + outputs))


def test_what_was_asked_for_says_so_and_is_no_warning(caplog):
    graph, real = typed(with_lrn(conv=Precision(quantize=False), norm=Precision(quantize=False)))
    found = float_layers_in(graph, real)
    assert [(one.layer, one.reason, one.asked) for one in found] == [("conv", "Quantize=0", True), ("norm", "Quantize=0", True)]
    log.setup(strict=True)
    tell_in_float(graph, real)
    log.raise_on_strict()


def test_integers_alone_and_floats_alone_have_no_such_layer():
    graph, real = typed(networks.small())
    assert float_layers_in(graph, real) == []
    assert float_layers_in(float_graph(with_lrn(), -32), with_lrn()) == []


def test_layers_that_follow_are_told_by_their_neighbours():
    graph = with_lrn()
    graph.add(Node("shape", Activation(Tanh()), ["norm"], ["shape"]))
    graph.outputs = ["fc", "shape"]
    assert [one.layer for one in float_layers_in(*typed(graph))] == ["norm"]  # Tanh has a table
    two = networks.Builder("net", 8, 8, 3)
    two.graph.add(Node("norm", LRN(3, 1e-4, 0.75, 1.0), [two.input], ["norm"]))
    moved = two.done(two.add("sum", "norm", "norm"))
    assert [(one.layer, one.reason) for one in float_layers_in(*typed(moved))] == [
        ("norm", "no integer form"),
        ("sum", "its neighbours are in floating point"),
    ]


def test_strict_refuses(capsys):
    log.setup()
    tell_in_float(*typed(with_lrn()))
    said = capsys.readouterr().err
    assert "N2D2-W507: 1 of 5 layers" in said and "norm" in said and "layer in floating point" in said
    log.setup(strict=True)
    tell_in_float(*typed(with_lrn()))
    with pytest.raises(N2D2Error) as caught:
        log.raise_on_strict()
    assert caught.value.code == "E522"
    log.setup()


def test_the_tables_add_up():
    found = float_layers_in(*typed(with_lrn(conv=Precision(quantize=False))))
    macs, size = float_shares(found)
    rows = list(csv.DictReader(io.StringIO(float_layers_csv(found))))
    assert [row["layer"] for row in rows] == ["conv", "norm"] and [row["asked"] for row in rows] == ["1", "0"]
    assert np.isclose(sum(float(row["macs_percent"]) for row in rows), 100 * macs)
    assert np.isclose(sum(float(row["bytes_percent"]) for row in rows), 100 * size)
    few = float_layers_text(found, 1).splitlines()
    assert few[2].startswith("conv") and few[3].startswith("1 more") and few[4].startswith("all  ")
    assert len(float_layers_text(found).splitlines()) == 5
