"""The Python API: what it writes is what the command writes, what it gives shows itself, what is wrong is an N2D2Error."""

import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from support.e2e_run import needs_compiler
from support.errors import error_line, error_of, refused
from support.onnx_models import text_model
from support.programs import run_command

import n2d2py
from n2d2py import CalibrationOptions, ExportOptions, LoadOptions, ScoreOptions, log
from n2d2py.cli import main
from n2d2py.options import parse_arguments, run_options

ROOT = Path(__file__).resolve().parents[2]
LENET = ROOT / "models" / "LeNet.ini"
WEIGHTS = ROOT / "models" / "LeNet.npz"
SVG = "{http://www.w3.org/2000/svg}"
LOAD = LoadOptions(seed=1, weights=WEIGHTS)
COMMAND = [str(LENET), "-seed", "1", "-w", str(WEIGHTS), "-export", "CPP", "-quiet"]


def tree(folder: Path) -> dict[str, bytes]:
    """The files of a folder but for the command line, which a run of the Python interface has none of."""
    found = _files(folder)
    for name in [one for one in found if one.endswith("manifest.json")]:
        manifest = json.loads(found[name])
        manifest.pop("command", None)
        manifest["files"].pop("statistics/report.html")
        found[name] = json.dumps(manifest).encode()
    for name in [one for one in found if one.endswith("report.html")]:
        card = rb'<div class="card"><h3>Reproduce.*?</div>\s*'
        found[name] = re.sub(card, b"", found[name], flags=re.DOTALL)
    return found


def _files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def model(path: Path) -> Path:
    """A small ONNX file: a convolution and a vector of three scores, of inputs 2x6x6."""
    import onnx

    body = "c = Conv (x, w, b) r = Relu (c) f = Flatten (r) y = MatMul (f, v)"
    constants = {"w": (4, 2, 3, 3), "b": (4,), "v": (64, 3)}
    onnx.save(text_model("float[N,2,6,6] x => float[N,3] y", body, constants, seed=3), path)
    return path


