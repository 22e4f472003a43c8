"""Models that cannot be used: one line each, all unsupported nodes at once."""

import numpy as np
import pytest
from support.errors import error_of
from support.tables import every

from n2d2py.contracts.onnx.nodes import CONVERTERS
from n2d2py.errors import ErrorList, InternalError, N2D2Error
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.operators.arrays.values import onnx
from n2d2py.reference.executor import run_graph


def failure(action) -> N2D2Error:
    error = error_of(action)
    assert "\n" not in error.line() and error.remedy
    return error


def test_truncated_at_every_length(model, tmp_path):
    data = model("float[N,7] x => float[N,5] y", "h = Gemm(x, w, b)\n y = Relu(h)", w=(7, 5), b=(5,)).SerializeToString()
    path = tmp_path / "m.onnx"
    for length in range(0, len(data), 3):
        path.write_bytes(data[:length])
        assert failure(lambda: import_onnx(path)).code.startswith("E30"), length


@every(
    "text, constants",
    [
        ("y = Add(x, c)", {"c": np.array(np.nan, np.float32)}),
        ("y = Mul(x, c)", {"c": np.array([1, 2, np.nan, 4, 5, 6, 7], np.float32)}),
        ("y = Max(x, c)", {"c": np.array([[np.nan]], np.float32)}),
        ("y = Clip(x, c)", {"c": np.array(np.nan, np.float32)}),
        ("y = Pad(x, p, c)", {"p": np.array([0, 1, 0, 1]), "c": np.array(np.nan, np.float32)}),
        ("z = Sqrt(c)\ny = Add(x, z)", {"c": np.array(-1, np.float32)}),
        ("y = LeakyRelu <alpha = nan> (x)", {}),
        (
            "i = IsNaN(c)\nz = Cast <to = 1> (i)\ny = Where(b, x, c)",
            {"b": np.arange(7) > 3, "c": np.full(7, np.nan, np.float32)},
        ),
    ],
)
def test_constants_that_are_no_numbers(model, text, constants):
    if "nan>" in text.replace(" ", ""):
        built = model("float[N,7] x => float[N,7] y", text.replace("nan", "1.5"))
        built.graph.node[0].attribute[0].f = np.nan
    else:
        built = model("float[N,7] x => float[N,9] y" if "Pad" in text else "float[N,7] x => float[N,7] y", text, **constants)
    attribute = "nan>" in text.replace(" ", "")
    assert failure(lambda: import_onnx(built)).code == ("E314" if attribute else "E306")


def test_infinite_limits_and_masks_are_taken(model):
    mask = np.where(np.arange(7) > 4, -np.inf, 0).astype(np.float32)
    import_onnx(model("float[N,7] x => float[N,7] y", "y = Where(b, x, c)", b=np.arange(7) > 3, c=mask))
    import_onnx(model("float[N,7] x => float[N,7] y", "y = Clip(x, c)", c=np.array(-np.inf, np.float32)))


def test_constant_output(model):
    graph = import_onnx(model("float[N,7] x => float[2] y", "y = Abs(w)", w=np.array([-3, 4], np.float32)))
    assert run_graph(graph, {"x": np.ones((2, 7), np.float32)})["y"].tolist() == [[3, 4], [3, 4]]
    empty = model("float[N,7] x => float[M] y", "y = Abs(w)", w=np.zeros(0, np.float32))
    assert failure(lambda: import_onnx(empty)).code == "E311"


def test_all_unsupported_nodes_are_listed_together(model):
    body = """a = Bernoulli(x)
              b = Bernoulli(x)
              c = Conv(x, w, x)
              d = Multinomial(c)
              f = Conv(d, w)
              g = Bernoulli(f)
              y = Unique(f)"""
    with pytest.raises(ErrorList) as caught:
        import_onnx(
            model("float[N,3,8,8] x => float[N,3,8,8] y, float[N,3] a, float[N,3] b, float[N,3] g", body, w=(3, 3, 1, 1))
        )
    lines = [error.line() for error in caught.value.errors]
    assert len(lines) == 4 and all(line.startswith("N2D2-E310") for line in lines)
    assert "g [a]: Bernoulli (3 nodes, the first one here)" in lines[0]
    assert "[c]: Conv (1 node)" in lines[1]
    assert "[d]: Multinomial" in lines[2] and "[y]: Unique" in lines[3]


