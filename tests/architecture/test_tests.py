"""Tests share code through tests/support, never through another test module."""

import ast
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def imported(path: Path) -> list[tuple[int, str]]:
    """(line, module) of every import of a file, those inside functions included."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append((node.lineno, node.module))
    return found


def test_no_test_module_is_imported():
    wrong = [
        f"{path.relative_to(TESTS)}:{line} imports {module}"
        for path in sorted(TESTS.rglob("*.py"))
        for line, module in imported(path)
        if module.split(".")[-1].startswith("test_")
    ]
    assert wrong == []


def test_support_imports_no_folder_of_tests():
    """What is in tests/support can be used from every folder: it needs none of them in the path."""
    local = {path.stem for path in TESTS.rglob("*.py") if path.parent != TESTS / "support"}
    wrong = [
        f"{path.name}:{line} imports {module}"
        for path in sorted((TESTS / "support").glob("*.py"))
        for line, module in imported(path)
        if module in local
    ]
    assert wrong == []
