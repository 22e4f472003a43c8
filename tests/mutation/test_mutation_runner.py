"""The runner itself: which mutants a text has, that they are known by more than their lines, that tests kill what they notice."""

from __future__ import annotations

import ast
from itertools import product
from pathlib import Path

import onnx.defs
import pytest
from changes import last_name
from covering import Covering, _other_ways_first, collect, ran_at_import
from equal_operators import ONE_INPUT_CONVERTERS
from equivalent import EQUIVALENT, ONE_INPUT, ONE_INPUT_LAYERS, reason_of
from mutants import SourceFile
from patching import patch
from trial import Outcome, Trials

from n2d2py.memory.access import Access, Pointwise, TensorSpec

ROOT = Path(__file__).resolve().parents[2]


def mutants(folder: Path, text: str) -> list:
    (folder / "module.py").write_text(text, encoding="utf-8")
    return SourceFile(folder, folder / "module.py").mutants


def changes(folder: Path, text: str) -> set[tuple[str, str]]:
    return {(mutant.original, mutant.mutated) for mutant in mutants(folder, text)}


@pytest.mark.parametrize(
    "text, found",
    [
        ("a < b", {("a < b", "a <= b"), ("a < b", "a >= b")}),
        ("a == 'x'", {("a == 'x'", "a != 'x'"), ("a == 'x'", "a == 'x_'")}),
        ("a in ('x', b)", {("a in ('x', b)", "a not in ('x', b)"), ("a in ('x', b)", "a in ('x_', b)")}),
        ("a and b", {("a and b", "a or b"), ("a and b", "a"), ("a and b", "b")}),
        ("not a", {("not a", "a")}),
        ("a // b", {("a // b", "a * b")}),
        ("f(a, b, c)", {("f(a, b, c)", "f(b, a, c)")}),
        ("max(a, b)", {("max(a, b)", "min(a, b)")}),
        ("x.any()", {("x.any()", "x.all()")}),
        ("a[0]", {("a[0]", "a[1]"), ("a[0]", "a[-1]")}),
        ("True", {("True", "False")}),
        ("a if b else c", {("b", "True"), ("b", "False")}),
        ("[a for a in b if c]", {("c", "True"), ("c", "False")}),
        ("zip(a, b, strict=True)", {("zip(a, b, strict=True)", "zip(b, a, strict=True)")}),
        ("np.minimum(a, b)", set()),
        ("table.equal(a, b)", {("table.equal(a, b)", "table.equal(b, a)")}),
        ("a.reshape(-1)", {("a.reshape(-1)", "a.reshape(1)"), ("a.reshape(-1)", "a.reshape(-0)")}),
        ("a.reshape((-1, b))", {("a.reshape((-1, b))", "a.reshape((1, b))"), ("a.reshape((-1, b))", "a.reshape((-0, b))")}),
        (
            "a.reshape((-1,) + b)",
            {("a.reshape((-1,) + b)", f"a.reshape({other} b)") for other in ("(1,) +", "(-0,) +", "(-1,) -")},
        ),
        ("a.sum(-1)", {("a.sum(-1)", "a.sum(1)"), ("a.sum(-1)", "a.sum(-2)"), ("a.sum(-1)", "a.sum(-0)")}),
        ("a.astype(b, copy=False)", set()),
        ("f(copy=False)", {("f(copy=False)", "f(copy=True)")}),
        ("f'{a + 1}'", set()),
        ("N2D2Error('E1', a + 1)", set()),
        ("log.warning('W1', a + 1)", set()),
    ],
)
def test_expressions(tmp_path, text, found):
    assert changes(tmp_path, f"value = {text}\n") == found


@pytest.mark.parametrize(
    "text, found",
    [
        ("return a", {("return a", "return None")}),
        ("return None", set()),
        ("raise ValueError(a + 1)", {("raise ValueError(a + 1)", "pass")}),
        ("a += 1", {("a += 1", "pass"), ("a += 1", "a -= 1"), ("1", "2"), ("1", "0")}),
        ("a.b = c", {("a.b = c", "pass")}),
        ("a = c", set()),
        ("f(a)", {("f(a)", "pass")}),
        ("log.notice('a', b)", set()),
        ("assert a < b", set()),
        ("a: int | None = b", set()),
        ("if a: f", {("a", "True"), ("a", "False")}),
        ("while a: break", {("a", "False"), ("break", "pass"), ("break", "continue")}),
        ("for a in b: continue", {("continue", "pass"), ("continue", "break")}),
        ("with a < b: pass", {("a < b", "a <= b"), ("a < b", "a >= b")}),
        ("try: pass\n    except E: f(a)\n    finally: g(a)", {("f(a)", "pass"), ("g(a)", "pass")}),
    ],
)
def test_statements(tmp_path, text, found):
    """In a function, whose docstring, decorator and annotations stay."""
    assert changes(tmp_path, f'@d(1)\ndef f(a: list[1]) -> dict[2]:\n    "text"\n    {text}\n') == found


