"""Tests share code through tests/support, which needs none of their folders in the path; no test module is imported."""

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
LOCAL = "|".join(path.stem for path in TESTS.rglob("*.py") if path.parent != TESTS / "support")


def test_what_may_be_imported():
    wrong = []
    for path in sorted(TESTS.rglob("*.py")):
        names = rf"(?:{LOCAL})" if path.parent == TESTS / "support" else r"(?:[\w.]+\.)?test_\w+"
        imported = re.compile(rf"^ *(?:from {names} import|import {names}$)", re.MULTILINE)
        wrong += [f"{path.relative_to(TESTS)}: {found[0]}" for found in imported.finditer(path.read_text(encoding="utf-8"))]
    assert wrong == []
