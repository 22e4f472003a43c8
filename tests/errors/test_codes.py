"""The codes in the source: documented, each in one part of the tool, used by messages of the right form."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from support.error_cases import code_of, read_cases

import n2d2py
from n2d2py.docs import error_examples
from n2d2py.error_codes import CODES, FAMILIES, errors_page

PACKAGE = Path(n2d2py.__file__).parent
CASES = Path(__file__).parent / "cases"
CODE = re.compile(r"[EW]\d{3}")
PARTS = {
    "E007": {"options", "pipeline", "stages"},
    "E122": {"commands", "exports", "frontend", "ini"},
    "E216": {"frontend", "operators"},
    "E229": {"frontend", "operators"},
    "E208": {"frontend", "operators"},
    "E209": {"frontend", "operators"},
    "E210": {"frontend", "operators"},
    "E003": {"options", "stages"},
    "E012": {"cli", "report"},
    "W011": {"cli", "options"},
    "E101": {"commands", "exports", "ini", "stages"},
    "E301": {"frontend"},
    "E401": {"data", "stages"},
    "E414": {"data", "stages"},
    "E417": {"data", "stages"},
    "E410": {"data", "stages"},
    "E451": {"stages", "targets"},
    "E124": {"data", "frontend", "ini"},
    "E425": {"frontend", "training"},
    "E431": {"stages", "training"},
    "E504": {"operators", "quant"},
    "E508": {"quant", "stages"},
    "E509": {"pipeline", "results", "stages"},
    "E510": {"operators", "quant"},
    "W102": {"frontend", "ini", "stages"},
    "W109": {"exports", "stages"},
}
"""Codes that several parts of the tool use, for the same problem."""


def strings():
    """(part, file, line, text, parent) of each string that is a code."""
    for path in sorted(PACKAGE.rglob("*.py")):
        relative = path.relative_to(PACKAGE)
        if relative.name == "error_codes.py":
            continue
        for parent in ast.walk(ast.parse(path.read_text())):
            for child in ast.iter_child_nodes(parent):
                if isinstance(child, ast.Constant) and isinstance(child.value, str) and CODE.fullmatch(child.value):
                    yield relative.parts[0].removesuffix(".py"), relative.as_posix(), child.lineno, child.value, parent


USES = list(strings())
RAISED = [use for use in USES if isinstance(use[4], ast.Call)]


def test_every_code_is_documented_and_used():
    assert {code for _, _, _, code, _ in USES} == set(CODES)


def test_a_code_belongs_to_one_part_of_the_tool():
    parts: dict[str, set[str]] = {}
    for part, _, _, code, _ in RAISED:
        parts.setdefault(code, set()).add(part)
    shared = {code: found for code, found in parts.items() if len(found) > 1}
    assert shared == {code: found for code, found in PARTS.items() if code in shared}


def test_codes_are_in_the_families_of_their_modules():
    families = {
        "options": "0",
        "cli": "0",
        "resources": "0",
        "ini": "1",
        "operators": "25",
        "graph": "2",
        "frontend": "234",
        "data": "4",
        "targets": "24",
        "reference": "3",
        "quant": "5",
        "memory": "6",
        "exports": "78",
        "runtime": "8",
        "plugin": "05",
        "training": "4",
    }
    wrong = [
        (file, line, code)
        for part, file, line, code, _ in USES
        if part in families and code[1] not in families[part] and part not in PARTS.get(code, ())
    ]
    assert wrong == []


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((word.value for word in call.keywords if word.arg == name), None)


def raised_errors():
    for _, file, line, code, call in RAISED:
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        if name in ("N2D2Error", "warning") and call.args and getattr(call.args[0], "value", "") == code:
            yield pytest.param(call, id=f"{file}:{line} {code}")


@pytest.mark.parametrize("call", list(raised_errors()))
def test_a_message_has_a_remedy_and_no_full_stop(call):
    assert len(call.args) == 2
    assert keyword(call, "remedy") is not None or call.args[0].value in ("W502",)
    for text in (call.args[1], keyword(call, "remedy")):
        if isinstance(text, ast.Constant):
            assert text.value and not re.search(r"[^.]\.$", text.value) and "\n" not in text.value


def test_the_page_has_a_heading_for_every_code():
    headings = re.findall(r"^## ([EW]\d{3})$", errors_page(error_examples()), re.MULTILINE)
    assert sorted(headings) == sorted(CODES)
    assert {code[1] for code in CODES} == set(FAMILIES)


def test_every_code_has_an_example_of_its_own():
    examples = error_examples()
    assert set(examples) <= set(CODES)
    assert sorted(set(CODES) - set(examples)) == []
    assert [code for code, one in examples.items() if code_of(one["message"]) != code] == []


def test_examples_with_a_command_are_cases_that_still_give_their_code():
    """tests/errors/test_cases.py runs the cases."""
    cases = [case for path in CASES.glob("*.txt") for case in read_cases(path)]
    shown = {(case.title, code_of(line)) for case in cases for line in case.lines}
    examples = {code: one for code, one in error_examples().items() if "command" in one}
    hidden = [code for code, one in examples.items() if (one["title"], code) not in shown and code[0] == "E"]
    assert len(examples) > 100 and hidden == []


def test_meanings_and_remedies_are_clauses():
    for code, (meaning, remedy) in CODES.items():
        assert meaning and remedy, code
        assert not meaning.endswith(".") and not remedy.endswith("."), code


def test_cases_show_most_codes():
    """Few codes need more than an input to provoke: a missing package, a defect."""
    shown = set()
    for path in Path(__file__).resolve().parents[1].rglob("*"):
        if path.suffix in (".py", ".txt") and path.name != "test_codes.py":
            shown |= set(CODE.findall(path.read_text()))
    missing = sorted(set(CODES) - shown)
    assert len(missing) <= 0.12 * len(CODES), missing


def test_no_code_is_listed_twice():
    listed = re.findall(r'^    "([EW]\d{3})": \(', (PACKAGE / "error_codes.py").read_text(), re.MULTILINE)
    assert len(listed) == len(set(listed)) == len(CODES)
