"""All forms of operators and sections of an INI once more, with other options and other memory parameters: records of whole chains.

Whoever changes what they make on purpose writes more_chains.json again:

    PYTHONPATH=tests python tests/whole_chain/test_same_more_chains.py
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.chain_networks import MORE_WORDS, Case, calibrated, form_cases, ini_cases
from support.chain_sums import KeptSums

pytestmark = pytest.mark.slow

SHIFT = 4
"""Options further than those that the same case has elsewhere."""


def _case(at: int, case: Case) -> Case:
    weights = ("-w", "/dev/null") if "-w" in case.words else ()
    return calibrated(case.make, at + SHIFT, (*MORE_WORDS[(at + SHIFT) % len(MORE_WORDS)], *weights))


CASES = {name: _case(at, case) for at, (name, case) in enumerate((*form_cases(), *ini_cases()))}
KEPT = KeptSums(Path(__file__).resolve().parent / "more_chains.json", CASES.__getitem__)


@pytest.mark.parametrize("name", KEPT.names)
def test_more_chains(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert KEPT.differences(name) == []


if __name__ == "__main__":
    KEPT.write(CASES)
