"""Each rewrite alone on networks of which some layers have an activation, an own precision or an output: it keeps the results, and what it does.

What it does and says is kept; whoever changes that on purpose writes single_rewrites.json again:

    PYTHONPATH=tests python tests/passes/test_same_single_rewrites.py
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from support.chain_record import layers, shaken_graph
from support.chain_sums import SHAKES, as_kept, settled_sum
from support.near_miss_texts import ALL
from support.near_misses import drawn, in_onnx_runtime

from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.graph import Graph, Precision
from n2d2py.operators.functions import Clip, Elu, Tanh
from n2d2py.operators.quantize import Quantize
from n2d2py.passes import FuseReport
from n2d2py.passes.fuse import fuse, late_passes, passes
from n2d2py.reference.executor import run_graph

pytestmark = pytest.mark.slow

KEPT = Path(__file__).resolve().parent / "single_rewrites.json"
NUMBERS = range(30, 37)
"""Changes of each network that are tried."""
FUNCTIONS = (Clip(0.0, np.inf), Clip(0.0, 6.0), Clip(-0.5, 0.75), Tanh(), Elu(0.5))


def network(base: str, number: int, noise: int) -> Graph:
    """A changed network of which some layers have an activation, are to stay in real numbers, or are outputs too."""
    graph, draw = shaken_graph(import_onnx(drawn(base, number)), noise), random.Random(f"{base} {number}")
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
    return graph


def lines(base: str, number: int, noise: int = 0) -> list[str]:
    """What the rewrites do, each alone before the others and behind them, and all together; without noise they keep the results."""
    try:
        graph = network(base, number, noise)
    except N2D2Error as error:
        return [error.code]
    found, (fused, report) = [], fuse(graph, integer=True)
    found += [_text(report), *layers(fused)]
    if not noise and "drop-softmax" not in report.counts:
        same_results(graph, fused)
    for before in (graph, fused):
        for rewrite in (*passes(integer=True), *late_passes()):
            after, report = before.copy(), FuseReport()
            changed = rewrite.run(after, report)
            if report.done or report.refused:
                found.append(f"{rewrite.name}: {_text(report)}")
            if changed:
                found += layers(after)
                if not noise and rewrite.name != "drop-softmax":
                    same_results(before, after)
    return found


def _text(report: FuseReport) -> str:
    return ", ".join(f"{entry.layer}: {entry.text}" for entry in (*report.done, *report.refused))


def same_results(before: Graph, after: Graph) -> None:
    """Both give the same outputs in float64, up to what float32 weights lose."""
    x = {name: np.random.default_rng(1).normal(size=(2, *before.shape(name)[1:])) for name in before.inputs}
    for (name, want), found in zip(run_graph(before, x).items(), run_graph(after, x).values(), strict=True):
        with np.errstate(invalid="ignore"):
            near = np.abs(found.ravel() - want.ravel()) <= 1e-5 * max(1.0, float(np.abs(want).max()))
        assert (near | ~np.isfinite(want.ravel())).all(), name


@cache
def kept() -> dict[str, str]:
    return json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}


def cases() -> Iterator[tuple[str, int]]:
    """The networks that ONNX Runtime takes."""
    for base in ALL:
        for number in NUMBERS:
            if in_onnx_runtime(drawn(base, number)) is not None:
                yield base, number


@pytest.mark.parametrize("name", kept())
def test_single_rewrites(name):
    base, number = name.rsplit(" ", 1)
    assert as_kept(kept()[name], lines(base, int(number)))


def main() -> None:
    """Writes what the tests compare with."""
    found = {}
    for base, number in cases():
        others = [lines(base, number, noise) for noise in range(1, SHAKES + 1)]
        found[f"{base} {number}"] = settled_sum(lines(base, number), others)
    KEPT.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
