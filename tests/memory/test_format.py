"""The words of `memory_graph.json`: what each entry says, and that it is written as it was read."""

from __future__ import annotations

from typing import Any

import pytest
from support.memory_networks import Net

from n2d2py.errors import N2D2Error
from n2d2py.graph import QuantGraph, QuantNode
from n2d2py.memory.access import (
    MEMORY_ACCESSES,
    Access,
    Concatenated,
    Joined,
    LineTable,
    Pointwise,
    PoolWindow,
    Repacked,
    Upsample,
    View,
    Whole,
    Window,
)
from n2d2py.memory.checker import check_map
from n2d2py.memory.format import graph_json, map_json, read_graph, read_op
from n2d2py.memory.planning import plan_memory
from n2d2py.memory.problem import MemoryProblem, OpSpec
from n2d2py.operators.functions import Clip

LINES, COLUMNS = (((0, 2), (1, 3)),), (((0, 1), (0, 1)),)
LAYER = {"kh": 3, "kw": 1, "sh": 2, "sw": 4, "pads": [1, 0, 2, 3]}
FORM: dict[str, Any] = {"kernel": (3, 1), "stride": (2, 4), "pads": (1, 0, 2, 3)}
TABLE = {"lines": [[[0, 2], [1, 3]]], "columns": [[[0, 1], [0, 1]]]}
WORDS: dict[str, tuple[dict[str, Any], Access]] = {
    "conv": ({**LAYER, "dil": 2, "groups": 4}, Window(**FORM, dilation=(2, 2), groups=4)),
    "pool": ({**LAYER, "dil": 1, "groups": 8}, PoolWindow(**FORM, dilation=(1, 1), groups=8)),
    "pool of sums": (
        {**LAYER, "dil": 1, "groups": 8, "kind": "Average", "sum_bytes": 8},
        PoolWindow(**FORM, dilation=(1, 1), groups=8, mode="Average", partial_bytes=8),
    ),
    "upsample": ({"scale": 3}, Upsample((3, 3))),
    "upsample of lines": ({"scale": [3, 2]}, Upsample((3, 2))),
    "window": (TABLE, LineTable(LINES, COLUMNS)),
    "window into": ({**TABLE, "packs": "into"}, Repacked(LINES, COLUMNS)),
    "window from": ({**TABLE, "packs": "from"}, Repacked(LINES, COLUMNS, unpacks=True)),
    "window of a layer": ({**TABLE, "layer": "Pad"}, LineTable(LINES, COLUMNS)),
    "add": ({}, Pointwise()),
    "ew": ({}, Pointwise()),
    "fc": ({}, Whole()),
    "fc of a layer": ({"layer": "LRN"}, Whole()),
    "softmax": ({}, Whole()),
    "concat": ({}, Concatenated(False)),
    "concat with a rescale": ({"rescale": True}, Concatenated(True)),
    "concat of columns": ({"axis": "columns"}, Joined()),
    "reshape": ({}, View()),
    "conv that is faster outside": ({**LAYER, "dil": 1, "groups": 1, "straight": True}, Window(**FORM, prefers_caller=True)),
    "conv that is computed whole": ({**LAYER, "dil": 1, "groups": 1, "by_lines": False}, Window(**FORM, by_lines=False)),
    "fc with scratch": ({"scratch_bytes": 12}, Whole()),
    "conv with a residual": ({**LAYER, "dil": 1, "groups": 1, "residual": "r"}, Window(**FORM, aliases=1)),
}
"""Entries by their type, and what they mean."""


def written(op: OpSpec) -> dict[str, Any]:
    (entry,) = graph_json(MemoryProblem({}, (), (), (op,)))["ops"]
    return entry


@pytest.mark.parametrize("name", WORDS)
def test_an_entry_of_the_graph(name):
    more, access = WORDS[name]
    type = name.split()[0]
    entry = {"name": "n", "type": type, "inputs": ["x", "z"][: 1 + (type in ("add", "concat"))], "output": "y", **more}
    op = read_op(entry)
    operands = (*entry["inputs"], "r") if "residual" in more else tuple(entry["inputs"])
    layer = {"add": "ElemWise", "softmax": "Softmax"}.get(type, more.get("layer", ""))
    assert op == OpSpec("n", access, operands, "y", more.get("scratch_bytes", 0), layer)
    assert written(op) == entry