def data(count: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    return rng.uniform(0, 1, (count, 2, 6, 6)).astype(np.float32), rng.integers(0, 3, count)


def test_the_steps_write_what_the_command_writes_for_an_ini(tmp_path):
    assert main([*COMMAND, "-calib", "20", "-db-export", "2", "-quality", "best", "-o", str(tmp_path / "command")]) == 0
    net = n2d2py.load(LENET, options=LOAD)
    cal = n2d2py.calibrate(net, options=CalibrationOptions(stimuli=20, quality="best"))
    result = n2d2py.export(n2d2py.quantize(net, cal), folder=tmp_path / "api", options=ExportOptions(stimuli=2))
    assert result.folder == tmp_path / "api" / "export_CPP_int8"
    assert tree(result.folder) == tree(tmp_path / "command" / "export_CPP_int8")


@pytest.mark.parametrize("bits", [8, -32])
def test_one_call_writes_what_the_command_writes_for_onnx(tmp_path, bits):
    path, (x, y) = model(tmp_path / "small.onnx"), data()
    np.savez(tmp_path / "data.npz", x=x, y=y)
    words = ["-calib-data", str(tmp_path / "data.npz")]
    assert main([str(path), "-export", "CPP", "-nbbits", str(bits), *words, "-o", str(tmp_path / "command"), "-quiet"]) == 0
    result = n2d2py.export(path, data=tmp_path / "data.npz", bits=bits, folder=tmp_path / "api")
    assert tree(result.folder) == tree(tmp_path / "command" / result.folder.name)


def test_without_a_number_128_stimuli_calibrate(tmp_path):
    path, (x, _) = model(tmp_path / "small.onnx"), data(150)
    net = n2d2py.load(path)
    assert n2d2py.calibrate(net, x).calibration.observed.statistics.stimuli == 128
    assert n2d2py.calibrate(net, x[:9]).calibration.observed.statistics.stimuli == 9
    assert n2d2py.calibrate(net, x, options=CalibrationOptions(stimuli=-1)).calibration.observed.statistics.stimuli == 150


def test_noise_calibrates_an_onnx_file_as_the_command_does(tmp_path):
    path = model(tmp_path / "small.onnx")
    assert main([str(path), "-export", "CPP", "-calib", "6", "-o", str(tmp_path / "command"), "-quiet"]) == 0
    result = n2d2py.export(path, folder=tmp_path / "api", calibration=CalibrationOptions(stimuli=6))
    assert [warning.code for warning in log.warnings_seen()] == ["W402"]
    assert tree(result.folder) == tree(tmp_path / "command" / "export_CPP_int8")


@pytest.mark.parametrize("bits", [8, 16])
def test_channels_are_equalized_for_8_bits_only(bits, tmp_path):
    path = model(tmp_path / "small.onnx")
    options = run_options(parse_arguments([str(path), "-export", "CPP", "-nbbits", str(bits)]))
    assert options.calibration.equalize == (bits == 8)
    layers = run_options(parse_arguments([str(path), "-export", "CPP", "-nbbits", str(bits), "-act-rescale-per-output", "0"]))
    assert layers.calibration.equalize  # that is of weights
    result = n2d2py.export(path, folder=tmp_path, calibration=CalibrationOptions(stimuli=6), bits=bits)
    assert result.model.options.calibration.equalize == (bits == 8)


def test_arrays_and_labels_are_scored(tmp_path):
    path, (x, y) = model(tmp_path / "small.onnx"), data(40)
    net = n2d2py.load(path)
    real = n2d2py.score(net, x, y)
    q = n2d2py.quantize(net, n2d2py.calibrate(net, x))
    both = n2d2py.score(q, x, y)
    assert real.float.top1 == both.float.top1 and real.simulated is None
    assert both.simulated.stimuli == 40 and abs(both.simulated.top1 - both.float.top1) <= 10
    best = both.float.best[:, 0]
    assert n2d2py.score(net, x, best).float.top1 == 100.0
    first = n2d2py.score(net, {"x": x, "y": best}, options=ScoreOptions(stimuli=4))
    assert first.float.stimuli == 4 and first.float.top1 == 100.0


@needs_compiler
def test_an_export_gives_scores_paths_and_memory_and_is_compared(tmp_path):
    path, (x, y) = model(tmp_path / "small.onnx"), data()
    result = n2d2py.export(path, data=x, labels=y, folder=tmp_path)
    assert result.report.is_file() and (result.folder / "Makefile").is_file()
    assert result.scores.compiled.top1 == result.scores.simulated.top1
    assert 0 < result.memory.bound <= min(result.memory.arena, result.memory.tensors)
    comparison = n2d2py.compare(result, -1)
    assert comparison.identical and len(comparison.layers) == 2
    comparison.check()
    assert "identical to Python's" in repr(comparison)
    assert "y.Target" in repr(result.scores) and "compiled" in result._repr_html_()


def test_networks_show_their_layers(tmp_path):
    net = n2d2py.load(model(tmp_path / "small.onnx"))
    lines = repr(net).splitlines()
    assert lines[0].startswith("small: ") and "inputs x 2x6x6" in lines[0]
    assert lines[1].split() == ["layer", "operator", "output", "type", "parameters", "MACs"]
    conv = next(line.split() for line in lines if " Conv " in line)
    assert conv[1:] == ["Conv", "4x4x4", "float32", "76", "1,152"]
    html = net._repr_html_()
    assert html.count("<tr>") == len(lines) - 2 and "<td>1,152</td>" in html
    cal = n2d2py.calibrate(net, data()[0])
    assert " 12 " in repr(cal).splitlines()[0]
    q = n2d2py.quantize(net, cal)
    assert "int8" in repr(q).splitlines()[0] and " uint8 " in repr(q)


def test_a_long_table_shows_both_ends():
    body = "".join(f"y{k} = Sin({f'y{k - 1}' if k else 'x'}) " for k in range(100))
    net = n2d2py.load(text_model("float[1,4] x => float[1,4] y99", body))
    shown = repr(net)
    assert "y0 " in shown and "y99 " in shown and "y50" not in shown and shown.count("\n") < 50
    assert "y99" in net._repr_html_() and "y50" not in net._repr_html_()


def test_labels_that_do_not_fit_are_refused(tmp_path):
    net, (x, y) = n2d2py.load(model(tmp_path / "small.onnx")), data()
    for labels in (y[:5], 3, y + 0.5):
        assert error_of(n2d2py.score, net, x, labels).code in ("E410", "E414")


def test_nothing_is_printed_but_warnings(tmp_path, capfd):
    n2d2py.export(model(tmp_path / "small.onnx"), data=data()[0], folder=tmp_path)
    assert capfd.readouterr() == ("", "")


@pytest.fixture(scope="module")
def net():
    return n2d2py.load(ROOT / "models" / "LeNet.ini", options=LoadOptions(weights=ROOT / "models" / "LeNet.npz"))


@pytest.fixture(scope="module")
def quantized(net):
    return n2d2py.quantize(net, n2d2py.calibrate(net, options=CalibrationOptions(stimuli=20, quality="fast")))


def test_values_of_layers_are_those_of_the_network(net, quantized):
    found = quantized.layers(3)
    assert next(iter(found)) == "sp" and list(found)[-1] == "softmax" and len(found) == len(quantized.graph.nodes) + 1
    picture = next(iter(net.network.data.sets["Test"].batches(4)))[0][3]
    np.testing.assert_array_equal(found["sp"].float, picture)
    again = quantized.layers(picture)
    for name, one in found.items():
        assert one.integer is not None and one.type is not None and one.dequantized is not None
        assert one.integer.shape == one.float.shape and one.integer.dtype == one.type.dtype
        np.testing.assert_array_equal(again[name].integer, one.integer)
        np.testing.assert_allclose(one.dequantized, one.integer * one.type.scale, rtol=1e-6)
        # 20 stimuli calibrate: integers follow the float values closely
        assert np.corrcoef(one.dequantized.ravel(), one.float.ravel())[0, 1] > 0.99
    assert found["fc2"].float.argmax() == 3 == found["fc2"].integer.argmax()
    real = net.layers(3)
    assert real["fc2"].integer is None and real["fc2"].dequantized is None
    np.testing.assert_allclose(real["fc2"].float, found["fc2"].float, rtol=1e-3, atol=1e-4)
    assert "uint8" in repr(found) and "<td>fc2</td>" in found._repr_html_()


def test_the_simulator_of_the_export_gives_the_same_integers(quantized, tmp_path):
    exported = n2d2py.export(quantized, folder=tmp_path)
    simulated = n2d2py.load_simulator(exported.folder)
    for name, values in simulated.layers(quantized.layers(3)["sp"].float[None]).items():
        np.testing.assert_array_equal(np.asarray(values)[0].ravel(), quantized.layers(3)[name].integer.ravel())
    drawn = exported.plot_memory()
    assert drawn == (exported.folder / "statistics" / "memory" / "memory_mapping.svg").read_text().rstrip()
    assert drawn._repr_svg_().startswith("<svg ") and "characters" in repr(drawn)


@pytest.mark.parametrize("stimulus, message", [(9999, "E513: .*9999"), (-1, "E513"), (np.zeros(3), r"E414: .*\(3,\).*1x32x32")])
def test_a_stimulus_that_there_is_not(quantized, stimulus, message):
    assert refused(message, quantized.layers, stimulus)


def test_the_error_of_every_layer_without_a_build(quantized):
    found = n2d2py.compare(quantized, 4)
    assert [one.layer for one in found.layers] == [node.name for node in quantized.graph.nodes]
    assert not found.identical and "compiled values were not compared" in found.summary
    weakest = min(found.layers, key=lambda one: one.sqnr_db)
    assert f"the weakest is {weakest.layer}" in found.summary
    drawn = ElementTree.fromstring(found.plot())
    titles = [bar.findtext(f"{SVG}title") for bar in drawn.iter(f"{SVG}rect") if bar.get("class", "").startswith("bars")]
    assert [title.split(" dB")[0] for title in titles] == [f"{one.layer}: {one.sqnr_db:.2f}" for one in found.layers]
    assert [text.text for text in drawn.iter(f"{SVG}text")][-len(titles) :] == [one.layer for one in found.layers]
    assert "<td>not compared</td>" in found._repr_html_()


def test_histograms_show_the_range_of_the_integers(net, quantized):
    drawn = ElementTree.fromstring(quantized.plot_histograms(["conv1", "fc1"], columns=2))
    for plot, name in zip(drawn.iter(f"{SVG}svg"), (None, "conv1", "fc1"), strict=True):
        if name is None:
            continue
        texts = [text.text for text in plot.iter(f"{SVG}text")]
        kind = quantized.layers(0)[name].type
        reach = kind.scale * max(kind.qmax - kind.zero_point, kind.zero_point - kind.qmin)
        assert name in texts and f"threshold {reach:.6g}" in texts
    assert quantized.plot_histograms().count("<svg ") > 6
    assert "E516" in error_line(quantized.plot_histograms, ["conv9"])
    assert "E516" in error_line(lambda: n2d2py.quantize(net, bits=-32).plot_histograms())


def test_the_confusion_of_a_score(quantized):
    scores = n2d2py.score(quantized, options=ScoreOptions(stimuli=30))
    assert f"{scores.float.correct} of 30 right: {scores.float.top1:.2f}%" in scores.plot_confusion("float")
    assert "E509" in error_line(lambda: type(scores)({}).plot_confusion())


def test_bars_are_drawn_where_they_are_asked_for(capsys):
    options = LoadOptions(weights=ROOT / "models" / "LeNet.npz")
    for progress in (False, True):
        net = n2d2py.load(ROOT / "models" / "LeNet.ini", options=options, progress=progress)
        n2d2py.calibrate(net, options=CalibrationOptions(stimuli=4, quality="fast"))
        assert ("calibrating" in capsys.readouterr().err) == progress


_HEAVY = """
import sys
import n2d2py
from n2d2py.cli import main
sys.argv = ["n2d2py", "-h"]
assert main() == 0
import n2d2py.api
assert "onnxruntime" not in sys.modules
net = n2d2py.load(MODEL, options=n2d2py.LoadOptions(weights="/dev/null", ignore_missing=True))
print(net)
q = n2d2py.quantize(net, bits=-32)
assert "onnxruntime" not in sys.modules
n2d2py.export(q, folder=FOLDER, options=n2d2py.ExportOptions(stimuli=0))
assert "onnxruntime" not in sys.modules
"""


def test_heavy_packages_are_imported_when_they_are_used(tmp_path):
    """A network that is not calibrated needs no reference; nor does its export."""
    code = f"MODEL = {str(ROOT / 'models' / 'LeNet.ini')!r}\nFOLDER = {str(tmp_path)!r}\n{_HEAVY}"
    run_command(sys.executable, "-c", code, cwd=ROOT)
