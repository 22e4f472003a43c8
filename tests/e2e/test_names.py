"""Layers of any names: exported, drawn, read back; compiled, they compute Python's integers."""

from __future__ import annotations

import shutil
import xml.dom.minidom

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

from n2d2py.cli import main
from n2d2py.frontend.ini.weights import WeightStore

NAMES = (
    *(" a", "$$(id)", "$x^{2$", "..", "a/b", "a_b", "con", "a\nb", 'quote"', "it's", "back\\slash", "100%s%n", "#:$"),
    *("<b>&amp;</b>", "]]>", "*/", "????", "\x01\x7f", "é", "e\u0301", "日本", "\U0001f600", "int", "n2d2", "0", "A", "a"),
    *("x" * 300, "x" * 299 + "y", "é" * 200, "y" * 1000),
)


@pytest.fixture
def network(tmp_path):
    random = np.random.default_rng(1)
    nodes, constants, last = [], [], 'in"put\n$x$/..'
    inputs = [helper.make_tensor_value_info(last, TensorProto.FLOAT, [1, 4])]
    for index, name in enumerate(NAMES):
        constants.append(numpy_helper.from_array(random.normal(size=(4, 4)).astype(np.float32), f"w{index}"))
        nodes.append(helper.make_node("Gemm", [last, f"w{index}"], [name]))
        last = name
    outputs = [helper.make_tensor_value_info(last, TensorProto.FLOAT, [1, 4])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), tmp_path / "net.onnx")
    return tmp_path


def test_export(network, monkeypatch):
    monkeypatch.chdir(network)
    assert main(["net.onnx", "-export", "CPP", "-calib", "2", "-quiet", "-o", "o"]) == 0
    pictures = list((network / "o").rglob("*.svg"))
    assert len(pictures) > len(NAMES)
    for picture in pictures:
        xml.dom.minidom.parse(str(picture))
    folder = network / "o" / "export_CPP_int8" / "weights_export"
    assert len(list(folder.glob("*_weights.syntxt"))) == len(NAMES)
    store = WeightStore(folder)
    found = {store._find(name, "weights")[1] for name in NAMES}
    assert len(found) == len(NAMES)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_compiled(network, monkeypatch, capsys):
    monkeypatch.chdir(network)
    words = ["-export", "CPP", "-calib", "2", "-test", "-compare", "1", "-log-outputs", "1", "-quiet", "-o", "o"]
    assert main(["net.onnx", *words]) == 0
    assert f"{len(NAMES)} layers: compiled values identical" in capsys.readouterr().out
    assert len(list((network / "o").rglob("outputs_export_1/*.dat"))) == len(NAMES) + 1


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
@pytest.mark.parametrize("name", ["div", "y1", "index", "size_t", "log2f", "net_t", "features"])
def test_networks_called_like_the_library(network, monkeypatch, capsys, name):
    monkeypatch.chdir(network)
    (network / "net.onnx").rename(network / f"{name}.onnx")
    assert main([f"{name}.onnx", "-export", "CPP", "-calib", "2", "-compare", "1", "-quiet", "-o", "o"]) == 0
    assert f"{len(NAMES)} layers: compiled values identical" in capsys.readouterr().out


def test_whole_numbers_divided_by_zero(tmp_path, monkeypatch):
    """Calibrated on whatever the stimuli are."""
    monkeypatch.chdir(tmp_path)
    for operator in ("Div", "Mod"):
        text = (
            f'<ir_version: 8, opset_import: ["" : 18]> g (int16[3] x, int16[3] y) => (int16[3] z) {{ z = {operator} (x, y) }}'
        )
        onnx.save(onnx.parser.parse_model(text), tmp_path / "net.onnx")
        assert main(["net.onnx", "-export", "CPP", "-calib", "2", "-quiet", "-o", operator]) == 0
