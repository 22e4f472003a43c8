"""The C++ that layers become, without a compiler: what is written for a case of the kernel sweeps changes on purpose only.

Whoever changes it on purpose writes same_code.json again and looks at the difference:

    PYTHONPATH=tests python tests/kernels/test_same_code.py
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from zlib import crc32

import pytest
from support.kernel_all import SWEEPS
from support.kernel_harness import source

RECORDS = Path(__file__).resolve().parent / "same_code.json"


def written(name: str) -> dict[str, str]:
    """By the kind and place of each case of a sweep, a checksum of its C++."""
    places: Counter[str] = Counter()
    found = {}
    for case in SWEEPS[name](1):
        kind = case.node.op.kind
        places[kind] += 1
        found[f"{kind} {places[kind]}"] = f"{crc32(source(case, 0).encode()):08x}"
    return found


@pytest.mark.parametrize("name", SWEEPS)
def test_code_changes_on_purpose_only(name):
    kept, found = json.loads(RECORDS.read_text(encoding="utf-8"))[name], written(name)
    assert [each for each in kept if kept[each] != found.get(each)] == []
    assert list(found) == list(kept)


if __name__ == "__main__":
    RECORDS.write_text(json.dumps({name: written(name) for name in SWEEPS}, indent=0) + "\n", encoding="utf-8")
