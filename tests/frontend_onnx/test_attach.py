"""An ONNX network behind the tensors of a graph that an INI builds."""

import re
from dataclasses import fields

import numpy as np
import onnx
import pytest
from support.errors import error_line, refused
from support.onnx_models import original_engine, runtime_outputs
from support.ops import Softmax
from support.tables import every

import n2d2py
from n2d2py import log
from n2d2py.cli import main
from n2d2py.contracts.functions import Gelu
from n2d2py.errors import Location, N2D2Error
from n2d2py.frontend.onnx.attach import attach_onnx
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.frontend.onnx.model import ImportOptions, load_onnx
from n2d2py.graph import Graph, Node
from n2d2py.graph.describe import describe
from n2d2py.passes import fuse
from n2d2py.reference.engine import FloatEngine
from n2d2py.reference.executor import run_graph


@pytest.fixture
def small(model, tmp_path):
    """A convolution network of 3x8x8 inputs, saved."""
    body = "h = Conv<pads = [1, 1, 1, 1]>(x, w)\n r = Relu(h)\n p = GlobalAveragePool(r)\n y = Flatten(p)"
    path = tmp_path / "small.onnx"
    onnx.save(model("float[N,3,8,8] x => float[N,4] y", body, w=(4, 3, 3, 3)), path)
    return path


def provider(*shape: int) -> Graph:
    graph = Graph("net")
    graph.add_input("sp", (1, *shape))
    return graph


def test_layers_follow_the_provider_and_feed_ini_layers(small):
    graph = provider(3, 8, 8)
    assert attach_onnx(graph, small, ["sp"]) == ["y"] and graph.outputs == ["y"]
    graph.add(Node("soft", Softmax(), ["y"], ["soft"]))
    graph.outputs = ["soft"]
    graph.verify()
    assert [node.name for node in graph.nodes] == ["h", "r", "p", "y", "soft"]
    assert graph.node("h").inputs == ["sp"] and graph.resolve("x") == "sp"
    x = np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype(np.float32)
    logits = FloatEngine(import_onnx(small)).run(x)["y"]
    powers = np.exp(logits)
    np.testing.assert_allclose(FloatEngine(graph).run(x)["soft"], powers / powers.sum(1, keepdims=True), rtol=1e-5)


def test_other_input_size_is_a_warning_and_the_provider_decides(small):
    log.setup(quiet=True)
    graph = provider(3, 16, 12)
    attach_onnx(graph, small, ["sp"])
    assert graph.shape("h") == (1, 4, 16, 12)
    assert [warning.code for warning in log.warnings_seen()] == ["W305"]
    log.setup(quiet=True)
    attach_onnx(provider(3, 16, 12), small, ["sp"], ignore_input_size=True)
    assert not log.warnings_seen()


def test_other_number_of_channels_is_an_error(small):
    with pytest.raises(N2D2Error, match=r"N2D2-E313: net.ini:7 \[onnx\]: .*3 x 8 x 8 .*but .* 1 x 8 x 8"):
        attach_onnx(provider(1, 8, 8), small, ["sp"], where=Location("net.ini", 7, "onnx"))


def test_other_number_of_channels_behind_a_layer(small):
    """No setting of the provider would help."""
    graph = provider(1, 8, 8)
    graph.add(Node("soft", Softmax(), ["sp"], ["soft"]))
    with pytest.raises(N2D2Error, match=r"N2D2-E313: .*but .* 1 x 8 x 8; name a layer of that shape in Input, or put"):
        attach_onnx(graph, small, ["soft"])


@every(
    ("given", "declared", "body"),
    [
        ((5,), "5,1,1", "y = Relu(x)"),
        ((5,), "5,1,1", "y = GlobalAveragePool(x)"),
        ((5,), "C,H,W", "y = Relu(x)"),
        ((5, 1, 1), "5", "y = Relu(x)"),
    ],
)
def test_a_vector_is_an_image_of_one_pixel(model, tmp_path, given, declared, body):
    """A fully connected layer gives a vector, in N2D2 an image of one pixel; two sections may read one layer."""
    graph = provider(*given)
    graph.add(Node("soft", Softmax(), ["sp"], ["soft"]))
    for name in ("y", "z"):
        path = tmp_path / f"{name}.onnx"
        onnx.save(model(f"float[N,{declared}] x => float[N,{declared}] {name}", body.replace("y", name)), path)
        assert attach_onnx(graph, path, ["soft"]) == [name]
    graph.outputs = ["y", "z"]
    graph.verify()
    assert [node.name for node in graph.nodes if node.helper] == ["soft_as_x", "soft_as_x_"]
    assert graph.shape("y") == graph.shape("z") == ((1, 5) if declared == "5" else (1, 5, 1, 1))
    x = np.random.default_rng(0).normal(size=(2, *given)).astype(np.float32)
    powers = np.exp(x.reshape(2, 5))
    for values in FloatEngine(graph).run(x).values():
        np.testing.assert_allclose(values.reshape(2, 5), powers / powers.sum(1, keepdims=True), rtol=1e-5)


