"""What is written, and what is refused before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.export_networks import chain, random_inputs, request, separate_plan, write_export

from n2d2py.errors import ErrorList, InternalError, N2D2Error
from n2d2py.exports import ExportRequest, ScoredOutput, StoredStimuli, find_target
from n2d2py.graph import QuantGraph
from n2d2py.memory.problem import MemoryProblem
from n2d2py.operators.base import Op


def test_nothing_is_left_out_of_the_manifest_and_nothing_outside_is_needed(tmp_path):
    write_export(tmp_path / "out", request(chain(True)))
    files = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert set(manifest["files"]) == files - {"manifest.json"}
    assert {
        *"Makefile CMakeLists.txt README.md main.cpp include/network.hpp include/Digits_1.h run/score.hpp".split(),
        *"dnn/include/env.hpp dnn/include/mem_info.hpp dnn/include/forward.hpp dnn/src/forward.cpp".split(),
        *"dnn/parameters/fc.cpp stimuli.list stimuli.link simulator/network.npz".split(),
        *"kernels/n2d2/convolution.hpp".split(),
    } <= files
    assert "kernels/n2d2/softmax.hpp" not in files and "kernels/n2d2/depthwise.hpp" not in files
    for path in files:
        data = (tmp_path / "out" / path).read_bytes()
        assert str(tmp_path).encode() not in data
        assert b"\r\n" not in data or path.startswith(("stimuli/", "simulator/"))


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from support.export_networks import request, residual, write_export
write_export(Path(sys.argv[1]), request(residual(True), options={"nbbits": 8}, hashes={"net": "0"}))
"""


def test_two_processes_write_the_same_bytes(tmp_path):
    here = Path(__file__)
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", SCRIPT, tmp_path / seed / "out", here.parents[1]],
            check=True,
            cwd=here.parents[2],
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
    trees = [
        {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (tmp_path / "1", tmp_path / "2")
    ]
    assert trees[0] == trees[1] and len(trees[0]) > 40


def request_of(graph: QuantGraph, **fields) -> ExportRequest:
    return ExportRequest(graph, **{"plan": separate_plan(graph), "problem": MemoryProblem({}, (), (), ()), **fields})


def test_every_layer_that_cannot_be_exported_is_listed():
    class Unknown(Op):
        kind = "Unknown"

    graph = chain(True)
    graph.nodes[0].op = Unknown()
    graph.nodes[2].op = Unknown()
    with pytest.raises(ErrorList) as caught:
        find_target("CPP").prepare(request_of(graph)).check()
    assert [error.code for error in caught.value.errors] == ["E701", "E701"]
    assert "conv/1" in str(caught.value.errors[0]) and "fc" in str(caught.value.errors[1])


def test_requests_that_make_no_sense_are_refused():
    cpp = find_target("CPP")
    with pytest.raises(N2D2Error, match="E704: .*no layer"):
        cpp.prepare(request_of(QuantGraph("empty", 8))).check()
    with pytest.raises(N2D2Error, match="E705: Namespace=a b .*a_b"):
        cpp.prepare(request_of(chain(True), parameters={"Namespace": "a b"})).check()
    with pytest.raises(N2D2Error, match="E705: WeightsFormat=x .*auto, text, string, binary"):
        cpp.prepare(request_of(chain(True), parameters={"WeightsFormat": "x"})).check()
    with pytest.raises(InternalError, match="without a memory plan"):
        cpp.prepare(ExportRequest(chain(True))).check()
    graph = chain(True)
    inputs = tuple(random_inputs(graph, 2))
    with pytest.raises(InternalError, match="1 arrays of labels for 0 targets"):
        cpp.prepare(request_of(graph, stimuli=StoredStimuli(inputs, (np.zeros(2, np.int32),)))).check()
    with pytest.raises(InternalError, match="4 labels of a stimulus"):
        cpp.prepare(
            request_of(graph, stimuli=StoredStimuli(inputs, (np.zeros((2, 4), np.int32),)), targets=(ScoredOutput("fc"),))
        ).check()
