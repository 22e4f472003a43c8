"""Networks that differ a little from those that rewrites take: results stay those of ONNX Runtime, and so do the layers.

What the rewrites make of each is kept; whoever changes that on purpose writes rewrites.json again:

    PYTHONPATH=tests python tests/passes/test_same_rewrites.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.chain_record import rewritten, shaken_graph
from support.chain_sums import SHAKES, as_kept, settled_sum
from support.near_miss_texts import ALL
from support.near_misses import drawn, in_onnx_runtime, stimulus

from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.graph import Graph
from n2d2py.operators.quantize import is_quantized
from n2d2py.passes import fuse
from n2d2py.reference.executor import run_graph

pytestmark = pytest.mark.slow

KEPT = Path(__file__).resolve().parent / "rewrites.json"
NUMBERS, PART = range(6, 30), 8
"""Changes of each network that are tried, and how many of them are one test."""
TOLERANCE, LEAST = 2e-4, 1e-3


def lines(base: str, number: int, noise: int = 0) -> list[str]:
    """What the rewrites make of a network, or the code of its refusal; without noise the results are right by ONNX Runtime."""
    model, found, integer = drawn(base, number), [], number % 4 > 0
    try:
        graph = shaken_graph(import_onnx(model), noise)
    except N2D2Error as error:
        return [error.code]
    fused, report = fuse(graph, integer=integer)
    if not noise:
        for each in (graph,) if "drop-softmax" in report.counts else (graph, fused):
            compare(each, model)
    for _, stage in rewritten(graph, fused, report):
        found += stage
    return found


def compare(graph: Graph, model: onnx.ModelProto) -> None:
    """The outputs of NumPy against those of ONNX Runtime; what lies between two steps of a network that comes quantized may turn over."""
    wanted, x, (name,) = in_onnx_runtime(model), stimulus(), graph.inputs
    assert wanted is not None
    if is_quantized(graph):
        return
    shape = graph.shape(name)[1:]
    given = (
        x.transpose(0, 3, 1, 2) if shape == (8, 4, 8) else x.reshape(-1, *shape)
    )  # one that a Transpose alone reads is turned
    for want, found in zip(wanted, run_graph(graph, {name: given}).values(), strict=True):
        assert np.abs(found.ravel() - want.ravel()).max() <= TOLERANCE * max(LEAST, float(np.abs(want).max()))


@cache
def kept() -> dict[str, dict[str, str]]:
    return json.loads(KEPT.read_text(encoding="utf-8"))


def parts() -> Iterator[tuple[str, int]]:
    """Networks, and the first numbers of what is one test."""
    for base in ALL:
        for first in NUMBERS[::PART]:
            yield base, first


@pytest.mark.parametrize("base, first", list(parts()))
def test_rewrites(base, first):
    numbers = [str(number) for number in NUMBERS if first <= number < first + PART]
    texts = {number: text for number in numbers if (text := kept()[base].get(number)) is not None}
    assert [number for number, text in texts.items() if not as_kept(text, lines(base, int(number)))] == []


def main() -> None:
    """Writes what the tests compare with."""
    found: dict[str, dict[str, str]] = {}
    for base in ALL:
        made = found[base] = {}
        for number in NUMBERS:
            if in_onnx_runtime(drawn(base, number)) is not None:
                others = [lines(base, number, noise) for noise in range(1, SHAKES + 1)]
                text = settled_sum(lines(base, number), others)
                if text not in made.values():
                    made[str(number)] = text
    rows = ",\n".join(f"{json.dumps(base)}: {json.dumps(made)}" for base, made in found.items())
    KEPT.write_text(f"{{\n{rows}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
