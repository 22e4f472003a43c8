"""NonMaxSuppression against ONNX Runtime, whose rows are the first ones of ours."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser
from support.errors import error_line
from support.onnx_models import original_engine

import n2d2py
from n2d2py.reference.engine import FloatEngine
from n2d2py.reference.executor import run_graph


def saved(folder: Path, inputs: str, body: str, numbers: str, output: str = "int64[rows,3] y") -> Path:
    """An ONNX file."""
    path = folder / "boxes.onnx"
    text = f"<ir_version: 8, opset_import: ['' : 13]> g ({inputs}) => ({output}) <{numbers}> {{ {body} }}"
    onnx.save(parser.parse_model(text.replace("'", '"')), path)
    return path


@pytest.mark.parametrize("seed", range(24))
def test_rows_are_those_of_onnx_runtime(seed, tmp_path):
    rng = np.random.default_rng(seed)
    classes, count, centered = int(rng.integers(1, 4)), int(rng.integers(1, 40)), seed % 2
    most, overlap = int(rng.choice([1, 3, 2**40])), float(rng.choice([0, 0.25, 0.5, 1]))
    numbers = f"int64 most = {{{most}}}, float overlap = {{{overlap}}}"
    third = ""
    if seed % 3:
        third, numbers = ", least", f"{numbers}, float least = {{{rng.choice([0, 0.5])}}}"
    path = saved(
        tmp_path,
        f"float[1,{count},4] b, float[1,{classes},{count}] s",
        f"y = NonMaxSuppression <center_point_box = {centered}> (b, s, most, overlap{third})",
        numbers,
    )
    boxes = rng.uniform(0, 1, (1, count, 4)).astype(np.float32)
    scores = rng.uniform(0, 1, (1, classes, count)).astype(np.float32)
    if seed % 4 == 0:  # equal scores, limits that are met exactly
        boxes, scores = np.round(boxes * 4) / 4, np.round(scores * 4) / 4
    wanted = original_engine(path).run({"b": boxes, "s": scores})["y"]
    net = n2d2py.load(path)
    found = np.asarray(net(boxes, scores)).reshape(-1, 3)
    assert (found[: len(wanted)] == wanted).all() and (found[len(wanted) :] == -1).all()

    given = {"b": boxes, "s": scores}
    stimuli = {name: np.concatenate([given[name[0]].reshape(net.graph.shape(name))] * 2) for name in net.graph.inputs}
    stimuli[net.graph.inputs[1]][1] *= 0.5  # another sample
    (output,) = net.graph.outputs
    engine = FloatEngine(net.graph)
    assert engine.backend == "onnxruntime"
    assert (engine.run(stimuli)[output] == run_graph(net.graph, stimuli)[output]).all()


@pytest.mark.parametrize(
    ("inputs", "numbers", "reason"),
    [
        ("float[1,5,4] b, float[1,2,6] s", "int64 most = {3}", "do not match"),
        ("float[1,5,4] b, float[1,2,5] s", "int64 most = {0}", "keeps no box"),
        ("float[1,5,4] b, float[1,2,5] s, int64 most", "", "not constant"),
    ],
)
def test_what_cannot_be_known_is_refused(inputs, numbers, reason, tmp_path):
    path = saved(tmp_path, inputs, "y = NonMaxSuppression (b, s, most)", numbers)
    assert reason in error_line(n2d2py.load, path)
