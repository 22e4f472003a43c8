"""Rules of single converters: dropout, resizing of other axes, transposed weights, scales, limits."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator
from support.errors import error_line
from support.onnx_models import text_model
from support.ops import Resize
from support.tables import every

import n2d2py
from n2d2py.contracts.onnx.nodes import ROUNDING
from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.reference.executor import run_graph

F = np.float32
X = "float[N,3,4,5] x => float[N,3,4,5] y"


def ops(graph) -> list:
    return [node.op for node in graph.nodes]


@pytest.mark.parametrize("ratio, imported", [(0.5, False), (0.0, True)])
def test_a_dropout_in_training(model, ratio, imported):
    """One that drops nothing may be."""
    built = model("float[1,3,4,5] x => float[1,3,4,5] y", "y = Dropout(x, r, t)", r=np.array(ratio, F), t=np.array(True))
    if imported:
        import_onnx(built)
    else:
        assert "it is in training mode" in error_line(import_onnx, built)


@every("scales, image", [((1, 1, 2, 2), True), ((1, 1, 1, 3), True), ((1, 2, 2, 1), False), ((1, 2, 1, 1), False)])
def test_linear_resizing_of_channels_is_no_layer_of_images(one_node, check, scales, image):
    dims = [int(n * s) for n, s in zip((3, 4, 5), scales[1:], strict=True)]
    graph = check(one_node("Resize", [1, 3, 4, 5], {"": np.array(0), "s": np.array(scales, F)}, mode="linear"))
    assert any(isinstance(op, Resize) for op in ops(graph)) == image
    assert graph.shape("y") == (1, *dims)


@every("boxes", [[0, 0, 1, 1], [0, 0.25, 1, 1], [-0.5, 0, 1.5, 0.75], [0.9, 0.1, 0.2, 1]])
@every("mode", ["linear", "nearest"])
def test_resizing_a_part_of_an_image(one_node, check, boxes, mode):
    """tf_crop_and_resize: positions outside of the image, and none others, have the given value."""
    low, high = boxes[:2], boxes[2:]
    constants = {"roi": np.array([0, 0, *low, 1, 1, *high], F), "": np.array(0), "s": np.array([1, 3, 6, 4], np.int64)}
    node = one_node(
        "Resize",
        [1, 3, 5, 7],
        {"roi": constants["roi"], "n": np.array([], F), "s": constants["s"]},
        mode=mode,
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=9.0,
    )
    check(node, tolerance=1e-4)


@every("axes", [[1, 3], [2, 3], [3, 2], [3, 1]])
def test_resizing_a_part_along_some_axes(one_node, axes):
    """tf_crop_and_resize: axes that it does not name stay as they are; by the reference of ONNX, as ONNX Runtime mixes up the order."""
    constants = {"roi": np.array([0, 0.25, 1, 0.75], F), "n": np.array([], F), "s": np.array([4, 5], np.int64)}
    node = one_node(
        "Resize", [1, 3, 5, 7], constants, 18, mode="linear", coordinate_transformation_mode="tf_crop_and_resize", axes=axes
    )
    x = np.random.default_rng(0).normal(size=(1, 3, 5, 7)).astype(F)
    (wanted,) = ReferenceEvaluator(node).run(None, {"x": x})
    np.testing.assert_allclose(run_graph(import_onnx(node), {"x": x})["y"], wanted, rtol=1e-5, atol=1e-5)


@every("axis", [1, 2, -1])
@every("count", [3, 4, 5, 2])
def test_scales_along_an_axis(one_node, axis, count):
    """As many as the axis has elements."""
    rng = np.random.default_rng(0)
    stored = rng.integers(-9, 9, (1, 3, 4, 5)).astype(np.int8)
    body = f"d = DequantizeLinear <axis = {axis}> (q, s) y = Add (d, x)"
    constants = {"q": stored, "s": rng.uniform(1, 2, count).astype(F)}
    built = text_model("float[1,3,4,5] x => float[1,3,4,5] y", body, constants)
    if count == (1, 3, 4, 5)[axis]:
        import_onnx(built)
    else:
        with pytest.raises(N2D2Error):
            import_onnx(built)


@pytest.mark.parametrize("turned", [0, 1])
def test_weights_of_a_quantized_gemm(turned):
    """One scale for each output, along the axis that transB says."""
    rng = np.random.default_rng(0)
    w = rng.integers(-9, 9, (5, 7) if turned else (7, 5)).astype(np.int8)
    scales = np.arange(1, 6, dtype=F) / 64
    constants = {"s": F(0.5), "so": F(0.25), "w": w, "sw": scales, "zw": np.zeros(5, np.int8)}
    constants |= {name: np.int8(0) for name in ("z", "zo")}
    body = f"""q = QuantizeLinear (x, s, z) o = com.microsoft.QGemm <transB = {turned}> (q, s, z, w, sw, zw, , so, zo)
        y = DequantizeLinear (o, so, zo)"""
    found = import_onnx(text_model("float[N,7] x => float[N,5] y", body, constants, domains='"com.microsoft" : 1'))
    (weights,) = (node.params["weights"] for node in found.nodes if "weights" in node.params)
    np.testing.assert_allclose(weights, (w if turned else w.T) * scales[:, None])


@every(
    "shape, axis, indices",
    [
        ((1, 64), 1, np.arange(24)[np.newaxis]),
        ((3, 70), -1, [[69, 0], [1, -1], [33, 40]]),
        ((70, 2), 0, [[64, 65], [0, 3]]),
        ((70, 2), None, [[64, 65], [0, 3]]),
        ((3, 4, 5), 1, np.zeros((2, 1, 5))),
    ],
)
def test_elements_gathered_from_a_constant(model, check, shape, axis, indices):
    """As the ids of types of a BERT network are: of long axes, negative positions, fewer lines than the data have."""
    indices = np.asarray(indices, np.int64)
    sizes = ",".join(map(str, indices.shape))
    values = np.random.default_rng(0).normal(size=shape).astype(F)
    body = f"g = GatherElements {'' if axis is None else f'<axis = {axis}>'} (c, i)\n y = Add(x, g)"
    check(model(f"float[N,{sizes}] x => float[N,{sizes}] y", body, c=values, i=indices))


def test_a_constant_that_is_scaled_by_computed_gains(model, check):
    """The normalization has no input of the network but its gains; the constant keeps its shape."""
    values = np.random.default_rng(0).normal(size=(1, 6)).astype(F)
    body = "s = Squeeze(x, a)\n y = LayerNormalization<axis = 1>(c, s)"
    check(model("float[1,6] x => float[1,6] y", body, c=values, a=np.array([0])))


def test_an_inner_graph_reads_what_nothing_else_does(model):
    """A node whose result only a branch, and a branch of a branch, reads; and one that nobody reads."""
    inner = parser.parse_graph("inner () => (float[N,4] w) { w = Add (a, b) }")
    branch = parser.parse_graph("branch () => (float[N,4] v) { v = If (yes) }")
    branch.node[0].attribute.extend(helper.make_attribute(f"{name}_branch", inner) for name in ("then", "else"))
    built = model(
        "float[N,4] x => float[N,4] y", "a = Relu (x)\n b = Sigmoid (x)\n n = Tanh (x)\n y = If (yes)", yes=np.array(True)
    )
    built.graph.node[-1].attribute.extend(helper.make_attribute(f"{name}_branch", branch) for name in ("then", "else"))
    graph = import_onnx(built)
    assert [node.name for node in graph.nodes][:2] == ["a", "b"] and "n" not in graph.tensors
    x = np.random.default_rng(0).normal(size=(2, 4)).astype(F)
    (found,) = run_graph(graph, {"x": x}).values()
    np.testing.assert_allclose(found, np.maximum(x, 0) + 1 / (1 + np.exp(-x)), rtol=1e-6)


def test_a_fill_value_without_elements_is_zero(one_node):
    for shape in ([1, 2, 3, 4], [1, 2, 3, 4, 2]):
        pads = np.zeros(2 * len(shape), np.int64)
        pads[[1, 2]] = 1, 2
        graph = import_onnx(one_node("Pad", shape, {"p": pads, "v": np.zeros(0, F)}, opset=18))
        x = np.random.default_rng(0).normal(size=shape).astype(F)
        (found,) = run_graph(graph, {"x": x.reshape(graph.shape("x"))}).values()
        wanted = np.pad(x, [(0, 0), (1, 0), (2, 0), *[(0, 0)] * (len(shape) - 3)])
        np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)


TYPES = [name for name in TensorProto.DataType.keys() if name not in ("UNDEFINED", "STRING")]
READERS = {
    "Add": ["x", "w"],
    "Concat": ["x", "w"],
    "Gather": ["x", "w"],
    "MatMul": ["x", "w"],
    "Where": ["w", "x", "x"],
    "Cast": ["w"],
    "DequantizeLinear": ["w", "s"],
    "QuantizeLinear": ["x", "s", "w"],
}


@every("reader", READERS)
@every("kind", TYPES)
def test_constants_of_every_type(kind, reader):
    """Each is taken or refused: none is a defect of the tool."""
    stored = helper.make_tensor("w", TensorProto.DataType.Value(kind), [4], [1, 0, 1, 0])
    attributes = {"Concat": {"axis": 0}, "Cast": {"to": 1}}.get(reader, {})
    nodes = [helper.make_node(reader, READERS[reader], ["y"], **attributes), helper.make_node("Identity", ["y"], ["z"])]
    constants = [stored, numpy_helper.from_array(np.array(0.5, F), "s")]
    outputs = [onnx.ValueInfoProto(name="z")]
    outputs[0].type.tensor_type.elem_type = 1
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, [4])], outputs, constants)
    built = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)
    try:
        import_onnx(built).verify()
    except (N2D2Error, ErrorList) as error:
        assert "E099" not in str(error)


@every("shape", [["N", 2, 7, 9], ["N", 2, 7]])
@every("scale", [0.4, 0.6, 0.7, 1.2, 2.5])
def test_the_first_resize_takes_the_position_behind_where_it_makes_smaller(one_node, check, shape, scale):
    """Operator set 10; and scales whose float32 is not exactly what they stand for."""
    scales = np.array([1.0, 1.0, *(scale,) * (len(shape) - 2)], F)
    check(one_node("Resize", shape, {"s": scales}, opset=10, mode="nearest"), batch=2)


@every("rounding", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
@every("scale", [0.3, 0.7, 1.2, 1.4])
def test_positions_in_the_middle_of_two(one_node, check, rounding, scale):
    """By the numbers that float32 scales stand for: 3.5 / 0.7 is 5."""
    constants = {"": np.array(0), "s": np.array([1, 1, scale, scale], F)}
    check(one_node("Resize", ["N", 1, 9, 13], constants, mode="nearest", nearest_mode=rounding))


@every("operator", ["LpNormalization", "Hardmax", "Softmax", "LogSoftmax"])
@every("batch", ["N", 1])
def test_stimuli_are_not_normalised_together(one_node, check, caplog, operator, batch):
    check(one_node(operator, [batch, 3, 4], opset=11, axis=0), batch=1)
    assert ("W307" in caplog.text) == (batch == "N")


def test_metadata_of_other_tools_say_nothing_of_rounding(model):
    built = model(X, "y = Relu (x)")
    built.graph.node[0].metadata_props.add(key="other.tool", value="TFLite")
    assert [node.rounding for node in import_onnx(built).nodes] == [""]
    built.graph.node[0].metadata_props.add(key=ROUNDING, value="TFLite")
    assert [node.rounding for node in import_onnx(built).nodes] == ["TFLite"]


@every(
    "body, kind",
    [
        ("i = Cast <to = 6> (x)", "int32"),
        ("i = Cast <to = 7> (x)", "int64"),
        ("i = Cast <to = 6> (x)\n j = Cast <to = 6> (x)", "int32"),
        ("i = Cast <to = 6> (x)\n j = Cast <to = 7> (x)", ""),
        ("i = Cast <to = 6> (x)\n j = Relu (x)", ""),
        ("i = Cast <to = 10> (x)", ""),
        ("i = Relu (x)", ""),
    ],
)
def test_inputs_of_real_numbers_that_become_integers_are_integers(model, body, kind):
    sums = (
        "a = Cast <to = 1> (i)\n b = Cast <to = 1> (j)\n y = Add (a, b)"
        if "j =" in body
        else "a = Cast <to = 1> (i)\n y = Relu (a)"
    )
    assert import_onnx(model("float[1, 6] x => float[1, 6] y", f"{body}\n {sums}")).kind("x") == kind


@every("dims, weights", [("1,2,3,4", (2, 2, 2)), ("1,2,3", (2, 2, 2, 2)), ("1,2,3,4", (2, 2, 2, 2, 2))])
@every(
    "operator, reason",
    [("Conv", "its weights and its input differ in rank"), ("ConvTranspose", "its weights and its input differ in rank")],
)
def test_weights_of_other_axes_than_the_input_are_refused(model, operator, reason, dims, weights):
    signature = f"float[{dims}] x => float[{','.join('?' * dims.count(',') + '?')}] y"
    assert reason in error_line(lambda: import_onnx(model(signature, f"y = {operator} (x, w)", w=weights)))


@every("target, kept", [([4, 15], (1, 15)), ([4, 5, 3], (1, 5, 3)), ([2, 30], None)])
@every("layer", ["Transpose <perm = [0,2,1]> (x)", "ReduceSum <keepdims = 1> (x, axes)"])
def test_a_declared_batch_stays_in_front(model, layer, target, kept):
    """Of images and of arrays, where a shape begins with it; else the stimuli are one array."""
    dims = ",".join("?" * len(target))
    built = model(
        f"float[4,3,5] x => float[{dims}] y",
        f"t = {layer}\n r = Reshape (t, s)\n y = Relu (r)",
        s=np.array(target),
        axes=np.array([0]),
    )
    if kept is not None:
        assert import_onnx(built).shape("y") == kept
    elif "Sum" in layer:
        assert "does not match its input of 15 elements" in error_line(import_onnx, built)
    else:
        assert import_onnx(built).shape("y") == (1, 60)


@every("dims", ["1,4", "1,3,4", "1,2,2,4", "1,2,3,1,4"])
def test_parts_of_negative_size_are_refused(model, dims):
    open_dims = ",".join("?" * len(dims.split(",")))
    signature = f"float[{dims}] x => float[{open_dims}] y, float[{open_dims}] z"
    with pytest.raises(N2D2Error, match=r"its sizes \[-1, 5\] do not divide an axis of 4 among 2 outputs"):
        import_onnx(model(signature, "y, z = Split <axis = -1> (x, s)", s=np.array([-1, 5])))


@pytest.mark.parametrize("product", ["MatMul (x, v)", "MatMul (v, t)"])
def test_products_with_a_vector_have_an_axis_less(model, check, product):
    """Which a softmax along the last axis sees."""
    body = f"t = Transpose <perm = [0,1,3,2]> (x)\n p = {product}\n z = Softmax <axis = -1> (p)"
    check(model("float[1,2,3,4] x => float[1,2,3] z", body, v=(4,)))


def test_an_image_read_as_an_array_twice(model, check):
    """Its elements have the name of the first layer that took them."""
    body = "t = Transpose <perm = [1,0,2]> (x)\n s = Sigmoid (t)\n u = Transpose <perm = [1,0,2]> (s)\n y = Add (x, u)"
    check(model("float[N,5,3] x => float[N,5,3] y", body))


def test_nodes_in_another_order(tmp_path):
    """ONNX Runtime sorts nodes, also by what branches read; nodes that wait for each other are refused."""
    body = "a = Relu(x) c = Add(a, w) y = If(w2) <then_branch = t () => (float[1,3] s) { s = Mul(c, a) }, else_branch = e () => (float[1,3] u) { u = Neg(c) }>"
    built = text_model("float[1,3] x => float[1,3] y", body, {"w": np.array([1, -2, 3], F), "w2": np.array(True)})
    built.graph.node.sort(key=lambda node: -[*built.graph.node].index(node))
    assert built.graph.node[0].op_type == "If"
    x, path = np.array([[1, 5, -1]], F), tmp_path / "net.onnx"
    onnx.save(built, path)
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(
        np.asarray(n2d2py.load(path)(x)).reshape(-1), np.asarray(session.run(None, {"x": x})[0]).reshape(-1)
    )
    built.graph.node[2].input[0] = "c"
    onnx.save(built, path)
    with pytest.raises(N2D2Error, match="E302"):
        n2d2py.load(path)
