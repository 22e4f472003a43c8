"""The integer form of each kind of layer that comes quantized: its constants, its rescale, its clamp, its refusals.

They look at `n2d2py.quant.insert_requantize` and `n2d2py.quant.weighted`.
"""

from __future__ import annotations

import numpy as np
import pytest

from n2d2py import log
from n2d2py.arithmetic import FixedPointRescale, FloatRescale, FractionRescale, NumType, StepRescale
from n2d2py.errors import N2D2Error
from n2d2py.graph import Node, QuantGraph, QuantNode, QuantTensor
from n2d2py.graph.forms import Aligned, Dequantized, Moved, Table
from n2d2py.operators.activation import Activation
from n2d2py.operators.affine import Affine
from n2d2py.operators.concat import Concat
from n2d2py.operators.conv import Conv
from n2d2py.operators.deconv import Deconv
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.fc import Fc
from n2d2py.operators.functions import Clip, LeakyRectifier, Log, Logistic, Tanh
from n2d2py.operators.identity import Identity
from n2d2py.operators.pool import Pool
from n2d2py.operators.quantize import Quantize
from n2d2py.operators.resize import Resize
from n2d2py.quant.contract import LayerTypes, prequantize_layer
from n2d2py.quant.options import QuantOptions

BYTE = NumType(8, scale=0.5, full=True)
SHIFTED = NumType(8, scale=0.25, zero_point=-28, full=True)
UBYTE = NumType(8, signed=False, scale=0.125, zero_point=100)
WIDE = NumType(16, scale=2**-8, zero_point=0, full=True)


def layer(op, inputs=(SHIFTED,), output=BYTE, mode="Floating-point", activation=None, **params) -> QuantNode:
    names = [f"x{index}" for index in range(len(inputs))]
    arrays = {name: np.asarray(value, np.float32) for name, value in params.items()}
    node = Node("y", op, names, ["y"], arrays, activation)
    return prequantize_layer(node, LayerTypes(list(inputs), output, QuantOptions(rescaling=mode)))


def values(node: QuantNode, stored, kinds, output=BYTE) -> np.ndarray:
    """What the layer stores for stored inputs."""
    graph = QuantGraph("g", 8, inputs=list(node.inputs), outputs=["y"])
    for name, kind, x in zip(node.inputs, kinds, stored, strict=True):
        graph.tensors[name] = QuantTensor(name, x.shape, kind)
    graph.tensors["y"] = QuantTensor("y", (), output)
    (result,) = node.op.run_integer([x.astype(kind.dtype) for x, kind in zip(stored, kinds, strict=True)], node, graph)
    return result.astype(np.int64)


def rounded(real: np.ndarray, kind: NumType) -> np.ndarray:
    return np.clip(np.rint(real / kind.scale) + kind.zero_point, kind.qmin, kind.qmax).astype(np.int64)


def real(stored: np.ndarray, kind: NumType) -> np.ndarray:
    return (stored.astype(np.float64) - kind.zero_point) * kind.scale