@pytest.mark.parametrize(
    ("kernel", "dilation", "said"),
    [
        ((1, 1), (3, 3), 1),
        ((3, 1), (2, 5), 2),
        ((1, 3), (2, 5), 5),
        ((2, 2), (4, 4), 4),
        ((2, 2), (1, 2), [1, 2]),
        ((3, 3), (2, 1), [2, 1]),
    ],
)
def test_a_dilation_counts_where_the_kernel_has_a_second_element(kernel, dilation, said):
    op = OpSpec("n", Window(kernel, (1, 1), (0, 0, 0, 0), dilation), ("x",), "y")
    assert written(op)["dil"] == said


@pytest.mark.parametrize(
    ("layer", "inputs", "said"), [("ElemWise", 1, "add"), ("Mul", 2, "add"), ("Mul", 1, "ew"), ("", 2, "ew")]
)
def test_what_goes_element_by_element(layer, inputs, said):
    assert written(OpSpec("n", Pointwise(), ("x", "z")[:inputs], "y", layer=layer))["type"] == said


@pytest.mark.parametrize("layer", ["Fc", "Softmax", "LRN", ""])
def test_layers_that_read_their_inputs_whole(layer):
    entry = written(OpSpec("n", Whole(), ("x",), "y", layer=layer))
    assert entry["type"] == ("softmax" if layer == "Softmax" else "fc") and entry.get("layer") == (
        "LRN" if layer == "LRN" else None
    )


@pytest.mark.parametrize("key", list(LAYER))
def test_a_missing_attribute_is_named(key):
    entry = {"name": "n", "type": "conv", "inputs": ["x"], "output": "y", **LAYER}
    del entry[key]
    with pytest.raises(N2D2Error, match=f"E602.*conv needs the attribute {key}"):
        read_op(entry)


def test_an_unknown_type():
    with pytest.raises(N2D2Error, match="E602.*the operator type lrn is unknown; known: add, concat, conv"):
        read_op({"name": "n", "type": "lrn", "inputs": ["x"], "output": "y"})


def test_the_states_and_wide_elements_of_a_graph():
    net = Net(4, 4, 2)
    net.conv(net.input, 3, 1)
    data = graph_json(net.done())
    assert "states" not in data and all("bytes" not in tensor for tensor in data["tensors"].values())
    data["states"], data["tensors"]["input"]["bytes"] = 24, 2
    problem = read_graph(data)
    assert (problem.states, problem.tensors["input"].element_bytes) == (24, 2) and graph_json(problem) == data


@pytest.mark.parametrize(("activation", "rescale", "changes"), [(None, None, False), (Clip(0.0), None, True)])
def test_a_concatenation_that_changes_values(activation, rescale, changes):
    node = QuantNode("n", None, ["a", "b"], ["y"], activation=activation, rescale=rescale)
    assert MEMORY_ACCESSES.get("Concat")(node, QuantGraph("net", 8)) == Concatenated(changes)


LOOPS = ("hwc", "hcw", "-hwc", "-hcw", "-h-w-c", "whc")


@pytest.mark.parametrize("form", ["conv", "add", "rows"])
@pytest.mark.parametrize("loop", LOOPS)
def test_the_loops_that_the_checker_replays(form, loop):
    """Lines may run either way, elements both or none; of single lines only the order inside them is free."""
    net = Net(6, 4, 3)
    x = net.conv(net.input, 3, 1)
    net.conv(net.add(x, net.input), 3, 3)
    problem = net.done()
    plan = plan_memory(problem, strategy="OptimizeStream" if form == "rows" else "OptimizeOverlap")
    data, graph = map_json(plan), graph_json(problem)
    types = {op["name"]: op["type"] for op in graph["ops"]}
    steps = [step for step in data["schedule"] if types.get(step.get("op")) == ("add" if form == "add" else "conv")]
    step = next((step for step in steps if ("rows" in step) == (form == "rows")), None)
    if step is None:
        pytest.skip("no such step")
    step["loop"] = loop
    known = {"conv": LOOPS[:5], "add": ("hwc", "-h-w-c"), "rows": ("hwc", "hcw")}[form]
    texts = [fault.what for fault in check_map(graph, data) if fault.kind == "unsupported"]
    assert texts == ([] if loop in known else [f"the loop order {loop} is not checked; known: {', '.join(known)}"])


def test_the_stores_that_the_checker_replays():
    net = Net(6, 4, 3)
    net.conv(net.input, 3, 1)
    problem = net.done()
    data = map_json(plan_memory(problem))
    data["schedule"][0]["unit"] = "line"
    texts = [fault.what for fault in check_map(graph_json(problem), data) if fault.kind == "unsupported"]
    assert texts == ["the store unit line is not checked"]
