"""The node tests of the onnx package by operator: what docs/operators.md says of each, in Python.

The whole page is compared by `test_node_conformance.py`; here a failure names its operator, which the mutation tests need too.
"""

from __future__ import annotations

import pytest
from operators_page import PAGE, row
from support.conformance_cases import load_cases, run_case

pytestmark = pytest.mark.slow

SEVERAL = "(networks of several)"
ROWS = {
    line.split("|")[1].removesuffix(" * ").strip(): line
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and " of " in line
}


def warm() -> None:
    """Reads the tests of the package, which takes longer than to run them."""
    load_cases()


@pytest.mark.parametrize("operator", ROWS)
def test_what_the_page_says(operator):
    cases = [case for case in load_cases() if case.operator == (operator if operator != SEVERAL else "")]
    assert row(operator, [(case, run_case(case)) for case in cases]) == ROWS[operator]
