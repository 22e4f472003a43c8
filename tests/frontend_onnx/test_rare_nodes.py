"""Nodes in forms that exporters seldom write: old operator sets, outputs without a name, types told by other nodes; like ONNX Runtime."""

import itertools

import numpy as np
import onnx
from support.errors import error_line
from support.onnx_models import original_engine, text_forms
from support.tables import every

from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.reference.engine import FloatEngine
from n2d2py.reference.executor import run_graph

F = np.float32
RNG = np.random.default_rng(6)


def array(*shape: int) -> np.ndarray:
    return RNG.uniform(0.5, 1.5, shape).astype(F)


def sizes(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


CONSTANTS = {
    "boxes": np.array([[0.2, -1.5, 3.1, 1.7], [1, 0.5, 1.2, 0.6]], F),
    "zeros": sizes(0, 0),
    "dw": array(4, 2, 2, 3),
    "offsets": array(1, 24, 3, 3) * 3 - 3,
    "db": array(4),
    "mask": array(1, 12, 3, 3),
    **{f"place{at}": array(3, 2, 4) for at in range(4)},
    **{f"pixel{at}": array(3, 1, 1) for at in range(4)},
    **{f"channel{at}": array(3) for at in range(4)},
    "gain": array(5, 8),
    "shift": array(5, 8),
    "c5": sizes(5),
    "c0": sizes(0),
    "end": sizes(2**63 - 1),
    "c1": sizes(1),
    "c01": sizes(0, 1),
    "c133": sizes(1, 3, 3),
    "lw": RNG.normal(size=(2, 12, 5)).astype(F),
    "lr": RNG.normal(size=(2, 12, 3)).astype(F),
    "to501": np.array([1, 1, 1, 501 / 1001], F),
    "doubled": sizes(1, 2, 6, 8),
    "nearly": np.array([1, 1, 1, 1009 / 1008], F),
    "less": np.array([1, 1, 1, 0.95], F),
    "cubic": np.array(0.044715, F),
    "root": np.array(0.7978845608, F),
    "one": np.array(1, F),
    "half": np.array(0.5, F),
    "two": np.array(2, F),
    "three": np.array(3, F),
    "hundred": np.array(100, F),
    "step": np.array(0.25, F),
    "zint8": np.array(0, np.int8),
    "zuint8": np.array(0, np.uint8),
}
"""A model has those that it names."""
GELU = "a = Mul (p, cubic) b = Add (x, a) c = Mul (b, root) t = Tanh (c) u = Add (t, one) v = Mul (x, u) y = Mul (v, half)"
FORMS = text_forms(f"""
boxes with numbers of samples of their own, 16: float[1,3,2,4] x => float y
  y = RoiAlign <output_height = 2, output_width = 3, spatial_scale = 0.7> (x, boxes, zeros)
maxima in boxes, 10: float[1,3,2,4] x => float y
  y = RoiAlign <output_height = 2, output_width = 2, sampling_ratio = 2, mode = "max"> (x, boxes, zeros)
a convolution at offsets, in groups, 19: float[1,4,5,6] x => float y
  y = DeformConv <group = 2, offset_group = 2, strides = [2,1], dilations = [1,2], pads = [1,0,1,1]> (x, dw, offsets, db, mask)
values near zero become 0, 9: float[1,3,2,4] x => float y
  y = Shrink <lambd = 0.9, bias = 0.3> (x)
statistics of positions, 8: float[1,3,2,4] x => float y
  y = BatchNormalization <spatial = 0> (x, place0, place1, place2, place3)
statistics of positions of one pixel, 7: float[1,3,1,1] x => float y
  y = BatchNormalization <spatial = 0, epsilon = 0.5> (x, pixel0, pixel1, pixel2, pixel3)
statistics of channels, 8: float[1,3,2,4] x => float y
  y = BatchNormalization <spatial = 1> (x, channel0, channel1, channel2, channel3)
layer with its deviation, 17: float[1,5,8] x => float y, float i
  y, , i = LayerNormalization <axis = 1> (x, gain, shift)
roll by nothing, 13: float[1,5,8] x => float y
  p = Slice (x, c5, end, c1) q = Slice (x, c0, end, c1) y = Concat <axis = 1> (p, q)
length above a computed floor, 13: float[1,6] x => float y
  n = ReduceL2 <axes = [1]> (x) m = ReduceMean <axes = [1]> (x) q = Abs (m) r = Squeeze (q, c01) c = Clip (n, r) y = Div (x, c)
a given cell, 14: float[6,1,5] x, float[2,1,3] c => float y
  y = LSTM <direction = "bidirectional", hidden_size = 3> (x, lw, lr, , , , c)
a third and a half, 17: float[1,2,1,1001] x => float y
  y = Resize <mode = "linear"> (x, , to501)
a third and a half, cubic, 17: float[1,2,1,1001] x => float y
  y = Resize <mode = "cubic"> (x, , to501)
nearly thrice, 17: float[1,2,1,1008] x => float y
  y = Resize <mode = "cubic"> (x, , nearly)
cut of a tenth, 17: float[1,2,1,9] x => float y
  y = Resize <mode = "cubic"> (x, , less)
integers between two, 19: float[1,2,3,4] x => float y
  m = Mul (x, hundred) c = Cast <to = 6> (m) r = Resize <mode = "linear"> (c, , , doubled) y = Cast <to = 1> (r)
cube by another exponent, 13: float[1,6] x => float y
  p = Pow (x, two) {GELU}
cube, 13: float[1,6] x => float y
  p = Pow (x, three) {GELU}
power of a power, 13: float[1,6] x => float y
  p = Pow (three, x) {GELU}
integers of no type, 13: float[1,9] x => float y
  q = QuantizeLinear (x, step) y = DequantizeLinear (q, step)
""") | {
    title: form
    for kind, code in itertools.product(("int8", "uint8"), (2, 3, 4, 5))
    for title, form in text_forms(f"""
integers of type {code}, 21: float[1,9] x => float y
  q = QuantizeLinear <output_dtype = {code}> (x, step) y = DequantizeLinear (q, step)
integers of the type of a zero point, {kind}, 13: float[1,9] x => float y
  q = QuantizeLinear (x, step, z{kind}) r = Reshape (q, c133) y = DequantizeLinear (r, step)
""").items()
}


@every("form", FORMS)
def test_a_form(form, model, tmp_path):
    signature, body, opset = FORMS[form]
    built = model(signature, body, opset, **CONSTANTS)
    built.ir_version = 10 if opset > 20 else 8
    for output in built.graph.output:
        output.type.tensor_type.ClearField("shape")
    onnx.save(built, tmp_path / "net.onnx")
    graph, rng = import_onnx(tmp_path / "net.onnx"), np.random.default_rng(1)
    dims = {each.name: [dim.dim_value for dim in each.type.tensor_type.shape.dim] for each in built.graph.input}
    feeds = {name: rng.normal(size=size).astype(F) for name, size in dims.items()}
    wanted = original_engine(tmp_path / "net.onnx").run(feeds)
    given = {name: x.reshape(graph.shape(name)) for name, x in feeds.items()}
    # ONNX Runtime has the scale of a size in float32
    tolerance = 1e-3 if "Resize" in body else 1e-5
    engines = [run_graph(graph, given)]
    if "output_dtype = 4" not in body and "output_dtype = 5" not in body:  # the engine leaves 16 bits as they are
        engines.append(FloatEngine(graph, threads=1).run(given))
    for found in engines:
        for (name, want), values in zip(wanted.items(), found.values(), strict=True):
            assert values.size == want.size, name
            np.testing.assert_allclose(values.reshape(want.shape), want, rtol=tolerance, atol=tolerance, err_msg=name)


@every("between", ["", "r = Reshape (x, d) "])
@every(("kind", "zero"), [("int8", None), ("uint8", None), ("int8", 0), ("uint8", 0), ("int8", 5), ("uint8", 128)])
def test_integers_that_are_inputs(kind, zero, between, model, tmp_path):
    """In a network with scales of its own a DequantizeLinear of an input reads the type that the input has."""
    body = (
        f"{between}q = DequantizeLinear ({'r' if between else 'x'}, s{'' if zero is None else ', z'}) "
        "o = QuantizeLinear (q, t, u) y = DequantizeLinear (o, t, u)"
    )
    constants = {"s": np.array(0.25, F), "t": np.array(0.5, F), "u": np.array(3, np.int8), "d": sizes(1, 9)}
    built = model(f"{kind}[1,9] x => float[1,9] y", body, 13, **constants, z=np.array(zero or 0, kind))
    onnx.save(built, tmp_path / "net.onnx")
    graph = import_onnx(tmp_path / "net.onnx")
    x = np.arange(9).astype(kind) * np.array(13, kind)
    (want,) = original_engine(tmp_path / "net.onnx").run({"x": x[None]}).values()
    held = x if graph.kind("x") else (x.astype(F) - (zero or 0)) * F(0.25)
    (found,) = run_graph(graph, {graph.inputs[0]: held.reshape(graph.shape(graph.inputs[0]))}).values()
    np.testing.assert_allclose(found.ravel(), want.ravel(), atol=1e-6)


@every("zero", [("int8", -128), ("uint8", 128), ("int8", -1), ("uint8", 1)])
@every("between", ["", "q = Reshape (o, d) "])
def test_integers_are_read_with_the_zero_point_that_they_have(zero, between, model):
    """Without one it is 0: what was written with another is not read as if it had that."""
    written = "o" if between else "q"
    body = f"{written} = QuantizeLinear (x, s, z) {between}y = DequantizeLinear (q, s)"
    built = model("float[1,9] x => float[1,9] y", body, 13, s=np.array(0.25, F), z=np.array(zero[1], zero[0]), d=sizes(1, 9))
    assert "its scale, zero point or type differs" in error_line(import_onnx, built)


@every("indices", [np.array([0, 7, 11]), np.array([[0, 0], [2, 1], [3, 2]])])
def test_sparse_weights(model, check, indices):
    built = model("float[N,4] x => float[N,3] y", "y = MatMul (x, w)")
    values = onnx.numpy_helper.from_array(np.array([1.5, -2, 3], F), "w")
    built.graph.sparse_initializer.append(
        onnx.helper.make_sparse_tensor(values, onnx.numpy_helper.from_array(indices, "i"), [4, 3])
    )
    check(built)


@every("indices", [np.array([0, 7, 12]), np.array([0, 7]), np.array([-1, 7, 11])])
def test_sparse_weights_that_do_not_fit(model, indices):
    built = model("float[N,4] x => float[N,3] y", "y = MatMul (x, w)")
    values = onnx.numpy_helper.from_array(np.array([1.5, -2, 3], F), "w")
    built.graph.sparse_initializer.append(
        onnx.helper.make_sparse_tensor(values, onnx.numpy_helper.from_array(indices, "i"), [4, 3])
    )
    assert "E302" in error_line(import_onnx, built)
