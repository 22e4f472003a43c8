"""Parts of ONNX files: as ONNX Runtime computes them on the part that the onnx package extracts."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from support.tables import every

import n2d2py
from n2d2py.cli import main
from n2d2py.errors import N2D2Error
from n2d2py.reference.executor import run_graph

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
    session = onnxruntime.InferenceSession(part.SerializeToString(), providers=["CPUExecutionProvider"])
    x = np.random.default_rng(2).normal(size=(2, *graph.shape(graph.inputs[0])[1:])).astype(np.float32)
    for mine, theirs in zip(run_graph(graph, {graph.inputs[0]: x}).values(), session.run(None, {inputs[0]: x}), strict=True):
        np.testing.assert_allclose(mine.reshape(theirs.shape), theirs, atol=1e-6)


REFUSED = {
    "unknown": ({"outputs": "keptt"}, "did you mean 'kept'"),
    "twice": ({"outputs": "y,y"}, "twice"),
    "no effect": ({"inputs": "flat", "outputs": "y"}, "no effect"),
    "unknown input": ({"inputs": "range"}, "not a tensor"),
}


@every(("ends", "text"), REFUSED.values(), ids=REFUSED)
def test_refused(path, ends, text):
    with pytest.raises(N2D2Error) as caught:
        n2d2py.load(path, options=n2d2py.LoadOptions(**ends))
    assert caught.value.code == "E305" and text in caught.value.line()


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
