"""Nodes of every operator with drawn attributes, ranks and inputs: equal to ONNX Runtime and NumPy, or refused."""

import numpy as np
import onnx
import pytest
from support.onnx_draws import DRAWS, draw
from support.onnx_models import runtime_outputs, text_model
from support.tables import every

from n2d2py import log
from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.reference.engine import FloatEngine
from n2d2py.reference.executor import run_graph

COUNT = 10
"""Nodes of each operator in the fast run."""
WINDOWS = ("Conv", "ConvTranspose", "AveragePool", "LpPool", "MaxPool")
"""Operators with many attributes: more nodes of each."""


def in_onnx_runtime(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray] | None:
    """The results; None where ONNX Runtime has no implementation, or a limit of its own."""
    try:
        return runtime_outputs(model, feeds)
    except Exception:  # ONNX Runtime has no common base class for its errors
        return None


def check(operator: str, number: int) -> bool:
    """True if the node is imported and equal to a result of ONNX Runtime; False if it is refused or ONNX Runtime has none.

    A node that mixes samples (W307) has a batch of 1.
    """
    model, generator = draw(operator, number).model(), np.random.default_rng(number)
    feeds, warned = {}, len(log.warnings_seen())
    for value in model.graph.input:
        dims = [dim.dim_value or 2 for dim in value.type.tensor_type.shape.dim]
        feeds[value.name] = generator.normal(size=dims).astype(np.float32)
    try:
        graph = import_onnx(model)
    except (N2D2Error, ErrorList):
        return False
    if any(problem.code == "W307" for problem in log.warnings_seen()[warned:]):
        feeds = {
            value.name: feeds[value.name][:1] if not value.type.tensor_type.shape.dim[0].dim_value else feeds[value.name]
            for value in model.graph.input
        }
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
    return wanted is not None


@every("operator", DRAWS)
def test_a_drawn_node(operator):
    count = COUNT * (1 + 4 * (operator in WINDOWS))
    assert sum(check(operator, number) for number in range(count)) >= count // 3


@pytest.mark.slow
@pytest.mark.parametrize("operator", DRAWS)
def test_more_drawn_nodes(operator):
    assert sum(check(operator, number) for number in range(COUNT, 5 * COUNT)) >= 2 * COUNT


@every("rank", [1, 2])
@every("dilation", [1, 2])
@every("size, kernel, stride, pads", [(8, 3, 2, 0), (7, 3, 2, 0), (6, 2, 3, 1), (9, 2, 4, 0), (5, 2, 2, 1), (8, 3, 3, 1)])
def test_windows_that_begin_inside_but_end_outside(one_node, check, rank, dilation, size, kernel, stride, pads):
    """ceil_mode: the last window exists where it begins before the padding behind the image."""
    attributes = {"kernel_shape": [kernel] * rank, "strides": [stride] * rank, "pads": [pads] * 2 * rank, "ceil_mode": 1}
    for operator in ("MaxPool", "AveragePool"):
        check(one_node(operator, ["N", 2, *[size] * rank], opset=22, dilations=[dilation] * rank, **attributes))


@every("axes", ["2, 2", "3, -2, 1", "1, -4"])
@every("operator", ["ReduceMean", "ReduceMax", "ReduceL2"])
def test_an_axis_that_is_named_twice(operator, axes):
    model = text_model("float[1,2,3,4,5] x => float[a,b,c,d,e] y", f"y = {operator} <axes = [{axes}]> (x)")
    x = np.random.default_rng(1).normal(size=(1, 2, 3, 4, 5)).astype(np.float32)
    (wanted,) = runtime_outputs(model, x)
    (found,) = run_graph(import_onnx(model), {"x": x.reshape(1, -1)}).values()
    np.testing.assert_allclose(found.ravel(), np.asarray(wanted).ravel(), rtol=1e-5, atol=1e-6)
