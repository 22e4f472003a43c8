"""What results show in a notebook: figures, tables, values of layers, progress; heavy packages are imported when used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import n2d2py
from n2d2py import CalibrationOptions, LoadOptions, N2D2Error, ScoreOptions

ROOT = Path(__file__).resolve().parents[2]


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
    (axes,) = drawn.axes
    assert axes.get_ylim() == (0, exported.memory.arena)
    assert len(axes.patches) >= len(quantized.graph.nodes)
    assert drawn._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize("stimulus, message", [(9999, "E513: .*9999"), (-1, "E513"), (np.zeros(3), r"E414: .*\(3,\).*1x32x32")])
def test_a_stimulus_that_there_is_not(quantized, stimulus, message):
    with pytest.raises(N2D2Error, match=message):
        quantized.layers(stimulus)


def test_the_error_of_every_layer_without_a_build(quantized):
    found = n2d2py.compare(quantized, 4)
    assert [one.layer for one in found.layers] == [node.name for node in quantized.graph.nodes]
    assert not found.identical and "compiled values were not compared" in found.summary
    weakest = min(found.layers, key=lambda one: one.sqnr_db)
    assert f"the weakest is {weakest.layer}" in found.summary
    (axes,) = found.plot().axes
    heights = [bar.get_height() for bar in axes.patches]
    assert heights == [max(one.sqnr_db, 0.0) for one in found.layers]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == [one.layer for one in found.layers]
    assert "<td>not compared</td>" in found._repr_html_()


def test_histograms_show_the_range_of_the_integers(net, quantized):
    figure = quantized.plot_histograms(["conv1", "fc1"], columns=2)
    assert len(figure.axes) == 2
    for axes, name in zip(figure.axes, ("conv1", "fc1"), strict=True):
        assert axes.get_title().startswith(name)
        kind = quantized.layers(0)[name].type
        reach = kind.scale * max(kind.qmax - kind.zero_point, kind.zero_point - kind.qmin)
        assert max(line.get_xdata()[0] for line in axes.lines) == pytest.approx(reach, rel=1e-6)
    assert len(quantized.plot_histograms().axes) > 5
    with pytest.raises(N2D2Error, match="E516"):
        quantized.plot_histograms(["conv9"])
    with pytest.raises(N2D2Error, match="E516: the network was not calibrated"):
        n2d2py.quantize(net, bits=-32).plot_histograms()


def test_the_confusion_of_a_score(quantized):
    scores = n2d2py.score(quantized, options=ScoreOptions(stimuli=30))
    axes = scores.plot_confusion("float").axes[0]
    assert axes.get_title() == f"{scores.float.correct} of 30 right: {scores.float.top1:.2f}%"
    with pytest.raises(N2D2Error, match="E509"):
        type(scores)({}).plot_confusion()


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
assert not {"matplotlib", "onnxruntime"} & set(sys.modules), sorted({"matplotlib", "onnxruntime"} & set(sys.modules))
net = n2d2py.load(MODEL, options=n2d2py.LoadOptions(weights="/dev/null", ignore_missing=True))
print(net)
q = n2d2py.quantize(net, bits=-32)
assert not {"matplotlib", "onnxruntime"} & set(sys.modules), sorted({"matplotlib", "onnxruntime"} & set(sys.modules))
n2d2py.export(q, folder=FOLDER, options=n2d2py.ExportOptions(stimuli=0))
assert "onnxruntime" not in sys.modules
"""


def test_heavy_packages_are_imported_when_they_are_used(tmp_path):
    """A network that is not calibrated needs no reference; the memory map of an export is the first picture."""
    code = f"MODEL = {str(ROOT / 'models' / 'LeNet.ini')!r}\nFOLDER = {str(tmp_path)!r}\n{_HEAVY}"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
