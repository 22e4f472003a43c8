"""PackActivations: tensors of few bits packed between layers that run line by line, where the memory is smaller for it."""

import json

import pytest
from support.e2e_run import assert_compiled_is_simulated
from support.export_build import compare_outputs, make
from support.export_networks import random_inputs, request, residual, write_export
from support.memory_compiled import arena_symbol, export, memory_map, needs_tools
from support.memory_execute import run
from support.memory_files import read_graph
from support.packed_networks import few, narrowed
from support.tables import every, few_fast

from n2d2py.graph import QuantGraph
from n2d2py.ini.params import Params
from n2d2py.memory.access import Repacked
from n2d2py.memory.checker import check_map, check_plan
from n2d2py.memory.format import graph_json, map_json
from n2d2py.memory.from_graph import memory_problem
from n2d2py.memory.settings import Settings
from n2d2py.memory.strategies import PLANNERS, plan_memory
from n2d2py.passes.integer.pack_activations import pack_activations, packable_tensors
from n2d2py.runtime.graph_file import GRAPH_FILE
from n2d2py.runtime.graph_file import read_graph as read_network
from n2d2py.stages.memory import plan_network, plan_stage
from n2d2py.stages.memory_changes import bytes_beside


@pytest.fixture(scope="module")
def network(tmp_path_factory) -> QuantGraph:
    """The network of packed.ini, as it is without the option."""
    return read_network(export("packed", tmp_path_factory.mktemp("bytes"), "") / GRAPH_FILE)


def _params(**given) -> Params:
    values = {key.name: key.default for key in Settings.rows.values()}
    return Params(Settings.schema("CPP"), {**values, **given}, {}, {})


def _arena(graph: QuantGraph, **given) -> int:
    found = plan_network(graph, _params(**given))
    assert check_plan(found.problem, found.plan) == []
    assert check_map(graph_json(found.problem), map_json(found.plan)) == []
    return found.plan.arena_bytes


@pytest.mark.parametrize(
    ("given", "most"),
    [
        ({}, 0.7),
        ({"IncludeInputInBuffer": False}, 0.7),
        ({"MemoryMode": "Balanced"}, 0.7),
        ({"MemoryMode": "Small", "IncludeInputInBuffer": False}, 0.9),
        ({"MemoryMode": "Minimum", "StreamInput": True}, 0.9),
        ({"MemoryManagerStrategy": "OptimizeStream", "IncludeInputInBuffer": False}, 0.9),
    ],
)
def test_the_arena_is_smaller(network, given, most):
    assert _arena(network, **given, PackActivations=True) <= most * _arena(network, **given)


@pytest.mark.parametrize("strategy", list(PLANNERS))
def test_it_is_never_larger(network, strategy):
    if strategy == "OptimizeOptimal":
        pytest.importorskip("ortools")
    given = {"MemoryManagerStrategy": strategy}
    assert _arena(network, **given, PackActivations=True) <= _arena(network, **given)


def test_only_what_the_arena_needs_is_packed(network):
    found = plan_network(network, _params(PackActivations=True))
    chosen = list(found.graph.packed.values())
    assert 0 < len(chosen) < len(packable_tensors(network)) and "wide" in chosen
    for name in chosen:
        fewer = plan_network(pack_activations(network, [each for each in chosen if each != name]), _params())
        assert fewer.plan.arena_bytes > found.plan.arena_bytes, name


def test_a_budget_that_bytes_fit_packs_nothing(network):
    whole = _arena(network)
    assert not plan_network(network, _params(PackActivations=True, MemoryBudget=whole)).graph.packed
    smallest = _arena(network, MemoryMode="Minimum", IncludeInputInBuffer=False)
    tight = plan_network(network, _params(PackActivations=True, MemoryBudget=smallest - 1, IncludeInputInBuffer=False))
    assert tight.graph.packed and tight.plan.arena_bytes < smallest


@pytest.mark.parametrize("mode", few_fast(["Small", "Speed", "Balanced", "Minimum"]))
def test_packed_plans_are_proved_and_lose_no_byte(network, mode):
    problem = memory_problem(pack_activations(network, packable_tensors(network)))
    again = read_graph(json.loads(json.dumps(graph_json(problem))))
    kinds = [(type(op.access), getattr(op.access, "unpacks", None)) for op in problem.ops]
    assert [(type(op.access), getattr(op.access, "unpacks", None)) for op in again.ops] == kinds
    assert (Repacked, True) in kinds and (Repacked, False) in kinds
    plan = plan_memory(problem, mode=mode)
    assert check_plan(problem, plan) == [] and run(problem, plan, 3) == run(problem, None)
    if mode == "Balanced":
        assert {"wide", "wide.packed"} <= {step.op for step in plan.schedule if step.rows}


