"""Operators that are imported by their definition in ONNX, against the evaluator of the onnx package."""

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from support.errors import error_of
from support.onnx_models import text_model
from support.tables import every

from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.reference.executor import run_graph


@every("attributes", ["", "<align_corners = 0>", "<align_corners = 1>"])
@every("size", [(2, 3, 5, 6), (2, 3, 4, 5, 6)])
def test_affine_grid(size, attributes):
    """Its definition reads an attribute that may be absent, and gives Range vectors of one element."""
    count, axes = size[0], len(size) - 2
    ends = f"float[{count},{axes},{axes + 1}] theta => float[{','.join(map(str, (count, *size[2:], axes)))}] y"
    model = text_model(ends, f"y = AffineGrid {attributes} (theta, size)", {"size": np.array(size)}, opset=20)
    theta = np.random.default_rng(0).normal(size=(count, axes, axes + 1)).astype(np.float32)
    wanted = np.asarray(ReferenceEvaluator(model).run(None, {"theta": theta})[0])
    graph = import_onnx(model)
    (name,) = graph.inputs
    found = run_graph(graph, {name: theta.reshape(graph.shape(name))})[graph.outputs[0]]
    np.testing.assert_allclose(np.asarray(found).reshape(wanted.shape), wanted, atol=1e-5)


F = np.float32


def built(node: str, opset: int, **constants: np.ndarray) -> onnx.ModelProto:
    """A model of x (1, 2, 6, 8) whose output y has no declared shape."""
    ends = "float[1,2,6,8] x => float[1] y"
    return text_model(ends, node, constants, opset=opset, domains='"d" : 1', has_shapes=False)


NODES = {
    "y = Shrink (x)": (18, {}),
    "y = Shrink <lambd = 0.25> (x)": (18, {}),
    "y = Shrink <bias = 0.5> (x)": (19, {}),
    "y = CenterCropPad (x, sizes)": (18, {"sizes": np.array([1, 2, 4, 10])}),
    "y = CenterCropPad <axes = [2, 3]> (x, two)": (18, {"two": np.array([4, 10])}),
    "y = CenterCropPad <axes = [-1]> (x, one)": (18, {"one": np.array([5])}),
    "y = RotaryEmbedding <rotary_embedding_dim = 4> (x, cos, sin)": (
        23,
        {"cos": np.full((1, 6, 2), 0.6, F), "sin": np.full((1, 6, 2), 0.8, F)},
    ),
    "y = RotaryEmbedding <interleaved = 1, rotary_embedding_dim = 4> (x, cos, sin)": (
        23,
        {"cos": np.full((1, 6, 2), 0.6, F), "sin": np.full((1, 6, 2), 0.8, F)},
    ),
    "a = Relu (x)\n c = Cos (angle)\n s = Sin (angle)\n y = RotaryEmbedding <rotary_embedding_dim = 4> (a, c, s)": (
        23,
        {"angle": np.arange(12, dtype=F).reshape(1, 6, 2) / 8},
    ),
    "a = Relu (x)\n b = Neg (a)\n c = Constant <value_ints = [1, 2, 5, 9]> ()\n y = CenterCropPad (b, c)": (18, {}),
    "w = HannWindow (size)\n y = Mul (x, w)": (17, {"size": np.array(8)}),
    "w = HammingWindow <periodic = 0> (size)\n y = Mul (x, w)": (17, {"size": np.array(8)}),
    "y = Swish <alpha = 0.5> (x)": (24, {}),
    "y = Swish (x)": (24, {}),
}


@every("node", NODES)
def test_as_the_reference_computes(node):
    opset, constants = NODES[node]
    if onnx.defs.onnx_opset_version() < opset:
        pytest.skip("an older onnx does not have it")
    model = built(node, opset, **constants)
    x = np.random.default_rng(0).normal(size=(1, 2, 6, 8)).astype(F)
    (wanted,) = ReferenceEvaluator(model).run(None, {"x": x})
    (found,) = run_graph(import_onnx(model), {"x": x}).values()
    np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=1e-5, atol=1e-6)


def test_the_types_of_constants_that_are_inputs_as_well():
    model = built("y = CenterCropPad (x, sizes)", 18, sizes=np.array([1, 2, 4, 10]))
    model.graph.input.append(onnx.helper.make_tensor_value_info("sizes", onnx.TensorProto.INT64, [4]))
    model.graph.value_info.append(onnx.helper.make_tensor_value_info("sizes", onnx.TensorProto.INT64, [4]))
    graph = import_onnx(model)
    assert graph.inputs == ["x"] and graph.shape(graph.outputs[0]) == (1, 2, 4, 10)