def test_defaults_and_names(tmp_path):
    (mutant,) = mutants(tmp_path, "__all__ = [1]\nclass A:\n    def f(self, x=True):\n        pass\n")
    assert (mutant.function, mutant.names, mutant.line) == ("A", ("f",), 3)


def test_a_mutant_is_known_where_lines_move(tmp_path):
    text = "def f(a):\n    return a + 1\n"
    first, moved = mutants(tmp_path, text), mutants(tmp_path, f"b = c\n\n\n{text}")
    assert [mutant.key for mutant in first] == [mutant.key for mutant in moved]
    assert [mutant.line + 3 for mutant in first] == [mutant.line for mutant in moved]
    assert [mutant.offset for mutant in first] == [mutant.offset for mutant in moved]


def test_a_change_is_taken_back(tmp_path):
    (tmp_path / "module.py").write_text("def f(a, b):\n    return [a - b, 1][0]\n")
    source = SourceFile(tmp_path, tmp_path / "module.py")

    def result() -> int:
        space: dict = {}
        exec(source.code(), space)
        return space["f"](5, 3)

    for mutant in source.mutants:
        if "a + b" in mutant.mutated:
            with mutant.applied():
                assert result() == 8
        assert result() == 2


def test_equivalent_mutants_have_reasons():
    assert len({entry.key for entry in EQUIVALENT}) == len(EQUIVALENT)
    for entry in EQUIVALENT:
        assert len(entry.reason) > 20 and entry.original != entry.mutated


def test_equivalent_mutants_exist():
    files = {entry.file: SourceFile(ROOT, ROOT / entry.file) for entry in EQUIVALENT}
    known = {mutant.key for source in files.values() for mutant in source.mutants}
    assert [entry.key for entry in EQUIVALENT if entry.key not in known] == []


SAMPLE = '''"""A package."""

LIMIT = 1


def table(size):
    return [2] * size


TABLE = table(2)


def clamp(value):
    if value < 0:
        return 0
    return min(value, LIMIT + TABLE[1])


def unseen(value):
    return value + 1


def endless(value):
    while value:
        value = value // 2
    return 7
'''
SAMPLE_TESTS = """
import pytest
import sample.module


@pytest.fixture(scope="module")
def high():
    return sample.module.clamp(10)


def test_high(high):
    assert high == 3


def test_low():
    assert sample.module.clamp(-5) == 0


def test_endless():
    assert sample.module.endless(3) == 7


def test_wrong():
    assert sample.module.unseen(1) == 5
"""


@pytest.mark.slow
def test_what_tests_notice(tmp_path, monkeypatch):
    """Mutants that a test notices are killed, by that test; failing tests, and code that no test runs, kill none."""
    (tmp_path / "sample").mkdir()
    (tmp_path / "sample" / "__init__.py").write_text("")
    module = tmp_path / "sample" / "module.py"
    module.write_text(SAMPLE)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_sample.py").write_text(SAMPLE_TESTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    told: list[str] = []
    for _ in range(2):  # what is collected stays
        covering = Covering.read(collect(tmp_path, "sample", ["tests"], tmp_path / "cache", 60, told.append))
    assert len(told) == 1 and told[0].startswith("tests/test_sample.py: 3 tests")
    assert covering.by_function["sample/module.py", "clamp"] == {
        f"tests/test_sample.py::test_{name}" for name in ("high", "low")
    }
    covering.at_import = ran_at_import(tmp_path, "sample", ["sample.module"])
    assert covering.at_import == {("sample/module.py", "table", 1)}
    source, trials = SourceFile(tmp_path, module), Trials("sample", covering, 10.0, least=0.5)
    told.clear()
    drawn = [(source, mutant) for mutant in source.mutants]
    found = trials.run_all(drawn, lambda at, result: told.append(str(result)))
    results = {mutant.key[1:]: result for (_, mutant), result in zip(drawn, found, strict=True)}
    lives = {key for key, result in results.items() if result.outcome is Outcome.LIVES}
    assert lives >= {(name, a, b) for name, a, b in results if name == "unseen"}
    assert {key for key in lives if key[0] != "unseen"} == {
        ("clamp", "value < 0", "value <= 0"),
        ("clamp", "value < 0", "value < 1"),
        ("clamp", "value < 0", "value < -1"),
        ("clamp", "min(value, LIMIT + TABLE[1])", "min(value, LIMIT + TABLE[0])"),
        ("", "table(2)", "table(3)"),
        ("endless", "value", "False"),
        ("endless", "value // 2", "value // 3"),
    }
    assert results["", "1", "2"].by == "tests/test_sample.py::test_high"
    assert results["table", "[2] * size", "[3] * size"].by == "tests/test_sample.py::test_high"
    assert results["clamp", "value < 0", "False"].by == "tests/test_sample.py::test_low"
    assert results["endless", "value // 2", "value * 2"].outcome is Outcome.LATE
    assert module.read_text() == SAMPLE


