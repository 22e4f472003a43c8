"""Operators beyond the basic ones, imported and compared with ONNX Runtime on random data; spelled-out functions."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.operators.activation import Activation
from n2d2py.operators.functions import Gelu, GeluTanh, HardSwish, Mish, Swish
from n2d2py.reference.engine import original_engine
from n2d2py.reference.executor import run_graph

F = np.float32


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def kinds(graph) -> list[str]:
    return [node.op.kind for node in graph.nodes]


FUNCTIONS = {
    "Elu": {"alpha": 0.7},
    "Selu": {},
    "Celu": {"alpha": 2.0},
    "HardSigmoid": {"alpha": 0.3, "beta": 0.4},
    "HardSwish": {},
    "Softsign": {},
    "Abs": {},
    "Erf": {},
    "Exp": {},
    "Mish": {},
    "ThresholdedRelu": {"alpha": 0.5},
}


@pytest.mark.parametrize("operator", FUNCTIONS)
def test_functions(one_node, check, operator):
    opset = 18 if operator == "Mish" else 17
    graph = check(one_node(operator, ["N", 3, 5, 4], opset=opset, **FUNCTIONS[operator]), batch=2)
    assert kinds(graph) == ["Activation"]


@pytest.mark.parametrize("form, function", [("none", Gelu()), ("tanh", GeluTanh())])
def test_gelu(one_node, check, form, function):
    graph = check(one_node("Gelu", ["N", 3, 5, 4], opset=20, approximate=form), batch=2)
    assert [node.op for node in graph.nodes] == [Activation(function)]


def test_logarithm_and_root_of_positive_values(model, check):
    check(model("float[N,3,5,4] x => float[N,3,5,4] y, float[N,3,5,4] z", "a = Exp(x)\n y = Log(a)\n z = Sqrt(a)"))


@pytest.mark.parametrize(
    "slope, expected",
    [
        ((0.1, 0.5, -0.3), ["Affine", "ElemWise"]),
        ((0.1, 2.5, -0.3), ["Activation", "Activation", "Affine", "ElemWise"]),
        ((0.2, 0.2, 0.2), ["Activation"]),
    ],
)
def test_prelu_per_channel(one_node, check, slope, expected):
    graph = check(one_node("PRelu", ["N", 3, 5, 4], {"s": np.array(slope, F).reshape(3, 1, 1)}), batch=2)
    assert kinds(graph) == expected


@pytest.mark.parametrize(
    "attributes, weights",
    [
        ({}, (3, 4, 3, 3)),
        ({"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}, (3, 4, 3, 3)),
        ({"strides": [2, 3], "pads": [0, 1, 1, 0], "dilations": [2, 1]}, (3, 4, 2, 3)),
        ({"group": 3}, (3, 2, 3, 3)),
        ({"strides": [2, 2], "auto_pad": "SAME_UPPER"}, (3, 4, 3, 3)),
        ({"strides": [2, 2], "auto_pad": "VALID"}, (3, 4, 2, 2)),
        ({"strides": [3, 2], "output_shape": [14, 11], "kernel_shape": [3, 3]}, (3, 4, 3, 3)),
        ({"strides": [2, 2], "output_shape": [11, 13]}, (3, 4, 3, 3)),
    ],
)
def test_transposed_convolutions(one_node, check, attributes, weights):
    constants = {"w": np.random.default_rng(0).normal(size=weights).astype(F)}
    assert kinds(check(one_node("ConvTranspose", ["N", 3, 5, 6], constants, **attributes), batch=2)) == ["Deconv"]


@pytest.mark.parametrize("operator, shape", [("Conv", (4, 3, 3)), ("ConvTranspose", (3, 4, 3))])
def test_one_dimension(one_node, check, operator, shape):
    constants = {"w": np.random.default_rng(0).normal(size=shape).astype(F)}
    graph = check(one_node(operator, ["N", 3, 11], constants, strides=[2], pads=[1, 0]), batch=2)
    assert len(kinds(graph)) == 3 and graph.nodes[-1].name == "y"


@pytest.mark.parametrize("attributes", [{"output_padding": [1]}, {"output_shape": [20]}, {"auto_pad": "SAME_UPPER"}])
def test_transposed_convolutions_of_one_dimension(one_node, check, attributes):
    constants = {"w": np.random.default_rng(0).normal(size=(3, 4, 3)).astype(F)}
    graph = check(one_node("ConvTranspose", ["N", 3, 11], constants, strides=[2], **attributes), batch=2)
    assert kinds(graph) == ["Reshape", "Deconv", "Reshape"]


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
def test_pools_of_one_dimension(one_node, check, operator):
    check(one_node(operator, ["N", 3, 11], kernel_shape=[3], strides=[2], pads=[1, 1]), batch=2)
    check(one_node(f"Global{operator}", ["N", 3, 11]), batch=2)


COORDINATES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_resize_nearest(one_node, check, coordinates, rounding):
    constants = {"": np.zeros(0, F), "scales": np.zeros(0, F), "s": ints(1, 3, 11, 5)}
    model = one_node(
        "Resize", [1, 3, 5, 8], constants, mode="nearest", nearest_mode=rounding, coordinate_transformation_mode=coordinates
    )
    check(model)


@pytest.mark.parametrize("coordinates", COORDINATES)
def test_resize_linear(one_node, check, coordinates):
    constants = {"": np.zeros(0, F), "scales": np.array([1, 1, 2, 1.5], F)}
    check(one_node("Resize", [1, 3, 5, 8], constants, mode="linear", coordinate_transformation_mode=coordinates))


def test_upsampling_by_whole_factors_is_one_resize(one_node, check):
    constants = {"": np.zeros(0, F), "scales": np.array([1, 1, 2, 2], F)}
    graph = check(
        one_node(
            "Resize", [1, 3, 5, 8], constants, mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric"
        )
    )
    assert kinds(graph) == ["Resize"]


@pytest.mark.parametrize("size", [1, 3, 5])
def test_lrn(one_node, check, size):
    check(one_node("LRN", ["N", 7, 3, 4], size=size, alpha=0.3, beta=0.6, bias=1.5), batch=2)


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


SLICES = {
    "channels": ([1], [3], [1], [1]),
    "steps": ([0, 6], [4, 0], [1, 2], [2, -2]),
    "from the end": ([-3], [2**31 - 1], [3], [1]),
    "batch whole": ([0, 1], [2**31 - 1, 2], [0, 1], [1, 1]),
}


@pytest.mark.parametrize("case", SLICES)
def test_slice(one_node, check, case):
    constants = {name: ints(*values) for name, values in zip(("s", "e", "a", "t"), SLICES[case], strict=True)}
    assert kinds(check(one_node("Slice", ["N", 5, 7, 6], constants), batch=2)) == ["IndexSelect"]


def test_split_gather_tile_expand(model, check):
    body = """a, b = Split<axis = 1>(x, parts)
              c = Gather<axis = 2>(a, picks)
              d = Gather<axis = 3>(b, one)
              e = Tile(c, times)
              p = Unsqueeze(d, last)
              f = Expand(p, shape)"""
    built = model(
        "float[N,5,4,3] x => float[N,2,4,6] e, float[N,3,4,5] f",
        body,
        opset=13,
        parts=ints(2, 3),
        picks=ints(3, 0, 0, -1),
        one=np.array(1),
        times=ints(1, 1, 1, 2),
        last=ints(3),
        shape=ints(1, 3, 4, 5),
    )
    graph = check(built, batch=2)
    assert set(kinds(graph)) == {"IndexSelect", "Reshape"}


@pytest.mark.parametrize("mode", ["reflect", "edge"])
def test_pad_that_repeats_the_image(one_node, check, mode):
    graph = check(one_node("Pad", ["N", 3, 4, 5], {"p": ints(0, 1, 2, 1, 0, 0, 1, 3)}, mode=mode), batch=2)
    assert kinds(graph) == ["IndexSelect"]


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_blocks(one_node, check, mode):
    check(one_node("DepthToSpace", ["N", 12, 3, 4], blocksize=2, mode=mode), batch=2)


@pytest.mark.parametrize("attributes", [{}, {"mode": "DCR"}, {"mode": "CRD"}])
def test_space_to_depth(one_node, check, attributes):
    check(one_node("SpaceToDepth", ["N", 3, 4, 6], blocksize=2, opset=28 if attributes else 17, **attributes), batch=2)


@pytest.mark.parametrize(
    "operator", ["ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare"]
)
@pytest.mark.parametrize("axes", [[2, 3], [3], [1], [1, 2], [1, 2, 3]])
@pytest.mark.parametrize("keep", [0, 1])
def test_reductions(one_node, check, operator, axes, keep):
    if operator == "ReduceSum":
        built = one_node(operator, ["N", 3, 4, 5], {"a": ints(*axes)}, keepdims=keep)
    else:
        built = one_node(operator, ["N", 3, 4, 5], axes=axes, keepdims=keep)
    if len(axes) < 3 or keep:
        check(built, batch=2)


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Max", "Min"])
@pytest.mark.parametrize("gate", ["3,1,1", "1,5,4", "1,1,1", "3,5,1"])
def test_operands_with_axes_of_length_one(model, check, operator, gate):
    check(
        model(
            f"float[N,3,5,4] x, float[N,{gate}] g => float[N,3,5,4] y, float[N,3,5,4] z",
            f"y = {operator}(x, g)\n z = {operator}(g, x)",
        ),
        batch=2,
    )


def test_mean_and_powers(model, check):
    check(
        model(
            "float[N,3,5] x, float[N,3,5] z => float[N,3,5] y",
            "m = Mean(x, z, x)\n p = Pow(m, two)\n y = Sqrt(p)",
            two=np.array(2, F),
        ),
        batch=2,
    )


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", [1, 2, 3])
def test_softmax_over_any_axis(one_node, check, operator, axis):
    check(one_node(operator, ["N", 3, 5, 4], axis=axis), batch=2)


def test_concat_of_lines(model, check):
    check(model("float[N,3,5,4] x, float[N,3,2,4] z => float[N,3,7,4] y", "y = Concat<axis = 2>(x, z)"), batch=2)


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
    values = {"root": 2**0.5, "inverse": 0.5**0.5, "one": 1, "half": 0.5, "three": 3, "zero": 0, "six": 6}
    constants = {name: np.array(value, F) for name, value in values.items() if f"{name})" in body or f"{name}," in body}
    graph = check(model("float[N,3,5,4] x => float[N,3,5,4] y", body, **constants), batch=2)
    assert kinds(graph) == ["Activation"]
    found = graph.nodes[0].op.function
    if function is None:
        assert isinstance(found, HardSwish)
        np.testing.assert_allclose([found.gain, found.shift, found.high], [1 / 6, 0.5, 1.0], rtol=1e-6)
    else:
        assert found == function


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
    assert not set(kinds(graph)) & {"ArrayMatMul", "ArrayConvPool", "Fc", "Conv"}


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
