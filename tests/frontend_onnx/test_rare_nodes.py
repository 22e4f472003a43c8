"""Nodes in forms that exporters seldom write: old operator sets, outputs without a name, types told by other nodes; like ONNX Runtime."""

import numpy as np
import onnx
from support.errors import error_line
from support.tables import every

from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.reference.engine import FloatEngine, original_engine
from n2d2py.reference.executor import run_graph

F = np.float32
OF_GELU = {"k": np.array(0.044715, F), "g": np.array(0.7978845608, F), "o": np.array(1, F), "h": np.array(0.5, F)}
"""The constants of GELU by tanh but its exponent."""
RNG = np.random.default_rng(6)


def array(*shape: int) -> np.ndarray:
    return RNG.uniform(0.5, 1.5, shape).astype(F)


def sizes(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


X = "float[1,3,2,4] x => float y"
LSTM = {"w": RNG.normal(size=(2, 12, 5)).astype(F), "r": RNG.normal(size=(2, 12, 3)).astype(F)}
STEPS = "float[6,1,5] x"
TWO = 'direction = "bidirectional", hidden_size = 3'
ROWS = "float[1,5,8] x => float y"

BOXES = {"b": np.array([[0.2, -1.5, 3.1, 1.7], [1, 0.5, 1.2, 0.6]], F), "i": np.zeros(2, np.int64)}

FORMS = {
    # places between pixels
    "boxes with numbers of samples of their own": (
        X,
        "y = RoiAlign <output_height = 2, output_width = 3, spatial_scale = 0.7> (x, b, i)",
        16,
        BOXES,
    ),
    "maxima in boxes": (
        X,
        'y = RoiAlign <output_height = 2, output_width = 2, sampling_ratio = 2, mode = "max"> (x, b, i)',
        10,
        BOXES,
    ),
    "a convolution at offsets, in groups": (
        "float[1,4,5,6] x => float y",
        "y = DeformConv <group = 2, offset_group = 2, strides = [2,1], dilations = [1,2], pads = [1,0,1,1]> (x, w, o, b, m)",
        19,
        {"w": array(4, 2, 2, 3), "o": array(1, 24, 3, 3) * 3 - 3, "b": array(4), "m": array(1, 12, 3, 3)},
    ),
    "values near zero become 0": (X, "y = Shrink <lambd = 0.9, bias = 0.3> (x)", 9, {}),
    # normalisations
    "statistics of positions": (
        X,
        "y = BatchNormalization <spatial = 0> (x, a, b, c, d)",
        8,
        {each: array(3, 2, 4) for each in "abcd"},
    ),
    "statistics of positions of one pixel": (
        "float[1,3,1,1] x => float y",
        "y = BatchNormalization <spatial = 0, epsilon = 0.5> (x, a, b, c, d)",
        7,
        {each: array(3, 1, 1) for each in "abcd"},
    ),
    "statistics of channels": (
        X,
        "y = BatchNormalization <spatial = 1> (x, a, b, c, d)",
        8,
        {each: array(3) for each in "abcd"},
    ),
    "layer with its deviation": (
        f"{ROWS}, float i",
        "y, , i = LayerNormalization <axis = 1> (x, g, b)",
        17,
        {"g": array(5, 8), "b": array(5, 8)},
    ),
    "roll by nothing": (
        ROWS,
        "p = Slice (x, a, e, i) q = Slice (x, z, e, i) y = Concat <axis = 1> (p, q)",
        13,
        {"a": sizes(5), "z": sizes(0), "e": sizes(2**63 - 1), "i": sizes(1)},
    ),
    # lengths whose floor is computed
    "length above a computed floor": (
        "float[1,6] x => float y",
        "n = ReduceL2 <axes = [1]> (x) m = ReduceMean <axes = [1]> (x) q = Abs (m) r = Squeeze (q, a) c = Clip (n, r) y = Div (x, c)",
        13,
        {"a": sizes(0, 1)},
    ),
    # recurrent layers
    "a given cell": (f"{STEPS}, float[2,1,3] c => float y", f"y = LSTM <{TWO}> (x, w, r, , , , c)", 14, LSTM),
    # other sizes
    "a third and a half": (
        "float[1,2,1,1001] x => float y",
        'y = Resize <mode = "linear"> (x, , s)',
        17,
        {"s": np.array([1, 1, 1, 501 / 1001], F)},
    ),
    "a third and a half, cubic": (
        "float[1,2,1,1001] x => float y",
        'y = Resize <mode = "cubic"> (x, , s)',
        17,
        {"s": np.array([1, 1, 1, 501 / 1001], F)},
    ),
    "nearly thrice": (
        "float[1,2,1,1008] x => float y",
        'y = Resize <mode = "cubic"> (x, , s)',
        17,
        {"s": np.array([1, 1, 1, 1009 / 1008], F)},
    ),
    "cut of a tenth": (
        "float[1,2,1,9] x => float y",
        'y = Resize <mode = "cubic"> (x, , s)',
        17,
        {"s": np.array([1, 1, 1, 0.95], F)},
    ),
    "integers between two": (
        "float[1,2,3,4] x => float y",
        'm = Mul (x, h) c = Cast <to = 6> (m) r = Resize <mode = "linear"> (c, , , s) y = Cast <to = 1> (r)',
        19,
        {"h": np.array(100, F), "s": sizes(1, 2, 6, 8)},
    ),
    # functions by parts
    "cube by another exponent": (
        "float[1,6] x => float y",
        "p = Pow (x, e) a = Mul (p, k) b = Add (x, a) c = Mul (b, g) t = Tanh (c) u = Add (t, o) v = Mul (x, u) y = Mul (v, h)",
        13,
        {"e": np.array(2, F), **OF_GELU},
    ),
    "cube": (
        "float[1,6] x => float y",
        "p = Pow (x, e) a = Mul (p, k) b = Add (x, a) c = Mul (b, g) t = Tanh (c) u = Add (t, o) v = Mul (x, u) y = Mul (v, h)",
        13,
        {"e": np.array(3, F), **OF_GELU},
    ),
    "power of a power": (
        "float[1,6] x => float y",
        "q = Pow (e, x) a = Mul (q, k) b = Add (x, a) c = Mul (b, g) t = Tanh (c) u = Add (t, o) v = Mul (x, u) y = Mul (v, h)",
        13,
        {"e": np.array(3, F), **OF_GELU},
    ),
    # integers whose type only one node tells
    **{
        f"integers of type {code}": (
            "float[1,9] x => float y",
            f"q = QuantizeLinear <output_dtype = {code}> (x, s) y = DequantizeLinear (q, s)",
            21,
            {"s": np.array(0.25, F)},
        )
        for code in (2, 3, 4, 5)
    },
    "integers of no type": (
        "float[1,9] x => float y",
        "q = QuantizeLinear (x, s) y = DequantizeLinear (q, s)",
        13,
        {"s": np.array(0.25, F)},
    ),
    **{
        f"integers of the type of a zero point, {kind}": (
            "float[1,9] x => float y",
            "q = QuantizeLinear (x, s, z) r = Reshape (q, d) y = DequantizeLinear (r, s)",
            13,
            {"s": np.array(0.25, F), "z": np.array(0, kind), "d": sizes(1, 3, 3)},
        )
        for kind in ("int8", "uint8")
    },
}


@every("form", FORMS)
def test_a_form(form, model, tmp_path):
    signature, body, *more = FORMS[form]
    opset, constants = [*more, *(13, {})[len(more) :]]
    built = model(signature, body, opset, **constants)
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
