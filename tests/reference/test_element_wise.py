"""Sums, products and limits of several tensors with every weight and shift, on ONNX Runtime, in NumPy and by their formula."""

from __future__ import annotations

import numpy as np
from support.tables import every

from n2d2py.graph import Graph, Node
from n2d2py.operators.elemwise import ElemWise
from n2d2py.reference.engine import FloatEngine
from n2d2py.reference.executor import run_graph

NUMBERS = (-1.0, 0.0, 1.0, 2.0, -0.5)


def formula(operation: str, values: list[np.ndarray], weights, shifts) -> np.ndarray:
    if operation == "Prod":
        return np.prod(values, axis=0)
    if operation in ("Max", "Min"):
        return (np.max if operation == "Max" else np.min)(values, axis=0)
    if operation == "AbsSum":
        return sum(w * np.abs(x) for x, w in zip(values, weights, strict=True))
    terms = [w * x + s for x, w, s in zip(values, weights, shifts, strict=True)]
    return np.sqrt(sum(term**2 for term in terms)) if operation == "EuclideanSum" else sum(terms)


@every("count", [1, 2, 3])
@every("operation", ["Sum", "AbsSum", "EuclideanSum", "Prod", "Max", "Min"])
def test_every_weight_and_shift(operation, count):
    rng = np.random.default_rng(count)
    weighted = operation in ("Sum", "AbsSum", "EuclideanSum")
    for first in NUMBERS if weighted else (1.0,):
        for shift in NUMBERS if operation in ("Sum", "EuclideanSum") else (0.0,):
            weights, shifts = (first, 1.0, -2.0)[:count], (shift, 0.0, 0.75)[:count]
            op = ElemWise(operation, weights, shifts) if weighted else ElemWise(operation)
            graph = Graph("g")
            names = [f"x{index}" for index in range(count)]
            for name in names:
                graph.add_input(name, (1, 2, 3, 4))
            graph.add(Node("y", op, names, ["y"]))
            graph.outputs = ["y"]
            feeds = {name: rng.normal(size=(2, 2, 3, 4)).astype(np.float32) for name in names}
            expected = formula(operation, [feeds[name].astype(np.float64) for name in names], weights, shifts)
            engine = FloatEngine(graph, threads=1)
            assert engine.backend == "onnxruntime"
            for found in (engine.run(feeds)["y"], run_graph(graph, feeds)["y"]):
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
