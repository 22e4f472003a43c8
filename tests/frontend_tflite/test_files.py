"""What is refused of .tflite files, in one line that names the operator; damaged files; the tables of the schema.

They look at `n2d2py.frontend.tflite.file`, `n2d2py.frontend.tflite.schema`, `n2d2py.frontend.models` and
`n2d2py.frontend.tflite.translation`.
"""

import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from support.errors import error_of
from support.tables import every

pytest.importorskip("ai_edge_litert", reason="ai-edge-litert, whose schema writes the files, is not installed")

from support.litert import Reference, agreement
from support.tflite_cases import REALS
from support.tflite_files import IN, OUT, Small, rewritten

import n2d2py
from n2d2py.cli import main
from n2d2py.errors import N2D2Error
from n2d2py.exports.tflite.file import need_schema
from n2d2py.frontend.models import load_model
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.frontend.tflite import schema
from n2d2py.frontend.tflite.file import read_tflite


def failure(path: Path) -> list[str]:
    """The lines of what is wrong with a file."""
    return [error.line() for error in error_of(lambda: import_onnx(load_model(path))).errors]


def _network() -> tuple[Small, int]:
    """conv - relu6 - pool - dense - softmax."""
    m = Small((1, 8, 8, 3), (1 / 255, -128))
    w, scales = m.weights((4, 3, 3, 3), 4, 0)
    fields = {
        "padding": 0,
        "strideH": 2,
        "strideW": 2,
        "dilationHFactor": 1,
        "dilationWFactor": 1,
        "fusedActivationFunction": 3,
    }
    conv = m.add(
        "CONV_2D", [m.x, w, m.bias(scales, 4, 1 / 255)], (1, 4, 4, 4), (0.0235, -128), "Conv2DOptions", name="conv", **fields
    )
    pool = {"padding": 1, "strideH": 2, "strideW": 2, "filterHeight": 2, "filterWidth": 2}
    small = m.add("MAX_POOL_2D", [conv], (1, 2, 2, 4), (0.0235, -128), "Pool2DOptions", name="pool", **pool)
    flat = m.add("RESHAPE", [small, m.constant("s", [1, 16])], (1, 16), (0.0235, -128), name="flat")
    w, scales = m.weights((5, 16), 5, 0)
    dense = m.add("FULLY_CONNECTED", [flat, w, m.bias(scales, 5, 0.0235)], (1, 5), OUT, "FullyConnectedOptions", name="dense")
    return m, m.add("SOFTMAX", [dense], (1, 5), (1 / 256, -128), "SoftmaxOptions", beta=1.0, name="probabilities")


def test_the_schema_is_litert_s():
    """The numbers of operators, types and activations are those of the schema that LiteRT brings."""
    litert = need_schema()
    for number, name in enumerate(schema.OPERATORS):
        assert getattr(litert.BuiltinOperator, name) == number
    kinds = {value: name for name, value in vars(litert.TensorType).items() if not name.startswith("_")}
    assert {**{at: kinds[at] for at in schema.TYPES}, **schema.OTHER_TYPES} == kinds
    for number, name in enumerate(schema.ACTIVATIONS):
        assert getattr(litert.ActivationFunctionType, name) == number
    assert (litert.Padding.SAME, litert.Padding.VALID, litert.MirrorPadMode.REFLECT) == (
        schema.SAME,
        schema.VALID,
        schema.REFLECT,
    )


def test_names_grids_and_values_are_kept(tmp_path):
    """The reader sees what the schema's own classes see."""
    m, out = _network()
    path = m.write(tmp_path, out)
    litert = need_schema().ModelT.InitFromPackedBuf(path.read_bytes(), 0)
    file = read_tflite(path)
    for ours, theirs in zip(file.tensors, litert.subgraphs[0].tensors, strict=True):
        assert ours.name.startswith(theirs.name.decode()) and ours.shape == tuple(theirs.shape)
        if theirs.quantization is not None:
            assert np.array_equal(ours.scale, theirs.quantization.scale)
            assert np.array_equal(ours.zero_point, theirs.quantization.zeroPoint)
        data = litert.buffers[theirs.buffer].data
        assert (ours.values is None) == (data is None)
        if data is not None:
            assert ours.values is not None and ours.values.tobytes() == bytes(data)


def test_command(tmp_path, capsys):
    """A file with class folders of pictures: a byte is the stored integer, the C++ and the simulation agree."""
    from PIL import Image

    m, out = _network()
    path = m.write(tmp_path, out, "net.tflite")
    for label in range(5):
        (tmp_path / "data" / str(label)).mkdir(parents=True)
        for number in range(2):
            pixels = m.rng.integers(0, 256, (8, 8, 3), np.uint8)
            Image.fromarray(pixels).save(tmp_path / "data" / str(label) / f"{number}.png")
    words = [str(path), "-export", "CPP", "-o", str(tmp_path / "out"), "-calib-data", str(tmp_path / "data")]
    assert main([*words, *(["-test"] if shutil.which("make") else [])]) == 0
    text = capsys.readouterr()
    assert "the scale and zero point of the input" in text.out + text.err
    assert (tmp_path / "out" / "export_CPP_int8" / "Makefile").is_file()


