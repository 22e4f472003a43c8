"""Nodes of operators, sections of an INI, networks of several layers and .tflite files, from the file to the C++ layers.

The real values are those of ONNX Runtime and NumPy before and after the rewrites; the integers are finite and follow the real values;
each memory plan passes the checker, and the CPP target takes the network.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.chain_networks import Case, ini_cases, line_cases, node_cases, real_cases, text_cases, tflite_cases
from support.tables import run_rows

from n2d2py.contracts.reference import NoOnnxForm
from n2d2py.errors import N2D2Error
from n2d2py.exports import find_target
from n2d2py.graph import Graph
from n2d2py.operators.quantize import is_quantized
from n2d2py.options import read_command
from n2d2py.pipeline import load_network
from n2d2py.quant.simulator import simulate
from n2d2py.reference.engine import FloatEngine
from n2d2py.reference.executor import run_graph
from n2d2py.stages.calibrate import calibrate_stage
from n2d2py.stages.export import export_request, exported_stimuli, stored_stimuli
from n2d2py.stages.fuse import fuse_stage
from n2d2py.stages.memory import plan_stage
from n2d2py.stages.quantize import QuantizedNetwork, quantize_stage

CASES: dict[str, Case] = {
    **{f"node, {name}": case for name, case in node_cases()},
    **{f"section, {name}": case for name, case in ini_cases()},
    **{f"network, {name}": case for cases in (text_cases(), line_cases(), real_cases()) for name, case in cases},
    **{f"file, {name}": case for name, case in tflite_cases()},
}
FLOOR_DB = 5.0
"""Signal to error of the integers, at least, with eight bits and more; small drawn layers have some 30 dB."""


PARTS = 8


@pytest.mark.parametrize("part", [0, 1, *(pytest.param(part, marks=pytest.mark.slow) for part in range(2, PARTS))])
def test_chains(part, tmp_path, monkeypatch):
    rows = [(name, {"name": name}) for name in list(CASES)[part::PARTS]]
    left_out: list[str] = []
    run_rows(chain, rows, {"tmp_path": tmp_path, "monkeypatch": monkeypatch, "left_out": left_out})
    assert 5 * len(left_out) < len(rows), left_out


def chain(name, tmp_path, monkeypatch, left_out):
    monkeypatch.chdir(tmp_path)
    case = CASES[name]
    file = case.make(tmp_path)
    if file is None:
        left_out.append(name)
        return
    path, options = read_command([str(file), *case.words, "-o", str(tmp_path)])
    try:
        network = load_network(path, options)
    except N2D2Error:  # a section that is wrong on purpose
        assert name.startswith("section, ")
        return
    fused, report = fuse_stage(network, integer=options.quantization.integer)
    stimuli = {one: _stimuli(fused.graph, one) for one in fused.graph.inputs}
    wanted = run_graph(network.graph, stimuli)
    if not is_quantized(network.graph) and "drop-softmax" not in report.counts:
        _compare(wanted, run_graph(fused.graph, stimuli))
        for graph in (network.graph, fused.graph):
            with contextlib.suppress(NoOnnxForm):
                _compare(wanted, FloatEngine(graph, threads=1).run(stimuli))
    try:
        calibrated = calibrate_stage(network, options.calibration) if options.quantization.integer else network
        quantized = quantize_stage(calibrated, options.quantization)
    except N2D2Error as error:  # roots and logarithms of negative numbers; a layer without integers
        assert error.code in ("E504", "E510")
        return
    _check_integers(quantized, stimuli, narrow="-wt-bits" in case.words)
    for given in case.plans.values():
        _check_plan(quantized, given)


def _stimuli(graph: Graph, name: str) -> np.ndarray:
    return np.random.default_rng(3).normal(0.3, 0.8, (4, *graph.shape(name)[1:])).astype(np.float32)


def _compare(wanted: Mapping[str, np.ndarray], found: Mapping[str, np.ndarray]) -> None:
    for want, values in zip(wanted.values(), found.values(), strict=True):
        want, values = want.astype(np.float64).ravel(), values.astype(np.float64).ravel()
        np.testing.assert_allclose(values, want, rtol=2e-4, atol=2e-4 * max(1e-3, float(np.abs(want).max(initial=0))))


def _check_integers(quantized: QuantizedNetwork, stimuli: Mapping[str, np.ndarray], narrow: bool) -> None:
    graph = quantized.graph
    found = simulate(graph, [graph.type(name).quantize(stimuli[name]) for name in graph.inputs], keep=False)
    wanted = run_graph(quantized.float_graph, stimuli)
    for name in graph.outputs:
        values = graph.type(name).dequantize(found[name]).astype(np.float64).ravel()
        want = wanted[name].astype(np.float64).ravel()
        finite = np.isfinite(want)
        assert np.isfinite(values[finite]).all(), name
        power, error = float((want[finite] ** 2).sum()), float(((values - want)[finite] ** 2).sum())
        rest = 1e-5 * want.size  # an output that cancels to zero keeps a part of the steps of what cancels
        assert narrow or error <= 10 ** (-FLOOR_DB / 10) * power + rest, name


def _check_plan(quantized: QuantizedNetwork, given: Mapping[str, Any]) -> None:
    target = find_target("CPP")
    network = replace(quantized.network, params=quantized.network.params.with_values(dict(given)))
    try:
        memory = plan_stage(quantized.graph, network.params, target)
    except N2D2Error as error:  # a budget that is too small, a layer that cannot be planned
        assert (error.code == "E607" and "MemoryBudget" in given) or error.code == "E602"
        return
    none, _ = exported_stimuli(None, 0)
    prepared = target.prepare(export_request(network, memory.graph, memory, stored_stimuli(network, memory.graph, none), {}))
    prepared.check()
