"""The C++ that layers become, without a compiler: what is written for a case of the kernel sweeps changes on purpose only.

Whoever changes it on purpose writes same_code.json again and looks at the difference:

    PYTHONPATH=tests python tests/kernels/test_same_code.py
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import pytest
from support import (
    array_cases,
    attention_cases,
    kernel_cases,
    kernel_conversions,
    kernel_function_cases,
    kernel_interpolation,
    kernel_real_layers,
    kernel_unseen_layers,
    recurrent_cases,
)
from support.attention_cases import masked_softmaxes, products, softmaxes, sums
from support.kernel_cases import Sweep
from support.kernel_halves import half_cases
from support.kernel_harness import Case, source
from support.kernel_lines import line_cases
from support.kernel_overlaps import overlapping_cases
from support.kernel_packed import few_bits
from support.kernel_quantized_layers import quantized_cases
from support.kernel_residual import residual_cases

RECORDS = Path(__file__).resolve().parent / "same_code.json"
SWEEPS: dict[str, Callable[[], list[Case]]] = {
    "convolutions": lambda: kernel_cases.convolutions(Sweep(1), 66),
    "fully connected layers": lambda: kernel_cases.fully_connected(Sweep(1)),
    "pools": lambda: kernel_cases.pools(Sweep(1)),
    "pointwise layers": lambda: kernel_cases.pointwise(Sweep(1)),
    "moves": lambda: kernel_cases.moves(Sweep(1)),
    "floating point": lambda: kernel_cases.floats(Sweep(1)),
    "packed channels": lambda: kernel_cases.packed_channels(Sweep(1)),
    "arrays": lambda: array_cases.everything(1),
    "attention": lambda: [
        case for cases in (products, sums, softmaxes, masked_softmaxes, attention_cases.norms) for case in cases(1)
    ],
    "recurrent layers": lambda: recurrent_cases.everything(1, 3),
    "lines": lambda: line_cases(5),
    "overlaps": lambda: overlapping_cases(3),
    "conversions": lambda: kernel_conversions.all_cases(1),
    "halves": lambda: half_cases(1),
    "functions": lambda: kernel_function_cases.all_cases(1),
    "functions of 16 bits": lambda: kernel_interpolation.cases(Sweep(1)),
    "real layers": lambda: kernel_real_layers.all_cases(1),
    "weights of few bits": lambda: few_bits(1),
    "layers that come quantized": lambda: quantized_cases(1),
    "sums in place": lambda: residual_cases(1),
    "sizes around vectors": lambda: kernel_unseen_layers.all_cases(1),
}


def written(name: str) -> dict[str, str]:
    """By the kind and place of each case of a sweep, a checksum of its C++."""
    places: Counter[str] = Counter()
    found = {}
    for case in SWEEPS[name]():
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