def anything(kind: NumType, *shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(kind.qmin, kind.qmax, shape, endpoint=True)


def fails(code: str, op, **options) -> N2D2Error:
    with pytest.raises(N2D2Error) as caught:
        layer(op, **options)
    assert caught.value.code == code and "'y'" in caught.value.what
    return caught.value


@pytest.mark.parametrize("kind", [BYTE, SHIFTED, UBYTE, NumType(8), NumType(8, zero_point=-90)])
def test_the_sums_of_a_resize_stay_below_their_bound(kind):
    node = Node("y", Resize((8, 8), "Bilinear"), ["x"], ["y"])
    made = prequantize_layer(node, LayerTypes([kind], kind, QuantOptions(), input_shape=(1, 2, 4, 4)))
    assert made.bound == max(kind.qmax, -kind.qmin, kind.qmax - kind.zero_point, kind.zero_point - kind.qmin) * 2 * 2


@pytest.mark.parametrize("zero", [0, -28, 90])
def test_a_linear_layer_is_what_the_real_numbers_are(zero):
    """Weights and bias are whole steps, so the sum is exact, and so is its rounding but for halves."""
    kind = NumType(8, scale=0.25, zero_point=zero, full=True)
    rng = np.random.default_rng(1)
    scales = np.array([0.5, 0.125, 2.0], np.float32)
    integers = rng.integers(-128, 128, (3, 4))
    weights = integers * scales[:, None]
    bias = rng.integers(-500, 500, 3) * scales * 0.25
    output = NumType(8, scale=13.0, zero_point=5, full=True)
    node = layer(Fc(), [kind], output, weights=weights, bias=bias, weight_scales=scales)
    x = anything(kind, 40, 4)
    np.testing.assert_array_equal(values(node, [x], [kind], output), rounded(real(x, kind) @ weights.T + bias, output))
    np.testing.assert_array_equal(node.params["weights"], integers)
    np.testing.assert_array_equal(node.params["bias"], np.rint(bias / (0.25 * scales)) - zero * integers.sum(axis=1))
    assert node.params["weights"].dtype == np.int8 and node.params["bias"].dtype == np.int32
    assert isinstance(node.rescale, FloatRescale)
    np.testing.assert_allclose(node.rescale.factors, 0.25 * scales / 13)


def reach(node: QuantNode, kind: NumType, offset: int) -> int:
    """The largest magnitude of a sum and its parts, whatever is read; `offset` is what each stored input is reduced by."""
    peak = max(kind.qmax - offset, offset - kind.qmin)
    rows = np.abs(node.params["weights"].astype(np.int64)).reshape(len(node.params["bias"]), -1).sum(axis=1)
    return int((rows * peak + np.abs(node.params["bias"].astype(np.int64))).max())


@pytest.mark.parametrize("kind", [BYTE, SHIFTED, UBYTE, NumType(8, signed=False, scale=0.5), WIDE])
@pytest.mark.parametrize("op", [Fc(), Conv()])
def test_the_bound_of_a_sum_over_stored_integers(op, kind):
    """The zero point is in the bias, so the stored integers themselves are summed."""
    shape = (3, 4) if isinstance(op, Fc) else (3, 4, 1, 1)
    integers = np.random.default_rng(0).integers(-128, 128, shape)
    node = layer(op, [kind], weights=integers * 0.5, bias=[7.0, -900.0, 0.0], weight_scales=[0.5] * 3)
    assert node.bound == reach(node, kind, 0)


def test_a_deconvolution_takes_the_zero_point_off_its_inputs():
    integers = np.random.default_rng(0).integers(-128, 128, (3, 4, 2, 2))
    node = layer(Deconv(), [SHIFTED], weights=integers * 0.5, bias=[1.0, 2.0, -3.0], weight_scales=[0.5] * 3)
    np.testing.assert_array_equal(node.params["bias"], [8, 16, -24])
    assert node.bound == reach(node, SHIFTED, SHIFTED.zero_point)


def test_sums_beyond_32_bits_have_wide_biases():
    kind = NumType(16, scale=1.0, full=True)
    for count, dtype in ((517, np.int64), (515, np.int32)):
        node = layer(Fc(), [kind], weights=np.full((1, count), 127.0), bias=[0.0], weight_scales=[1.0])
        assert node.bound == count * 127 * 32768 and node.params["bias"].dtype == dtype
    at_limit = layer(Fc(), [kind], weights=[[127.0] * 516 + [4.0]], bias=[0.0], weight_scales=[1.0])
    assert at_limit.bound == 2**31 and at_limit.params["bias"].dtype == np.int64


@pytest.mark.parametrize(
    "low, high, dtype",
    [
        (-128, 127, np.int8),
        (-129, 0, np.int16),
        (0, 128, np.int16),
        (-5, 32767, np.int16),
        (0, 32768, np.int32),
        (-40000, 0, np.int32),
    ],
)
def test_weights_of_a_zero_point_need_more_bits(low, high, dtype):
    node = layer(Fc(), weights=[[low * 0.5, high * 0.5]], bias=[0.0], weight_scales=[0.5])
    assert node.params["weights"].tolist() == [[low, high]] and node.params["weights"].dtype == dtype


def test_one_scale_for_all_outputs():
    node = layer(Fc(), weights=[[1.0], [2.0]], bias=[0.0, 0.0], weight_scales=[0.5])
    assert node.params["weights"].tolist() == [[2], [4]] and node.rescale.count == 2


def test_weights_between_the_steps():
    """Rounding of the file's numbers is allowed, weights of another scale are not."""
    node = layer(Fc(), weights=[[1.009, -0.995]], bias=[0.0], weight_scales=[0.5])
    assert node.params["weights"].tolist() == [[2, -2]]
    for weight in (1.011, -1.011, 0.75):
        assert "scale" in fails("E514", Fc(), weights=[[0.0, weight]], bias=[0.0], weight_scales=[0.5]).what
    assert "does not quantize" in fails("E514", Fc(), weights=[[0.0]], bias=[0.0]).what


def test_a_layer_without_weights_to_sum():
    node = layer(Fc(), weights=np.zeros((2, 3)), bias=[1.0, -2.0], weight_scales=[0.5, 0.5])
    assert node.params["bias"].tolist() == [8, -16] and node.bound == 16


def test_a_gain_per_channel_is_a_sign_and_a_scale():
    node = layer(Affine(), weights=[-0.75, 0.0, 3.0], bias=[1.5, 2.0, 0.0])
    assert node.params["weights"].tolist() == [-1, 0, 1] and node.params["weights"].dtype == np.int8
    x = anything(SHIFTED, 30, 3)
    want = real(x, SHIFTED) * [-0.75, 0, 3] + [1.5, 2.0, 0]
    assert np.abs(values(node, [x], [SHIFTED]) - np.clip(want / BYTE.scale, -128, 127)).max() <= 0.5


def test_a_bias_between_the_steps():
    """Its fraction is added to the sum; one that rounding explains is none."""
    step = 0.25 * 0.5
    whole = layer(Fc(), weights=[[0.5], [0.5]], bias=[3 * step, -7.0004 * step], weight_scales=[0.5])
    assert isinstance(whole.rescale, FloatRescale) and whole.params["bias"].tolist() == [3 + 28, -7 + 28]
    node = layer(Fc(), weights=[[0.5], [0.5]], bias=[3.25 * step, -7.0004 * step], weight_scales=[0.5])
    assert isinstance(node.rescale, FractionRescale)
    np.testing.assert_allclose(node.rescale.fractions, [0.25, 0.0])
    np.testing.assert_allclose(node.rescale.factors, step / 0.5)
    x = anything(SHIFTED, 50, 1)
    want = real(x, SHIFTED) * 0.5 + np.array([3.25, -7]) * step
    assert np.abs(values(node, [x], [SHIFTED]) - np.clip(want / 0.5, -128, 127)).max() <= 0.5 + 1e-6


def test_a_large_bias_is_as_exact_as_its_type():
    """One in a hundred million is no fraction in float32."""
    node = layer(Fc(), [NumType(8, scale=1.0, full=True)], weights=[[1.0]], bias=[8_000_001.0 / 3], weight_scales=[1 / 3])
    assert isinstance(node.rescale, FloatRescale)


def test_fractions_in_the_fixed_point_modes_are_rounded():
    node = layer(Fc(), weights=[[0.5]], bias=[0.25 * 0.5 * 3.4], weight_scales=[0.5], mode="Fixed-point16")
    assert isinstance(node.rescale, FixedPointRescale) and node.params["bias"].tolist() == [3 + 28]


@pytest.fixture
def warnings():
    log.setup()
    return lambda: [warning.code for warning in log.warnings_seen()]


@pytest.mark.parametrize(
    "mode, bits, warned",
    [("Fixed-point16", 15, False), ("Fixed-point32", 31, False), ("Single-shift", 15, True), ("Double-shift", 15, True)],
)
def test_modes(warnings, mode, bits, warned):
    """Weights that are as they are take up no error of a shift: it becomes a multiplication, and a warning says so."""
    node = layer(Fc(), weights=[[0.5]], bias=[0.0], weight_scales=[0.5], mode=mode)
    assert isinstance(node.rescale, FixedPointRescale) and node.rescale.bits == bits
    np.testing.assert_allclose(node.rescale.effective(), 0.25, rtol=1e-4)
    assert warnings() == ["W502"] * warned


def test_a_factor_that_a_mode_cannot_hold(warnings):
    node = layer(Fc(), output=NumType(8, scale=1e-9), weights=[[0.5]], bias=[0.0], weight_scales=[0.5], mode="Fixed-point16")
    np.testing.assert_allclose(node.rescale.effective(), 1.25e8, rtol=1e-6)
    assert warnings() == ["W502"]


CLAMPS = [
    (None, BYTE, (-128, 127)),
    (None, UBYTE, (0, 255)),
    (Clip(low=0), BYTE, (0, 127)),
    (Clip(low=0), SHIFTED, (-28, 127)),
    (Clip(low=-1.3, high=6), BYTE, (-3, 12)),
    (Clip(low=-1000, high=1000), SHIFTED, (-128, 127)),
    (Clip(high=2.5), UBYTE, (0, 120)),
]


@pytest.mark.parametrize("activation, kind, clamp", CLAMPS)
def test_limits_are_rounded_as_results_are(activation, kind, clamp):
    for op, inputs, params in (
        (Fc(), [BYTE], {"weights": [[1.0]], "bias": [0.0], "weight_scales": [1.0]}),
        (ElemWise("Sum"), [BYTE, BYTE], {}),
        (Pool("Average", (2, 2)), [BYTE], {}),
    ):
        node = layer(op, inputs, kind, activation=activation, **params)
        assert node.clamp == clamp and all(type(limit) is int for limit in node.clamp)


def test_other_activations_are_layers_of_their_own():
    assert "Tanh" in fails("E511", Fc(), activation=Tanh(), weights=[[1.0]], bias=[0.0], weight_scales=[1.0]).what


@pytest.mark.parametrize("weights", [(), (1.0, -1.0), (0.5, 2.0)])
def test_sums_equal_those_of_real_numbers(weights):
    """In integers where all pairs of bytes agree; sums of three tensors are real."""
    node = layer(ElemWise("Sum", weights), [SHIFTED, UBYTE])
    a, b = anything(SHIFTED, 50, 4), anything(UBYTE, 50, 4, seed=1)
    first, second = weights or (1, 1)
    want = rounded(first * real(a, SHIFTED) + second * real(b, UBYTE), BYTE)
    np.testing.assert_array_equal(values(node, [a, b], [SHIFTED, UBYTE]), want)
    assert isinstance(node.rescale, FloatRescale) and node.params["multipliers"].dtype == np.int32
    three = layer(ElemWise("Sum", (*weights, 1.0) if weights else ()), [SHIFTED, UBYTE, UBYTE])
    want = rounded(first * real(a, SHIFTED) + second * real(b, UBYTE) + real(b, UBYTE), BYTE)
    np.testing.assert_array_equal(values(three, [a, b, b], [SHIFTED, UBYTE, UBYTE]), want)
    assert isinstance(three.rescale, StepRescale) and three.params["scales"].dtype == np.float32


@pytest.mark.parametrize("weights", [(), (3.0, -0.5)])
def test_lengths_are_of_real_numbers(weights):
    """In float32, of networks that come quantized and of others."""
    a, b = anything(SHIFTED, 50, 4), anything(UBYTE, 50, 4, seed=1)
    first, second = np.float32(weights or (1, 1))
    want = rounded(np.sqrt((first * real(a, SHIFTED)) ** 2 + (second * real(b, UBYTE)) ** 2), BYTE)
    np.testing.assert_array_equal(
        values(layer(ElemWise("EuclideanSum", weights), [SHIFTED, UBYTE]), [a, b], [SHIFTED, UBYTE]), want
    )


@pytest.mark.parametrize("operation, combine", [("Prod", np.multiply), ("Max", np.maximum), ("Min", np.minimum)])
def test_products_and_limits_of_real_numbers(operation, combine):
    node = layer(ElemWise(operation), [SHIFTED, UBYTE])
    a, b = anything(SHIFTED, 50, 4), anything(UBYTE, 50, 4, seed=1)
    np.testing.assert_array_equal(
        values(node, [a, b], [SHIFTED, UBYTE]), rounded(combine(real(a, SHIFTED), real(b, UBYTE)), BYTE)
    )


@pytest.mark.parametrize(
    "op",
    [
        ElemWise("EuclideanSum", (1.0, 1.0), (0.0, 2.0)),
        ElemWise("AbsSum"),
        ElemWise("Sum", (1.0, 1.0), (0.0, 2.0)),
        ElemWise("Prod", (1.0, 2.0)),
        ElemWise("Max", (2.0, 1.0)),
        ElemWise("Min", (-1.0, -1.0)),
    ],
)
def test_other_combinations_are_refused(op):
    assert op.operation in fails("E510", op, inputs=[BYTE, BYTE]).what


@pytest.mark.parametrize("mode", ["Fixed-point16", "Single-shift", "Double-shift"])
def test_sums_without_floating_point_have_integer_multipliers(mode):
    """The factor of a product is a real number in every mode."""
    for operation in ("Sum", "Max", "Min"):
        made = layer(ElemWise(operation), [SHIFTED, UBYTE], mode=mode)
        assert isinstance(made.form, Aligned) and not isinstance(made.rescale, FloatRescale)
    made = layer(ElemWise("Prod"), [SHIFTED, UBYTE], mode=mode)
    assert isinstance(made.form, Aligned) and isinstance(made.rescale, FloatRescale)


def test_layers_that_only_move_values_and_concatenations():
    for op in (Pool("Max", (2, 2)), Identity(), Concat()):
        node = layer(op, [BYTE])
        assert node.rescale is None and isinstance(node.form, Moved) and node.clamp == (-128, 127)
    assert layer(Concat(), [SHIFTED, UBYTE]).rescale is not None


@pytest.mark.parametrize("mode", ["Floating-point", "Fixed-point16", "Fixed-point32"])
@pytest.mark.parametrize("kind", [SHIFTED, UBYTE])
@pytest.mark.parametrize("pads, count_pad", [((0, 0, 0, 0), False), ((1, 0, 1, 1), False), ((1, 0, 1, 1), True)])
def test_means(mode, kind, pads, count_pad):
    op = Pool("Average", (3, 2), (2, 2), pads, count_pad)
    node = layer(op, [kind], mode=mode)
    x = anything(kind, 3, 2, 7, 8)
    (want,) = op.run([real(x, kind)], node)
    assert np.abs(values(node, [x], [kind]) - np.clip(want / BYTE.scale, -128, 127)).max() <= 0.51
    if mode == "Floating-point":
        assert isinstance(node.rescale, StepRescale) and node.params["scales"].tolist() == [kind.scale]
    else:
        assert node.rescale.count == (1 if count_pad or not any(pads) else 6)
        assert node.bound == 6 * max(kind.qmax - kind.zero_point, kind.zero_point - kind.qmin, kind.qmax, -kind.qmin)


@pytest.mark.parametrize("op", [Logistic(), Tanh(), LeakyRectifier(0.1)])
@pytest.mark.parametrize("kind", [SHIFTED, UBYTE])
def test_functions_are_tables_of_every_stored_value(op, kind):
    output = NumType(8, scale=1 / 64, zero_point=-3, full=True)
    node = layer(Activation(op), [kind], output)
    stored = np.arange(kind.qmin, kind.qmax + 1)
    assert node.params["table"].shape == (256,)
    assert np.abs(node.params["table"] - rounded(op(real(stored, kind)), output)).max() <= 1
    np.testing.assert_array_equal(values(node, [stored.reshape(1, -1)], [kind], output)[0], node.params["table"])


def test_a_clamp_behind_a_function_is_in_its_table():
    output = NumType(8, scale=1 / 64, full=True)
    node = layer(Activation(Tanh()), [BYTE], output, activation=Clip(-0.25, 0.5))
    assert (node.params["table"].min(), node.params["table"].max()) == (-16, 32) and node.clamp == (-128, 127)
    stepped = layer(Activation(Clip(low=-1)), [BYTE], output, activation=LeakyRectifier(0.5))
    assert stepped.params["table"].min() == -32


def test_where_a_function_is_not_defined():
    """The value at the nearest input where it is, here that of 0; nowhere: refused."""
    output = NumType(8, scale=1 / 16, full=True)
    table = layer(Activation(Log()), [BYTE], output).params["table"].astype(int)
    assert (table[:129] == -128).all() and table[129] == -11 and table[255] == round(np.log(63.5) * 16)
    nowhere = NumType(8, signed=False, scale=1.0, zero_point=300)
    assert "Log" in fails("E504", Activation(Log()), inputs=[nowhere]).what


@pytest.mark.parametrize("activation", [None, Clip(low=0)])
def test_rounding_to_another_type(activation):
    """A table of bytes; wider integers are rounded again."""
    low = 0 if activation else -np.inf
    node = layer(Quantize(BYTE), [UBYTE], activation=activation)
    x = np.arange(256).reshape(1, 256)
    np.testing.assert_array_equal(values(node, [x], [UBYTE]), rounded(np.maximum(real(x, UBYTE), low), BYTE))
    assert isinstance(node.form, Table) and node.rescale is None
    node = layer(Quantize(BYTE), [WIDE], activation=activation)
    x = anything(WIDE, 50, 20)
    np.testing.assert_array_equal(values(node, [x], [WIDE]), rounded(np.maximum(real(x, WIDE), low), BYTE))
    assert isinstance(node.form, Dequantized)