@every(("given", "declared"), [((5,), "5,2,1"), ((5, 1, 2), "5"), ((5,), "4,1,1"), ((5,), "5,1")])
def test_other_vectors_and_images_are_errors(model, tmp_path, given, declared):
    path = tmp_path / "y.onnx"
    onnx.save(model(f"float[N,{declared}] x => float[N,{declared}] y", "y = Relu(x)"), path)
    assert refused(r"N2D2-E313: .*but .* 5", lambda: attach_onnx(provider(*given), path, ["sp"]))


def test_number_of_parents(small):
    assert "N2D2-E313" in error_line(lambda: attach_onnx(provider(3, 8, 8), small, ["sp", "sp"]))


def test_name_in_both(small):
    graph = provider(3, 8, 8)
    graph.add(Node("h", Softmax(), ["sp"], ["h"]))
    assert refused("N2D2-E312.*'h'", attach_onnx, graph, small, ["sp"])


@pytest.mark.parametrize("name", ["h", "r", "p"])
def test_the_name_of_a_provider_in_the_file(small, name):
    """Whichever layer of the file has it: the first, one within, the one before the output."""
    graph = Graph("net")
    graph.add_input(name, (1, 3, 8, 8))
    assert refused(rf"N2D2-E312: .*\[{name}\]: layer name '{name}' ", attach_onnx, graph, small, [name])


def test_the_layers_of_a_file_have_their_parameters_and_no_bias_where_there_is_none(small, model, tmp_path):
    graph = provider(3, 8, 8)
    attach_onnx(graph, small, ["sp"])
    path = tmp_path / "second.onnx"
    onnx.save(model("float[N,4] v => float[N,5] z", "z = Gemm<transB = 1>(v, w, b)", w=(5, 4), b=(5,)), path)
    assert attach_onnx(graph, path, ["y"]) == ["z"] and graph.outputs == ["y", "z"]
    for each in (graph, graph.copy()):
        assert [(layer["name"], layer["params"]) for layer in describe(each)["layers"]] == [
            *(("h", 4 * 3 * 3 * 3), ("r", 0), ("p", 0), ("y", 0)),
            ("z", 5 * 4 + 5),
        ]


def test_a_copy_has_every_field_of_its_layers(small):
    graph = import_onnx(small)
    node = graph.nodes[0]
    node.helper, node.unbiased, node.location = True, True, Location("net.ini", 3)
    node.activation, node.source = Gelu(), ["h", "g"]
    other = graph.copy()
    for field in fields(node):
        value, copied = getattr(node, field.name), getattr(other.nodes[0], field.name)
        assert value == copied and (copied is not value or not isinstance(value, (list, dict))), field.name


@pytest.mark.parametrize("body", ["h = Conv(x, w)\n y = BatchNormalization(h, g, s, m, v)", "a = Add(x, s3)\n y = Conv(a, w)"])
def test_a_bias_that_a_merged_layer_brings_counts(model, tmp_path, body):
    values = {"g": (4,), "s": (4,), "m": (4,), "v": np.ones(4, np.float32), "s3": (3, 1, 1), "w": (4, 3, 1, 1)}
    used = {name: value for name, value in values.items() if f" {name}," in body or f" {name})" in body}
    graph = import_onnx(model("float[N,3,2,2] x => float[N,4,2,2] y", body, **used))
    fused, _ = fuse(graph, integer=True)
    assert describe(fused)["params"] == 4 * 3 + 4