@pytest.mark.parametrize(("changed", "done"), [("add(value, 2)", True), ("None", False)])
def test_functions_within_others_change_where_python_can_exchange_them(tmp_path, changed, done):
    """Where no variable of the outer function is left, the change needs a fresh import."""
    path = tmp_path / "sample.py"
    text = "def outer(add):\n    def inner(value):\n        return add(value, 1)\n    return inner\n"
    before, names = compile(text, str(path), "exec"), {}
    exec(before, names)
    inner = names["outer"](lambda a, b: a + b)
    after = compile(text.replace("add(value, 1)", changed), str(path), "exec")
    assert patch(str(path), before, after) is done
    assert inner(5) == (7 if done else 6)


def test_tests_that_are_late_without_the_change_decide_nothing(tmp_path, monkeypatch):
    module = tmp_path / "sample.py"
    module.write_text("def f(a):\n    return a + 1\n")
    source = SourceFile(tmp_path, module)
    covering = Covering({"tests/test_a.py::test_a": 1.0}, {}, {}, {})
    trials = Trials("sample", covering, 10.0)
    monkeypatch.setattr(trials, "_fork", lambda runner, tests, change: ("", True))
    monkeypatch.setattr(covering, "tests", lambda mutant, source, budget: ["tests/test_a.py::test_a"])
    result = trials._run(source, source.mutants[0], lambda tests, folder, change: "")
    assert result is not None and result.outcome is Outcome.UNDECIDED


def test_tables_meet_the_tests_that_print_them(tmp_path):
    """Beside those that run functions of the file; statements of functions meet their own only."""
    module = tmp_path / "sample.py"
    module.write_text("A = 1\n\n\ndef f(a):\n    return a + 2\n")
    source = SourceFile(tmp_path, module)
    covering = Covering(
        {"t::f": 0.1, "t::docs": 0.2},
        {("sample.py", "f", 1): ["t::f"]},
        {("sample.py", "f"): {"t::f"}},
        {"sample.py": {"t::f"}},
        tables={"t::docs"},
    )
    found = {mutant.function: covering.tests(mutant, source, 10.0) for mutant in source.mutants}
    assert found == {"": ["t::f", "t::docs"], "f": ["t::f"]}


def test_every_function_has_a_test_before_one_has_two():
    """One of many fast cases leaves time for the others; what is too long for the rest of the time is left out."""
    seconds = {**{f"a.py::a[{at}]": 0.01 for at in range(200)}, "b.py::b[long]": 1.5, "b.py::b[short]": 0.015, "b.py::c": 9.0}
    covering = Covering(seconds, {}, {}, {})
    chosen = list(covering._within(seconds, 2.0))
    assert [test.split("[")[0] for test in chosen[:4]] == ["a.py::a", "b.py::b"] * 2
    assert chosen[1:4:2] == ["b.py::b[short]", "b.py::b[long]"] and "b.py::c" not in chosen
    assert sum(seconds[test] for test in chosen) <= 2.0 and len(chosen) > 20


