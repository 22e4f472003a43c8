"""What the checker reads from the two files of a plan: addresses, tensors of the caller, sizes; faults as text."""

from __future__ import annotations

import numpy as np
import pytest
from support import memory_networks as networks
from support.memory_networks import Net

from n2d2py.memory.case import Case, Violation
from n2d2py.memory.format import graph_json, map_json
from n2d2py.memory.planning import plan_memory


def plane(offset=0, stride=1, length=1, count=1, size=1, **more):
    return {"offset": offset, "stride": stride, "length": length, "count": count, "size": size, **more}


def case(plane, **more) -> Case:
    graph = {"tensors": {}, "inputs": [], "outputs": [], "ops": []}
    return Case({**graph, **more}, {"arena_size": 100, "tensors": {"t": plane}})


def test_addresses_of_a_plane():
    """Line i, pixel j, byte k: offset + (i length + j) stride + k."""
    found = case(plane(offset=5, stride=4, length=3, count=2, size=2)).addresses("t")
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, [[[5, 6], [9, 10], [13, 14]], [[17, 18], [21, 22], [25, 26]]])


@pytest.mark.parametrize(
    "rows, lines", [(0, [0, 1, 2, 3, 4]), (2, [0, 1, 0, 1, 0]), (5, [0, 1, 2, 3, 4]), (3, [0, 1, 2, 0, 1])]
)
def test_lines_that_go_round(rows, lines):
    found = case(plane(offset=7, stride=2, length=3, count=5, size=1, ring_rows=rows)).addresses("t")
    np.testing.assert_array_equal(found[:, 0, 0], [7 + 6 * line for line in lines])
    np.testing.assert_array_equal(found[0, :, 0], [7, 9, 11])


@pytest.mark.parametrize("more, starts", [({}, [40, 50, 0, 10, 20]), ({"wrap_offset": 3}, [40, 50, 3, 13, 23])])
def test_lines_beyond_the_limit_begin_again(more, starts):
    found = case(plane(offset=40, stride=10, length=1, count=5, size=10, limit=20, **more)).addresses("t")
    np.testing.assert_array_equal(found[:, 0, 0], starts)
    np.testing.assert_array_equal(found[:, 0, -1], [start + 9 for start in starts])


def test_no_limit_and_a_limit_beyond_the_end_are_the_same():
    every = [
        case(plane(offset=9, stride=3, length=2, count=4, size=3, limit=limit)).addresses("t") for limit in (None, 24, 1000)
    ]
    for found in every:
        np.testing.assert_array_equal(found, every[0])
    assert every[0].max() == 9 + 24 - 1


def test_the_addresses_of_a_planned_network_are_inside_the_arena():
    """Wrapped planes included, as the map of a real plan gives them."""
    problem = networks.mobilenet_v2(0.35, 96)
    plan = plan_memory(problem, strategy=networks.N2D2)
    made = Case(graph_json(problem), map_json(plan))
    assert any(not each.contiguous for each in plan.planes.values()) and made.size == plan.arena_bytes
    for name, (height, width, size) in made.shape.items():
        found = made.addresses(name)
        assert found.shape == (height, width, size) and found.min() >= 0 and found.max() < plan.arena_bytes
        assert len(np.unique(found)) == found.size


def test_shapes_are_in_bytes():
    tensors = {"a": {"h": 2, "w": 3, "c": 5}, "b": {"h": 2, "w": 3, "c": 5, "bytes": 4}}
    assert case(plane(), tensors=tensors).shape == {"a": (2, 3, 5), "b": (2, 3, 20)}


def views(outside: dict[str, bool]) -> Case:
    """in - r1 - in2 - conv - mid - r2 - r3 - out, with r1, r2, r3 views; `outside`: tensors whose plane is the caller's."""
    net = Net(4, 4, 2)
    first = net.reshape(net.reshape(net.input, 2, 8, 2), 4, 4, 2)
    last = net.flatten(net.reshape(net.conv(first, 2, 3), 8, 2, 2))
    problem = net.done(last)
    planes = {name: {**plane(), "external": True} if outside.get(name) else plane() for name in problem.tensors}
    return Case(graph_json(problem), {"arena_size": 0, "tensors": planes})


def test_views_of_the_callers_tensors_are_the_callers():
    inputs = {"input", "reshape0.y", "reshape1.y"}
    outputs = {"conv2.y", "reshape3.y", "reshape4.y"}
    assert views({}).outside == set()
    assert views({"input": True}).outside == inputs
    assert views({"reshape4.y": True}).outside == outputs
    assert views({"input": True, "reshape4.y": True}).outside == inputs | outputs
    assert views({"conv2.y": True}).outside == set()  # no tensor of the caller


def test_a_caller_s_tensor_without_a_plane():
    graph = {"tensors": {}, "inputs": ["x"], "outputs": ["y"], "ops": []}
    assert Case(graph, {"arena_size": 1, "tensors": {"y": {"external": True}}}).outside == {"y"}


def test_faults_are_kept_in_order():
    made = case(plane())
    made.fault("overwritten", "t is overwritten", "conv1", "t", "u")
    made.fault("size", "the arena is too small")
    assert made.found == [
        Violation("overwritten", "t is overwritten", "conv1", "t", "u"),
        Violation("size", "the arena is too small", None, None, None),
    ]
    assert [str(fault) for fault in made.found] == ["conv1: t is overwritten", "the arena is too small"]