def test_network_as_litert(tmp_path):
    """A small network, end to end: the same class, the logits at most a step off."""
    m, out = _network()
    path = m.write(tmp_path, out)
    x = (m.rng.integers(0, 256, (40, 3, 8, 8)) / np.float32(255)).astype(np.float32)
    found = agreement(path, x)
    assert found.layers and "probabilities" in found.layers and max(found.layers.values()) <= 1
    assert found.top == found.stimuli


def test_round_trip_of_an_export(tmp_path):
    """What -export TFLite writes is read again: the layers' integers are LiteRT's."""
    m, out = _network()
    path = m.write(tmp_path, out, "first.tflite")
    (tmp_path / "p.ini").write_text("IntegerIO = 1\n")
    words = [str(path), "-export", "TFLite", "-export-parameters", str(tmp_path / "p.ini"), "-o", str(tmp_path / "out")]
    assert main(words) == 0
    again = next((tmp_path / "out").rglob("*.tflite"))
    x = (m.rng.integers(0, 256, (40, 3, 8, 8)) / np.float32(255)).astype(np.float32)
    found = agreement(again, x)
    assert found.layers and max(found.layers.values()) <= 1 and found.outputs <= 1 and found.top == found.stimuli


def test_section_of_an_ini(tmp_path):
    """File= of a Type=ONNX section may name a .tflite file."""
    m = Small((1, 8, 8, 3), None)
    values = m.rng.normal(size=(4, 3, 3, 3)).astype(np.float32)
    fields = {"padding": 0, "strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    w = m.tensor("w", values.shape, None, values=values)
    m.write(tmp_path, m.add("CONV_2D", [m.x, w], (1, 8, 8, 4), None, "Conv2DOptions", name="conv", **fields), "part.tflite")
    (tmp_path / "net.ini").write_text(
        "[database]\nType=Random_Database\n[sp]\nSizeX=8\nSizeY=8\nNbChannels=3\n[part]\nInput=sp\nType=ONNX\nFile=part.tflite\n"
    )
    assert n2d2py.load(str(tmp_path / "net.ini")).graph.outputs == ["conv"]


def test_dynamic_range_is_a_float_network(tmp_path):
    """Integer weights between real numbers (hybrid files) are the real weights that they stand for."""
    m = Small((1, 24), None)
    w, scales = m.weights((5, 24), 5, 0)
    stored = m.file._buffers[-1].data.view(np.int8).reshape(5, 24)
    path = m.write(tmp_path, m.add("FULLY_CONNECTED", [m.x, w, -1], (1, 5), None, "FullyConnectedOptions", name="y"))
    graph = import_onnx(load_model(path))
    np.testing.assert_allclose(graph.nodes[-1].params["weights"].reshape(5, 24), stored * scales[:, None], rtol=1e-6)


def test_all_unsupported_operators_at_once(tmp_path):
    """One line for each kind, with the file, the operator's index, its name and its tensor."""
    m = Small()
    a = m.add("WHERE", [m.x], (1, 8, 6, 4), IN, name="a")
    b = m.add("UNIQUE", [a], (1, 8, 6, 4), IN, name="b")
    c = m.add("RELU", [b], (1, 8, 6, 4), IN, name="c")
    lines = failure(m.write(tmp_path, m.add("WHERE", [c], (1, 8, 6, 4), IN, name="d")))
    assert len(lines) == 2
    assert "m.tflite [0 WHERE a]" in lines[0] and "2 operators" in lines[0] and lines[0].startswith("N2D2-E310")
    assert "m.tflite [1 UNIQUE b]" in lines[1]


@pytest.mark.parametrize("compiler", ["ethos-u", "edgetpu-custom-op"])
def test_the_result_of_a_compiler_is_told_as_such(compiler, tmp_path):
    """Its operator reads scratch memory that no other one writes."""
    m = Small()
    y = m.add("RELU", [m.x, m.tensor("scratch", (1, 64), IN)], (1, 8, 6, 4), IN, name="y")

    def change(schema, model) -> None:
        model.operatorCodes[0].builtinCode = model.operatorCodes[0].deprecatedBuiltinCode = 32
        model.operatorCodes[0].customCode = compiler

    (line,) = failure(rewritten(m.write(tmp_path, y), change))
    assert "E310" in line and compiler in line and "compiler" in line.split("; ")[-1]


def _refused(**change) -> tuple[Small, int]:
    m = Small()
    made = m.add("RELU", [m.x], (1, 8, 6, 4), IN, name="y")
    for key, value in change.items():
        setattr(m.file._tensors[made], key, value)
    return m, made


@every(
    ("change", "text"),
    [
        ({"type": 5}, "is of type STRING"),
        ({"type": 4}, "type int64"),
        ({"isVariable": True}, "is a variable"),
        ({"shape": np.array([1, 8, 6, 5], np.int32)}, "is declared as 1 x 8 x 6 x 5"),
        ({"shape": np.array([2**30, 2**30, 6, 5], np.int32)}, "has the shape"),
        ({"shape": np.array([1, -8, 6, 4], np.int32)}, "has the shape"),
        ({"buffer": 77}, "damaged"),
    ],
)
def test_refused_tensors(change, text, tmp_path):
    m, made = _refused(**change)
    (line,) = failure(m.write(tmp_path, made))
    assert text in line and "m.tflite" in line


def test_refused_graphs(tmp_path):
    """Two graphs, a custom operator, a buffer of another length, a file without graph."""
    m, made = _refused()
    litert, whole = m.schema, m.write(tmp_path, made)

    def changed(change, name: str) -> str:
        rewritten(whole, lambda schema, model: change(model), tmp_path / name)
        (line,) = failure(tmp_path / name)
        return line

    def custom(model):
        model.operatorCodes[0].builtinCode = model.operatorCodes[0].deprecatedBuiltinCode = 32
        model.operatorCodes[0].customCode = "MyOperator"

    assert "2 graphs" in changed(lambda model: model.subgraphs.append(model.subgraphs[0]), "two.tflite")
    assert "MyOperator" in (line := changed(custom, "custom.tflite")) and "the custom operator is not supported" in line
    assert "version 2" in changed(lambda model: setattr(model, "version", 2), "old.tflite")

    def short(model):
        buffer = litert.BufferT()
        buffer.data = np.zeros(5, np.uint8)
        model.buffers.append(buffer)
        model.subgraphs[0].tensors[0].buffer = len(model.buffers) - 1

    assert "5 bytes" in changed(short, "short.tflite")


def test_the_order_of_an_input_of_three_axes_is_said(tmp_path, capsys):
    for shape, said in (((1, 3, 40), True), ((1, 1, 40), False)):
        m = Small(shape)
        path = m.write(tmp_path, m.add("RELU", [m.x], shape, IN, name="y"))
        assert main([str(path), "-export", "CPP", "-o", str(tmp_path / str(said))]) == 0
        assert ("input 'x' of 3 x 40 has 3 channels of 40 values" in "".join(capsys.readouterr())) == said


def test_arrays_of_real_numbers_are_inputs_as_they_are(tmp_path):
    """The scale of the input says what a byte is; arrays of real numbers and of bytes give the same."""
    m, out = _network()
    path, bytes_ = m.write(tmp_path, out), np.random.default_rng(1).integers(0, 256, (3, 3, 8, 8)).astype(np.uint8)
    found = []
    for name, data in (("bytes", bytes_), ("reals", bytes_.astype(np.float32) / 255)):
        np.save(tmp_path / f"{name}.npy", data)
        folder = tmp_path / name
        assert main([str(path), "-export", "CPP", "-calib-data", str(tmp_path / f"{name}.npy"), "-o", str(folder)]) == 0
        found.append(np.load(next(folder.glob("export_*")) / "simulator" / "network.npz").files)
    assert found[0] == found[1]


def test_damaged_files_end_with_an_error(tmp_path):
    """Truncated, and with bytes and offsets changed: an import, or one numbered error; never anything else."""
    m, out = _network()
    whole = m.write(tmp_path, out).read_bytes()
    path, rng = tmp_path / "damaged.tflite", random.Random(1)
    refused = 0
    for number in range(400):
        data = bytearray(whole)
        if number % 4 == 0:
            data = data[: rng.randrange(len(data))]
        else:
            for _ in range(rng.choice((1, 1, 2, 8))):
                at = rng.randrange(len(data) - 4)
                data[at : at + rng.choice((1, 4))] = rng.choice((b"\0", b"\xff", b"\x80", rng.randbytes(1))) * rng.choice(
                    (1, 4)
                )
        path.write_bytes(data)
        try:
            import_onnx(load_model(path))
        except N2D2Error as error:
            assert all("\n" not in one.line() for one in error.errors)
            refused += 1
    assert refused > 100


def test_damaged_options_end_with_an_error(tmp_path):
    """Fields of options are read when their operator is translated: each byte of their tables is changed."""
    m, out = REALS["batch_matmul"]()
    path = m.write(tmp_path, out)
    whole, place = path.read_bytes(), read_tflite(path).operators[-1].options._at
    lines = []
    for at in range(place - 32, place + 12):
        path.write_bytes(whole[:at] + b"\x7f" + whole[at + 1 :])
        try:
            import_onnx(load_model(path))
        except N2D2Error as error:
            lines += [one.line() for one in error.errors]
    assert any(line.startswith("N2D2-E302") for line in lines)


def test_referee_keeps_the_file_s_tensors(tmp_path):
    """The referee compares tensors by their names: those of the file are there."""
    m, out = _network()
    assert {"conv", "pool", "dense", "probabilities"} <= set(Reference(m.write(tmp_path, out)).tensors)


def test_a_constant_without_elements(tmp_path):
    """It needs no buffer: the shape of a number by itself, which TensorFlow computes sizes with."""
    m = Small((1, 8, 6, 4), None)
    empty = m.tensor("empty", (0,), None, values=np.zeros(0, np.int32))
    output = m.add("RESHAPE", [m.x, empty], (1, 192), None)
    assert import_onnx(load_model(m.write(tmp_path, output))).shape("t2") == (1, 192)