def test_operators_behind_unknown_shapes_are_still_listed(model):
    body = "a = NonZero(x)\n b = Cast<to = 1>(a)\n c = Multinomial(b)\n y = Relu(c)"
    found = error_of(lambda: import_onnx(model("float[N,3] x => float[M,K] y", body)))
    assert [error.line().split("]: ")[1].split()[0] for error in found.errors] == ["NonZero", "Multinomial"]


def test_registry_raises_on_duplicates():
    with pytest.raises(InternalError, match="registered twice"):
        onnx("Conv")(lambda layers: None)
    assert {"Conv", "Gemm", "Concat", "Softmax"} <= set(CONVERTERS)


@every(
    "operator, constants, attributes, said",
    [
        ("Div", {"c": np.zeros(1, np.float32)}, {}, "it divides by zero"),
        ("Div", {"c": np.array([1, 0, 2], np.float32).reshape(1, 3, 1, 1)}, {}, "it divides by zero"),
        ("Mod", {"c": np.zeros(1, np.float32)}, {"fmod": 1}, "it divides by zero"),
        ("DepthToSpace", {}, {"blocksize": 0}, "blocksize=0"),
        ("SpaceToDepth", {}, {"blocksize": 0}, "blocksize=0"),
        ("LpNormalization", {}, {"p": 0}, "p=0"),
        ("LpPool", {}, {"p": 0, "kernel_shape": [2, 2]}, "p=0"),
        ("GlobalLpPool", {}, {"p": -1}, "p=-1"),
        ("LRN", {}, {"size": 3, "bias": 0.0, "alpha": 0.0}, "alpha=0 and bias=0 allow a division by 0"),
        ("LRN", {}, {"size": 3, "bias": 0.0}, "bias=0 allow a division by 0"),
        ("LRN", {}, {"size": 3, "alpha": -0.1}, "alpha=-0.1 and"),
        ("LRN", {}, {"size": 0}, "its size is below 1"),
        ("QuantizeLinear", {"s": np.zeros((), np.float32)}, {}, "its scale is not a positive number"),
        ("MaxPool", {}, {"kernel_shape": [2, 2], "strides": [0, 1]}, "its strides are not positive"),
        ("Conv", {"w": np.ones((2, 3, 1, 1), np.float32)}, {"dilations": [0, 1]}, "its dilations are not positive"),
    ],
)
def test_a_divisor_a_step_or_a_scale_of_zero(one_node, operator, constants, attributes, said):
    error = failure(lambda: import_onnx(one_node(operator, ["N", 3, 6, 6], constants, **attributes)))
    assert error.code == "E310" and said in error.line()


@every("operator", ["MaxPool", "AveragePool"])
@every(
    "attributes, text",
    [
        ({"kernel_shape": [2, 2, 2], "strides": [2, 2]}, "strides have 2 values for 3"),
        ({"kernel_shape": [2, 2]}, "kernel_shape have 2 values for 3"),
        ({"kernel_shape": [2, 0, 2]}, "kernel_shape are not positive"),
        ({"kernel_shape": [2, 2, 2], "strides": [1, 2, 2**40]}, "strides are larger than any image"),
        ({"kernel_shape": [2, 2, 2], "pads": [1, 1, 1, 1]}, "pads have 4 values instead of 6"),
        ({"kernel_shape": [2, 2, 2], "pads": [0, 0, 0, 0, -1, 0]}, "negative pads"),
        ({"kernel_shape": [2, 2, 2], "pads": [0, 0, 0, 0, 2**40, 0]}, "at most 67,108,864 are supported"),
        ({"kernel_shape": [7, 2, 2]}, "its result has no elements"),
        ({"kernel_shape": [2, 2, 2], "pads": [2, 0, 0, 0, 0, 0]}, "some of its windows lie outside the image"),
        ({"kernel_shape": [2, 2, 2], "pads": [0, 0, 0, 0, 0, 2]}, "some of its windows lie outside the image"),
    ],
)
def test_pools_that_are_refused(one_node, operator, attributes, text):
    assert text in failure(lambda: import_onnx(one_node(operator, ["N", 2, 6, 6, 6], **attributes))).line()
