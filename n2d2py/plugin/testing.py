"""Proving an operator: one layer, exported, compiled, and compared with its Python."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py.contracts.functions import FunctionRow
from n2d2py.contracts.operator import Op
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.exports import ExportFolder, ExportRequest, find_target
from n2d2py.exports.cpp.library import load_export
from n2d2py.graph import Graph, Node, QuantGraph, Shape
from n2d2py.memory.checker import check_plan, refuse_violations
from n2d2py.memory.from_graph import memory_problem
from n2d2py.memory.strategies import plan_memory
from n2d2py.operators.pointwise import Activation
from n2d2py.passes import fuse
from n2d2py.quant.calibration import quantize
from n2d2py.quant.quantize import float_graph
from n2d2py.quant.statistics import collect
from n2d2py.runtime import load_simulator


def check_layer(
    op: Op | FunctionRow,
    *shapes: Shape,
    params: Mapping[str, np.ndarray] | None = None,
    bits: Sequence[int] = (8, -32),
    low: float = -1.0,
    high: float = 1.0,
) -> dict[int, np.ndarray]:
    """Compile a network of one layer over inputs of these shapes (1, C, ...) and compare C++ with Python.

    Inputs are random between `low` and `high`. Returns the outputs (real values) by number of bits. Raises AssertionError
    when they differ: integers at all, floating point by more than 1e-5 of the largest; or when the integers are further from
    `compute` than 5 % of its range.
    """
    graph = Graph("check")
    names = [graph.add_input(f"x{i}", shape) for i, shape in enumerate(shapes)]
    layer = Activation(op) if isinstance(op, FunctionRow) else op
    graph.add(Node("layer", layer, names, ["y"], dict(params or {})))
    graph.outputs = ["y"]
    return check_graph(graph, bits=bits, low=low, high=high)


def check_graph(graph: Graph, *, bits: Sequence[int] = (8, -32), low: float = -1.0, high: float = 1.0) -> dict[int, np.ndarray]:
    """As `check_layer`, for a network, which is fused first (recipes of plug-ins included)."""
    rng = np.random.default_rng(0)
    batch = {name: rng.uniform(low, high, (8, *graph.shape(name)[1:])).astype(np.float32) for name in graph.inputs}
    results = {}
    for width in bits:
        fused, _ = fuse(graph, integer=width > 0)
        typed = _typed(fused, width, batch)
        expected, compiled, reference = _run(fused, typed, batch)
        for name, value in expected.items():
            span = 1e-5 * max(1e-30, float(np.abs(value).max())) if value.dtype.kind == "f" else 0
            message = f"{width} bits, layer {name}: C++ (actual) and Python (desired) differ"
            np.testing.assert_allclose(compiled[name], value, 0, span, equal_nan=False, err_msg=message)
        last = fused.outputs[0]
        real = typed.type(last).dequantize(expected[fused.required_producer(last).name])
        away, span = float(np.abs(real - reference).max()), max(1e-6, float(np.ptp(reference)))
        assert width < 0 or away <= 0.05 * span, (
            f"{width} bits: the integers are {away:.4g} from compute(), whose values span {span:.4g}"
        )
        results[width] = real
    return results


def _typed(graph: Graph, bits: int, batch: dict[str, np.ndarray]) -> QuantGraph:
    if bits < 0:
        return float_graph(graph, bits)
    options = QuantOptions(bits, act_clipping="None", input_bits=bits, output_bits=bits)
    return quantize(graph, collect(graph, [batch]).histograms, options, {})[0]  # type: ignore[list-item]


def _run(graph: Graph, typed: QuantGraph, batch: dict[str, np.ndarray]) -> tuple[dict[str, Any], dict[str, Any], np.ndarray]:
    """Return the layers in Python, those in C++, and the first output in floating point."""
    from n2d2py.reference.executor import run_graph

    problem = memory_problem(typed)
    plan = plan_memory(problem)
    refuse_violations(check_plan(problem, plan))
    request = ExportRequest(typed, problem=problem, plan=plan)
    target = find_target("CPP")
    prepared = target.prepare(request)
    with tempfile.TemporaryDirectory(prefix="n2d2py-") as temporary:
        path = Path(temporary) / "export"
        with ExportFolder(path, target.manifest(prepared)) as folder:
            target.write(prepared, folder)
        inputs = [typed.type(name).quantize(batch[name]) for name in typed.inputs]
        expected = load_simulator(path).layers(*inputs)
        compiled = load_export(path).layers(*inputs)
    return expected, compiled, run_graph(graph, batch)[graph.outputs[0]]
