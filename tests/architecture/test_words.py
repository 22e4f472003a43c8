"""The table of discouraged words (bin/words.txt): sentences that it finds, and sentences that it accepts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TABLE = Path(__file__).resolve().parents[2] / "bin" / "words.txt"
PATTERNS = [
    re.compile(re.split("  +", line)[0], re.IGNORECASE) for line in TABLE.read_text().splitlines() if not line.startswith("#")
]

if not TABLE.is_file():
    pytest.skip("an installed package has no bin folder", allow_module_level=True)


@pytest.mark.parametrize(
    "text",
    [
        "networks that come quantized need none",
        "the network is quantized already",
        "weights of few bits share bytes",
        "as far as products of bytes fit 16 bits",
        "a tensor that nobody reads",
        "the layer behind the pool",
        "one that misses its partner",
        "a label that is no number",
    ],
)
def test_discouraged_words_are_found(text):
    assert any(pattern.search(text) for pattern in PATTERNS)


@pytest.mark.parametrize(
    "text",
    [
        "pre-quantized models need no calibration",
        "the model is already quantized and keeps its scales",
        "there is no scheduler, so the file is no longer read",
        "limit weights to 7 bits where two 8-bit products must fit 16 bits",
    ],
)
def test_plain_words_are_accepted(text):
    assert not any(pattern.search(text) for pattern in PATTERNS)
