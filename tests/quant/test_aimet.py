"""AIMET's encodings beside an ONNX file: what AIMET and ONNX Runtime compute with them, formats, refusals.

The vectors are written by make_aimet_vectors.py.
"""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.e2e_run import needs_compiler
from support.errors import error_line
from support.onnx_models import text_model
from support.tables import every

from n2d2py import cli
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.errors import N2D2Error
from n2d2py.frontend.models import load_model
from n2d2py.frontend.onnx.encodings import read_encodings
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.frontend.onnx.model import ImportOptions
from n2d2py.passes import fuse
from n2d2py.quant.prequantized import quantize_prequantized
from n2d2py.quant.simulator import quantize_inputs, simulate

DATA = Path(__file__).parent / "aimet"
NETWORK = DATA / "net.onnx"


def typed(encodings: Path):
    graph, _ = fuse(import_onnx(load_model(NETWORK, ImportOptions(encodings=encodings))), integer=True)
    return quantize_prequantized(graph, QuantOptions(unsigned=True))[0]


def difference(graph, x: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """In steps of the output."""
    (name,) = graph.outputs
    kind = graph.type(name)
    found = kind.dequantize(simulate(graph, quantize_inputs(graph, [x]))[name]).reshape(wanted.shape)
    return np.rint(np.abs(found - wanted) / float(np.max(kind.scale)))


@every(
    "bits, version, reference",
    [("w8a8", version, "simulated") for version in ("0.6.1", "1.0.0")]
    + [("w4a16", version, "simulated") for version in ("0.6.1", "1.0.0")]
    + [(bits, "2.0.0", "qdq") for bits in ("w8a8", "w4a16")],
)
def test_integers_are_those_of_aimet(bits, version, reference):
    """Real biases in AIMET's simulation, int32 ones in its export; float32 sums in another order may round a tie otherwise."""
    vectors = np.load(DATA / f"{bits}.npz")
    graph = typed(DATA / f"{bits}_{version}.encodings")
    steps = difference(graph, vectors["x"], vectors[reference])
    assert (steps == 0).mean() >= 0.95 and steps.max() <= 1, steps
    weighted = [node for node in graph.nodes if "weights" in node.params]
    top = {"w8a8": 127, "w4a16": 7}[bits]
    assert len(weighted) == 5 and all(abs(node.params["weights"]).max() in (top, top + 1) for node in weighted)


def test_all_formats_say_the_same():
    for bits in ("w8a8", "w4a16"):
        oldest, older, newest = (
            read_encodings(DATA / f"{bits}_{version}.encodings") for version in ("0.6.1", "1.0.0", "2.0.0")
        )
        assert set(oldest) == set(older) <= set(newest) and len(older) >= 12
        for name, encoding in older.items():
            for other in (oldest[name], newest[name]):
                assert (other.bits, other.signed) == (encoding.bits, encoding.signed)
                np.testing.assert_allclose(other.scale, encoding.scale, rtol=1e-6)
                np.testing.assert_array_equal(other.zero, encoding.zero)


@pytest.mark.compiles
@needs_compiler
def test_the_command_line_exports_them(tmp_path, capsys):
    vectors = np.load(DATA / "w8a8.npz")
    np.savez(tmp_path / "data.npz", x=vectors["x"], y=vectors["simulated"].argmax(1))
    words = [str(NETWORK), "-encodings", str(DATA / "w8a8_1.0.0.encodings"), "-calib-data", str(tmp_path / "data.npz")]
    assert cli.main([*words, "-export", "CPP", "-test", "-compare", "-o", str(tmp_path / "out")]) == 0
    seen = capsys.readouterr().out
    assert "Final recognition rate: 100.00%" in seen and "identical" in seen
    ini = tmp_path / "net.ini"
    ini.write_text(
        f"[sp]\nSize=8 8\nNbChannels=2\n[onnx]\nInput=sp\nType=ONNX\nFile={NETWORK}\n"
        f"Encodings={DATA / 'w8a8_1.0.0.encodings'}\n[onnx:classes.Target-x]\n"
    )
    assert cli.main([str(ini), "-describe"]) == 0
    shutil.rmtree(tmp_path / "out")


def _with(tmp_path, change) -> Path:
    data = json.loads((DATA / "w8a8_1.0.0.encodings").read_text())
    change(data)
    path = tmp_path / "changed.encodings"
    path.write_text(json.dumps(data))
    return path


def _entry(data, name):
    return next(each for each in (*data["activation_encodings"], *data["param_encodings"]) if each["name"] == name)


@every(
    "change, message",
    [
        (lambda d: d.pop("version"), "it has no version"),
        (lambda d: _entry(d, "a.weight").update(enc_type="PER_BLOCK"), "blocks of weights are not supported"),
        (lambda d: _entry(d, "a.weight").update(bw=64), "it has 64 bits"),
        (lambda d: _entry(d, "a.weight").update(scale=[0.0] * 6), "E315"),
        (
            lambda d: _entry(d, "a.weight").update(scale=[0.1] * 5, offset=[-128] * 5),
            "has 5 channels, which do not fit the tensor (6x2x3x3)",
        ),
        (
            lambda d: _entry(d, "image").update(scale=[0.1] * 2, offset=[-128] * 2),
            "has 2 channels, which do not fit the tensor (an input of the model)",
        ),
        (
            lambda d: _entry(d, "/Relu_output_0").update(scale=[0.1] * 2, offset=[0] * 2),
            "has 2 channels, which do not fit the tensor (the result of a layer)",
        ),
        (lambda d: _entry(d, "image").update(offset=[-300]), "E315"),
        (lambda d: _entry(d, "image").pop("scale"), "it is not as AIMET writes it"),
        (lambda d: d.update(param_encodings=3), "neither a table nor a list"),
        (
            lambda d: [each.update(name="other") for each in (*d["activation_encodings"], *d["param_encodings"])],
            "none of its tensors",
        ),
    ],
)
def test_what_cannot_be_used(change, message, tmp_path):
    path = _with(tmp_path, change)
    line = error_line(load_model, NETWORK, ImportOptions(encodings=path))
    assert "E315" in line and message in line and str(path) in line


def _linear(tmp_path, axis: int) -> Path:
    """The newest encodings with another axis of the channels of a weight."""
    data = json.loads((DATA / "w8a8_2.0.0.encodings").read_text())
    next(each for each in data["encodings"] if each["name"] == "a.weight")["axis"] = axis
    path = tmp_path / f"axis{axis}.encodings"
    path.write_text(json.dumps(data))
    return path


def test_an_axis_counts_from_either_end(tmp_path):
    first, last = (import_onnx(load_model(NETWORK, ImportOptions(encodings=_linear(tmp_path, axis)))) for axis in (0, -4))
    for one, other in zip(first.nodes, last.nodes, strict=True):
        assert one.op == other.op and set(one.params) == set(other.params)
        assert all(np.array_equal(array, other.params[role]) for role, array in one.params.items())


@every("axis", [1, -1, 4, -5])
def test_an_axis_of_other_channels_is_refused(axis, tmp_path):
    with pytest.raises(N2D2Error, match="E315.*has 6 channels, which do not fit the tensor"):
        load_model(NETWORK, ImportOptions(encodings=_linear(tmp_path, axis)))


def test_files_that_are_no_encodings(tmp_path):
    (tmp_path / "text").write_text("{")
    (tmp_path / "deep").write_text("[" * 100_000)
    for name, message in (("text", "not JSON"), ("deep", "not JSON"), ("absent", "cannot be read")):
        assert message in error_line(read_encodings, tmp_path / name)


def test_a_tensor_that_the_model_does_not_have_is_a_warning(tmp_path, capsys):
    path = _with(tmp_path, lambda data: _entry(data, "image").update(name="picture"))
    cli.main([str(NETWORK), "-encodings", str(path), "-describe"])
    assert re.search(r"W306.* 1 of \d+ encodings .*: picture;", capsys.readouterr().err)


@every("layer, axis", [("Gemm", 1), ("MatMul", 1), ("ConvTranspose", 1), ("Conv", 0)])
def test_channels_lie_where_the_layer_has_them(layer, axis, tmp_path):
    """Files before 2.0.0 do not say along which axis the channels are."""
    shape = {"Gemm": (4, 4), "MatMul": (4, 4), "ConvTranspose": (4, 4, 2, 2), "Conv": (4, 4, 2, 2)}[layer]
    weights = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    inputs = (1, 4) if len(shape) == 2 else (1, 4, 5, 5)
    given = ",".join(map(str, inputs))
    onnx.save(text_model(f"float[{given}] x => float y", f"y = {layer} (x, w)", {"w": weights}), tmp_path / "net.onnx")
    scale = [0.01, 0.02, 0.04, 0.08]
    entries = [
        {"name": "w", "bw": 8, "dtype": "INT", "enc_type": "PER_CHANNEL", "is_sym": True, "scale": scale, "offset": [-128] * 4}
    ]
    entries += [{"name": "x", "bw": 8, "dtype": "INT", "scale": [0.1], "offset": [-128]}]
    (tmp_path / "net.encodings").write_text(
        json.dumps({"version": "1.0.0", "activation_encodings": entries[1:], "param_encodings": entries[:1]})
    )
    model = load_model(tmp_path / "net.onnx", ImportOptions(encodings=tmp_path / "net.encodings"))
    (quantizer,) = [each for each in model.proto.graph.node if each.op_type == "Quant" and each.input[0] == "w"]
    assert model.constants[quantizer.input[1]].shape == tuple(4 if each == axis else 1 for each in range(len(shape)))
    assert [each.version for each in model.proto.opset_import if each.domain == quantizer.domain] == [1]
