"""Which test runs which statement, and how long it takes: collected once for each test file, kept outside of the repository.

Each statement of the package is preceded by a note of itself. A test is credited with the statements that it runs, and with those
of every fixture of a wider scope that it uses. Tests that fail, are skipped, or run the package in another process count for nothing;
those that run no function may look at what a module holds when it is imported.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from forked import forked
from imports import replace_code
from mutants import Mutant, SourceFile

__all__ = ["Covering", "collect", "ran_at_import"]

Statement = tuple[str, str, int]
"""File, qualified name of the function, lines from its head."""


class _Notes:
    """The statements of the package, numbered as modules are imported, and the set of those that ran."""

    def __init__(self, root: Path, package: str):
        self.root, self.package = root, root / package
        self.statements: list[Statement] = []
        self.ran: set[int] = set()

    def code(self, path: str):
        """The file's code with a note before each statement of a function."""
        if not Path(path).is_relative_to(self.package):
            return None
        tree = ast.parse(Path(path).read_text(encoding="utf-8"))
        name = Path(path).relative_to(self.root).as_posix()
        tree.body.insert(_after_imports_of_the_future(tree), ast.parse("from covering_notes import ran as _ran_").body[0])
        self._note(tree, name, "", 0)
        return compile(ast.fix_missing_locations(tree), path, "exec")

    def _note(self, node: ast.AST, file: str, function: str, head: int) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self._note(child, file, f"{function}.{child.name}" if function else child.name, child.lineno)
            elif isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
                self._note(child, file, function, head)
        if not function or isinstance(node, ast.ClassDef):
            return
        for part in ("body", "orelse", "finalbody"):
            body = getattr(node, part, None)
            if isinstance(body, list):
                noted = []
                for statement in body:
                    noted += [self._mark(file, function, statement.lineno - head), statement]
                setattr(node, part, noted)

    def _mark(self, file: str, function: str, offset: int) -> ast.stmt:
        self.statements.append((file, function, offset))
        return ast.parse(f"_ran_.add({len(self.statements) - 1})").body[0]


def _after_imports_of_the_future(tree: ast.Module) -> int:
    at = 0
    for index, node in enumerate(tree.body):
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            at = index + 1
    return at or (1 if ast.get_docstring(tree) else 0)


def _seconds() -> float:
    """Processor time of this process and the ended ones below it: the same on a busy machine."""
    return sum(os.times()[:4])


class _Plugin:
    """Takes the notes of each test and each fixture of a wider scope."""

    def __init__(self, notes: _Notes):
        self.notes = notes
        self.fixtures: dict[int, tuple[set[int], float]] = {}
        self.tests: dict[str, tuple[set[int], float]] = {}
        self.bad: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef, request):
        if fixturedef.scope == "function":
            return (yield)
        ran = self.notes.ran
        outer, start = set(ran), _seconds()
        ran.clear()
        try:
            return (yield)
        finally:
            before, seconds = self.fixtures.get(id(fixturedef), (set(), 0.0))
            self.fixtures[id(fixturedef)] = (before | ran, max(seconds, _seconds() - start))
            ran |= outer

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item, nextitem):
        ran, start = self.notes.ran, _seconds()
        ran.clear()
        result = yield
        seconds = _seconds() - start
        mine = set(ran)
        for definitions in item._fixtureinfo.name2fixturedefs.values():
            for each in definitions:
                more, cost = self.fixtures.get(id(each), (set(), 0.0))
                mine |= more
                seconds = max(seconds, cost)
        self.tests[item.nodeid] = (mine, seconds)
        return result

    def pytest_runtest_logreport(self, report):
        if report.outcome != "passed":
            self.bad.add(report.nodeid)


def _noting(root: Path, package: str) -> _Notes:
    """The notes of this process, from now on."""
    notes, module = _Notes(root, package), ModuleType("covering_notes")
    module.ran = notes.ran
    sys.modules["covering_notes"] = module
    replace_code(package, notes.code)
    return notes


