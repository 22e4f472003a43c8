"""Operators in forms that `test_drawn_nodes.py` does not have, against ONNX Runtime; spelled-out functions."""

import numpy as np
import onnx
import pytest
from support.onnx_models import original_engine
from support.ops import Activation
from support.tables import every

from n2d2py.contracts.functions import Gelu, HardSwish, Mish, Swish
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.reference.executor import run_graph

F = np.float32


def kinds(graph) -> list[str]:
    return [node.op.kind for node in graph.nodes]


@pytest.mark.parametrize("size, alpha, beta, bias", [(3, 0.0, 0.75, 2.0), (2, 0.5, -1.0, 1.0), (5, 0.0, 0.0, 1e-6)])
def test_lrn_of_which_a_part_is_off(one_node, size, alpha, beta, bias):
    """ONNX Runtime takes neither an alpha nor a beta of 0 and less; the standard does."""
    graph = import_onnx(one_node("LRN", [1, 4, 2, 2], size=size, alpha=alpha, beta=beta, bias=bias))
    x = np.random.default_rng(0).normal(size=(1, 4, 2, 2)).astype(F)
    padded = np.pad(x.astype(float) ** 2, ((0, 0), ((size - 1) // 2, size // 2), (0, 0), (0, 0)))
    sums = sum(padded[:, step : step + 4] for step in range(size))
    np.testing.assert_allclose(run_graph(graph, {"x": x})["y"], x / (bias + alpha / size * sums) ** beta, rtol=1e-5)


@pytest.mark.parametrize(
    "operator, opset, attributes, sizes",
    [
        ("InstanceNormalization", 18, {}, (3, 3)),
        ("LayerNormalization", 18, {"axis": 1}, (3 * 16, 3 * 16)),
        ("GroupNormalization", 21, {"num_groups": 3}, (3, 3)),
        ("BatchNormalization", 18, {}, (3, 3, 3, 3)),
    ],
)
def test_an_epsilon_of_zero(one_node, check, operator, opset, attributes, sizes):
    values = {f"c{at}": np.arange(1, size + 1).astype(F) for at, size in enumerate(sizes)}
    values = {name: value.reshape(3, 4, 4) if value.size > 3 else value for name, value in values.items()}
    check(one_node(operator, ["N", 3, 4, 4], values, opset=opset, epsilon=0.0, **attributes), batch=2)


CONSTANTS = {"root": 2**0.5, "inverse": 0.5**0.5, "one": 1, "half": 0.5, "three": 3, "zero": 0, "six": 6}
IDIOMS = {
    "swish": ("s = Sigmoid(x)\n y = Mul(x, s)", Swish()),
    "swish reversed": ("s = Sigmoid(x)\n y = Mul(s, x)", Swish()),
    "mish": ("a = Softplus(x)\n b = Tanh(a)\n y = Mul(x, b)", Mish()),
    "gelu": ("a = Div(x, root)\n b = Erf(a)\n c = Add(b, one)\n d = Mul(x, c)\n y = Mul(d, half)", Gelu()),
    "gelu, halved first": ("a = Mul(x, inverse)\n b = Erf(a)\n c = Add(one, b)\n d = Mul(x, half)\n y = Mul(d, c)", Gelu()),
    "hard swish": ("a = Add(x, three)\n b = Clip(a, zero, six)\n c = Mul(x, b)\n y = Div(c, six)", None),
    "hard swish, divided first": ("a = Add(x, three)\n b = Clip(a, zero, six)\n c = Div(b, six)\n y = Mul(c, x)", None),
    "hard sigmoid gate": ("a = HardSigmoid<alpha = 0.1666667>(x)\n y = Mul(x, a)", None),
}


@pytest.mark.parametrize("case", IDIOMS)
def test_spelled_out_functions_become_one_layer(model, check, case):
    body, function = IDIOMS[case]
    constants = {name: np.array(value, F) for name, value in CONSTANTS.items() if f"{name})" in body or f"{name}," in body}
    graph = check(model("float[N,3,5,4] x => float[N,3,5,4] y", body, **constants), batch=2)
    assert kinds(graph) == ["Activation"]
    found = graph.nodes[0].op.function
    if function is None:
        assert isinstance(found, HardSwish)
        np.testing.assert_allclose([found.gain, found.shift, found.high], [1 / 6, 0.5, 1.0], rtol=1e-6)
    else:
        assert found == function


NEARLY = {
    **{f"gelu, {names}": ("gelu", values) for names, values in (("wider", {"root": 1.5}), ("one more", {"one": 1.001}))},
    "gelu, a last bit": ("gelu", {"root": 1.4143}),
    "gelu, halved first, wider": ("gelu, halved first", {"inverse": 0.6}),
    "hard swish, to 5": ("hard swish", {"six": 5}),
    "hard swish, from 1": ("hard swish", {"zero": 1}),
}
"""Functions but for one constant."""


@every("case", NEARLY)
def test_what_is_nearly_a_function_is_computed_as_it_stands(model, check, case):
    form, changes = NEARLY[case]
    values = {**CONSTANTS, **changes}
    body = IDIOMS[form][0] if "hard" not in case else IDIOMS[form][0].replace("Div(c, six)", "Mul(c, half)")
    constants = {name: np.array(value, F) for name, value in values.items() if f"{name})" in body or f"{name}," in body}
    graph = check(model("float[N,3,5,4] x => float[N,3,5,4] y", body, **constants), batch=2)
    assert not any(isinstance(node.op, Activation) and isinstance(node.op.function, Gelu) for node in graph.nodes)


def test_a_part_that_is_read_elsewhere_stays(model, check):
    graph = check(model("float[N,3,5] x => float[N,3,5] y, float[N,3,5] s", "s = Sigmoid(x)\n y = Mul(x, s)"), batch=2)
    assert sorted(node.name for node in graph.nodes) == ["s", "y"]


def test_a_gate_of_another_tensor_is_a_product(model, check):
    graph = check(model("float[N,3,5] x, float[N,3,5] z => float[N,3,5] y", "s = Sigmoid(z)\n y = Mul(x, s)"), batch=2)
    assert kinds(graph) == ["Activation", "ElemWise"]


@pytest.mark.parametrize(
    "body, shapes",
    [
        ("p = MatMul(a, b)\n y = Add(p, x)", {"a": (1, 4), "b": (4, 3)}),
        ("y = Gemm<alpha = 0.5, beta = 2.0, transA = 1>(a, b, x)", {"a": (4, 1), "b": (4, 3)}),
        ("p = Conv<kernel_shape = [2, 2]>(a, b)\n r = Reshape(p, s)\n y = Add(r, x)", {"a": (1, 2, 2, 4), "b": (1, 2, 2, 2)}),
        ("low = ReduceMin<axes = [0, 1], keepdims = 0>(x)\n p = Clip(a, low)\n y = Add(p, x)", {"a": (1, 3)}),
        ("p = Relu(a)\n y = Add(p, x)", {"a": (1, 3)}),
    ],
)
def test_parts_of_constants_alone_are_computed_at_once(model, check, body, shapes):
    graph = check(
        model("float[1,3] x => float[1,3] y", body, **shapes, **({"s": np.array([1, 3])} if "Reshape" in body else {}))
    )
    assert not set(kinds(graph)) & {"ArrayMatMul", "Conv3D", "Fc", "Conv"}


@pytest.mark.parametrize(
    "attributes", ["", "axis = 1", "axis = -1, largest = 0", "axis = 2, largest = 1", "axis = -2, largest = 0"]
)
@pytest.mark.parametrize("wanted", ["v", "i", "v, i"])
def test_largest_elements_in_order(model, tmp_path, attributes, wanted):
    """Equal elements keep their order; either result may be left out."""
    outputs = ", ".join({"v": "float[N, ?, ?] v", "i": "int64[N, ?, ?] i"}[name] for name in wanted.split(", "))
    code = f"r = Round (x)\nv, i = TopK {f'<{attributes}> ' if attributes else ''}(r, k)"
    path = tmp_path / "net.onnx"
    onnx.save(model(f"float[N, 5, 7] x => {outputs}", code, 13, k=np.array([3])), path)
    feeds = {"x": np.random.default_rng(1).normal(size=(3, 5, 7)).astype(F)}
    found = run_graph(import_onnx(path), feeds).values()
    for want, got in zip(original_engine(path).run(feeds).values(), found, strict=True):
        assert np.array_equal(np.reshape(got, want.shape), want)


@every("opset", [11, 12, 13, 15, 17, 18, 20, 21, 22])
def test_opsets(model, check, opset):
    body = """h = Conv<pads = [1, 1, 1, 1]>(x, w, b)
              r = Relu(h)
              p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(r)
              f = Flatten(p)
              g = Gemm(f, v)
              y = Softmax(g)"""
    built = model("float[N,3,8,8] x => float[N,5] y", body, opset, w=(4, 3, 3, 3), b=(4,), v=(64, 5))
    graph = check(built, batch=3)
    assert [node.name for node in graph.nodes] == ["h", "r", "p", "f", "g", "y"]
