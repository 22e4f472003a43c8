"""Tensors of very different ranges that one layer joins keep the precision of each, or a warning names them."""

import logging

import numpy as np
import pytest
from support import join_networks as joins
from support.onnx_models import decibels
from support.ops import Concat
from support.tables import every

from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.graph.forms import Moved, Rescaled
from n2d2py.passes import fuse
from n2d2py.quant.calibration import quantize
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.quant.statistics import collect
from n2d2py.quant.types.float_fallback import insert_conversions
from n2d2py.reference.engine import FloatEngine


def quantized(net: joins.Joins, output: str, path, **options):
    """(integer network, its outputs and the float ones (N, 8, 64))."""
    graph, _ = fuse(import_onnx(net.write(path / "joins.onnx", output)), integer=True)
    x = joins.stimuli(32)
    expected = FloatEngine(graph).run(x)[graph.outputs[0]]
    graph = insert_conversions(graph)
    typed, _ = quantize(graph, collect(graph, [x]).histograms, QuantOptions(8, **{"output_bits": 0, **options}))
    (name,) = typed.outputs
    found = typed.type(name).dequantize(simulate(typed, quantize_inputs(typed, [x]))[name])
    return typed, *(values.reshape(len(x), -1, 64) for values in (found, expected))


@every("make", joins.JOINS)
def test_boxes_and_scores_keep_their_precision(make, tmp_path, caplog):
    net = joins.Joins()
    _, found, expected = quantized(net, make(net), tmp_path)
    assert decibels(found[:, :4], expected[:, :4]) > 28
    assert decibels(found[:, 4:], expected[:, 4:]) > 28
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


FLOAT_JOINS = [joins.float_reader, joins.float_input, joins.row, joins.reshaped, joins.split, joins.lines_beside_reals]


@every("make", FLOAT_JOINS)
def test_a_concat_beside_floating_point_stays_there(make, tmp_path):
    net = joins.Joins()
    typed, _, _ = quantized(net, make(net), tmp_path)
    assert all(typed.is_float(node) for node in typed.nodes if isinstance(node.op, Concat))


@pytest.mark.parametrize("gain, bits, form", [(0.2, 8, Moved), (joins.WIDE, 16, Rescaled)])
def test_lines_that_are_joined_along_a_later_axis_are_integers(gain, bits, form, tmp_path, caplog):
    """Of one type where their ranges are near, each rescaled where they are not."""
    net = joins.Joins()
    net.boxes = net.add("Sigmoid", net.boxes) if form is Moved else net.conv("x", 4, 4, gain)
    typed, found, expected = quantized(net, joins.lines_of_integers(net), tmp_path)
    assert all(typed.is_integer(node) for node in typed.nodes)
    (join,) = (node for node in typed.nodes if isinstance(node.op, Concat) and node.op.rows > 1)
    assert (typed.type(join.output).bits, type(join.form)) == (bits, form)
    assert decibels(found[:, :4], expected[:, :4]) > 28 and decibels(found[:, 4:], expected[:, 4:]) > 28
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@every("fill, gain", [(0.0, 1.0), (0.0, 1e-3), (0.5, 1.0)])
def test_constants_of_one_value_are_padding(fill, gain, tmp_path):
    """As frames are shifted: the integers of the rows are copied, and no scale changes."""
    net = joins.Joins()
    lines = net.add("Reshape", net.conv("x", 4, 4, gain), net.constant(np.array([0, 4, 64])))
    before, after = (net.constant(np.full((1, count, 64), fill, np.float32)) for count in (1, 3))
    typed, found, expected = quantized(net, net.add("Concat", before, lines, after, axis=1), tmp_path)
    assert {type(node.form) for node in typed.nodes if node.op.moves_values} == {Moved}
    assert not any(isinstance(node.op, Concat) for node in typed.nodes)
    assert decibels(found[:, 1:5], expected[:, 1:5]) > 28
    assert np.abs(found[:, [0, 5, 6, 7]] - fill).max() <= typed.type(typed.outputs[0]).scale / 2


