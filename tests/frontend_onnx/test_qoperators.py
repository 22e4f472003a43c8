"""Operators that read and write integers, one by one, against ONNX Runtime; what cannot be read as one is refused."""

import numpy as np
import onnx
from support.errors import error_of
from support.onnx_models import runtime_outputs, text_model
from support.tables import every

from n2d2py.contracts.onnx.nodes import weight_scales
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.reference.executor import run_graph

F = np.float32
ENDS = "float[N,4,6,6] x => float[N] y"
rng = np.random.default_rng(2)
CONSTANTS = {
    "s": np.array(0.0517, F),
    "z": np.array(3, np.int8),
    "zu": np.array(113, np.uint8),
    "t": np.array(0.0373, F),
    "o": np.array(-7, np.int8),
    "w": rng.integers(-90, 91, (6, 4, 3, 3)).astype(np.int8),
    "sw": np.array([0.01, 0.02, 0.005, 0.01, 0.015, 0.0125], F),
    "zw": np.zeros(6, np.int8),
    "b": rng.integers(-900, 901, 6).astype(np.int32),
    "m": rng.integers(-90, 91, (6, 5)).astype(np.int8),
    "g": rng.integers(-90, 91, (5, 144)).astype(np.int8),
    "s1": np.array(0.01, F),
    "z1": np.array(0, np.int8),
    "b5": rng.integers(-900, 901, 5).astype(np.int32),
    "flat": np.array([0, -1]),
    "pads": np.array([0, 0, 1, 2, 0, 1, 0, 1]),
    "larger": np.array([1, 1, 1.5, 1.5], F),
}
BODIES = {
    "convolution": "r = QLinearConv <pads = [1,1,1,1]> (q, s, z, w, sw, zw, t, o, b)",
    "convolution without bias": "r = QLinearConv <strides = [2,1]> (q, s, z, w, sw, zw, t, o)",
    "product of matrices": "r = QLinearMatMul (q, s, z, m, s1, z1, t, o)",
    "dense": "v = Reshape (q, flat)\n r = com.microsoft.QGemm <transB = 1> (v, s, z, g, s1, z1, b5, t, o)",
    "dense without bias": "v = Reshape (q, flat)\n r = com.microsoft.QGemm <transB = 1> (v, s, z, g, s1, z1, , t, o)",
    "sum": "u = QuantizeLinear (x, t, o)\n r = com.microsoft.QLinearAdd (q, s, z, u, t, o, t, o)",
    "product": "u = QuantizeLinear (x, t, o)\n r = com.microsoft.QLinearMul (q, s, z, u, t, o, t, o)",
    "sigmoid": "r = com.microsoft.QLinearSigmoid (q, s, z, s1, o)\n",
    "leaky": "r = com.microsoft.QLinearLeakyRelu <alpha = 0.25> (q, s, z, t, o)",
    "mean of all": "r = com.microsoft.QLinearGlobalAveragePool (q, s, z, t, o)",
    "mean pool": "r = com.microsoft.QLinearAveragePool <kernel_shape = [2,2], strides = [2,2]> (q, s, z, t, o)",
    "joined": "u = QuantizeLinear (x, t, o)\n r = com.microsoft.QLinearConcat <axis = 1> (t, o, q, s, z, u, t, o)",
    "padded by zeros": "r = Pad (q, pads, z)",
    "padded by the integer 0": "r = Pad (q, pads)",
    "padded by another number": "r = Pad (q, pads, o)",
    "reflected": 'r = Pad <mode = "reflect"> (q, pads)',
    "unsigned, padded by the integer 0": "qu = QuantizeLinear (x, s, zu)\n r = Pad (qu, pads)",
}


def built(body: str, step: str = "", **others: np.ndarray) -> onnx.ModelProto:
    step = step or ("s1, o" if "Sigmoid" in body else "s, zu" if "zu" in body else "s, z" if " Pad " in body else "t, o")
    text = f"q = QuantizeLinear (x, s, z)\n {body}\n y = DequantizeLinear (r, {step})"
    return text_model(ENDS, text, {**CONSTANTS, **others}, domains='"com.microsoft" : 1', has_shapes=False)


