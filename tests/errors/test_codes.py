"""The codes in the source: documented, each in one part of the tool, used by messages of the right form."""

import ast
import re
from pathlib import Path

import pytest
from support.error_cases import code_of, read_cases
from support.extra_targets import needs
from support.tables import every

import n2d2py
from n2d2py.docs import error_examples, errors_page
from n2d2py.error_codes import CODES, FAMILIES
from n2d2py.exports import find_target
from n2d2py.exports.registry import target_page

PACKAGE = Path(n2d2py.__file__).parent
NVDLA = Path(__file__).resolve().parents[2] / "plugins" / "nvdla" / "n2d2py_nvdla"
CASES = Path(__file__).parent / "cases"
CODE = re.compile(r"[EW]\d{3}")


def strings(package: Path):
    """(part, file, line, text, parent) of each string of a package that is a code."""
    for path in sorted(package.rglob("*.py")):
        relative = path.relative_to(package)
        if relative.name in ("error_codes.py", "codes.py"):
            continue
        for parent in ast.walk(ast.parse(path.read_text())):
            for child in ast.iter_child_nodes(parent):
                if isinstance(child, ast.Constant) and isinstance(child.value, str) and CODE.fullmatch(child.value):
                    yield relative.parts[0].removesuffix(".py"), relative.as_posix(), child.lineno, child.value, parent


USES = list(strings(PACKAGE))
OF_NVDLA = list(strings(NVDLA))
RAISED = [use for use in USES if isinstance(use[4], ast.Call)]


def test_every_code_is_documented_and_used():
    assert {code for _, _, _, code, _ in USES} == set(CODES)


@needs("NVDLA")
def test_an_extra_target_documents_its_own_codes_and_no_others():
    used, codes = {code for _, _, _, code, _ in OF_NVDLA}, find_target("NVDLA").codes
    assert set(codes) == used - set(CODES) and used & set(CODES) <= {"E704", "E705", "E711"}
    for code, texts in codes.items():
        assert code[1] in "79" and code in target_page(find_target("NVDLA"))
        assert all(text and not text.endswith(".") and "|" not in text for text in texts)


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((word.value for word in call.keywords if word.arg == name), None)


def raised_errors():
    for _, file, line, code, call in [*RAISED, *(use for use in OF_NVDLA if isinstance(use[4], ast.Call))]:
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        if name in ("N2D2Error", "warning") and call.args and getattr(call.args[0], "value", "") == code:
            yield pytest.param(call, id=f"{file}:{line} {code}")


@every("call", list(raised_errors()))
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


def test_no_code_is_listed_twice():
    listed = re.findall(r"^([EW]\d{3}): ", (PACKAGE / "error_codes.py").read_text(), re.MULTILINE)
    assert len(listed) == len(set(listed)) == len(CODES)
