"""The node tests of the onnx package: right in Python and in compiled C++, or refused with a reason; never wrong."""

import os
from collections import Counter
from pathlib import Path

import pytest
from operators_page import PAGE, page
from support.conformance_build import differences
from support.conformance_cases import EXCLUDED, LISTED, Case, Outcome, load_cases, run_case, share_of
from support.programs import need

SHARES, TODAY = 6, 0
"""CI runs one share of three, chosen by the name of the test; the slow tests run all."""
LEAST = 0.78
"""The share of all tests with reals that pass."""
GROUP = 90


def outcomes_of(cases: list[Case]) -> list[tuple[Case, Outcome]]:
    return [(case, run_case(case)) for case in cases]


def check(outcomes: list[tuple[Case, Outcome]]) -> None:
    wrong = [f"{case.name}: {outcome.reason}" for case, outcome in outcomes if outcome.state == "wrong"]
    assert not wrong, "\n".join(wrong)
    missing = [
        f"{case.name}: {outcome.reason}"
        for case, outcome in outcomes
        if case.operator in LISTED and outcome.state != "passed" and case.name not in EXCLUDED
    ]
    assert not missing, "listed operators:\n" + "\n".join(missing)
    for case, outcome in outcomes:
        if outcome.state == "refused":
            assert outcome.reason.startswith("N2D2-E") and ";" in outcome.reason, f"{case.name}: {outcome.reason}"


def test_a_part_in_python(capsys):
    outcomes = outcomes_of([case for case in load_cases() if share_of(case, SHARES) == TODAY])
    check(outcomes)
    report(outcomes, capsys)


@pytest.mark.slow
def test_all_in_python(capsys):
    outcomes = outcomes_of(list(load_cases()))
    check(outcomes)
    report(outcomes, capsys)
    reals = [outcome.state for case, outcome in outcomes if case.is_real]
    assert reals.count("passed") >= LEAST * len(reals)
    assert PAGE.read_text(encoding="utf-8") == page(outcomes), "run python tests/conformance/operators_page.py"


def report(outcomes: list[tuple[Case, Outcome]], capsys) -> None:
    with capsys.disabled():
        for title, chosen in (
            ("with reals", [o for c, o in outcomes if c.is_real]),
            ("of listed operators", [o for c, o in outcomes if c.operator in LISTED]),
        ):
            states = Counter(outcome.state for outcome in chosen)
            print(
                f"\nONNX node tests {title}: {states['passed']} of {len(chosen)} pass, {states['refused']} are refused, "
                f"{states['wrong']} are wrong",
                end="",
            )


def run_compiled(cases: list[Case], folder: Path) -> None:
    passed = [pair for pair in outcomes_of(cases) if pair[1].state == "passed"]
    assert passed
    lines = []
    for first in range(0, len(passed), GROUP):
        lines += differences(passed[first : first + GROUP], folder / str(first))
    assert not lines, "\n".join(lines)


@pytest.mark.slow
def test_a_part_compiled(tmp_path):
    need("g++")
    run_compiled([case for case in load_cases() if share_of(case, SHARES) == TODAY], tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(
    not os.environ.get("N2D2PY_NIGHTLY"), reason="the nightly sweep: N2D2PY_NIGHTLY=1 bin/test -m slow tests/conformance"
)
def test_the_others_compiled(tmp_path):
    need("g++")
    run_compiled([case for case in load_cases() if share_of(case, SHARES) != TODAY], tmp_path)
