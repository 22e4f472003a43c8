"""One mutant under the tests that run it."""

from __future__ import annotations

import enum
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from covering import Covering
from forked import forked
from imports import replace_code
from mutants import Mutant, SourceFile

__all__ = ["Outcome", "Result", "Trials"]


class Outcome(enum.Enum):
    """What became of a mutant. A mutant that takes too long is killed as well."""

    KILLED = "killed"
    LATE = "late"
    LIVES = "lives"


@dataclass(frozen=True)
class Result:
    """`by`: the first test that failed; `tests`: how many there were."""

    outcome: Outcome
    by: str
    tests: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.outcome.value} {self.seconds:.1f} s {self.by or f'({self.tests} tests)'}:"


class _FirstFailure:
    """Notes the first test that fails, or the file that cannot be imported."""

    def __init__(self) -> None:
        self.name = ""

    def pytest_runtest_logreport(self, report) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid

    def pytest_collectreport(self, report) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid


class Trials:
    """Runs mutants; what fails first is trusted once it passed without a mutant. `budget`: seconds of tests for each mutant, as
    they were collected; three times as many, and `least`, end it.
    """

    def __init__(self, package: str, covering: Covering, budget: float, least: float = 10.0):
        self.package, self.covering, self.budget, self.least = package, covering, budget, least
        self._sound: dict[str, bool] = {}

    def run(self, source: SourceFile, mutant: Mutant) -> Result:
        """The mutant under its tests, the fastest first, until one fails."""
        start = time.perf_counter()
        tests = self.covering.tests(mutant, source, self.budget)
        with mutant.applied():
            try:
                code = source.code()
            except (SyntaxError, ValueError):
                return Result(Outcome.KILLED, "compiling", len(tests), 0.0)
        while tests:
            failed, late = self._pytest(tests, str(source.path), code)
            if not failed and not late:
                break
            if late and self._pytest(tests) == ("", False):
                return Result(Outcome.LATE, "time", len(tests), time.perf_counter() - start)
            if failed and self._is_sound(failed, tests):
                return Result(Outcome.KILLED, failed, len(tests), time.perf_counter() - start)
            tests = tests[: len(tests) // 2] if late else [test for test in tests if not test.startswith(failed)]
        return Result(Outcome.LIVES, "", len(tests), time.perf_counter() - start)

    def _pytest(self, tests: list[str], path: str | None = None, code=None) -> tuple[str, bool]:
        """The first of the tests that fails, empty when none does, and whether time was up."""

        def work(folder: Path) -> str:
            replace_code(self.package, lambda name: code if name == path else None)
            plugin = _FirstFailure()
            options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no", "--basetemp", str(folder)]
            status = pytest.main([*options, *tests], plugins=[plugin])
            return plugin.name or ("" if status == pytest.ExitCode.OK else tests[0].split("::")[0])

        planned = sum(self.covering.seconds[test] for test in tests)
        done = forked(work, self.least + 3 * planned)
        if done.value is None:
            return ("" if done.late else tests[0]), done.late
        return done.value, False

    def _is_sound(self, failed: str, tests: list[str]) -> bool:
        """Whether what failed passes without a mutant: the test alone, or one of the file that could not be imported."""
        name = (
            failed if failed in self.covering.seconds else next((test for test in tests if test.startswith(failed)), tests[0])
        )
        if name not in self._sound:
            self._sound[name] = self._pytest([name]) == ("", False)
        return self._sound[name]