@every("mode", ["linear", "cubic"])
@every("zero", ["z", "zu"])
def test_a_resize_of_integers_is_rounded_to_them(mode, zero):
    """ONNX Runtime resizes the real numbers: it has no cubic Resize of integers."""
    resize = f'Resize <mode = "{mode}">'
    model = built(f"qu = QuantizeLinear (x, s, {zero})\n r = {resize} (qu, , larger)", step=f"s, {zero}")
    x = np.random.default_rng(3).normal(size=(2, 4, 6, 6)).astype(F)
    real = f"qu = QuantizeLinear (x, s, {zero})\n d = DequantizeLinear (qu, s, {zero})\n e = {resize} (d, , larger)"
    real_model = built(f"{real}\n r = QuantizeLinear (e, s, {zero})", step=f"s, {zero}")
    (wanted,) = runtime_outputs(real_model, x, optimize=False)
    (found,) = run_graph(import_onnx(model), {"x": x.astype(np.float64)}).values()
    away = np.abs(found - wanted) / CONSTANTS["s"]
    assert found.shape == (2, 4, 9, 9) and away.max() < 1.01 and (away > 0.01).mean() < 0.06  # ties of linear means


@every("case", BODIES)
def test_as_onnx_runtime_computes(case):
    model = built(BODIES[case])
    x = np.random.default_rng(3).normal(size=(2, 4, 6, 6)).astype(F)
    (wanted,) = runtime_outputs(model, x, optimize=False)
    (found,) = run_graph(import_onnx(model), {"x": x.astype(np.float64)}).values()
    step = 0.01 if "Sigmoid" in BODIES[case] else 0.0373
    away = np.abs(found - wanted) / step
    assert found.shape == wanted.shape and away.max() < 1.01 and (away > 0.01).mean() < 0.02
    assert len(np.unique(wanted)) > 6


@every(
    "body, others, words",
    [
        (BODIES["convolution"], {"b": np.zeros(5, np.int32)}, "its scales and its bias"),
        (BODIES["mean of all"].replace("Pool (", "Pool <channels_last = 1> ("), {}, "channels-last (NHWC) tensors"),
        ("d = Abs (x)\n r = QLinearConv (q, s, z, w, sw, zw, t, o, d)", {}, "its bias or scale is not constant"),
        ("r = com.microsoft.QLinearMul (q, s, z, q, , z, t, o)", {}, "its input 1 is missing"),
    ],
)
def test_what_is_no_such_operator(body, others, words):
    error = error_of(lambda: import_onnx(built(body, **others))).errors[0]
    assert error.code == "E310" and words in error.what


@every("rows", [None, 3, np.array(5, np.int8), np.array([5], np.int8)])
@every("columns", [None, 4])
def test_products_of_integers_less_their_zero_points(rows, columns):
    """One zero point, or one for each row of the left and each column of the right operand."""
    rng = np.random.default_rng(1)
    held = {"w": rng.integers(-9, 10, (5, 4)).astype(np.int8)}
    left = rng.integers(-9, 10, 3).astype(np.int8) if isinstance(rows, int) else rows
    if left is not None:
        held["a"] = left
    if columns is not None:
        held["b"] = rng.integers(-9, 10, columns).astype(np.int8)
    inputs = f"q, w, {'a' if left is not None else ''}, {'b' if columns is not None else ''}".rstrip(", ")
    text = f"q = Cast <to = 3> (x)\n i = MatMulInteger ({inputs})\n y = Cast <to = 1> (i)"
    model = text_model("float[1,3,5] x => float[N] y", text, held, has_shapes=False)
    x = rng.integers(-9, 10, (1, 3, 5)).astype(F)
    zero = np.zeros(1) if left is None else left.astype(int).reshape(-1, 1) if left.size > 1 else left.astype(int)
    wanted = (x - zero) @ (held["w"].astype(int) - held.get("b", np.zeros(1)).astype(int))
    (found,) = run_graph(import_onnx(model), {"x": x}).values()
    np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)


def test_a_convolution_of_the_first_operator_set_that_has_it():
    """Its weights have a scale each, although the roundings of that set have no axis."""
    model = built(BODIES["convolution"])
    newer = import_onnx(model)
    model.opset_import[0].version = 10
    older = import_onnx(model)
    assert [str(node.op) for node in older.nodes] == [str(node.op) for node in newer.nodes]
    x = np.random.default_rng(3).normal(size=(1, 4, 6, 6))
    (found,), (wanted,) = (run_graph(graph, {"x": x}).values() for graph in (older, newer))
    np.testing.assert_array_equal(found, wanted)


def along(axis: int, shape: tuple[int, ...], values) -> np.ndarray:
    """A grid of scales that differ along one axis only."""
    return np.broadcast_to(np.reshape(values, [-1 if at == axis else 1 for at in range(len(shape))]), shape)


def test_scales_of_a_transposed_convolution_repeat_for_each_group():
    scales = np.broadcast_to(np.array([1.0, 2.0, 4.0]).reshape(1, 3, 1, 1), (4, 3, 2, 2))
    assert weight_scales(scales, 6).tolist() == [1, 2, 4, 1, 2, 4] and weight_scales(scales, 4) is None