def test_an_ignored_layer_is_another_name_of_what_it_read(model, tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(model("float[N,4] x => float[N,4] y", "a = Relu(x)\n b = Sigmoid(a)\n c = Relu(b)\n y = Tanh(c)"), path)
    graph = provider(4)
    attach_onnx(graph, path, ["sp"], ImportOptions(ignore=("a", "c")))
    assert {name: graph.resolve(name) for name in "xac"} == {"x": "sp", "a": "sp", "c": "b"}
    assert [(node.name, node.inputs) for node in graph.nodes] == [("b", ["sp"]), ("y", ["b"])]


def test_unknown_ignored_name_is_a_warning(small):
    log.setup(quiet=True)
    attach_onnx(provider(3, 8, 8), small, ["sp"], ImportOptions(ignore=("rr",)))
    assert [warning.code for warning in log.warnings_seen()] == ["W304"]
    assert "did you mean 'r'" in log.warnings_seen()[0].line()


def test_input_with_the_name_of_the_provider(model, tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(model("float[N,4] sp => float[N,4] y", "y = Relu(sp)"), path)
    graph = provider(4)
    attach_onnx(graph, path, ["sp"])
    assert graph.node("y").inputs == ["sp"] and graph.resolve("sp") == "sp"


def test_nhwc_network_behind_a_chw_provider(model, tmp_path):
    path = tmp_path / "m.onnx"
    body = "s = Div(x, k)\n t = Transpose<perm = [0, 3, 1, 2]>(s)\n y = Conv(t, w)"
    onnx.save(model("float[N,6,5,3] x => float[N,4,4,3] y", body, k=(1,), w=(4, 3, 3, 3)), path)
    graph = provider(3, 6, 5)
    log.setup(quiet=True)
    attach_onnx(graph, path, ["sp"])
    graph.verify()
    assert graph.shape("y") == (1, 4, 4, 3) and not log.warnings_seen()
    x = np.random.default_rng(0).normal(size=(2, 3, 6, 5)).astype(np.float32)
    want = original_engine(path).run(x.transpose(0, 2, 3, 1))["y"]
    fused, _ = fuse(graph, integer=True)
    assert [node.op.kind for node in fused.nodes] == ["Conv"]
    for engine in (FloatEngine(graph), FloatEngine(fused)):
        np.testing.assert_allclose(engine.run(x)["y"], want, rtol=1e-5, atol=1e-5)


def test_two_files_may_need_the_same_helpers(model, tmp_path):
    """Layers that the import adds, named after inputs of the same name, do not stand in each other's way."""
    graph = provider(3, 4, 6)
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 6)).astype(np.float32)
    expected = x
    for name in ("first", "second"):
        path = tmp_path / f"{name}.onnx"
        onnx.save(model(f"float[N,3,4,6] x => float[N,3,4,6] {name}", f"{name} = CumSum(x, axis)", axis=np.array(3)), path)
        attach_onnx(graph, path, ["sp" if name == "first" else "first"])
        expected = original_engine(path).run(expected)[name]
    assert len({node.name for node in graph.nodes}) == len(graph.nodes) > 2
    graph.verify()
    np.testing.assert_allclose(FloatEngine(graph).run(x)["second"].reshape(expected.shape), expected, rtol=1e-5, atol=1e-5)


@every(
    ("shape", "sizes", "wanted"),
    [
        ("N,3,h,w", (3, 4, 5), (1, 3, 4, 5)),
        ("N,c,h,w", (3, 4, 5), (1, 3, 4, 5)),
        ("N,3,h,w", (2, 4, 5), "input 'x' has shape 3x?x? and cannot have 2x4x5"),
        ("N,3,h,w", (4, 5), "3x?x? and cannot have 4x5"),
        ("n", (6,), (1, 6)),
        ("n", (1,), (1, 1)),
        ("N,c,4,5", (3, 4, 5), (1, 3, 4, 5)),
        ("N,3,4,w", (3, 4, 5), (1, 3, 4, 5)),
        ("N,c,h,w", (1, 4, 5), (1, 1, 4, 5)),
        ("N,c", (1,), (1, 1)),
        ("N,c,h,w", (1, 2, 3, 4, 5), "?x?x? and cannot have 1x2x3x4x5"),
        ("2,c,h,w", (1, 3, 4, 5), "?x?x? and cannot have 1x3x4x5"),
    ],
)
def test_sizes_that_a_file_leaves_open(model, shape, sizes, wanted):
    loaded = load_onnx(model(f"float[{shape}] x => float[{shape}] y", "y = Relu (x)"))
    if isinstance(wanted, str):
        assert refused(f"E305.*{re.escape(wanted)}", loaded.set_sizes, "x", sizes)
    else:
        assert loaded.inputs[0].is_open
        loaded.set_sizes("x", sizes)
        assert loaded.inputs[0].shape == wanted and not loaded.inputs[0].is_open
        assert loaded.inputs[0].dims[-len(sizes) :] == sizes and loaded.batch == (1 if shape == "n" else None)