def _run_file(root: Path, package: str, test_file: str, marks: str, folder: Path) -> dict:
    notes = _noting(root, package)
    plugin = _Plugin(notes)
    options = ["-q", "-m", marks, "-p", "no:cacheprovider", "-p", "no:xdist", "--basetemp", str(folder)]
    pytest.main([*options, test_file], plugins=[plugin])
    used = sorted(set().union(*(ran for ran, _ in plugin.tests.values()))) if plugin.tests else []
    number = {each: at for at, each in enumerate(used)}
    return {
        "statements": [notes.statements[each] for each in used],
        "tests": {
            test: [round(seconds, 4), sorted(number[each] for each in ran)]
            for test, (ran, seconds) in plugin.tests.items()
            if test not in plugin.bad
        },
    }


def _import_all(root: Path, package: str, modules: Iterable[str], folder: Path) -> list[Statement]:
    notes = _noting(root, package)
    for name in modules:
        import_module(name)
    return [notes.statements[each] for each in sorted(notes.ran)]


def ran_at_import(root: Path, package: str, modules: Iterable[str]) -> set[Statement]:
    """The statements of functions that run when the modules are imported, whichever test comes first."""
    done = forked(partial(_import_all, root, package, list(modules)), 600.0)
    if done.value is None:
        raise RuntimeError(f"the package cannot be imported:\n{done.text[-3000:]}")
    return set(done.value)


def collect(
    root: Path, package: str, folders: Iterable[str], cache: Path, seconds: float, say, slow: Iterable[str] = ()
) -> list[Path]:
    """Runs the test files under `folders` that changed since they were last collected; the records, one a file.

    Slow tests run in the files of `slow` only, which are added to them.
    """
    cache.mkdir(parents=True, exist_ok=True)
    records = []
    paths = {path for folder in folders for path in (root / folder).rglob("test_*.py")} | {root / name for name in slow}
    for path in sorted(paths):
        name = path.relative_to(root).as_posix()
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        record = cache / f"{name.replace('/', '+')}.{digest}.json"
        if not record.exists():
            start = time.perf_counter()
            done = forked(partial(_run_file, root, package, name, "" if name in slow else "not slow"), seconds)
            value = done.value if done.value is not None else {"statements": [], "tests": {}}
            for old in cache.glob(f"{name.replace('/', '+')}.*.json"):
                old.unlink(missing_ok=True)
            record.write_text(json.dumps(value), encoding="utf-8")
            took = time.perf_counter() - start
            say(f"{name}: {len(value['tests'])} tests, {took:.1f} s{'' if done.value is not None else ': not finished'}")
        records.append(record)
    return records


_TURN = 0.005
"""Seconds that a test takes beside its own."""
_NO_PATHS: Mapping[str, frozenset[tuple[str, int]]] = {}


