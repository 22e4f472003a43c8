"""What is computed at import: shape arithmetic, constants, functions, branches, layouts of other frameworks."""

import numpy as np
import onnx
import pytest
from onnx import helper, parser
from support.errors import error_line, error_of, refused
from support.onnx_models import original_engine, text_model
from support.ops import Transpose

from n2d2py.contracts.onnx.tensors import Unsupported
from n2d2py.frontend.onnx.folding import evaluate
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.frontend.onnx.model import ImportOptions, load_onnx
from n2d2py.reference.engine import FloatEngine


def test_shape_arithmetic_folds(model, check):
    body = """s = Shape(x)
              zero = Constant<value = int64[1] {0}>()
              n = Gather<axis = 0>(s, zero)
              minus = Constant<value = int64[1] {-1}>()
              t = Concat<axis = 0>(n, minus)
              y = Reshape(x, t)"""
    graph = check(model("float[N,3,4,5] x => float[N,60] y", body))
    assert [(node.name, node.op.kind) for node in graph.nodes] == [("y", "Reshape")]


def test_constant_weights_are_computed(model, check):
    body = """t = Transpose<perm = [1, 0]>(w)
              two = Constant<value_float = 2.0>()
              v = Mul(t, two)
              y = Gemm(x, v)"""
    graph = check(model("float[N,7] x => float[N,5] y", body, w=(5, 7)), batch=2)
    assert [node.op.kind for node in graph.nodes] == ["Fc"]


def test_axis_of_a_constant_sum_has_one_dimension(model, check):
    """torch.onnx writes it so for `tril`, and ONNX Runtime takes it."""
    body = "s = CumSum(c, axis)\n y = Add(x, s)"
    check(model("float[N,2,3] x => float[N,2,3] y", body, c=np.arange(6.0, dtype=np.float32).reshape(2, 3), axis=np.array([1])))


@pytest.mark.parametrize("align", [0, 1])
def test_grids_of_space_are_made_by_their_definition(model, check, align):
    """It gives Range lists of one value, where the rules of shapes want single values."""
    body = f"g = AffineGrid<align_corners = {align}>(x, size)\n y = Flatten(g)"
    check(model("float[1,3,4] x => float[1,P] y", body, opset=20, size=np.array([1, 1, 2, 3, 4], np.int64)))


def test_initializers_listed_as_inputs(model, check):
    built = model("float[N,7] x, float[7,5] w => float[N,5] y", "y = MatMul(x, w)", w=(7, 5))
    built.ir_version = 3
    assert import_onnx(built).inputs == ["x"]
    check(built, batch=2)


def test_random_nodes_are_not_folded(model):

    body = "r = RandomNormal<shape = [1, 3]>()\n y = Add(x, r)"
    assert refused("N2D2-E310.*RandomNormal", lambda: import_onnx(model("float[N,3] x => float[N,3] y", body)))


def test_local_functions_are_inlined(tmp_path, check):
    check(
        parser.parse_model("""
        <ir_version: 8, opset_import: ["": 17, "local": 1]>
        g (float[N,3,4,4] x) => (float[N,3,4,4] y) { y = local.Twice(x) }
        <domain: "local", opset_import: ["": 17]>
        Twice (a) => (b) { r = Relu(a)  b = Add(r, r) }"""),
        batch=2,
    )


def test_if_with_a_known_condition_follows_its_branch(check):
    body = """s = Shape (x) rank = Size (s) is_matrix = Equal (rank, two)
        y = If (is_matrix) <then_branch = t () => (float[N,4] r) { r = Relu (x) },
                            else_branch = e () => (float[N,4] g) { g = Sigmoid (x) }>"""
    imported = check(text_model("float[N,4] x => float[N,4] y", body, {"two": np.array(2)}), batch=2)
    assert [node.op.kind for node in imported.nodes] == ["Activation"]


def test_an_if_without_a_condition_is_refused():
    branch = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["z"])], "b", [], [helper.make_tensor_value_info("z", 1, None)]
    )
    ends = [[helper.make_tensor_value_info(name, 1, shape)] for name, shape in (("x", ["N", 4]), ("y", None))]
    for inputs in ([], [""]):
        node = helper.make_node("If", inputs, ["y"], then_branch=branch, else_branch=branch)
        built = helper.make_model(
            helper.make_graph([node], "g", *ends), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
        )
        assert "E310" in error_line(import_onnx, built)


