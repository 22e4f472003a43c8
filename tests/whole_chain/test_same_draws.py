"""What becomes of drawn networks, most of them right, many not: layers with the values of their parameters, or the words of the refusal.

Nodes of every ONNX operator in many spellings, sections of every type with weights stored for them, and AIMET's encodings. Kept are
checksums; whoever changes a result on purpose writes them again:

    PYTHONPATH=tests python tests/whole_chain/test_same_draws.py [nodes] [sections] [encodings]
"""

from __future__ import annotations

import copy
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import onnx
import pytest
from support import chain_texts as texts
from support.encoding_draws import draw_encodings
from support.ini_draws import TYPES, draw_section, store
from support.onnx_changes import change_model
from support.onnx_draws import DRAWS, draw
from support.outcomes import differences, outcome, sums, write_sums

from n2d2py.frontend.ini.network import build_graph
from n2d2py.frontend.ini.weights import WeightStore
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.frontend.onnx.model import load_onnx
from n2d2py.graph import Graph
from n2d2py.ini import load_document

pytestmark = pytest.mark.slow
FOLDER = Path(__file__).resolve().parent
FIRST = 1000
"""Numbers of drawn nodes that no other test has."""
NODES, SECTIONS, ENCODINGS, CHANGES = 25, 80, 60, 5


def of_nodes(operator: str, number: int) -> dict[str, str]:
    """A node as it was drawn, and changed."""
    drawn, rng = draw(operator, FIRST + number).model(), random.Random(f"changes of {operator} {number}")
    found = {"as it is": outcome(lambda: import_onnx(drawn), True)}
    for _ in range(CHANGES):
        changed = copy.deepcopy(drawn)
        told = change_model(changed, rng)
        found[told] = outcome(lambda changed=changed: import_onnx(changed), True)
    return found


def of_sections(kind: str, number: int) -> dict[str, str]:
    """Sections without stored weights, with them, and as they are described."""
    rng, found = random.Random(f"section {kind} {number}"), {}
    for _ in range(CHANGES):
        text, path = draw_section(kind, rng), Path("net.ini")
        path.write_text(text, encoding="utf-8")
        graphs: list[Graph] = []

        def read(weights: WeightStore | None, path: Path = path, graphs: list[Graph] = graphs) -> Graph:
            graphs.append(build_graph(load_document(path), (1, 4, 6, 8), weights, 1))
            return graphs[-1]

        own = text[text.index("[y]") :]
        found[own] = outcome(lambda read=read: read(WeightStore(None)), True)
        if not graphs:
            found[f"described: {own}"] = outcome(lambda read=read: read(None), True)
            continue
        place, told = store(graphs[0], Path.cwd(), rng)
        ignore = rng.random() < 0.3
        found[f"{told} {ignore}: {own}"] = outcome(
            lambda read=read, place=place, ignore=ignore: read(WeightStore(place, ignore_missing=ignore)), True
        )
    return found


def of_encodings(name: str, number: int) -> dict[str, str]:
    model, rng, found = texts.model(name), random.Random(f"encodings {name} {number}"), {}
    onnx.save(model, "net.onnx")
    for _ in range(CHANGES):
        data = draw_encodings(model, rng)
        Path("net.encodings").write_text(json.dumps(data), encoding="utf-8")
        found[json.dumps(data)] = outcome(lambda: import_onnx(load_onnx("net.onnx", encodings=Path("net.encodings"))), True)
    return found


QUANTIZED = tuple("residual, normalised, shuffle, linear layers, u shape, attention, one dimension, left product".split(", "))
SETS: dict[str, tuple[Callable[[str, int], dict[str, str]], tuple[str, ...], int]] = {
    "nodes": (of_nodes, tuple(DRAWS), NODES),
    "sections": (of_sections, tuple(TYPES), SECTIONS),
    "encodings": (of_encodings, QUANTIZED, ENCODINGS),
}
CASES = [(chosen, name, number) for chosen, (_, names, count) in SETS.items() for name in names for number in range(count)]


@cache
def kept(chosen: str) -> dict[str, str]:
    return json.loads((FOLDER / f"drawn_{chosen}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("chosen", "name", "number"), CASES)
def test_draws(chosen, name, number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert differences(SETS[chosen][0](name, number), kept(chosen)[f"{name} {number}"]) == []


def main() -> None:
    """Writes what the tests compare with."""
    for chosen in sys.argv[1:] or SETS:
        find, names, count = SETS[chosen]
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            found = {f"{name} {number}": sums(find(name, number)) for name in names for number in range(count)}
            os.chdir(FOLDER)
        write_sums(FOLDER / f"drawn_{chosen}.json", found)


if __name__ == "__main__":
    main()
