"""Networks that differ a little from those that rewrites take, through the whole chain: what each stage makes of them changes on purpose only.

Whoever changes that on purpose writes near_misses.json again:

    PYTHONPATH=tests python tests/passes/test_same_near_misses.py
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.chain_networks import MORE_WORDS, Case, calibrated, written
from support.chain_sums import KeptSums
from support.near_miss_texts import ALL
from support.near_misses import drawn, in_onnx_runtime

pytestmark = pytest.mark.slow

COUNT = 6
"""Changes of each network that are tried."""


def _case(name: str) -> Case:
    base, number = name.rsplit(" ", 1)
    at = int(number) + 5 * list(ALL).index(base)
    return calibrated(written(drawn(base, int(number)), (4, 8, 8)), at, MORE_WORDS[at % len(MORE_WORDS)])


KEPT = KeptSums(Path(__file__).resolve().parent / "near_misses.json", _case)


@pytest.mark.parametrize("name", KEPT.names)
def test_a_near_miss(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert KEPT.differences(name) == []


if __name__ == "__main__":
    pairs = ((base, number) for base in ALL for number in range(COUNT))
    KEPT.write(f"{base} {number}" for base, number in pairs if in_onnx_runtime(drawn(base, number)) is not None)
