"""Slices of channels before a pool over the whole map: the same integers in less memory, nothing computed twice."""

import numpy as np
import pytest
from support.e2e_run import assert_compiled_is_simulated, compiled_at_once
from support.memory_compiled import arena_symbol, export, memory_map, needs_tools
from support.memory_networks import Net
from support.memory_strips import with_strips
from support.tables import every, few_fast

import n2d2py
from n2d2py.memory.checker import check_plan
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.settings import Settings
from n2d2py.memory.stream import plan_streamed
from n2d2py.memory.strip_search import StripSearch, divisions, sliced_from

_OUTSIDE = Settings(include_input=False, clock="op", buffer_alignment=4)
_PARAMETERS = "IncludeInputInBuffer = 0\nMemoryMode = Small\nMaxExtraMacs = {most}\n"


def _tail(groups: int = 1, function: bool = True) -> MemoryProblem:
    net = Net(12, 12, 16)
    x = net.conv(net.input, 320, 1, groups=groups)
    net.fc(net.global_pool(net.ew(x) if function else x), 10)
    return net.done()


@every("channels", [17, 48, 200, 1280])
def test_slices_cover_the_channels_once_in_whole_vectors(channels):
    found = divisions(channels)
    assert found and len(set(found)) == len(found)
    for way in found:
        assert len(way) > 1 and [c for first, stop in way for c in range(first, stop)] == list(range(channels))
        assert all(first % 16 == 0 for first, _ in way)
    assert divisions(16) == []


def test_what_can_be_sliced():
    problem = _tail()
    assert sliced_from(problem.ops[:3], problem.tensors) == 0
    assert sliced_from(problem.ops[:2], problem.tensors) is None
    grouped = _tail(16)
    assert sliced_from(grouped.ops[:3], grouped.tensors) is None


@pytest.mark.parametrize("function", [True, False])
def test_a_wide_tail_takes_less(function):
    problem = _tail(function=function)
    search = StripSearch(problem, _OUTSIDE)
    point = search.curve(100)[-1]
    assert any(cut.slices for cut in point.cuts)
    narrow = with_strips(problem, point.cuts)
    narrow.validate()
    plan, before = plan_streamed(narrow, _OUTSIDE), plan_streamed(problem, _OUTSIDE)
    assert check_plan(narrow, plan) == []
    assert plan.arena_bytes <= point.bytes < before.arena_bytes / 3


def test_no_more_slices_than_it_takes():
    search = StripSearch(_tail(), _OUTSIDE)
    counts = [cut.count for point in search.curve(100) for cut in point.cuts]
    assert counts == sorted(counts) and counts[0] == 2


@needs_tools
@pytest.mark.parametrize("bits", few_fast(["8", "-32"]))
def test_compiled(bits, tmp_path):
    whole = tmp_path / "whole"
    whole.mkdir()
    before = export("slices", whole, _PARAMETERS.format(most=0), bits)
    folder = export("slices", tmp_path, _PARAMETERS.format(most=1), bits)
    found = memory_map(folder)
    assert found["options"]["ExtraMacs"] == 0 and "wide.slice1" in found["tensors"]
    assert arena_symbol(folder) == found["arena_size"] < memory_map(before)["arena_size"]
    if bits == "8":
        assert_compiled_is_simulated(folder)
    first, second = n2d2py.load_simulator(before), n2d2py.load_simulator(folder)
    info = first.info.inputs[0]
    x = np.random.default_rng(1).integers(0, 100, (3, *info.shape[1:])).astype(info.dtype)
    one, other = first.layers(x), second.layers(x)
    if bits != "8":
        np.testing.assert_allclose(compiled_at_once(folder).layers(x)["fc"], other["fc"], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(one["fc"], other["fc"], rtol=1e-4, atol=1e-4)
        return
    assert np.array_equal(one["fc"], other["fc"]) and np.array_equal(one["mean"], other["mean"])
    slices = [other[name] for name in other if name.startswith("wide.slice")]
    assert np.array_equal(np.concatenate(slices, axis=1), one["wide"])


@every(("layer", "number"), [("function", 0), ("sum", None), ("pool", None), ("convolution", 1), ("read twice", None)])
def test_what_may_stand_between(layer, number):
    """Functions of one input; a sum of two and a window end the search, another convolution begins the slices."""
    net = Net(8, 8, 4)
    x = net.conv(net.input, 64, 1)
    between = {
        "function": lambda: net.ew(x),
        "sum": lambda: net.add(x, net.conv(net.input, 64, 1)),
        "pool": lambda: net.pool(x, 2, 2),
        "convolution": lambda: net.conv(x, 32, 1),
        "read twice": lambda: net.add(x, x),
    }[layer]()
    net.global_pool(between)
    problem = net.done()
    ops = [op for op in problem.ops if op.output in (x, between)] + [problem.ops[-1]]
    assert sliced_from(ops, problem.tensors) == number