@pytest.mark.parametrize(
    ("shape", "sizes"), [("N,c,h,w", (1, 3, 4, 5)), ("N,c", (1, 6)), ("N,3,h", (1, 3, 1)), ("T,c", (7, 6))]
)
def test_a_size_of_the_first_axis(model, shape, sizes):
    loaded = load_onnx(model(f"float[{shape}] x => float[{shape}] y", "y = Relu (x)"))
    loaded.set_sizes("x", sizes)
    assert loaded.batch == sizes[0] and loaded.inputs[0].dims == sizes and loaded.inputs[0].shape == (1, *sizes[1:])
    assert "E305" in error_line(loaded.set_sizes, "y", sizes)


BODY = """
<ir_version: 8, opset_import: ["" : 17]>
net (float[N,3,8,8] x) => (float[N,4,8,8] y, float[N,4] z) {
    scaled = Div(x, range)
    made = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(scaled, w)
    kept = Relu(made)
    y = Sigmoid(kept)
    mean = GlobalAveragePool(kept)
    flat = Flatten(mean)
    z = NotAnOperator(flat)
}
"""
"""The last layer of z is not supported."""


@pytest.fixture
def path(tmp_path):
    model = onnx.parser.parse_model(BODY)
    rng = np.random.default_rng(1)
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(np.asarray(values, np.float32), name)
        for name, values in (("range", 255.0), ("w", rng.normal(size=(4, 3, 3, 3))))
    )
    onnx.save(model, tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


CUTS = {
    "end": ({"outputs": "y"}, ["x"], ["y"]),
    "middle": ({"outputs": ["kept", "flat"]}, ["x"], ["kept", "flat"]),
    "start": ({"inputs": ["scaled"], "outputs": "flat, y"}, ["scaled"], ["flat", "y"]),
    "one layer": ({"inputs": "made", "outputs": "kept"}, ["made"], ["kept"]),
}


@every(("ends", "inputs", "outputs"), CUTS.values(), ids=CUTS)
def test_parts(path, ends, inputs, outputs):
    graph = n2d2py.load(path, options=n2d2py.LoadOptions(**ends)).network.graph
    assert len(graph.inputs) == len(inputs) and len(graph.outputs) == len(outputs)
    model = onnx.shape_inference.infer_shapes(onnx.load(path))
    part = onnx.utils.Extractor(model).extract_model(inputs, outputs)
    x = np.random.default_rng(2).normal(size=(2, *graph.shape(graph.inputs[0])[1:])).astype(np.float32)
    for mine, theirs in zip(run_graph(graph, {graph.inputs[0]: x}).values(), runtime_outputs(part, x), strict=True):
        np.testing.assert_allclose(mine.reshape(theirs.shape), theirs, atol=1e-6)


REFUSED = {
    "unknown": ({"outputs": "keptt"}, "did you mean 'kept'"),
    "twice": ({"outputs": "y,y"}, "twice"),
    "no effect": ({"inputs": "flat", "outputs": "y"}, "no effect"),
    "unknown input": ({"inputs": "range"}, "not a tensor"),
}


@every(("ends", "text"), REFUSED.values(), ids=REFUSED)
def test_refused(path, ends, text):
    line = error_line(n2d2py.load, path, options=n2d2py.LoadOptions(**ends))
    assert "E305" in line and text in line


def test_command_and_ini(path, capsys):
    """An INI whose ONNX section ends at a tensor has the layers of the command."""
    ini = path.with_suffix(".ini")
    ini.write_text(
        "[database]\nType=Random_Database\nSize=4\nNbLabels=4\n[sp]\nSizeX=8\nSizeY=8\nNbChannels=3\n"
        "[part]\nInput=sp\nType=ONNX\nFile=net.onnx\nOutputs=flat\n"
    )
    assert main([str(path), "-outputs", "flat", "-describe"]) == 0
    first = capsys.readouterr().out
    assert main([str(ini), "-describe"]) == 0
    second = capsys.readouterr().out
    for text in (first, second):
        assert "NotAnOperator" not in text and "Sigmoid" not in text
    assert main([str(ini), "-outputs", "flat", "-describe"]) == 2
