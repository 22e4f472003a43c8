"""Networks that differ a little from those that rewrites match: every rewrite, alone and with the others, keeps the results."""

import random

import numpy as np
import pytest
from support.near_miss_texts import ALL
from support.near_misses import drawn, in_onnx_runtime, stimulus
from support.ops import Quantize
from support.tables import every, few_fast

from n2d2py.contracts.functions import Clip, Elu, Tanh
from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.graph import Graph, Precision
from n2d2py.operators.quantize import is_quantized
from n2d2py.passes import FuseReport
from n2d2py.passes.fuse import fuse, late_passes, passes
from n2d2py.reference.executor import run_graph

FUNCTIONS = (Clip(0.0, np.inf), Clip(0.0, 6.0), Clip(-0.5, 0.75), Tanh(), Elu(0.5))


@pytest.mark.parametrize("number", few_fast(range(24), 2))
@every("base", ALL)
def test_all_rewrites_against_onnx_runtime(base, number):
    model = drawn(base, number)
    wanted, graph = in_onnx_runtime(model), _imported(base, number)
    if wanted is None or graph is None or is_quantized(graph):  # a rounding may turn over
        return
    fused, report = fuse(graph, integer=number % 4 > 0)
    (name,), x = graph.inputs, stimulus()
    shape = graph.shape(name)[1:]
    # An input that only a Transpose to channels first reads is channels-last in the file.
    given = x.transpose(0, 3, 1, 2) if shape == (8, 4, 8) else x.reshape(-1, *shape)
    for each in (graph,) if "drop-softmax" in report.counts else (graph, fused):
        for want, found in zip(wanted, run_graph(each, {name: given}).values(), strict=True):
            assert np.abs(found.ravel() - want.ravel()).max() <= 2e-4 * max(1e-3, float(np.abs(want).max()))


@pytest.mark.parametrize("number", few_fast(range(24)))
@every("base", ALL)
def test_each_rewrite_alone(base, number):
    """Some layers have an activation, are to stay in floating point, or are outputs too."""
    graph = _imported(base, number)
    if graph is None:
        return
    _vary(graph, random.Random(f"{base} {number}"))
    fused, report = fuse(graph, integer=True)
    if "drop-softmax" not in report.counts:
        _same_results(graph, fused)
    for before in (graph, fused):
        for rewrite in (*passes(integer=True), *late_passes()):
            after = before.copy()
            if rewrite.run(after, FuseReport()) and rewrite.name != "drop-softmax":
                _same_results(before, after)


def _imported(base: str, number: int) -> Graph | None:
    """Return the changed network; None if it is refused."""
    try:
        return import_onnx(drawn(base, number))
    except N2D2Error:
        return None


def _vary(graph: Graph, draw: random.Random) -> None:
    for node in graph.nodes:
        plain = (
            len(node.outputs) == 1
            and not graph.kind(node.output)
            and not isinstance(node.op, Quantize)
            and not node.op.moves_values
        )
        if plain and draw.random() < 0.3:
            node.activation = draw.choice(FUNCTIONS)
        if draw.random() < 0.05:
            graph.precisions[node.name] = Precision(quantize=False)
        if plain and draw.random() < 0.1 and node.output not in graph.outputs:
            graph.outputs.append(node.output)


def _same_results(before: Graph, after: Graph) -> None:
    """Both give the same outputs in float64, up to what float32 weights lose: half a unit in the last place of the largest, as of a mask."""
    held = [v[np.isfinite(v)] for node in after.nodes for v in node.params.values() if v.dtype.kind == "f"]
    lost = min(1e-3, 2.0**-24 * max((float(np.abs(values).max(initial=0)) for values in held), default=0.0))
    x = {name: np.random.default_rng(1).normal(size=(2, *before.shape(name)[1:])) for name in before.inputs}
    for (name, want), found in zip(run_graph(before, x).items(), run_graph(after, x).values(), strict=True):
        with np.errstate(invalid="ignore"):
            near = np.abs(found.ravel() - want.ravel()) <= max(lost, 1e-5 * max(1.0, float(np.abs(want).max())))
        assert (near | ~np.isfinite(want.ravel())).all(), name
