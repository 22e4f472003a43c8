"""The codes in the source: documented, each in one part of the tool, used by messages of the right form."""

import ast
import re
from functools import cache
from pathlib import Path

import error_codes
import pytest
from error_codes import CODES, FAMILIES
from generate import error_examples, errors_page, target_page
from support.error_cases import code_of, read_cases
from support.extra_targets import INSTALLED

import n2d2py
from n2d2py.exports import find_target
from n2d2py.exports.registry import EXTRAS

PACKAGE = Path(n2d2py.__file__).parent
PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
CASES = Path(__file__).parent / "cases"
CODE = re.compile(r"[EW]\d{3}")


@cache
def strings(package: Path):
    """(part, file, line, text, parent) of each string of a package that is a code."""
    found = []
    for path in sorted(package.rglob("*.py")):
        relative = path.relative_to(package)
        if relative.name == "codes.py":
            continue
        for parent in ast.walk(ast.parse(path.read_text())):
            for child in ast.iter_child_nodes(parent):
                if isinstance(child, ast.Constant) and isinstance(child.value, str) and CODE.fullmatch(child.value):
                    found.append(
                        (relative.parts[0].removesuffix(".py"), relative.as_posix(), child.lineno, child.value, parent)
                    )
    return found


def test_every_code_is_documented_and_used():
    assert {code for _, _, _, code, _ in strings(PACKAGE)} == set(CODES)


@pytest.mark.parametrize("name", sorted(INSTALLED))
def test_an_extra_target_documents_its_own_codes_and_no_others(name):
    target = find_target(name)
    used = {code for _, _, _, code, _ in strings(PLUGINS / EXTRAS[name])}
    assert set(target.codes) == used - set(CODES)
    for code, texts in target.codes.items():
        assert code[1] in "79" and code in target_page(target)
        assert all(text and not text.endswith(".") and "|" not in text for text in texts)


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((word.value for word in call.keywords if word.arg == name), None)


def raised_errors():
    """(where, call) of each call that raises an error or gives a warning."""
    for _, file, line, code, call in strings(PACKAGE) + strings(PLUGINS):
        name = getattr(call.func, "id", None) or getattr(call.func, "attr", "") if isinstance(call, ast.Call) else ""
        if name in ("N2D2Error", "warning") and call.args and getattr(call.args[0], "value", "") == code:
            yield f"{file}:{line} {code}", call


def is_complete(call: ast.Call) -> bool:
    texts = [text.value for text in (call.args[1], keyword(call, "remedy")) if isinstance(text, ast.Constant)]
    return (
        len(call.args) == 2
        and (keyword(call, "remedy") is not None or call.args[0].value in ("W502",))
        and all(text and not re.search(r"[^.]\.$", text) and "\n" not in text for text in texts)
    )


def test_messages_have_a_remedy_and_no_full_stop():
    calls = list(raised_errors())
    assert len(calls) > 500
    assert [where for where, call in calls if not is_complete(call)] == []


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


def test_no_code_is_listed_twice():
    listed = re.findall(r"^([EW]\d{3}): ", Path(error_codes.__file__).read_text(), re.MULTILINE)
    assert len(listed) == len(set(listed)) == len(CODES)
