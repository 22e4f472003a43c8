"""Networks that come quantized: the same integers as ONNX Runtime without optimizations, or a refusal."""

import numpy as np
import pytest
from support import quantized_models as models
from support.errors import error_of
from support.ops import Quantize
from support.quantized_models import MICROSOFT, Model
from support.tables import every

from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.operators.quantize import is_quantized
from n2d2py.passes import fuse
from n2d2py.quant.prequantized import quantize_prequantized, without_rounding
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.reference.engine import FloatEngine

pytest.importorskip("onnxruntime")


def typed(model: Model):
    graph, _ = fuse(import_onnx(model.built()), integer=True)
    return quantize_prequantized(graph, QuantOptions(unsigned=True))


def check(model: Model, output: str, *, count: int = 8, apart: int = 0):
    """Imports the model with one more output; the integers must be those of the reference. Returns the network."""
    model.outputs.append(output)
    graph, completed = typed(model)
    graph.verify()
    x = model.inputs(count)
    turned = x if graph.shape("x")[1:] == x.shape[1:] else np.moveaxis(x, -1, 1)
    stored = simulate(graph, quantize_inputs(graph, [turned]))
    for name, want in zip(graph.outputs, models.reference(model.built(), x), strict=True):
        kind = graph.type(name)
        if want.dtype.kind in "iu":
            pytest.fail("give real outputs")
        steps = np.rint(want.astype(np.float64) / kind.scale)
        found = stored[name].astype(np.int64) - kind.zero_point
        assert np.unique(steps).size > 3, "the case is too narrow to tell anything"
        assert np.abs(found - steps.reshape(found.shape)).max() <= apart
    engine = FloatEngine(completed)
    assert engine.backend == "onnxruntime" or model.dtype == np.int64
    return graph


