"""Models that cannot be used: one line each, all unsupported nodes at once."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from support.tables import every

from n2d2py.errors import ErrorList, InternalError, N2D2Error
from n2d2py.frontend.onnx.contract import CONVERTERS
from n2d2py.frontend.onnx.contract import onnx as declared_for
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.frontend.onnx.model import load_onnx
from n2d2py.reference.executor import run_graph


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def failure(action) -> N2D2Error:
    with pytest.raises(N2D2Error) as caught:
        action()
    assert "\n" not in caught.value.line() and caught.value.remedy
    return caught.value


def test_missing_file_and_folder(tmp_path):
    assert "does not exist" in failure(lambda: load_onnx(tmp_path / "no.onnx")).line()
    assert failure(lambda: load_onnx(tmp_path)).code == "E301"


@pytest.mark.parametrize("content", [b"", b"hello world, this is no protobuf", b"\x00" * 100])
def test_garbage(tmp_path, content):
    (tmp_path / "m.onnx").write_bytes(content)
    assert failure(lambda: load_onnx(tmp_path / "m.onnx")).code == "E302"


def test_truncated_at_every_length(model, tmp_path):
    data = model("float[N,7] x => float[N,5] y", "h = Gemm(x, w, b)\n y = Relu(h)", w=(7, 5), b=(5,)).SerializeToString()
    path = tmp_path / "m.onnx"
    for length in range(0, len(data), 3):
        path.write_bytes(data[:length])
        assert failure(lambda: import_onnx(path)).code.startswith("E30"), length


def test_damaged_weights(model):
    built = model("float[N,7] x => float[N,5] y", "y = MatMul(x, w)", w=(7, 5))
    built.graph.initializer[0].raw_data = built.graph.initializer[0].raw_data[:-4]
    assert failure(lambda: import_onnx(built)).code == "E302"


@pytest.mark.parametrize("opset", [1, 6, 99])
def test_bad_opset(model, opset):
    built = model("float[N,7] x => float[N,7] y", "y = Relu(x)")
    built.opset_import[0].version = opset
    error = failure(lambda: load_onnx(built))
    assert error.code == "E303" and f"opset {opset} is not supported" in error.line()


def test_no_opset(model):
    built = model("float[N,7] x => float[N,7] y", "y = Relu(x)")
    del built.opset_import[:]
    assert failure(lambda: load_onnx(built)).code in ("E302", "E303")


def external(built: onnx.ModelProto, location: str, length: int = 140) -> onnx.ModelProto:
    tensor = built.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", "4"), ("length", str(length))):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    return built


def test_external_data(model, tmp_path):
    built = model("float[N,7] x => float[N,5] y", "y = MatMul(x, w)", w=(7, 5))
    weights = numpy_helper.to_array(built.graph.initializer[0])
    (tmp_path / "data.bin").write_bytes(b"skip" + weights.tobytes())
    onnx.save(external(built, "data.bin"), tmp_path / "m.onnx")
    assert np.array_equal(import_onnx(tmp_path / "m.onnx").nodes[0].params["weights"], weights.T)


@every(
    "location,length,text",
    [
        ("../data.bin", 140, "E304"),
        ("/etc/passwd", 140, "E304"),
        ("absent.bin", 140, "cannot be read"),
        ("short.bin", 140, "ends before"),
    ],
)
def test_bad_external_data(model, tmp_path, location, length, text):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "data.bin").write_bytes(bytes(200))
    (folder / "short.bin").write_bytes(bytes(100))
    built = external(model("float[N,7] x => float[N,5] y", "y = MatMul(x, w)", w=(7, 5)), location, length)
    (folder / "m.onnx").write_bytes(built.SerializeToString())
    error = failure(lambda: load_onnx(folder / "m.onnx"))
    assert error.code == "E304" and text in error.line()


def test_external_data_behind_a_link_outside(model, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "data.bin").write_bytes(bytes(200))
    (folder / "link.bin").symlink_to(tmp_path / "data.bin")
    built = external(model("float[N,7] x => float[N,5] y", "y = MatMul(x, w)", w=(7, 5)), "link.bin")
    (folder / "m.onnx").write_bytes(built.SerializeToString())
    assert failure(lambda: load_onnx(folder / "m.onnx")).code == "E304"


def test_inputs_that_cannot_be_used(model):
    texts = model("float[N,7] x => float[N,7] y", "y = Identity(x)")
    texts.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING
    assert failure(lambda: load_onnx(texts)).code == "E305"
    assert "E305" in failure(lambda: import_onnx(model("float[M] x => float[M] y", "y = Relu(x)"))).line()
    unknown = model("float[N,3,H,W] x => float[N,3,H,W] y", "y = Relu(x)")
    assert "3x?x? with unknown sizes" in failure(lambda: import_onnx(unknown)).line()
    assert import_onnx(unknown, input_shapes={"x": (1, 3, 5, 6)}).shape("y") == (1, 3, 5, 6)


def test_weights_that_are_not_finite(model):
    weights = np.ones((7, 5), np.float32)
    weights[3, 2] = np.nan
    error = failure(lambda: import_onnx(model("float[N,7] x => float[N,5] y", "y = MatMul(x, w)", w=weights)))
    assert error.code == "E306" and "[y]" in error.line()


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
    with pytest.raises(ErrorList) as caught:
        import_onnx(model("float[N,3] x => float[M,K] y", body))
    assert [error.line().split("]: ")[1].split()[0] for error in caught.value.errors] == ["NonZero", "Multinomial"]


REFUSED = {
    "negative pads": (
        "Conv",
        ["N", 3, 9, 9],
        {"w": np.ones((4, 3, 3, 3), np.float32)},
        {"pads": [-1, 0, 0, 0]},
        "negative pads",
    ),
    "reduce all": ("ReduceMean", ["N", 3, 8, 8], {}, {}, "reduces the batch axis"),
    "odd pads": ("Pad", ["N", 3, 4, 4], {"p": ints(0, 0, 1)}, {}, "3 pads for 4 axes"),
    "cast": ("Cast", ["N", 3], {}, {"to": 8}, "a cast to STRING"),
    "reduce batch": ("ReduceMean", ["N", 3, 8, 8], {}, {"axes": [0, 1]}, "reduces the batch axis"),
    "slice of the batch": ("Slice", ["N", 3, 4], {"s": ints(0), "e": ints(1), "a": ints(0)}, {}, "cuts the batch axis"),
    "softmax batch": ("Softmax", ["N", 3, 4, 4], {}, {"axis": 0}, "normalises over the batch axis"),
}


@every("case", REFUSED)
def test_refused_with_reason(one_node, case):
    operator, shape, constants, attributes, reason = REFUSED[case]
    error = failure(lambda: import_onnx(one_node(operator, shape, constants, **attributes)))
    assert error.code == "E310" and f"{operator} (1 node) cannot be imported" in error.line()
    assert reason in error.line()


def test_window_larger_than_the_image(one_node):
    error = failure(lambda: import_onnx(one_node("MaxPool", ["N", 3, 4, 4], kernel_shape=[5, 5])))
    assert error.code == "E203" and "[y]" in error.line() and "5x5" in error.line()


def test_foreign_domain_is_refused(model):
    built = model("float[N,3] x => float[N,3] y", "y = Inverse(x)")
    built.graph.node[0].domain = "com.microsoft"
    built.opset_import.add(domain="com.microsoft", version=1)
    assert "com.microsoft::Inverse (1 node)" in failure(lambda: import_onnx(built)).line()


def test_registry_raises_on_duplicates():
    with pytest.raises(InternalError, match="registered twice"):
        declared_for("Conv")(lambda node, builder: None)
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


def test_groups_of_zero(one_node):
    scale = {"s": np.ones(3, np.float32), "b": np.zeros(3, np.float32)}
    error = failure(lambda: import_onnx(one_node("GroupNormalization", ["N", 3, 6, 6], scale, opset=18, num_groups=0)))
    assert error.code == "E310" and "num_groups=0 does not divide the channels of its input" in error.line()


@pytest.mark.parametrize("operator", ["Div", "Mod"])
def test_integers_divided_by_zero(model, operator):
    built = model(
        "float[N,3,4,4] x => float[N,3,4,4] y",
        f"i = Cast<to=6>(x)\n j = {operator}(i, z)\n y = Cast<to=1>(j)",
        z=np.zeros(1, np.int32),
    )
    assert "it divides by zero" in failure(lambda: import_onnx(built)).line()
