"""What layers are in integers, without a compiler: values, operations, accesses of memory and C++ of the cases of the kernel sweeps.

They change on purpose only. Whoever changes them on purpose writes same_layers.json again:

    PYTHONPATH=tests python tests/kernels/test_same_layers.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from zlib import crc32

import pytest
from support.chain_record import fingerprint
from support.chain_sums import coarse
from support.kernel_all import SWEEPS
from support.kernel_harness import Case, source

from n2d2py.errors import N2D2Error
from n2d2py.memory.files import json_text
from n2d2py.memory.format import graph_json
from n2d2py.memory.from_graph import memory_problem

pytestmark = pytest.mark.slow

RECORDS = Path(__file__).resolve().parent / "same_layers.json"
SEEDS = (1, 2, 3)
PART = 40
"""Cases of one test."""


def said(case: Case, seed: int) -> str:
    """A checksum of what a layer is; its C++ with the first seed is in same_code.json."""
    made = case.expected()
    node, graph = case.node, case.graph
    shapes = [graph.shape(name) for name in node.inputs]
    try:
        problem = json_text(graph_json(memory_problem(graph)))
    except N2D2Error as error:
        problem = error.code
    lines = [
        coarse(fingerprint(made, made.dtype.kind != "f")),
        f"{made.dtype} {node.op.output_shapes(shapes, node)} {node.op.macs(shapes, graph.shape(node.output), node)}",
        problem,
        source(case, 0) if seed > 1 else "",
    ]
    return f"{crc32(chr(10).join(lines).encode()):08x}"


@cache
def cases(name: str, seed: int) -> Sequence[Case]:
    return SWEEPS[name](seed)


@cache
def kept() -> dict[str, str]:
    return json.loads(RECORDS.read_text(encoding="utf-8")) if RECORDS.exists() else {}


def parts() -> Iterator[tuple[str, int, int]]:
    """The sweeps, their seeds, and the first cases of what is one test."""
    for key, text in kept().items():
        name, seed = key.rsplit(" ", 1)
        for first in range(0, len(text.split()), PART):
            yield name, int(seed), first


@pytest.mark.parametrize("name, seed, first", list(parts()))
def test_layers_change_on_purpose_only(name, seed, first):
    texts = kept()[f"{name} {seed}"].split()
    assert len(cases(name, seed)) == len(texts)
    found = [said(case, seed) for case in cases(name, seed)[first : first + PART]]
    assert found == texts[first : first + PART]


def main() -> None:
    """Writes what the tests compare with."""
    made = {f"{name} {seed}": " ".join(said(case, seed) for case in cases(name, seed)) for name in SWEEPS for seed in SEEDS}
    RECORDS.write_text(json.dumps(made, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
