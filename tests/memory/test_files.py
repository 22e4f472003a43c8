"""The record of a plan: JSON that proves it alone, the drawing."""

import json
from pathlib import Path

from support import memory_networks as networks
from support.memory_files import read_graph
from support.memory_graphs import random_problem
from support.memory_networks import Net

from n2d2py.memory.checker import check_map
from n2d2py.memory.format import graph_json, in_known_terms, map_json, write_memory_files
from n2d2py.memory.from_graph import memory_problem
from n2d2py.memory.settings import Settings
from n2d2py.memory.strategies import plan_memory
from n2d2py.report.drawing import draw_memory


def test_the_files_prove_the_plan(tmp_path):
    problem = networks.mobilenet_v2(0.35, 128)
    plan = plan_memory(problem, strategy=networks.N2D2)
    write_memory_files(tmp_path, problem, plan)
    graph = json.loads((tmp_path / "memory_graph.json").read_text())
    memory_map = json.loads((tmp_path / "memory_map.json").read_text())
    assert memory_map["arena_size"] == plan.arena_bytes == 200_704
    assert check_map(graph, memory_map) == []
    memory_map["tensors"]["conv4.y"]["offset"] += 48 * 32
    assert check_map(graph, memory_map) != []


def test_the_graph_reads_back():
    for seed in range(30):
        problem = random_problem(seed)
        assert graph_json(read_graph(json.loads(json.dumps(graph_json(problem))))) == graph_json(problem)


def test_the_map_of_a_concatenation():
    net = Net(4, 4, 3)
    net.conv(net.concat(net.conv(net.input, 5, 3), net.conv(net.input, 6, 1)), 2, 3)
    problem = net.done()
    data = map_json(plan_memory(problem))
    assert [step["op"] for step in data["schedule"] if step.get("view")] == ["concat2"]
    assert data["tensors"]["conv1.y"]["stride"] == 11 and data["tensors"]["conv1.y"]["size"] == 6


def test_two_writings_are_identical(tmp_path):
    problem = networks.googlenet()
    for name in ("one", "two"):
        write_memory_files(tmp_path / name, problem, plan_memory(problem, Settings(alignment=4)))
    names = ["memory_graph.json", "memory_map.json", "memory_mapping.log"]
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == names
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_the_drawing_has_what_the_plan_has():
    """One rectangle per contiguous part of every written tensor; the wrapped ones marked; views left out."""
    problem = networks.squeezenet11()
    plan = plan_memory(problem, strategy=networks.N2D2)
    drawn = draw_memory(problem, plan)
    views = {problem.op(name).output for name in plan.views}
    planes = [plane for name, plane in plan.planes.items() if name not in views]
    wrapped = [plane for plane in planes if not plane.contiguous]
    assert wrapped and drawn.count(' wrapped"') == len(wrapped)
    assert drawn.count('<rect class="buffer ') == len(planes) + len(wrapped)


def test_files_are_written_where_they_are_wanted(tmp_path):
    net = Net(4, 4, 2)
    net.conv(net.input, 3, 3)
    problem = net.done()
    plan = plan_memory(problem)
    folder = tmp_path / "statistics" / "memory"
    write_memory_files(folder, problem, plan)
    texts = ["memory_graph.json", "memory_map.json", "memory_mapping.log"]
    assert sorted(path.name for path in folder.iterdir()) == texts
    written = [(folder / name).read_bytes() for name in texts]
    assert b"\r" not in b"".join(written)
    assert json.loads(written[0]) == graph_json(problem) and json.loads(written[1]) == map_json(plan)
    write_memory_files(folder, problem, plan)  # over the old ones
    assert [(folder / name).read_bytes() for name in texts] == written


class Plan:
    """What `in_known_terms` asks of a plan."""

    def __init__(self, streamed=(), overlapping=()):
        self.streamed, self.overlapping = list(streamed), overlapping

    def overlaps(self, problem, name) -> bool:
        return name in self.overlapping


def test_a_reader_need_not_know_what_the_plan_does_not_use():
    """Layers of unknown terms are "fc", under their own names, unless the plan runs them by lines or over an input."""
    net = Net(6, 4, 3)
    tables = {"lines": [[[row, row + 1] for row in range(6)]], "columns": [[[column, column + 1] for column in range(4)]]}
    x = net._add("window", (net.input,), (6, 4, 3), **tables, layer="Mine")
    x = net._add("upsample", (x,), (6, 8, 3), scale=[1, 2])
    problem = net.done(net.conv(x, 3, 3))
    problem.validate()

    def types(plan):
        return spelt(in_known_terms(problem, plan))

    def spelt(problem):
        return {op["name"]: (op["type"], op.get("layer")) for op in graph_json(problem)["ops"]}

    whole = {"window0": ("fc", "Mine"), "upsample1": ("fc", "upsample"), "conv2": ("conv", None)}
    assert types(Plan()) == whole
    for plan in (Plan(streamed=["window0"]), Plan(overlapping=["window0"])):
        assert types(plan) == {**whole, "window0": ("window", "Mine")}
    assert types(Plan(["window0"], ["upsample1"])) == spelt(problem)


def test_a_damaged_map_is_told(tmp_path):
    """Each number of a written map that is changed makes a fault, or leaves the plan as right as it was."""
    problem = networks.resnet8()
    plan = plan_memory(problem)
    graph, memory_map = graph_json(problem), map_json(plan)
    for name in ("add3.y", "conv1.y"):
        for key in ("offset", "stride", "length", "count", "size"):
            damaged = json.loads(json.dumps(memory_map))
            damaged["tensors"][name][key] += 1
            assert check_map(graph, damaged), (name, key)
    for size in (0, memory_map["arena_size"] - 1):
        assert check_map(graph, {**memory_map, "arena_size": size})


def test_graphs_of_networks_use_the_terms_of_the_format():
    """Layers of an INI file, those included that the format has no word for."""

    from n2d2py import log
    from n2d2py.options import read_command
    from n2d2py.pipeline import load_network
    from n2d2py.quant.quantize import float_graph
    from n2d2py.stages.fuse import fuse_stage

    log.setup(quiet=True)
    path = Path(__file__).resolve().parents[1] / "e2e" / "branches.ini"
    network = load_network(*read_command([str(path), "-memory-report", "-seed", "1"]))
    graph, _ = fuse_stage(network, integer=True)
    problem = memory_problem(float_graph(graph.graph, -32))
    assert {op["type"] for op in graph_json(problem)["ops"]} >= {"conv", "concat", "fc"}
    assert check_map(graph_json(problem), map_json(plan_memory(problem, mode="Small"))) == []
