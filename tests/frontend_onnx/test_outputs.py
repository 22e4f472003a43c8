"""Every output of a model is an output of the network, in the order of the model: none is lost, none stands for two."""

import itertools

import numpy as np
import onnx
import pytest
from support.e2e_run import compiled_at_once
from support.errors import refused
from support.onnx_models import original_engine, runtime_outputs, text_model
from support.tables import every

from n2d2py import load_simulator
from n2d2py.cli import main
from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.passes import fuse
from n2d2py.reference.executor import run_graph

pytestmark = pytest.mark.usefixtures("without_report")

pytest.importorskip("onnxruntime")

BODY = """
    c = Conv<pads = [1, 1, 1, 1]>(x, w1)
    image = Relu(c)
    mean = GlobalAveragePool(image)
    pixel = Conv(mean, w2)
    vector = Flatten(pixel)
    vector2 = Flatten(pixel)
    row = Reshape(pixel, row_shape)
    sequence = Unsqueeze(vector, axis)
    same = Identity(pixel)
    same2 = Identity(same)
    dropped = Dropout(pixel)
    cast = Cast<to = 1>(pixel)
    input2 = Identity(x)
    clipped = Clip(image, zero)
    relu2 = Relu(image)
    moved = Transpose<perm = [0, 1, 2, 3]>(image)
    times1 = Mul(image, one)
    joined = Concat<axis = 1>(image)
    whole = Slice(image, start, stop, axis)
    flat = Flatten(image)
    back = Reshape(flat, image_shape)
    soft = Softmax(vector)
    fixed = Constant<value_floats = [1.0, 2.0, 3.0]>()
    constant = Reshape(fixed, constant_shape)
"""
PIXELS = ("pixel", "vector", "vector2", "row", "sequence", "same", "same2", "dropped", "cast", "soft")
IMAGES = ("image", "clipped", "relu2", "moved", "times1", "joined", "whole", "back")
FAMILY = [
    "image pixel vector",  # the order in which the last one was lost
    "pixel vector image",
    *(" ".join(pair) for pair in itertools.permutations(("pixel", "vector", "row", "same", "soft"), 2)),
    *(f"image {name}" for name in IMAGES[1:]),
    *(f"{name} image" for name in IMAGES[1:]),
    *(f"pixel {name}" for name in PIXELS[1:]),
    "same same2 dropped",
    "pixel row vector vector2 same2",
    "x pixel",
    "pixel x",
    "input2 pixel",
    "x input2 image",
    "x",
    "pixel constant",
    "constant pixel image",
]


@pytest.fixture
def with_outputs(model):
    """The model with some of its tensors as outputs, in this order."""

    def build(names: list[str]) -> onnx.ModelProto:
        built = model(
            f"float[1, 3, 6, 5] x => {', '.join(f'float[] {name}' for name in names)}",
            BODY,
            w1=(4, 3, 3, 3),
            w2=(4, 4, 1, 1),
            row_shape=np.array([1, 4]),
            image_shape=np.array([1, 4, 6, 5]),
            constant_shape=np.array([1, 3]),
            axis=np.array([2]),
            zero=np.array(0, np.float32),
            one=np.array(1, np.float32),
            start=np.array([0]),
            stop=np.array([6]),
        )
        for output in built.graph.output:
            output.type.tensor_type.ClearField("shape")
        return onnx.shape_inference.infer_shapes(built)

    return build


@every("names", FAMILY)
def test_all_outputs_are_there_in_order(with_outputs, names, tmp_path):
    names = names.split()
    onnx.save(with_outputs(names), tmp_path / "net.onnx")
    x = np.random.default_rng(2).uniform(0, 1, (1, 3, 6, 5)).astype(np.float32)
    wanted = original_engine(tmp_path / "net.onnx").run({"x": x})
    graph = import_onnx(tmp_path / "net.onnx")
    assert [name.removesuffix("_output") for name in graph.outputs] == names
    for each in (graph, fuse(graph, integer=False)[0], fuse(graph, integer=True)[0]):
        assert len(each.outputs) == len(set(each.outputs)) == len(names)
        found = run_graph(each, {"x": x})
        for name, want, got in zip(names, wanted.values(), found.values(), strict=True):
            assert got.shape == want.shape, name
            np.testing.assert_allclose(got, want, atol=1e-5, err_msg=name)


