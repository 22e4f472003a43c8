"""Mutants under the tests that run them.

Inside of one session of pytest, where everything is imported and collected: each mutant is a fork of it whose functions are
patched. What runs when its file is imported is tried in a process that imports the changed file instead.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest
from covering import Covering
from forked import forked
from imports import replace_code
from mutants import Mutant, SourceFile
from patching import patch

__all__ = ["Outcome", "Result", "Trials"]

OPTIONS = ["-q", "-m", "", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no"]


_UNPATCHED = "nothing to patch"


class Outcome(enum.Enum):
    """What became of a mutant. One that takes too long is killed as well, undecided where its tests do so without it too."""

    KILLED = "killed"
    LATE = "late"
    LIVES = "lives"
    UNDECIDED = "undecided"


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


class _Session:
    """Takes the place of the loop over all tests; what modules of tests prepare with `warm` is there for every mutant."""

    def __init__(self, work: Callable[[dict[str, pytest.Item]], None]):
        self.work = work

    def pytest_runtestloop(self, session) -> bool:
        for module in {item.module for item in session.items if hasattr(item.module, "warm")}:
            module.warm()
        self.work({item.nodeid: item for item in session.items})
        return True


Runner = Callable[[list[str], Path, "Change | None"], str]
"""Runs tests in the process it is called in: the first that fails, or nothing."""


@dataclass(frozen=True)
class Change:
    """A file of the package, its code and the code of its mutant."""

    path: str
    before: object
    after: object


def _in_session(items: dict[str, pytest.Item]) -> Runner:
    def run(tests: list[str], folder: Path, change: Change | None) -> str:
        if change is not None and not patch(change.path, change.before, change.after):
            return _UNPATCHED
        chosen = [items[test] for test in tests if test in items]
        config, plugin = chosen[0].config, _FirstFailure()
        config._tmp_path_factory._given_basetemp = folder
        config.pluginmanager.register(plugin)
        for item, following in zip(chosen, [*chosen[1:], None], strict=True):
            config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if plugin.name:
                break
        return plugin.name

    return run


def _afresh(package: str) -> Runner:
    def run(tests: list[str], folder: Path, change: Change | None) -> str:
        replace_code(package, lambda name: change.after if change is not None and name == change.path else None)
        plugin = _FirstFailure()
        status = pytest.main([*OPTIONS, "-x", "--basetemp", str(folder), *tests], plugins=[plugin])
        return plugin.name or ("" if status == pytest.ExitCode.OK else tests[0].split("::")[0])

    return run


class Trials:
    """Runs mutants; what fails first is trusted once it passed without a mutant. `budget`: seconds of tests for each mutant, as
    they were collected; three times as many, and `least`, end it.
    """

    def __init__(self, package: str, covering: Covering, budget: float, least: float = 10.0):
        self.package, self.covering, self.budget, self.least = package, covering, budget, least
        self._sound: dict[str, bool] = {}

    def run_all(self, drawn: list[tuple[SourceFile, Mutant]], say: Callable[[int, Result], None]) -> list[Result]:
        """A result for each mutant; `say` hears it with its number."""
        start = time.perf_counter()

        def work(folder: Path) -> list[Result | None]:
            results: list[Result | None] = [None] * len(drawn)

            def loop(items: dict[str, pytest.Item]) -> None:
                for name in {source.module for source, _ in drawn}:  # the tool loads some of its modules late
                    import_module(name)
                for at, (source, mutant) in enumerate(drawn):
                    if not self.covering.runs_at_import(mutant):
                        results[at] = result = self._run(source, mutant, _in_session(items))
                        if result is not None:
                            say(at, result)

            files = sorted({test.split("::")[0] for test in self.covering.seconds})
            pytest.main([*OPTIONS, "-s", "--continue-on-collection-errors", *files], plugins=[_Session(loop)])
            return results

        done = forked(work, 1e6)
        if done.value is None:
            raise RuntimeError(f"the session ended after {time.perf_counter() - start:.0f} s:\n{done.text[-3000:]}")
        self._sound.clear()
        results: list[Result] = []
        for at, ((source, mutant), result) in enumerate(zip(drawn, done.value, strict=True)):
            if result is None:
                result = self._run(source, mutant, _afresh(self.package))
                say(at, result)
            results.append(result)
        return results

    def _run(self, source: SourceFile, mutant: Mutant, runner: Runner) -> Result | None:
        """The mutant under its tests until one fails; None where no function runs its code."""
        start = time.perf_counter()
        tests = self.covering.tests(mutant, source, self.budget)
        before = source.code()
        with mutant.applied():
            try:
                change = Change(str(source.path), before, source.code())
            except (SyntaxError, ValueError):
                return Result(Outcome.KILLED, "compiling", len(tests), 0.0)
        cut = False
        while tests:
            failed, late = self._fork(runner, tests, change)
            if failed == _UNPATCHED:
                return None
            if not failed and not late:
                break
            if late and self._fork(runner, tests, None) == ("", False):
                return Result(Outcome.LATE, "time", len(tests), time.perf_counter() - start)
            if failed and self._is_sound(runner, failed, tests):
                return Result(Outcome.KILLED, failed, len(tests), time.perf_counter() - start)
            cut |= late
            tests = tests[: len(tests) // 2] if late else [test for test in tests if not test.startswith(failed)]
        return Result(Outcome.UNDECIDED if cut else Outcome.LIVES, "", len(tests), time.perf_counter() - start)

    def _fork(self, runner: Runner, tests: list[str], change: Change | None) -> tuple[str, bool]:
        """The first of the tests that fails, empty when none does, and whether time was up."""
        planned = sum(self.covering.seconds[test] for test in tests)
        done = forked(lambda folder: runner(tests, folder, change), self.least + 3 * planned)
        if done.value is None:
            return ("" if done.late else tests[0]), done.late
        return done.value, False

    def _is_sound(self, runner: Runner, failed: str, tests: list[str]) -> bool:
        """Whether what failed passes without a mutant: the test alone, or one of the file that could not be imported."""
        name = (
            failed if failed in self.covering.seconds else next((test for test in tests if test.startswith(failed)), tests[0])
        )
        if name not in self._sound:
            self._sound[name] = self._fork(runner, [name], None) == ("", False)
        return self._sound[name]