def test_lines_of_positive_numbers_are_unsigned(tmp_path):
    net = joins.Joins()
    net.boxes = net.add("Relu", net.conv("x", 4, 4))
    typed, _, _ = quantized(net, joins.lines_of_integers(net), tmp_path)
    (join,) = (node for node in typed.nodes if isinstance(node.op, Concat) and node.op.rows > 1)
    assert not typed.type(join.output).signed


def test_a_concat_of_integers_gets_16_bits_only_where_ranges_differ(tmp_path):
    bits = []
    for gain in (0.25, joins.WIDE):
        net = joins.Joins()
        net.boxes = net.conv("x", 4, 4, gain)
        typed, _, _ = quantized(net, joins.integers(net), tmp_path)
        bits.append([typed.type(node.output).bits for node in typed.nodes if isinstance(node.op, Concat)])
    assert bits == [[8], [16]]


def test_a_concat_at_an_output_has_the_bits_that_are_asked(tmp_path):
    """In 8 bits its steps are not twice as wide because its parts have 16 bits, which hold twice the largest value."""
    net = joins.Joins()
    net.boxes = net.conv("x", 4, 4, 1.0)
    output = joins.integers(net)
    found = {}
    for bits, wide in ((8, ()), (8, (net.boxes, net.scores)), (16, ())):
        typed, values, expected = quantized(net, output, tmp_path, output_bits=bits, wide=frozenset(wide))
        assert typed.type(typed.outputs[0]).bits == bits
        found[bits, bool(wide)] = decibels(values, expected)
    assert found[8, True] > found[8, False] - 1 and found[16, False] > found[8, False] + 1, found


@every(
    "make, options, named",
    [
        (lambda net: net.conv(joins.integers(net), 8, 4), {}, "QuantBits=16"),
        (lambda net: net.conv(joins.row_of_integers(net), 8, 4), {}, "QuantBits=16"),
        (joins.integers, {"output_bits": 8}, "QuantBits=16"),
        (joins.integers, {"wide_concats": False}, "QuantBits=16"),
    ],
)
def test_ranges_that_8_bits_must_hold_together_are_named(make, options, named, tmp_path, caplog):
    net = joins.Joins()
    with caplog.at_level(logging.WARNING):
        quantized(net, make(net), tmp_path, **options)
    (record,) = caplog.records
    assert "W505" in record.getMessage() and named in record.getMessage()
    assert f"'{net.boxes}' reaches" in record.getMessage() and f"'{net.scores}" in record.getMessage()


def test_16_bits_that_are_still_too_coarse_are_named(tmp_path, caplog):
    net = joins.Joins()
    net.boxes = net.conv("x", 4, 4, 3000.0)
    with caplog.at_level(logging.WARNING):
        quantized(net, joins.integers(net), tmp_path)
    (record,) = caplog.records
    assert "W505" in record.getMessage() and "in 16 bits" in record.getMessage()
    assert "set Quantize=0 for it" in record.getMessage() and "QuantBits" not in record.getMessage()


# ---- padding with a constant ------------------------------------------------------------------------
def padded(value: float, path):
    net = joins.Joins()
    scores = net.add("Relu", net.conv("x", 4, 4))
    y = net.add("Pad", scores, [0, 0, 1, 1, 0, 0, 1, 1], value)
    return quantized(net, net.part(y, 0, 8, axis=2), path)


@pytest.mark.parametrize("value", [-1.5, 5.0, 12.0])
def test_padding_near_the_range_is_kept(value, tmp_path, caplog):
    _, found, _ = padded(value, tmp_path)
    assert abs(found.reshape(32, 4, 8, 10)[:, :, 0] - value).max() < 0.06
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("value", [-1e4, 1e4])
def test_padding_far_beyond_the_range_is_named(value, tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        padded(value, tmp_path)
    (record,) = caplog.records
    assert "W506" in record.getMessage() and f"{value:g}" in record.getMessage()