def test_the_checker_finds_a_ring_of_unpacked_lines_that_is_too_short(network):
    problem = memory_problem(pack_activations(network, packable_tensors(network)))
    graph, found = graph_json(problem), map_json(plan_memory(problem, mode="Balanced"))
    assert check_map(graph, found) == []
    ring = next(plane for name, plane in found["tensors"].items() if ".for." in name and plane.get("ring_rows", 0) > 1)
    ring["ring_rows"] -= 1
    assert any(fault.kind == "overwritten" for fault in check_map(graph, found))


@every(
    ("limits", "given", "why"),
    [
        ({}, {}, "4 bits"),
        ({"add": (0, 15)}, {}, "'add'"),
        ({"mean": (0, 15)}, {}, "the arena"),
        ({"stem": (0, 15)}, {"MemoryBudget": 10_000}, "MemoryBudget"),
    ],
)
def test_without_effect_a_warning_says_why(limits, given, why, caplog):
    found = plan_stage(narrowed(residual(True), limits), _params(**given, PackActivations=True))
    assert not found.graph.packed
    assert "N2D2-W109: PackActivations" in caplog.text and why in caplog.text


def test_what_is_packed_is_told(network, monkeypatch):
    said: list[str] = []
    monkeypatch.setattr("n2d2py.log.notice", lambda text, *values: said.append(text % values))
    assert plan_stage(network, _params(PackActivations=True)).graph.packed
    assert any(text.startswith("packed activations: 1 of 11 tensors of at most 4 bits") for text in said)


def test_bytes_beside_a_tensor_are_those_of_its_fullest_layer(network):
    problem = memory_problem(network)
    found = bytes_beside(problem)
    assert set(found) == set(problem.tensors)
    size = {name: tensor.bytes for name, tensor in problem.tensors.items()}
    assert found["wide"] == size["wide"] + max(size["dw1"], size["dw2"])
    assert all(found[name] >= size[name] for name in size)


_PACKS = "PackActivations = 1\nIncludeInputInBuffer = 0\n"


@needs_tools
@pytest.mark.parametrize(("mode", "packed"), few_fast([("auto", "wide"), ("Minimum", "narrow")]))
def test_compiled(mode, packed, tmp_path):
    folder = export("packed", tmp_path, f"{_PACKS}MemoryMode = {mode}\n")
    found = memory_map(folder)
    assert any(name.endswith(".packed") for name in found["tensors"])
    assert arena_symbol(folder) == found["arena_size"]
    assert_compiled_is_simulated(folder)
    manifest = json.loads((folder / "manifest.json").read_text())["details"]["packed_activations"][packed]
    size = {"wide": 21 * 18 * 64, "narrow": 11 * 9 * 24}[packed]
    assert manifest == {"bits": 4, "bytes": size // 2, "bytes_unpacked": size}
    text = (folder / "statistics" / "memory" / "packed_activations.txt").read_text()
    assert "the arena" in text and "packed " in text
    assert text.splitlines()[2] in (folder / "statistics" / "report.html").read_text()


def _write(folder, mode: str):
    """The export of a network all of whose tensors of few bits are packed, with its graph."""
    graph = pack_activations(few(), packable_tensors(few()))
    problem = memory_problem(graph)
    plan = plan_memory(problem, mode=mode)
    assert check_plan(problem, plan) == []
    return write_export(folder / mode, request(graph, plan=plan, problem=problem)), graph


@needs_tools
@pytest.mark.parametrize("mode", few_fast(["Small", "Speed", "Balanced"]))
def test_every_packed_tensor_is_exact(mode, tmp_path):
    folder, _ = _write(tmp_path, mode)
    assert_compiled_is_simulated(folder, 4)


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize("mode", ["Balanced", "Small"])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize(
    "opt", ["-O0", "-O3", "-O1 -fsanitize=address,undefined -fno-sanitize-recover=all"], ids=["O0", "O3", "sanitized"]
)
def test_every_compiler_agrees(opt, compiler, mode, tmp_path):
    folder, graph = _write(tmp_path, mode)
    make(folder, f"OPT={opt}", f"CXX={compiler}")
    compare_outputs(folder, graph, random_inputs(graph, 4))