def conv(
    model: Model,
    x: str,
    channels: int,
    outputs: int,
    *,
    kernel=3,
    groups=1,
    pads=(1, 1, 1, 1),
    stride=1,
    scale=0.02,
    bias="int32",
    dtype=np.int8,
    zero=None,
    per_channel=True,
) -> str:
    scales = model.rng.uniform(0.001, 0.004, outputs) if per_channel else 0.003
    w = model.weights((outputs, channels // groups, kernel, kernel), scales, dtype, zero)
    inputs = [x, w]
    if bias == "int32":
        inputs.append(model.bias(outputs, np.float32(scale) * np.float32(scales)))
    elif bias == "float":
        inputs.append(model.constant(model.rng.normal(size=outputs).astype(np.float32)))
    return model.add("Conv", *inputs, pads=pads, strides=[stride, stride], group=groups)


@every("dtype, zero", [(np.uint8, 113), (np.int8, -7), (np.int8, 0), (np.uint8, 128), (np.int8, -128)])
@every("bias", ["int32", "float", ""])
def test_convolution(dtype, zero, bias):
    model = Model((3, 9, 7))
    x = model.rounded("x", 0.02, zero, dtype)
    y = model.rounded(model.add("Relu", conv(model, x, 3, 8, stride=2, bias=bias)), 0.011, zero, dtype)
    z = model.rounded(conv(model, y, 8, 8, groups=8, scale=0.011, bias=bias), 0.009, 3)
    check(model, z)


@every("dtype, zero", [(np.uint8, 128), (np.uint8, 100), (np.int8, 0), (np.int8, 5)])
def test_weights_with_a_zero_point(dtype, zero):
    model = Model((3, 8, 8))
    y = conv(model, model.rounded("x", 0.02, 120, np.uint8), 3, 5, dtype=dtype, zero=zero, per_channel=False)
    graph = check(model, model.rounded(y, 0.0297, 4))
    assert graph.nodes[0].params["weights"].dtype == (np.int16 if zero in (100, 5) else np.int8)


def test_relu6_that_the_type_does_not_clamp():
    model = Model((3, 8, 8))
    y = conv(model, model.rounded("x", 0.02, 3), 3, 8)
    clipped = model.add("Clip", y, model.constant(np.float32(0)), model.constant(np.float32(0.5)))
    graph = check(model, model.rounded(clipped, 0.011, -100))
    assert len(graph.nodes) == 1


@every(
    "operator, attributes",
    [
        ("GlobalAveragePool", {}),
        ("AveragePool", {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("AveragePool", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ("AveragePool", {"kernel_shape": [4, 4], "strides": [4, 4]}),
        ("AveragePool", {"kernel_shape": [8, 8], "strides": [8, 8]}),
        ("AveragePool", {"kernel_shape": [8, 8]}),
        ("AveragePool", {"kernel_shape": [3, 3], "strides": [1, 1], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    ],
)
def test_means_round_like_the_reference_even_where_they_lie_halfway(operator, attributes):
    model = Model((16, 8, 8))
    mean = model.add(operator, model.rounded("x", 0.0213, 5), **attributes)
    check(model, model.rounded(mean, 0.0213, 5), count=16)


def test_moved_values_change_their_type_where_the_file_says_so():
    model = Model((4, 8, 8))
    x = model.rounded("x", 0.02, 3)
    pooled = model.rounded(model.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), 0.025, 9)
    check(model, model.rounded(model.add("Flatten", pooled), 0.03, 0))


def test_integers_may_be_moved_before_they_are_restored():
    model = Model((4, 8, 8))
    scale, zero = model.step(0.02, 3)
    pooled = model.add("MaxPool", model.add("QuantizeLinear", "x", scale, zero), kernel_shape=[2, 2])
    y = conv(model, model.add("DequantizeLinear", pooled, scale, zero), 4, 4)
    check(model, model.rounded(y, 0.02, 1))


@pytest.mark.parametrize("dims", [(2, 4, 16), (1, 4, 2, 4, 4), (128,)])
def test_arrays_of_any_rank_are_rounded(dims):
    """As attention over windows and frames has them: more axes than an image, or a first one that is not a batch."""
    model = Model((8, 16))
    split = model.rounded(model.add("Reshape", model.rounded("x", 0.02, 3), model.constant(np.array(dims))), 0.02, 3)
    turned = model.add("Transpose", model.add("Neg", split), perm=list(range(len(dims)))[::-1])
    joined = model.add("Reshape", model.rounded(turned, 0.03, -5), model.constant(np.array([1, 8, 16])))
    y = model.add("MatMul", joined, model.weights((16, 5), 0.003, axis=1))
    check(model, model.rounded(y, 0.02, 1), count=1)


@pytest.mark.parametrize("last", ["LogSoftmax", "ArgMax"])
def test_what_follows_the_last_rounding_is_computed_as_in_the_file(last):
    model = Model((20,))
    scale, zero = model.step(0.0131, 5)
    y = model.add("MatMul", model.rounded("x", 0.02, 3), model.weights((20, 7), 0.003, axis=1))
    y = model.add("QuantizeLinear", y, scale, zero)
    y = y if last == "ArgMax" else model.add("DequantizeLinear", y, scale, zero)
    y = model.add(last, y, axis=-1)
    model.outputs.append(model.add("Cast", y, to=1) if last == "ArgMax" else y)
    graph, _ = typed(model)
    x = model.inputs(32)
    (found,) = (
        graph.type(name).dequantize(y)
        for name, y in simulate(graph, quantize_inputs(graph, [x])).items()
        if name in graph.outputs
    )
    (want,) = models.reference(model.built(), x)
    np.testing.assert_allclose(found.reshape(want.shape), want, rtol=1e-5, atol=1e-5)


def test_concat_of_different_types():
    model = Model((4, 6, 6))
    x = model.rounded("x", 0.02, 3)
    a, b = model.rounded(conv(model, x, 4, 3), 0.03, -11), model.rounded(conv(model, x, 4, 5), 0.015, 77, np.uint8)
    joined = model.rounded(model.add("Concat", a, b, axis=1), 0.03, -11)
    check(model, model.rounded(conv(model, joined, 8, 4), 0.05, 0))


def test_weights_stored_as_real_numbers_and_rounded_in_the_file():
    """NNCF's form: QuantizeLinear and DequantizeLinear of float weights; a float bias."""
    model = Model((3, 8, 8))
    scales = model.constant(model.rng.uniform(0.01, 0.03, 6).astype(np.float32))
    zeros, real = model.constant(np.zeros(6, np.int8)), model.constant(model.rng.normal(size=(6, 3, 3, 3)).astype(np.float32))
    w = model.add("DequantizeLinear", model.add("QuantizeLinear", real, scales, zeros, axis=0), scales, zeros, axis=0)
    y = model.add("Conv", model.rounded("x", 0.02, 0), w, model.constant(model.rng.normal(size=6).astype(np.float32)))
    check(model, model.rounded(y, 0.1, 0))


def test_transposed_weights_of_a_linear_layer_keep_their_scales():
    """PyTorch's form: the weights are restored, transposed, then multiplied."""
    model = Model((20,))
    w = model.add("Transpose", model.weights((7, 20), model.rng.uniform(0.001, 0.004, 7)), perm=[1, 0])
    y = model.add(
        "Add", model.add("MatMul", model.rounded("x", 0.02, 3), w), model.constant(model.rng.normal(size=7).astype(np.float32))
    )
    check(model, model.rounded(y, 0.01, 0))


def test_gain_behind_quantized_weights_goes_into_their_scales():
    model = Model((3, 8, 8))
    y = conv(model, model.rounded("x", 0.02, 3), 3, 6)
    gain = model.constant(model.rng.uniform(-1.5, 1.5, (1, 6, 1, 1)).astype(np.float32))
    check(model, model.rounded(model.add("Mul", y, gain), 0.013, 0))


def test_results_that_are_not_quantized_hold_32_bits():
    model = Model((4, 6, 6))
    x = model.rounded("x", 0.02, 3)
    y = model.rounded(model.add("Relu", model.add("Add", conv(model, x, 4, 4), x)), 0.02, -100)
    graph = check(model, y)
    assert [graph.type(node.output).bits for node in graph.nodes] == [32, 8]
    model = Model((4, 6, 6))
    last = model.add("Relu", conv(model, model.rounded("x", 0.02, 3), 4, 4))
    graph = check(model, last, apart=2**10)
    (kind,) = (graph.type(name) for name in graph.outputs)
    assert kind.bits == 32 and kind.scale < 1e-6


@every("mover", ["MaxPool", "Transpose", "Concat", "Slice"])
def test_sums_of_moved_results_that_are_not_quantized_are_those_of_the_reference(mover):
    model = Model((32, 8, 8))
    x = model.rounded("x", 0.02, 3)
    y = conv(model, x, 32, 32, bias="float")
    if mover == "MaxPool":
        y = model.add("MaxPool", y, kernel_shape=[1, 1])
    elif mover == "Transpose":
        y = model.add("Transpose", y, perm=[0, 1, 3, 2])
    elif mover == "Slice":
        y, x = (model.add("Slice", t, *(model.constant(np.array([n])) for n in (2, 9, 1))) for t in (y, x))
    else:
        y, x = (model.add("Concat", t, x, axis=1) for t in (y, x))
    check(model, model.rounded(model.add("Add", y, x), 0.02, -100))


def test_a_function_of_a_result_that_is_not_quantized_is_a_table_of_16_bits():
    model = Model((4, 6, 6))
    y = conv(model, model.rounded("x", 0.02, 3), 4, 4)
    graph = check(model, model.rounded(model.add("Mul", y, model.add("Sigmoid", y)), 0.02, -100), apart=2)
    assert [graph.type(node.output).bits for node in graph.nodes] == [16, 8]


def test_one_tensor_rounded_to_two_types():
    model = Model((4, 6, 6))
    x = model.rounded("x", 0.02, 3)
    y = model.add("Add", model.rounded(conv(model, x, 4, 4), 0.03, 1), x)
    a, b = model.rounded(y, 0.03, 7), model.rounded(y, 0.05, -9)
    check(model, model.rounded(model.add("Add", a, b), 0.05, 0))


def test_qoperators():
    """Their kernels round means and sums elsewhere than the operators that they stand for: by one step at the end."""
    model = Model((3, 8, 8))
    x, s, z = model.quantize("x", 0.02, 3), *model.step(0.02, 3)
    scales = model.rng.uniform(0.001, 0.004, 6).astype(np.float32)
    w = model.constant(model.rng.integers(-128, 128, (6, 3, 3, 3)).astype(np.int8))
    bias = model.constant(model.rng.integers(-900, 900, 6).astype(np.int32))
    s1, z1 = model.step(0.011, -9)
    y = model.add(
        "QLinearConv", x, s, z, w, model.constant(scales), model.constant(np.zeros(6, np.int8)), s1, z1, bias, pads=[1, 1, 1, 1]
    )
    s2, z2 = model.step(0.0078, -128)
    g = model.add("QLinearSigmoid", y, s1, z1, s2, z2, domain=MICROSOFT)
    s3, z3 = model.step(0.02, 5)
    total = model.add("QLinearAdd", y, s1, z1, g, s2, z2, s3, z3, domain=MICROSOFT)
    s4, z4 = model.step(0.017, 0)
    mean = model.add("QLinearGlobalAveragePool", total, s3, z3, s4, z4, domain=MICROSOFT)
    flat = model.add("Flatten", mean)
    b = model.constant(model.rng.integers(-128, 128, (5, 6)).astype(np.int8))
    sb = model.constant(model.rng.uniform(0.002, 0.004, 5).astype(np.float32))
    zb = model.constant(np.zeros(5, np.int8))
    s5, z5 = model.step(0.0231, 11)
    logits = model.add("QGemm", flat, s4, z4, b, sb, zb, "", s5, z5, domain=MICROSOFT, transB=1)
    check(model, model.add("DequantizeLinear", logits, s5, z5), count=32, apart=1)


def test_halfway_inputs_are_rounded_as_float32_quotients():
    """Pixels on [-1, 1] whose scale is 1 / 127.5 lie halfway between two integers."""
    model = Model((3, 16, 16))
    model.outputs.append(model.rounded("x", 1 / 127.5, -1))
    graph = import_onnx(model.built())
    (kind,) = (node.op.type for node in graph.nodes if isinstance(node.op, Quantize))
    x = (np.arange(3 * 256, dtype=np.float32) % 256).reshape(1, 3, 16, 16) / np.float32(127.5) - np.float32(1)
    np.testing.assert_array_equal(kind.dequantize(kind.quantize(x)), models.reference(model.built(), x)[0])


def test_softmax_at_the_end_has_the_scale_of_the_file():
    model = Model((20,))
    y = model.add("MatMul", model.rounded("x", 0.02, 3), model.weights((20, 7), 0.003, axis=1))
    logits = model.rounded(y, 0.0131, 5)
    model.outputs.append(model.rounded(model.add("Softmax", logits), 1 / 256, -128))
    graph, _ = typed(model)
    assert [node.op.kind for node in graph.nodes] == ["Fc", "Softmax"]
    assert graph.type(graph.outputs[0]).scale == 1 / 256


def test_float_form_keeps_the_range_of_the_integers():
    """A quantizer drops a Relu that the type clamps; without rounding it must still clamp."""
    model = Model((3, 6, 6))
    model.outputs.append(model.rounded(conv(model, model.rounded("x", 0.02, 3), 3, 4), 0.01, -128))
    graph = without_rounding(import_onnx(model.built()))
    assert not is_quantized(graph)
    x = model.rng.normal(size=(2, *model.shape)).astype(np.float32)
    (found,) = FloatEngine(graph).run(x).values()
    (want,) = models.reference(model.built(), x)
    assert found.min() == 0 and np.abs(found - want).max() < 0.2


def refused(model: Model, output: str) -> list[N2D2Error]:
    model.outputs.append(output)
    return list(error_of(typed, model).errors)


MEAN, DEVIATION = np.array([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]], np.float32).reshape(2, 3, 1, 1)
NORMALIZED: dict[str, tuple[list[tuple], str]] = {
    "mean and deviation": ([("Sub", MEAN), ("Div", DEVIATION)], "float32"),
    "gains": ([("Mul", 1 / DEVIATION)], "float32"),
    "gains and shifts": ([("Mul", 1 / DEVIATION), ("Add", MEAN)], "float32"),
    "batch normalization": ([("BatchNormalization", *(array.ravel() for array in (MEAN, MEAN, MEAN, DEVIATION)))], "float32"),
    "channels last": ([("Transpose",), ("Sub", MEAN), ("Div", DEVIATION)], "float32"),
    "function": ([("Abs",), ("Sqrt",), ("Sub", MEAN)], "float32"),
    "bytes": ([("Cast",), ("Sub", 255 * MEAN), ("Div", 255 * DEVIATION)], "uint8"),
    "bytes, channels last": ([("Transpose",), ("Cast",), ("Sub", 255 * MEAN), ("Div", 255 * DEVIATION)], "uint8"),
    "one gain": ([("Div", np.float32(3))], "uint8"),
    "one gain and whole steps": ([("Div", np.float32(0.5)), ("Add", np.float32(0.25))], "uint8"),
    "one gain of bytes": ([("Cast",), ("Div", np.float32(255))], "uint8"),
    "one gain of bytes, channels last": ([("Cast",), ("Div", np.float32(255)), ("Transpose",)], "uint8"),
    "negative gain": ([("Mul", np.float32(-2))], "float32"),
}


@pytest.mark.parametrize("case", NORMALIZED)
def test_what_precedes_the_first_rounding(case):
    """Exact in floating point, or integers of the input."""
    layers, kind = NORMALIZED[case]
    names = [operator for operator, *_ in layers]
    model = Model((6, 7, 3) if "Transpose" in names else (3, 6, 7))
    if "Cast" in names:
        model.dtype = np.uint8
    x = "x"
    for operator, *constants in layers:
        attributes = {"Transpose": {"perm": [0, 3, 1, 2]}, "Cast": {"to": 1}}.get(operator, {})
        x = model.add(operator, x, *map(model.constant, constants), **attributes)
    scale, zero = (1 / 255, -128) if "Cast" in names and "one gain" in case else (1 / 64, -20)
    y = conv(model, model.rounded(x, scale, zero), 3, 4, scale=scale)
    graph = check(model, model.rounded(y, 0.02, 3))
    assert graph.type("x").name == kind


@pytest.mark.parametrize("position", [0, 1])
def test_layers_with_real_weights_stay_in_floating_point(position):
    model = Model((3, 8, 8))
    real = model.constant(model.rng.normal(size=(3, 3, 3, 3)).astype(np.float32))
    x = model.rounded("x", 0.02, 3) if position else "x"
    first = model.rounded(model.add("Relu", model.add("Conv", x, real, pads=[1, 1, 1, 1])), 0.03, -128)
    graph = check(model, model.rounded(conv(model, first, 3, 4, scale=0.03), 0.05))
    assert graph.type("x").is_float == (position == 0) and graph.is_mixed


def test_normalizations_between_integers_stay_in_floating_point():
    model = Model((6, 8))
    gain, shift = (model.constant(model.rng.normal(size=8).astype(np.float32)) for _ in range(2))
    y = model.add("LayerNormalization", model.rounded("x", 0.02, 3), gain, shift, epsilon=1e-3)
    assert check(model, model.rounded(y, 0.03, -9)).is_mixed


@pytest.mark.parametrize("alpha, transposed", [(0.5, 1), (-3.0, 0), (0.3, 1)])
def test_the_factor_of_a_gemm_is_in_its_scales(alpha, transposed):
    model = Model((12,))
    scales = model.rng.uniform(0.001, 0.004, 5)
    w = model.weights((5, 12) if transposed else (12, 5), scales, axis=1 - transposed)
    bias = model.bias(5, 0.02 * scales.astype(np.float32))
    y = model.add("Gemm", model.rounded("x", 0.02, 3), w, bias, transB=transposed, alpha=alpha, beta=0.7)
    check(model, model.rounded(y, 0.01, 3), count=64)


def test_rows_of_a_table_that_integers_choose():
    model = Model((4,))
    model.dtype = np.int64
    rows = model.rounded(model.add("Gather", model.weights((256, 6), 0.02), "x"), 0.03, 2)
    w = model.weights((24, 5), 0.01)
    flat = model.add("Reshape", rows, model.constant(np.array([-1, 24])))
    check(model, model.rounded(model.add("MatMul", flat, w), 0.2))


def test_weights_off_their_scale_stay_in_floating_point():
    model = Model((3, 8, 8))
    w = model.add("Mul", model.weights((4, 3, 3, 3), 0.01), model.constant(np.float32(1.3)))
    check(model, model.rounded(model.add("Conv", model.rounded("x", 0.02), w), 0.5))


@pytest.mark.parametrize("what", ["other scale", "arithmetic", "by channel"])
def test_forms_that_are_refused(what):
    model = Model((3, 8, 8))
    scale, zero = model.step(0.02, 3)
    q = model.add("QuantizeLinear", "x", scale, zero)
    if what == "other scale":
        y = model.add("DequantizeLinear", q, *model.step(0.03, 3))
    elif what == "arithmetic":
        y = model.add("DequantizeLinear", model.add("Relu", q), scale, zero)
    else:
        scales = model.constant(np.full(3, 0.02, np.float32))
        zeros = model.constant(np.zeros(3, np.int8))
        y = model.add("DequantizeLinear", model.add("QuantizeLinear", "x", scales, zeros, axis=1), scales, zeros, axis=1)
    errors = refused(model, y)
    assert {error.code for error in errors} == {"E310"}


def test_sums_of_bytes_beyond_16_bits_are_exact():
    """QLinearConv of uint8 by int8 at the ends of both ranges, where pairs of products leave 16 bits.

    ONNX Runtime saturates them on processors without VNNI, so the reference is exact arithmetic, and ONNX Runtime on the
    same network with its weights as uint8 around 128, whose sums it makes exactly.
    """
    rng = np.random.default_rng(2)
    w = rng.choice([-127, -100, 100, 127], (6, 8, 3, 3)).astype(np.int8)
    x = rng.integers(180, 256, (4, 8, 7, 7))
    found, scale_y = {}, np.float32(8.0)
    for name, dtype, zero in (("int8", np.int8, 0), ("uint8", np.uint8, 128)):
        model = Model((8, 7, 7))
        quantized, s, z = model.quantize("x", 0.02, 0, np.uint8), *model.step(0.02, 0, np.uint8)
        sy, zy = model.step(float(scale_y), 131, np.uint8)
        y = model.add(
            "QLinearConv",
            quantized,
            s,
            z,
            model.constant((w.astype(int) + zero).astype(dtype)),
            model.constant(np.full(1, 0.01, np.float32)),
            model.constant(np.full(1, zero, dtype)),
            sy,
            zy,
        )
        model.outputs.append(model.add("DequantizeLinear", y, sy, zy))
        graph, _ = typed(model)
        real = (x * np.float32(0.02)).astype(np.float32)
        stored = simulate(graph, quantize_inputs(graph, [real]))[graph.outputs[0]].astype(np.int64)
        found[name] = stored - graph.type(graph.outputs[0]).zero_point
        if name == "uint8":
            reference = np.rint(models.reference(model.built(), real)[0] / scale_y)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    sums = np.einsum("nchwij,ocij->nohw", windows, w.astype(int))
    pairs = (windows[:, :, :, :, :, :2] * w[0, :, None, None, :, :2]).sum(-1)
    assert np.abs(pairs).max() > 2**15, "the case does not leave 16 bits"
    exact = np.clip(np.rint(sums * (np.float64(np.float32(0.02)) * np.float64(np.float32(0.01)) / 8)), -131, 124)
    np.testing.assert_array_equal(found["int8"], exact)
    np.testing.assert_array_equal(found["uint8"], exact)
    np.testing.assert_array_equal(reference, exact)


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Max", "Min"])
def test_real_results_of_two_tensors_hold_32_bits(operator):
    """The range of what is not quantized is that of its operands, whatever their signs."""
    for scale, zero in ((0.015, -128), (0.015, 127), (0.02, 5)):
        model = Model((4, 6, 6))
        x = model.rounded("x", 0.02, 3)
        a, b = model.rounded(conv(model, x, 4, 4), 0.03, -11), model.rounded(conv(model, x, 4, 4), scale, zero)
        graph = check(model, model.add(operator, a, b), apart=1)
        assert graph.type(graph.outputs[0]).bits == 32