def test_files_that_name_the_module_come_first_for_half_of_the_time(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("about.py").write_text("from package.part.rules import limit\n")
    Path("folder.py").write_text("import package.part\n")
    Path("longer.py").write_text("from package.part.rules.more import limit\nfrom package.parts.rules_of import x\n")
    seconds = {**{f"about.py::test_{at}": 0.4 for at in range(9)}, "folder.py::test": 0.1, "longer.py::test": 0.2}
    covering = Covering(seconds, {}, {}, {})
    chosen = covering._chosen(seconds, 2.0, "package.part.rules")
    assert sum(seconds[test] for test in chosen) <= 2.0
    first = [test.split("::")[0] for test in chosen]
    assert first[:2] == ["about.py"] * 2 and set(first[2:4]) == {"folder.py", "longer.py"} and first[4:] == ["about.py"] * 2
    assert covering._names("folder.py::test", "package.part.rules.op") is False
    assert covering._names("about.py::test_0", "package.part.rules.op") is True


def test_records_have_a_quarter_of_the_time():
    """What compares with records comes behind the files about the module, before all the others."""
    seconds = {**{f"a.py::test_{at}": 0.1 for at in range(99)}, **{f"t/test_same_all.py::test[{at}]": 0.1 for at in range(99)}}
    covering = Covering(seconds, {}, {}, {})
    chosen = covering._chosen(seconds, 4.0, "package.part")
    kept = [test.startswith("t/") for test in chosen]
    assert kept[:20] == [True] * 20 and 27 <= sum(kept) <= 29 and 8 <= kept.count(False) <= 10


def test_other_ways_through_the_file_and_the_function_come_first():
    """A test whose way was taken before waits for those that take another one."""
    ways = {"1": "ab", "2": "ab", "3": "abc", "4": "abd", "5": "aef", "6": "aef"}
    paths = {
        f"t::t[{name}]": frozenset((letter if letter in "ef" else "f", ord(letter)) for letter in way)
        for name, way in ways.items()
    }
    found = _other_ways_first(sorted(paths), paths, "e")
    assert [name[5] for name in found] == ["1", "5", "3", "4", "2", "6"]


@pytest.mark.parametrize("error, found", [("InternalError", False), ("NotImplementedError", False), ("N2D2Error", True)])
def test_what_only_notices_a_defect_elsewhere_is_an_assertion(tmp_path, error, found):
    """An InternalError alone or under a condition of its own; what else such a condition decides is not."""
    text = f"def f(a):\n    if a < 1:\n        raise {error}('E1', a)\n    if a > 2:\n        g(a)\n    else:\n        raise {error}('E2')\n"
    assert (("a < 1", "a <= 1") in changes(tmp_path, text)) == found
    assert (f"raise {error}('E1', a)", "pass") in changes(tmp_path, text) or not found
    assert ("a > 2", "a >= 2") in changes(tmp_path, text)


@pytest.mark.parametrize("file", sorted(ONE_INPUT))
def test_no_operator_of_one_input_reads_a_second(file):
    for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Subscript) and last_name(node.value) == "inputs":
            assert isinstance(node.slice, ast.Constant) and node.slice.value == 0, ast.unparse(node)
        if isinstance(node, (ast.For, ast.comprehension)):
            assert last_name(node.iter) != "inputs", ast.unparse(node)


@pytest.mark.parametrize("file, function", sorted({(file, function) for file, function, _ in ONE_INPUT_CONVERTERS}))
def test_no_converter_of_one_input_has_an_operator_of_two(file, function):
    tree = ast.parse((ROOT / "n2d2py" / "operators" / file).read_text(encoding="utf-8"))
    (found,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function]
    (decorator,) = [node for node in found.decorator_list if isinstance(node, ast.Call)]
    names = [ast.literal_eval(argument) for argument in decorator.args]
    assert names
    for name in names:
        versions = [each for each in onnx.defs.get_all_schemas_with_history() if (each.domain, each.name) == ("", name)]
        assert versions and {each.max_input for each in versions} == {1}, name


def test_the_last_input_is_the_first_where_there_is_one():
    changed = {
        (mutant.original, mutant.mutated): reason_of(mutant)
        for mutant in SourceFile(ROOT, ROOT / "n2d2py/operators/fc/op.py").mutants
        if mutant.function == "Fc.run" and "inputs[0]" in mutant.original
    }
    whole = "inputs[0].reshape(len(inputs[0]), -1)"
    assert changed[whole, "inputs[-1].reshape(len(inputs[0]), -1)"] and changed[whole, "inputs[0].reshape(len(inputs[-1]), -1)"]
    assert (
        not changed[whole, "inputs[1].reshape(len(inputs[0]), -1)"]
        and not changed[whole, "inputs[0].reshape(len(inputs[0]), 1)"]
    )


def test_the_last_input_is_the_first_of_the_named_layers_alone():
    known = {
        mutant.original
        for mutant in SourceFile(ROOT, ROOT / "n2d2py/passes/softplus_tail.py").mutants
        if mutant.mutated == mutant.original.replace("inputs[0]", "inputs[-1]", 1) and reason_of(mutant)
    }
    assert known == {"(condition.inputs[0], node.inputs[1], value.inputs[0])"}
    for file, layer in ONE_INPUT_LAYERS:
        assert f"{layer}.inputs[0]" in (ROOT / file).read_text(encoding="utf-8"), (file, layer)


def test_how_an_output_may_lie_over_an_input_has_no_order():
    shapes = [(1, 2, 3), (1, 2, 3), (2, 2, 3), (1, 3, 3), (1, 2, 4)]
    tensors = [TensorSpec(f"t{at}", *shape) for at, shape in enumerate(shapes)]
    kinds = [each for each in _derived(Access) if "over" in vars(each)]
    assert kinds == [Pointwise]
    for first, second in product(tensors, repeat=2):
        assert Pointwise().over(first, second) is Pointwise().over(second, first)


def _derived(kind: type) -> list[type]:
    return [each for own in kind.__subclasses__() for each in (own, *_derived(own))]