@every("onesided", [0, 1])
@every("windowed", [False, True])
@every("shape", ["N, 100", "N, 100, 1"])
def test_short_time(model, check, shape, windowed, onesided):
    weights = {"step": np.array(10), "length": np.array(32), "hann": np.hanning(32).astype(F)}
    inputs = "x, step, hann" if windowed else "x, step, , length"
    if not windowed:
        weights.pop("hann")
    else:
        weights.pop("length")
    body = f"y = STFT <onesided = {onesided}> ({inputs})\n z = Relu (y)"
    graph = check(model(f"float[{shape}] x => float[N, 7, {17 if onesided else 32}, 2] z", body, 17, **weights), batch=2)
    assert any(node.op.kind == "Conv" for node in graph.nodes)


@every("opset", [17, 20])
@every(
    "shape, axis, length, attributes",
    [
        ((2, 5, 6, 1), 1, None, {}),
        ((2, 5, 6, 1), 2, None, {"onesided": 1}),
        ((2, 5, 6, 2), 2, None, {}),
        ((2, 5, 6, 2), 1, None, {"inverse": 1}),
        ((2, 6, 1), 1, 4, {}),
        ((2, 6, 2), 1, 9, {}),
        ((2, 6, 1), 1, 9, {"onesided": 1}),
        ((2, 6, 2), 1, 9, {"onesided": 1, "inverse": 1}),
        ((2, 6, 2), 1, 16, {"onesided": 1, "inverse": 1}),
        ((2, 5, 6, 2), 2, None, {"onesided": 1, "inverse": 1}),
    ],
)
def test_discrete(model, tmp_path, shape, axis, length, attributes, opset):
    weights = {} if length is None else {"length": np.array(length)}
    given = "" if length is None else "length"
    if opset == 20:
        weights["axis"] = np.array(axis)
    names = ", ".join(f"{name} = {value}" for name, value in {**attributes, **({"axis": axis} if opset < 20 else {})}.items())
    call = f"DFT <{names}> (x, {given}{', axis' if opset == 20 else ''})".replace("<> ", "")
    call = call.replace("(x, )", "(x)")
    sizes = ", ".join(map(str, shape[1:]))
    onnx.save(
        model(
            f"float[N, {sizes}] x => float[{', '.join('?' * len(shape))}] z", f"y = {call}\n z = Identity (y)", opset, **weights
        ),
        tmp_path / "m.onnx",
    )
    graph = import_onnx(tmp_path / "m.onnx")
    x = np.random.default_rng(1).normal(size=shape).astype(F)
    number = x[..., 0] + (1j * x[..., 1] if shape[-1] == 2 else 0)
    names = ("fft", "ifft", "rfft", "irfft")
    wanted = getattr(np.fft, names[attributes.get("inverse", 0) + 2 * attributes.get("onesided", 0)])(number, length, axis)
    wanted = np.stack([wanted.real, wanted.imag], -1) if np.iscomplexobj(wanted) else wanted[..., None]
    (found,) = run_graph(graph, {"x": x.reshape(len(x), *graph.shape("x")[1:])}).values()
    np.testing.assert_allclose(found.reshape(wanted.shape), wanted, atol=1e-5)


@every(
    "body, reason",
    [
        ("y = STFT (x, step, hann)", "do not match the window"),
        ("s = Cast <to = 7> (n)\n y = STFT (x, s, hann)", "its frame step is not constant"),
        ("s = Cast <to = 7> (n)\n y = STFT (hann2, s, hann)", "its frame step is not constant"),
        ("y = STFT (c, step, hann)", "is complex"),
        ("y = DFT <axis = 1, onesided = 1> (c)", "onesided=1"),
    ],
)
def test_refused(model, tmp_path, body, reason):
    built = model(
        "float[N, 40] x, float[N, 40, 2] c, float n => float[?, ?, ?] z", f"{body}\n z = ReduceMax <keepdims = 0, axes = [1]> (y)",
        17, step=np.array(4), hann=np.hanning(50).astype(F), hann2=np.ones((1, 60), F),
    )  # fmt: skip
    onnx.save(built, tmp_path / "m.onnx")
    (only,) = error_of(import_onnx, tmp_path / "m.onnx").errors
    assert reason in only.line()


def test_what_reads_a_refused_operator_is_not_accused(model, tmp_path):
    """The shape of what is refused is not known as the file has it: one cause, one line."""
    built = model(
        "float[N, 40] x => float[?, ?, ?] z", "y = STFT (x, step, hann)\n s = ReduceSumSquare <axes = [3], keepdims = 0> (y)\n z = MatMul (s, w)",
        17, step=np.array(4), hann=np.hanning(50).astype(F), w=(17, 3),
    )  # fmt: skip
    onnx.save(built, tmp_path / "m.onnx")
    assert len(error_of(import_onnx, tmp_path / "m.onnx").errors) == 1