@dataclass
class Covering:
    """The tests by what they run."""

    seconds: dict[str, float]
    by_statement: dict[Statement, list[str]]
    by_function: dict[tuple[str, str], set[str]]
    by_file: dict[str, set[str]]
    at_import: set[Statement] = field(default_factory=set)
    tables: set[str] = field(default_factory=set)
    _texts: dict[str, str] = field(default_factory=dict)
    _ways: dict[str, dict[str, frozenset[tuple[str, int]]]] = field(default_factory=dict)

    @classmethod
    def read(cls, records: Iterable[Path]) -> Covering:
        """From the records of `collect`."""
        found = cls({}, {}, {}, {})
        for record in records:
            data = json.loads(record.read_text(encoding="utf-8"))
            statements = [tuple(each) for each in data["statements"]]
            for test, (seconds, ran) in data["tests"].items():
                found.seconds[test] = seconds
                for at in ran:
                    file, function, _ = statement = statements[at]
                    found.by_statement.setdefault(statement, []).append(test)
                    found.by_function.setdefault((file, function), set()).add(test)
                    found.by_file.setdefault(file, set()).add(test)
        return found

    def runs_at_import(self, mutant: Mutant) -> bool:
        """Whether what is mutated runs, or may run, when its file is imported."""
        place = (mutant.file, mutant.function, mutant.offset)
        return bool(mutant.names) or not mutant.function or place in self.at_import

    def tests(self, mutant: Mutant, source: SourceFile, budget: float) -> list[str]:
        """The tests that run what is mutated, of each function in turn, as many as take `budget` seconds together: first, for half of the
        time, those of files that name its module, which look at what it does, and until three quarters those of files called
        `test_same_*`, which compare all that comes out with a record.

        A statement of a module or class runs at import: the tests are those of the functions that use its names, else of the file,
        those of `tables`, and those of files that name the module, which may read it. So are they for what such a statement calls.
        """
        found: Iterable[str] = ()
        if mutant.names or not mutant.function:
            users = source.users(mutant.names)
            found = set().union(*(self.by_function.get((mutant.file, name), set()) for name in users))
            found = (found or self.by_file.get(mutant.file, set())) | self.tables | self._naming(source.module)
            return self._chosen(found, budget, source.module, mutant)
        elif not self.runs_at_import(mutant):
            found = self.by_statement.get((mutant.file, mutant.function, mutant.offset), ())
            found = found or self.by_function.get((mutant.file, mutant.function), ())
        return self._chosen(found or self.by_file.get(mutant.file, ()), budget, source.module, mutant)

    def _chosen(self, tests: Iterable[str], budget: float, module: str, mutant: Mutant | None = None) -> list[str]:
        paths = self._paths(mutant.file) if mutant is not None else {}
        function = mutant.function if mutant is not None else ""
        left, chosen, spent = set(tests), [], 0.0
        about = {test for test in left if self._names(test, module)}
        records = {test for test in left if "/test_same_" in test}
        for each, end in ((about, budget / 2), (records, budget * 3 / 4), (left, budget)):
            more = list(self._within(each - set(chosen), end - spent, paths, function))
            spent += sum(self.seconds[test] + _TURN for test in more)
            chosen += more
        return chosen

    def _paths(self, file: str) -> dict[str, frozenset[tuple[str, int]]]:
        """What each test runs of a file: functions and lines from their heads."""
        if file not in self._ways:
            ran: dict[str, set[tuple[str, int]]] = {}
            for (name, function, offset), tests in self.by_statement.items():
                if name == file:
                    for test in tests:
                        ran.setdefault(test, set()).add((function, offset))
            self._ways[file] = {test: frozenset(each) for test, each in ran.items()}
        return self._ways[file]

    def _naming(self, module: str) -> set[str]:
        """The tests of files that name a module."""
        files = {file for file in {test.split("::")[0] for test in self.seconds} if self._names(file, module)}
        return {test for test in self.seconds if test.split("::")[0] in files}

    def _names(self, test: str, module: str) -> bool:
        """Whether the file of a test names a module, or, as tests of operators in a folder do, the package that it is in."""
        file = test.split("::")[0]
        if file not in self._texts:
            self._texts[file] = Path(file).read_text(encoding="utf-8") if Path(file).is_file() else ""
        package = module.rpartition(".")[0] if module.count(".") > 2 else module
        return any(re.search(rf"\b{re.escape(name)}\b(?!\.)", self._texts[file]) for name in {module, package})

    def _within(
        self,
        tests: Iterable[str],
        budget: float,
        paths: Mapping[str, frozenset[tuple[str, int]]] = _NO_PATHS,
        function: str = "",
    ) -> Iterator[str]:
        """Of each test function in turn one case, the long ones last, as far as the time goes; of its cases first those that take
        other ways through the file (`paths`), and of these first those that take another way through the mutated function; else in any
        order that is always the same: the fastest are those that see least."""
        functions: dict[str, list[str]] = {}
        for test in sorted(tests, key=lambda test: (self.seconds[test] > budget / 100, zlib.crc32(test.encode()))):
            functions.setdefault(test.split("[")[0], []).append(test)
        turns = sorted(
            (turn, self.seconds[test], test)
            for each in functions.values()
            for turn, test in enumerate(_other_ways_first(each, paths, function))
        )
        spent = 0.0
        for _, _, test in turns:
            cost = self.seconds[test] + _TURN
            if spent + cost <= budget:
                spent += cost
                yield test


def _other_ways_first(tests: list[str], paths: Mapping[str, frozenset[tuple[str, int]]], function: str) -> list[str]:
    """The tests, those last whose way through the file was taken by others before them, then those of the function's."""
    seen: Counter[frozenset[tuple[str, int]]] = Counter()
    turns: dict[str, tuple[int, int]] = {}
    for test in tests:
        whole = paths.get(test, frozenset())
        inner = frozenset(each for each in whole if each[0] == function)
        turns[test] = seen[whole], seen[inner]
        seen.update({whole, inner})
    return sorted(tests, key=turns.__getitem__)