def test_an_image_of_an_array_has_the_name_of_the_output(model):
    """CumSum gives arrays; MaxPool reads one as an image, and the output is one."""
    built = model(
        "float[1, 3, 2, 4] x => float[1, 3, 2, 4] w, float[1, 3, 1, 3] z, float[1, 3, 2, 4] y",
        "a = CumSum(x, axis)\n y = Reshape(a, shape)\n w = CumSum(y, axis)\n z = MaxPool<kernel_shape = [2, 2]>(w)",
        axis=np.array(2),
        shape=np.array([1, 3, 2, 4]),
    )
    graph = import_onnx(built)
    assert graph.outputs == ["w", "z", "y"]
    x = np.arange(24, dtype=np.float32).reshape(1, 3, 2, 4)
    found = run_graph(graph, {"x": x})
    np.testing.assert_array_equal(found["y"], x.cumsum(2))
    np.testing.assert_array_equal(found["w"], x.cumsum(2).cumsum(2))


@pytest.mark.compiles
@pytest.mark.parametrize(
    ("names", "bits"),
    [
        ("x back same same2 constant", "8"),
        ("soft vector pixel", "-32"),
        pytest.param("image pixel vector", "8", marks=pytest.mark.slow),
    ],
)
def test_the_export_gives_all_outputs(with_outputs, names, bits, tmp_path, monkeypatch):
    """Simulated and compiled, against ONNX Runtime."""
    monkeypatch.chdir(tmp_path)
    names = names.split()
    onnx.save(with_outputs(names), "net.onnx")
    assert main(["net.onnx", "-seed", "1", "-export", "CPP", "-nbbits", bits, "-calib", "8", "-quiet"]) == 0
    x = np.random.default_rng(2).uniform(0, 1, (1, 3, 6, 5)).astype(np.float32)
    wanted = list(original_engine("net.onnx").run({"x": x}).values())
    folder = tmp_path / ("export_CPP_int8" if bits == "8" else "export_CPP_float32")
    simulated, compiled = load_simulator(folder)(x), compiled_at_once(folder)(x)
    for name, want, first, second in zip(names, wanted, simulated, compiled, strict=True):
        assert first.shape == second.shape == want.shape, name
        np.testing.assert_allclose(first, want, atol=0.05 * np.abs(want).max(), err_msg=name)
        np.testing.assert_allclose(first, second, atol=1e-5 if bits == "-32" else 0, err_msg=name)


def test_an_output_that_is_listed_twice_is_refused(with_outputs, tmp_path):
    with pytest.raises(N2D2Error, match="E311.*'pixel' is listed twice"):
        onnx.save(with_outputs(["pixel", "image", "pixel"]), tmp_path / "net.onnx")
        import_onnx(tmp_path / "net.onnx")


def test_a_branch_with_another_number_of_outputs_is_refused(model, tmp_path):
    built = model(
        "float[1, 3] x => float[1, 3] y",
        "y = If<then_branch = g1 () => (float[1, 3] a, float[1, 3] b) { a = Relu(x) b = Abs(x) }, "
        "else_branch = g2 () => (float[1, 3] d) { d = Abs(x) }>(condition)",
        condition=np.array(True),
    )
    onnx.save(built, tmp_path / "net.onnx")
    assert refused(r"E310|E302", import_onnx, tmp_path / "net.onnx")


def test_the_last_states_of_a_recurrent_layer_have_the_names_of_the_outputs():
    """Of one step, the result and the last hidden state are the same numbers."""
    rng = np.random.default_rng(0)
    constants = {"w": rng.normal(size=(1, 12, 5)).astype(np.float32), "r": rng.normal(size=(1, 12, 3)).astype(np.float32)}
    text = "a, hidden, cell = LSTM <hidden_size = 3> (x, w, r)\n squeezed = Squeeze (hidden)\n y = Relu (a)\n again = Squeeze (hidden)"
    model = text_model(
        "float[1,1,5] x => float y, float squeezed, float hidden, float cell, float again",
        text,
        constants,
        opset=13,
        has_shapes=False,
    )
    graph = import_onnx(model)
    assert graph.outputs == ["y", "squeezed", "hidden", "cell", "again"]
    x = rng.normal(size=(1, 1, 5)).astype(np.float32)
    wanted = runtime_outputs(model, x)
    for found, values in zip(run_graph(graph, {"x": x.astype(np.float64)}).values(), wanted, strict=True):
        np.testing.assert_allclose(found.reshape(-1), values.reshape(-1), rtol=1e-5, atol=1e-6)
