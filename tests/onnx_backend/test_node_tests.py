"""The ONNX project's node tests: the right result or a refusal, never a wrong result."""
from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from export_build import need
from export_networks import request, write_export
from node_cases import OPERATORS, Case, Outcome, load_cases, run_case

from n2d2py.export import Stimuli
from n2d2py.graph import Graph, Node
from n2d2py.operators import BatchNorm, Dropout
from n2d2py.quant.quantize import float_graph
from n2d2py.runtime import load_export

PASSED = {
    "Abs": 1, "Add": 1, "AveragePool": 13, "BatchNormalization": 2, "Celu": 1, "Clip": 9, "Concat": 6,
    "Conv": 6, "ConvTranspose": 9, "DepthToSpace": 2, "Div": 1, "Dropout": 3, "Elu": 3, "Erf": 1, "Exp": 2,
    "Expand": 1, "Flatten": 3, "Gather": 1, "Gelu": 4, "Gemm": 8, "GlobalAveragePool": 2, "GlobalMaxPool": 2,
    "HardSigmoid": 3, "HardSwish": 1, "Identity": 1, "LRN": 2, "LeakyRelu": 3, "Log": 2, "LogSoftmax": 6,
    "MatMul": 1, "Max": 5, "MaxPool": 11, "Mean": 3, "Min": 5, "Mish": 1, "Mul": 2, "Neg": 2, "Pow": 1,
    "ReduceL1": 6, "ReduceL2": 6, "ReduceLogSum": 1, "ReduceMax": 6, "ReduceMean": 6, "ReduceMin": 6,
    "ReduceSum": 6, "ReduceSumSquare": 6, "Relu": 1, "Reshape": 4, "Resize": 13, "Selu": 3, "Sigmoid": 2,
    "Slice": 5, "Softmax": 6, "Softplus": 2, "Softsign": 2, "SpaceToDepth": 4, "Split": 5, "Sqrt": 2,
    "Squeeze": 1, "Sub": 2, "Sum": 3, "Tanh": 2, "ThresholdedRelu": 3, "Transpose": 2, "Unsqueeze": 6,
    "Upsample": 1}
"""Tests that pass, at least, by operator; those not named are refused in all their tests."""


@pytest.fixture(scope="module")
def outcomes() -> list[tuple[Case, Outcome]]:
    """Every case with what became of it."""
    return [(case, run_case(case)) for case in load_cases()]


def test_no_result_is_wrong(outcomes):
    wrong = [f"{case.name}: {outcome.reason}" for case, outcome in outcomes if outcome.state == "wrong"]
    assert not wrong, "\n".join(wrong)


def test_the_supported_ones_pass(outcomes, capsys):
    passed = Counter(case.operator for case, outcome in outcomes if outcome.state == "passed")
    with capsys.disabled():
        print(f"\nONNX node tests: {passed.total()} of {len(outcomes)} pass, the others are refused")
    fewer = {name: (passed[name], count) for name, count in PASSED.items() if passed[name] < count}
    assert not fewer, f"operators with fewer passed tests than {fewer}"
    assert {case.operator for case, _ in outcomes} <= set(OPERATORS)


def test_refusals_name_the_node_and_the_reason(outcomes):
    refused = [(case, outcome) for case, outcome in outcomes if outcome.state == "refused"]
    assert refused
    for case, outcome in refused:
        assert outcome.reason.startswith(("N2D2-E305", "N2D2-E310", "N2D2-E2")), f"{case.name}: {outcome.reason}"
        assert case.name in outcome.reason and ";" in outcome.reason


def joined(cases: list[tuple[Case, Outcome]]) -> tuple[Graph, list[np.ndarray], list[np.ndarray]]:
    """One network of many cases side by side, the first stimulus of their inputs, their expected outputs."""
    network, inputs, expected = Graph("node_tests"), [], []
    for number, (case, outcome) in enumerate(cases):
        part = outcome.graph
        names = {name: network.add_input(f"c{number}_{name}", part.shape(name)) for name in part.inputs}
        inputs += [outcome.feeds[name][:1].astype(np.float32) for name in part.inputs]
        for node in part.nodes:
            names.update({name: f"c{number}_{name}" for name in node.outputs})
            network.add(Node(f"c{number}_{node.name}", node.op, [names[name] for name in node.inputs],
                             [names[name] for name in node.outputs], node.params, node.activation))
        network.outputs += [names[name] for name in part.outputs]
        expected += [array[:1] for array in case.outputs]
    return network, inputs, expected


def fits_the_export(outcome: Outcome) -> bool:
    """Whether every output is a layer's, no tensor has more than channels, height and width, and every layer has a
    kernel: BatchNorm and Dropout become part of other layers."""
    graph = outcome.graph
    if any(isinstance(node.op, (BatchNorm, Dropout)) for node in graph.nodes):
        return False
    return bool(graph.nodes) and len(set(graph.outputs)) == len(graph.outputs) and all(
        2 <= len(tensor.shape) <= 4 for tensor in graph.tensors.values())


@pytest.mark.slow
def test_one_case_of_each_operator_compiled(outcomes, tmp_path):
    need("make", "g++")
    chosen = {case.operator: (case, outcome) for case, outcome in reversed(outcomes)
              if outcome.state == "passed" and fits_the_export(outcome)}
    assert len(chosen) >= 60
    graph, inputs, expected = joined(list(chosen.values()))
    typed = float_graph(graph, -32)
    folder = write_export(tmp_path / "out", request(typed, targets=(), stimuli=Stimuli((), (), ())))
    found = load_export(folder)(*inputs)
    for (name, (case, _)), want, got in zip(
            [(name, pair) for name, pair in chosen.items() for _ in pair[0].outputs], expected, found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-5, err_msg=f"{name}: {case.name}")