def test_static_batch_becomes_one(model, tmp_path):
    body = "s = Constant<value = int64[2] {8, 60}>()\n f = Reshape(x, s)\n y = Gemm(f, w)"
    built = model("float[8,3,4,5] x => float[8,2] y", body, w=(60, 2))
    onnx.save(built, tmp_path / "m.onnx")
    graph = import_onnx(built)
    assert graph.shape("x") == (1, 3, 4, 5) and graph.shape("y") == (1, 2)
    x = np.random.default_rng(0).normal(size=(8, 3, 4, 5)).astype(np.float32)
    want = original_engine(tmp_path / "m.onnx").run(x)["y"]
    np.testing.assert_allclose(FloatEngine(graph).run(x)["y"], want, rtol=1e-5, atol=1e-5)


def test_nhwc_input_becomes_chw(model, tmp_path):
    body = """s = Mul(x, k)
              t = Transpose<perm = [0, 3, 1, 2]>(s)
              c = Conv(t, w)
              u = Transpose<perm = [0, 2, 3, 1]>(c)
              b = Add(u, bias)
              y = ReduceMean<axes = [1, 2], keepdims = 0>(b)"""
    built = model("float[N,6,5,3] x => float[N,4] y", body, k=(3,), w=(4, 3, 3, 3), bias=(4,))
    onnx.save(built, tmp_path / "m.onnx")
    graph = import_onnx(built)
    assert graph.shape("x") == (1, 3, 6, 5)
    assert not [node.name for node in graph.nodes if isinstance(node.op, Transpose)]
    x = np.random.default_rng(0).normal(size=(2, 6, 5, 3)).astype(np.float32)
    want = original_engine(tmp_path / "m.onnx").run(x)["y"]
    got = FloatEngine(graph).run(x.transpose(0, 3, 1, 2))["y"]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_ignored_node_is_skipped(model):
    body = "a = Sigmoid(x)\n y = Relu(a)"
    built = model("float[N,4] x => float[N,4] y", body)
    graph = import_onnx(load_onnx(built, ImportOptions(ignore=("a",))))
    assert [node.name for node in graph.nodes] == ["y"] and graph.nodes[0].inputs == ["x"]
    assert graph.resolve("a") == "x"


def test_dead_nodes_are_left_out(model):
    graph = import_onnx(model("float[N,4] x => float[N,4] y", "dead = Sigmoid(x)\n deader = Exp(dead)\n y = Relu(x)"))
    assert [node.name for node in graph.nodes] == ["y"]


def test_initial_values_instead_of_stored_ones(model):
    built = model("float[N,7] x => float[N,5] y", "y = Gemm(x, w, b)", w=(7, 5), b=(5,))
    first, again = (import_onnx(load_onnx(built, ImportOptions(load_weights=False, seed=3))).nodes[0].params for _ in range(2))
    stored = import_onnx(built).nodes[0].params
    assert not first["bias"].any() and stored["bias"].all()
    assert np.array_equal(first["weights"], again["weights"])
    assert not np.allclose(first["weights"], stored["weights"])


def test_half_weights(model, check):
    body = "v = Cast<to = 1>(w)\n y = MatMul(x, v)"
    weights = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float16)
    graph = check(model("float[N,7] x => float[N,5] y", body, w=weights))
    assert graph.nodes[0].params["weights"].dtype == np.float32


def test_a_padded_constant():
    """Numbers of pads that do not fit the rank are left to the evaluation."""
    node, x = helper.make_node("Pad", ["x", "p"], ["y"]), np.ones((2, 3), np.float32)
    assert evaluate(node, [x, np.array([0, 0, 1, 2])], 17)[0].shape == (3, 5)
    with pytest.raises(Unsupported):
        evaluate(node, [x, np.array([0, 10**12, 0])], 17)


def test_the_size_of_a_padded_constant_is_known_before_it_is_made():
    constants = {"c": np.ones((2, 3), np.float32), "p": np.array([0, 0, 10**6, 10**6])}
    model = text_model("float[1,3] x => float y", "b = Pad(c, p)\n y = Add(x, b)", constants)
    assert "would have 1,000,005,000,006 elements" in error_of(import_onnx, model).errors[0].what
