"""Nodes of every operator with drawn attributes, ranks and inputs: right by ONNX Runtime and by NumPy, or refused for the kept reason.

What each of the first nodes becomes, layers or a refusal, is kept in a file; whoever changes that on purpose writes it again:

    PYTHONPATH=tests python tests/frontend_onnx/test_drawn_nodes.py
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from support.onnx_draws import DRAWS, draw

from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.graph import Graph
from n2d2py.reference.engine import FloatEngine
from n2d2py.reference.executor import run_graph

KEPT = Path(__file__).resolve().parent / "drawn_nodes.json"
COUNT = 10
"""Nodes of each operator whose layers are kept."""


def imported(model: onnx.ModelProto) -> Graph | str:
    """The network, or why there is none."""
    try:
        return import_onnx(model)
    except (N2D2Error, ErrorList) as error:
        return str(error)


def layers(found: Graph | str) -> str:
    """The kinds of the layers, or the code of the refusal and its reason."""
    if isinstance(found, str):
        code = found.split(":")[0]
        reason = found.partition("cannot be imported: ")[2].split(";")[0]
        return f"{code}: {reason or found.partition(': ')[2].split('(')[0].strip()}"
    return " ".join(f"{node.op.kind} of {len(node.inputs)}" for node in found.nodes)


def in_onnx_runtime(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray] | None:
    """The results; None where ONNX Runtime has no implementation, or a limit of its own."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, feeds)
    except Exception:  # ONNX Runtime has no common base class for its errors
        return None


def check(operator: str, number: int) -> tuple[str, bool]:
    """What the node becomes, and whether ONNX Runtime had a result that it was compared with."""
    model, generator = draw(operator, number).model(), np.random.default_rng(number)
    feeds = {}
    for value in model.graph.input:
        dims = [dim.dim_value or 2 for dim in value.type.tensor_type.shape.dim]
        feeds[value.name] = generator.normal(size=dims).astype(np.float32)
    graph = imported(model)
    if isinstance(graph, str):
        return layers(graph), False
    given = {name: feeds[name].reshape(-1, *graph.shape(name)[1:]) for name in graph.inputs}
    by_numpy = list(run_graph(graph, given).values())
    by_engine = list(FloatEngine(graph, threads=1).run(given).values())
    wanted = in_onnx_runtime(model, feeds)
    for values in (by_engine, *([] if wanted is None else [wanted])):
        assert len(values) == len(by_numpy)
        for want, found in zip(values, by_numpy, strict=True):
            tolerance = 1e-5 * max(1.0, float(np.abs(want).max(initial=0)))
            np.testing.assert_allclose(
                found.ravel(), want.ravel(), rtol=1e-5, atol=tolerance, err_msg=f"{operator} {number}: {draw(operator, number)}"
            )
    return layers(graph), wanted is not None


@cache
def kept() -> dict[str, list[str]]:
    return json.loads(KEPT.read_text())


@pytest.mark.parametrize("operator", DRAWS)
def test_a_drawn_node(operator):
    results = [check(operator, number) for number in range(COUNT)]
    assert [found for found, _ in results] == kept()[operator]
    assert sum(compared for _, compared in results) >= COUNT // 3


@pytest.mark.slow
@pytest.mark.parametrize("operator", DRAWS)
def test_more_drawn_nodes(operator):
    results = [check(operator, number) for number in range(COUNT, 5 * COUNT)]
    assert sum(compared for _, compared in results) >= 2 * COUNT


def main() -> None:
    """Writes what the tests compare with."""
    found = {operator: [check(operator, number)[0] for number in range(COUNT)] for operator in DRAWS}
    KEPT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
