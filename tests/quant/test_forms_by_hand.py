"""Clamps, multipliers and joined ranges of integer layers in numbers worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from n2d2py.arithmetic import FloatRescale, NumType
from n2d2py.errors import N2D2Error
from n2d2py.graph import Graph, Node
from n2d2py.operators.functions import FUNCTIONS, ChannelClip, Clip
from n2d2py.operators.identity import Identity
from n2d2py.quant.bit_search import WidthChoice, front
from n2d2py.quant.byte_pairs import byte_form
from n2d2py.quant.forming import activation_clamp, common_multipliers, file_clamp, file_rescale, peak, second_rounding
from n2d2py.quant.joins import with_fills
from n2d2py.quant.types import calibrated_tensors, shared_tensors

INF = np.inf
SIGNED = NumType(8, scale=0.5)
SHIFTED = NumType(8, signed=False, scale=0.5, zero_point=100)


def layer(activation=None) -> Node:
    return Node("n", Identity(), ["x"], ["y"], {}, activation=activation)


@pytest.mark.parametrize(
    ("activation", "kind", "wanted"),
    [
        (None, SIGNED, (-127, 127)),
        (None, SHIFTED, (0, 255)),
        (Clip(0.0), SIGNED, (0, 127)),
        (Clip(0.0), SHIFTED, (100, 255)),
        (Clip(-1.0, 6.0), SIGNED, (-2, 12)),
        (Clip(-1.0, 6.0), SHIFTED, (98, 112)),
        (Clip(-INF, 6.0), SIGNED, (-127, 12)),
        (Clip(-99.0, 99.0), SIGNED, (-127, 127)),
        (Clip(70.0, 99.0), SIGNED, (127, 127)),
        (Clip(-0.3, 0.8), SIGNED, (-1, 2)),
        (ChannelClip(0.0, (1.0, 2.0)), SIGNED, (0, 127)),
        (ChannelClip(0.0, (1.0, 2.0)), SHIFTED, (100, 255)),
    ],
)
def test_the_integers_that_an_activation_leaves(activation, kind, wanted):
    assert activation_clamp(layer(activation), kind) == wanted
    if not isinstance(activation, ChannelClip):
        assert file_clamp(layer(activation), kind) == wanted


@pytest.mark.parametrize(
    ("clamp", "remedy"),
    [
        (activation_clamp, "declare the activation as a layer of its own"),
        (file_clamp, "quantize what the activation reads too"),
    ],
)
def test_an_activation_that_is_no_clamp(clamp, remedy):
    with pytest.raises(N2D2Error) as caught:
        clamp(layer(FUNCTIONS["Tanh"]()), SIGNED)
    assert caught.value.code == "E511" and "layer 'n': Tanh " in caught.value.what
    assert caught.value.remedy == remedy


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        (NumType(8), 127),
        (NumType(8, signed=False), 255),
        (NumType(8, signed=False, zero_point=100), 155),
        (NumType(8, signed=False, zero_point=200), 200),
        (NumType(16), 32767),
    ],
)
def test_the_largest_integer_less_its_zero_point(kind, wanted):
    assert peak(kind) == wanted


@pytest.mark.parametrize(
    ("factors", "bits", "whole", "unit"),
    [
        ([1.0, 0.5], 4, [2, 1], 0.5),
        ([3.0, 1.0], 4, [3, 1], 1.0),
        ([1.0, 0.3], 4, [16, 5], 1 / 16),
        ([-0.75, 0.25], 8, [-3, 1], 0.25),
        ([5.0], 3, [5], 1.0),
        ([6.0, 2.0], 2, [3, 1], 2.0),
        ([1.0, 0.0], 6, [1, 0], 1.0),
    ],
)
def test_common_multipliers_in_lowest_terms(factors, bits, whole, unit):
    assert common_multipliers(np.array(factors), bits) == (whole, unit)


def test_what_a_second_rounding_adds():
    """m / 2^31 is the mantissa, from a half on: 2^30 / m is 1 for a power of two, and a half for nearly the next one."""
    found = second_rounding(np.array([0.5, 0.25, 0.375, 0.999, 1.0, 3.0, 2.0**-20]))
    assert found[0] == 0.0 and found[1] == 1.0 and found[2] == pytest.approx(2 / 3) and found[3:6].tolist() == [0.0, 0.0, 0.0]
    assert found[6] == 1.0


def test_floating_point_factors_stay_as_they_are():
    factors = np.array([0.1, 0.7], np.float32)
    assert isinstance(file_rescale(layer(), factors, 5, "Floating-point"), FloatRescale)
    assert np.array_equal(file_rescale(layer(), factors, 5, "Floating-point").factors, factors)


def padded(fill: float) -> SimpleNamespace:
    return SimpleNamespace(op=SimpleNamespace(fill=fill), name="pad", location=None)


@pytest.mark.parametrize(
    ("threshold", "fills", "wanted", "named"),
    [
        (2.0, [], 2.0, []),
        (2.0, [1.0, -1.5], 2.0, []),
        (2.0, [3.0, -5.0], 5.0, []),
        (2.0, [15.9], 15.9, []),
        (2.0, [16.0], 2.0, [(16.0, 2.0)]),
        (2.0, [-16.0], 2.0, [(-16.0, -2.0)]),
        (2.0, [3.0, -100.0], 3.0, [(-100.0, -3.0)]),
    ],
)
def test_constants_that_widen_a_range_or_are_clipped(threshold, fills, wanted, named):
    widest, beyond = with_fills(threshold, [padded(fill) for fill in fills])
    assert widest == wanted
    assert [each.what for each in beyond] == [
        f"pads with {fill:g} a tensor that reaches {threshold:.4g}: in integers the value is {stored:.4g}"
        for fill, stored in named
    ]
    assert all(each.pads and each.layer == "pad" and each.remedy.startswith("pad with a value near") for each in beyond)


# ---- sums and products of bytes --------------------------------------------------------------------
def test_a_sum_of_equal_scales_by_hand():
    """(q_0 - 3) + q_1 in steps of three, for all 65,280 pairs."""
    inputs = [NumType(8, signed=False, scale=1.0, zero_point=3), NumType(8, scale=1.0)]
    output = NumType(8, scale=3.0)
    form = byte_form("Sum", np.array([1.0, 1.0], np.float32), inputs, output, (-127, 127))
    assert form is not None and form.multipliers[0] == form.multipliers[1] > 0
    first, second = np.arange(0, 256) - 3, np.arange(-127, 128)
    sums = form.multipliers[0] * first[:, None] + form.multipliers[1] * second[None, :] + form.offset[0]
    wanted = np.clip(np.rint((first[:, None] + second[None, :]) / 3), -127, 127)
    assert np.array_equal(form.rescale.apply(sums.astype(np.int32), -127, 127), wanted)
    assert form.bound == form.multipliers[0] * (252 + 127) + abs(form.offset[0]) >= np.abs(sums).max()


def test_a_product_by_hand():
    inputs = [NumType(8, signed=False, scale=0.5, zero_point=200), NumType(8, scale=0.25)]
    output = NumType(8, signed=False, scale=0.125 * 37, zero_point=9)
    form = byte_form("Prod", np.array([0.5, 0.25], np.float32), inputs, output, (0, 255))
    assert form is not None and form.multipliers.tolist() == [1, 1] and form.offset.tolist() == [0]
    assert form.bound == 200 * 127
    found = form.rescale.apply(np.array([37 * 4, 37 * -1, 18, 19, 37 * 300], np.int32), -9, 246)
    assert found.tolist() == [4, -1, 0, 1, 246]


@pytest.mark.parametrize(
    ("operation", "bits", "count", "scales"),
    [
        ("Max", 8, 2, [1.0, 1.0]),
        ("Sum", 9, 2, [1.0, 1.0]),
        ("Sum", 8, 3, [1.0, 1.0, 1.0]),
        ("Sum", 8, 1, [1.0]),
        ("Sum", 8, 2, [1.0, 0.0]),
        ("Sum", 8, 2, [np.inf, 1.0]),
        ("Prod", 8, 2, [np.nan, 1.0]),
    ],
)
def test_what_has_no_form_of_bytes(operation, bits, count, scales):
    inputs = [NumType(8)] * (count - 1) + [NumType(bits)]
    assert byte_form(operation, np.array(scales, np.float32), inputs, NumType(8), (-127, 127)) is None


# ---- choices of widths -----------------------------------------------------------------------------
def test_the_choices_that_no_other_beats():
    """Two layers: 8 bits of 8 and 4 bytes without error; 4 bits of half the bytes, with errors of 3 and 1."""
    choices = {"a": [WidthChoice(8, 8, 0.0), WidthChoice(4, 4, 3.0)], "b": [WidthChoice(8, 4, 0.0), WidthChoice(4, 2, 1.0)]}
    found = front(choices, 10)
    assert found.bytes.tolist() == [16, 18, 20, 22] and found.errors.tolist() == [4.0, 3.0, 1.0, 0.0]
    assert [found.widths(place) for place in range(4)] == [
        {"a": 4, "b": 4},
        {"a": 4, "b": 8},
        {"a": 8, "b": 4},
        {"a": 8, "b": 8},
    ]
    assert [found.within(budget) for budget in (15, 16, 17, 18, 21, 22, 99)] == [None, 0, 0, 1, 2, 3, 3]
    same = front({"a": [WidthChoice(8, 4, 1.0), WidthChoice(4, 4, 1.0), WidthChoice(2, 5, 1.0)]}, 0)
    assert same.bytes.tolist() == [4] and same.widths(0) == {"a": 8}
    none = front({}, 7)
    assert (none.bytes.tolist(), none.errors.tolist(), none.widths(0)) == ([7], [0.0], {})


def test_tensors_that_hold_the_same_integers():
    graph = Graph("net")
    graph.add_input("x", (1, 2, 3, 4))
    for name, source in (("a", "x"), ("b", "a")):
        graph.add(Node(name, Identity(), [source], [name], {}))
    assert shared_tensors(graph) == {"x": ["x", "a", "b"]} and calibrated_tensors(graph) == ["x"]
