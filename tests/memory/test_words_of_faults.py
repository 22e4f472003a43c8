"""Every fault of a map, whole: its kind, its words with their numbers, the operator, the tensor that suffers and what does it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from n2d2py.memory.checker import check_map

Data = dict[str, Any]


def plane(offset: int, size: int, length: int, count: int, alloc: int, release: int, **more: Any) -> Data:
    return {
        "offset": offset,
        "size": size,
        "stride": size,
        "length": length,
        "count": count,
        "alloc": alloc,
        "release": release,
    } | more


def conv(name: str, source: str, output: str, **more: Any) -> Data:
    form = {"kh": 2, "kw": 1, "sh": 1, "sw": 1, "pads": [0, 0, 1, 0], "dil": 1, "groups": 1}
    return {"name": name, "type": "conv", "inputs": [source], "output": output, **form, **more}


def two_layers() -> tuple[Data, Data]:
    """x -> a -> m -> b -> y of 4 lines of 3 pixels of 2 bytes, side by side in 72 bytes; a line of m reads this one and the next of x."""
    shape = {"h": 4, "w": 3, "c": 2}
    ops = [conv("a", "x", "m"), conv("b", "m", "y")]
    graph = {"tensors": {name: dict(shape) for name in "xmy"}, "inputs": ["x"], "outputs": ["y"], "ops": ops}
    planes = {"x": plane(0, 2, 3, 4, -1, 0), "m": plane(24, 2, 3, 4, 0, 1), "y": plane(48, 2, 3, 4, 1, 2)}
    steps = [{"op": name, "loop": "hwc", "unit": "elem", "clock": at} for at, name in enumerate("ab")]
    return graph, {"arena_size": 72, "tensors": planes, "schedule": steps}


def told(graph: Data, found: Data) -> list[tuple]:
    return [(each.kind, each.what, each.op, each.tensor, each.by) for each in check_map(graph, found)]


def test_what_is_right_has_no_fault():
    assert told(*two_layers()) == []


# what the planes are changed by; the faults
PLANES: list[tuple[Data, list[tuple]]] = [
    ({"m": None}, [("missing", "m has no place", None, "m", None)]),
    ({"m": {"offset": None, "count": None}}, [("missing", "m lacks count, offset", None, "m", None)]),
    ({"m": {"size": None, "odd": 1}}, [("missing", "m lacks size", None, "m", None)]),
    ({"m": {"odd": 1, "even": 2}}, [("unsupported", "m: even, odd is not checked", None, "m", None)]),
    ({"m": {"external": True}}, [("external", "m is outside the arena but neither input nor output", None, "m", None)]),
    ({"m": {"external": False}}, []),
    ({"x": {"external": True}}, []),
    ({"y": {"external": True}}, []),
    ({"m": {"count": 3}}, [("form", "m is 4 lines of 3 pixels of 2 bytes, its plane has 3, 3 and 2", None, "m", None)]),
    (
        {"m": {"length": 4, "size": 1, "stride": 1}},
        [("form", "m is 4 lines of 3 pixels of 2 bytes, its plane has 4, 4 and 1", None, "m", None)],
    ),
    ({"m": {"stride": 1}}, [("form", "the pixels of m overlap: stride 1, size 2", None, "m", None)]),
    ({"m": {"ring_rows": 0}}, [("form", "m keeps 0 of 4 lines, or wraps besides", None, "m", None)]),
    ({"m": {"ring_rows": 5}}, [("form", "m keeps 5 of 4 lines, or wraps besides", None, "m", None)]),
    ({"m": {"ring_rows": 4}}, []),
    (
        {"m": {"ring_rows": 4, "limit": 6, "wrap_offset": 0}},
        [("form", "m keeps 4 of 4 lines, or wraps besides", None, "m", None)],
    ),
    ({"m": {"pitch": 5}}, [("form", "the lines of m overlap, or wrap besides: pitch 5", None, "m", None)]),
    ({"m": {"pitch": 6}}, []),
    (
        {"m": {"pitch": 6, "limit": 12, "wrap_offset": 24}},
        [("form", "the lines of m overlap, or wrap besides: pitch 6", None, "m", None)],
    ),
    (
        {"m": {"limit": 7, "wrap_offset": 0}},
        [("wrap", "m wraps after 7 bytes, inside a line of 6 bytes or outside its 4 lines", None, "m", None)],
    ),
    (
        {"m": {"limit": 30, "wrap_offset": 0}},
        [("wrap", "m wraps after 30 bytes, inside a line of 6 bytes or outside its 4 lines", None, "m", None)],
    ),
    (
        {"m": {"limit": -6, "wrap_offset": 0}},
        [("wrap", "m wraps after -6 bytes, inside a line of 6 bytes or outside its 4 lines", None, "m", None)],
    ),
    (
        {"m": {"limit": 12}},
        [("wrap", "m wraps after 12 bytes, inside a line of 6 bytes or outside its 4 lines", None, "m", None)],
    ),
    ({"m": {"limit": 24, "wrap_offset": 0}}, []),
    ({"m": {"limit": 0, "wrap_offset": 24}}, []),
    ({"m": {"limit": 12, "wrap_offset": 36}}, []),
    ({"y": {"offset": 49}}, [("arena", "y occupies bytes 49 to 72 of an arena of 72", None, "y", None)]),
    ({"x": {"offset": -1}}, [("arena", "x occupies bytes -1 to 22 of an arena of 72", None, "x", None)]),
    ({"m": {"alloc": 1}}, [("lifetime", "writes m at clock 0, before its alloc 1", "a", "m", None)]),
    ({"m": {"alloc": -5}}, []),
    ({"m": {"release": 0}}, [("lifetime", "reads m at clock 1, after its release 0", "b", "m", None)]),
    ({"m": {"release": 99}}, []),
    ({"y": {"release": 1}}, [("lifetime", "the network output y is released at clock 1, before the end", None, "y", None)]),
    ({"y": {"release": None, "alloc": None}, "m": {"release": None, "alloc": None}, "x": {"release": None}}, []),
    (
        {"m": {"offset": 0}},
        [
            (
                "overwritten",
                "its output m overwrites 24 bytes of x that are still to be read, first line 0, pixel 0, byte 0",
                "a",
                "x",
                "m",
            )
        ],
    ),
    ({"y": {"offset": 18}}, []),
    (
        {"y": {"offset": 19}},
        [
            (
                "overwritten",
                "its output y overwrites 4 bytes of m that are still to be read, first line 0, pixel 0, byte 0",
                "b",
                "m",
                "y",
            )
        ],
    ),
]


@pytest.mark.parametrize(("changes", "faults"), PLANES, ids=lambda value: str(value)[:40])
def test_faults_of_planes(changes, faults):
    graph, found = two_layers()
    for name, change in changes.items():
        if change is None:
            del found["tensors"][name]
            continue
        for key, value in change.items():
            if value is None:
                del found["tensors"][name][key]
            else:
                found["tensors"][name][key] = value
    assert told(graph, found) == faults


UNWRITTEN = (
    "overwritten",
    "24 bytes of y are lost before the end of the network reads them, first line 0, pixel 0, byte 0: nothing is there",
    None,
    "y",
    None,
)
# what the steps are changed by; the faults
STEPS: list[tuple[Any, list[tuple]]] = [
    (lambda s: s.pop(), [("schedule", "never runs", "b", None, None)]),
    (
        lambda s: s.pop(0),
        [("schedule", "runs before m is written", "b", "m", None), ("schedule", "never runs", "a", None, None)],
    ),
    (
        lambda s: s.append({"op": "b", "clock": 1}),
        [("schedule", "step 2 runs b, which is unknown or has run", "b", None, None)],
    ),
    (lambda s: s.append({"op": "c"}), [("schedule", "step 2 runs c, which is unknown or has run", "c", None, None)]),
    (lambda s: s[1].update(odd=1, even=2), [("unsupported", "step 1: even, odd is not checked", "b", None, None)]),
    (
        lambda s: s[1].update(clock=-1),
        [
            ("clock", "step 1 runs at clock -1, after clock 0", None, None, None),
            ("lifetime", "writes y at clock -1, before its alloc 1", "b", "y", None),
        ],
    ),
    (
        lambda s: s[0].update(clock=-1, odd=1),
        [
            ("unsupported", "step 0: odd is not checked", "a", None, None),
            ("lifetime", "writes m at clock -1, before its alloc 0", "a", "m", None),
        ],
    ),
    (lambda s: (s[0].pop("clock"), s[1].pop("clock")), []),
    (lambda s: (s[0].pop("loop"), s[1].pop("unit")), []),
    (lambda s: s[1].update(loop="hcw"), []),
    (lambda s: s[1].update(loop="-hcw"), []),
    (lambda s: s[1].update(loop="-hwc"), []),
    (lambda s: s[1].update(loop="-h-w-c"), []),
    (
        lambda s: s[1].update(loop="whc"),
        [("unsupported", "the loop order whc is not checked; known: hwc, hcw, -hwc, -hcw, -h-w-c", "b", None, None)],
    ),
    (lambda s: s[0].update(unit="line"), [("unsupported", "the store unit line is not checked", "a", None, None)]),
    (
        lambda s: s[1].update(view=True),
        [("view", "an operator of type conv that computes cannot be a view", "b", None, None), UNWRITTEN],
    ),
    (lambda s: s[0].update(scratch=[{"offset": 48, "size": 24}]), []),
    (
        lambda s: s[0].update(scratch=[{"offset": 47, "size": 4}]),
        [("overwritten", "its scratch lies over its output m", "a", "m", "scratch")],
    ),
    (
        lambda s: s[1].update(scratch=[{"offset": 71, "size": 1}]),
        [("overwritten", "its scratch lies over its output y", "b", "y", "scratch")],
    ),
    (lambda s: s[1].update(scratch=[{"offset": 0, "size": 24}]), []),
    (
        lambda s: s[1].update(scratch=[{"offset": 0, "size": 25}]),
        [
            (
                "overwritten",
                "1 bytes of m are lost before b reads them, first line 0, pixel 0, byte 0: scratch is there",
                "b",
                "m",
                "scratch",
            )
        ],
    ),
    (
        lambda s: s[1].update(scratch=[{"offset": 0, "size": 8}, {"offset": 72, "size": 1}, {"offset": -1, "size": 1}]),
        [
            ("arena", "scratch at 72 to 73 is outside the arena of 72", "b", None, None),
            ("arena", "scratch at -1 to 0 is outside the arena of 72", "b", None, None),
        ],
    ),
    (lambda s: s[1].update(rows=[0, 4]), []),
    (lambda s: s[1].update(rows=None), [("schedule", "makes lines None of y, line 0 is next", "b", "y", None)]),
    (lambda s: s[1].update(rows=[-1, 4]), [("schedule", "makes lines [-1, 4] of y, line 0 is next", "b", "y", None)]),
    (lambda s: s[1].update(rows=[0, 5]), [("schedule", "makes lines [0, 5] of y, line 0 is next", "b", "y", None)]),
    (lambda s: s[1].update(rows=[2, 2]), [("schedule", "makes lines [2, 2] of y, line 0 is next", "b", "y", None)]),
    (
        lambda s: s[1].update(rows=[0, 4], loop="-hwc"),
        [("unsupported", "the loop order -hwc is not checked; known: hwc, hcw", "b", None, None)],
    ),
    (
        lambda s: s[1].update(rows=[1, 4]),
        [
            (
                "overwritten",
                "6 bytes of y are lost before the end of the network reads them, first line 0, pixel 0, byte 0: nothing is there",
                None,
                "y",
                None,
            )
        ],
    ),
    (
        lambda s: s[1].update(in_rows=[0, 4], commit=True),
        [("unsupported", "a conv that is not global does not accumulate", "b", None, None), UNWRITTEN],
    ),
    (lambda s: s[1].update(in_rows=[0, 4]), [("schedule", "commits with lines [0, 4] of the 4 of m", "b", "m", None)]),
    (
        lambda s: s[1].update(in_rows=[1, 4], commit=True),
        [("schedule", "takes lines [1, 4] of m, line 0 is next", "b", "m", None)],
    ),
    (
        lambda s: s[1].update(in_rows=[0, 4], rows=[0, 4], commit=True),
        [("schedule", "takes lines [0, 4] of m, line 0 is next", "b", "m", None)],
    ),
    (lambda s: s[1].update(in_rows=[0, 0]), [("schedule", "takes lines [0, 0] of m, line 0 is next", "b", "m", None)]),
    (lambda s: s[1].update(in_rows=None), [("schedule", "takes lines None of m, line 0 is next", "b", "m", None)]),
]


@pytest.mark.parametrize(("change", "faults"), STEPS, ids=range(len(STEPS)))
def test_faults_of_steps(change, faults):
    graph, found = two_layers()
    change(found["schedule"])
    found["tensors"]["y"]["release"] = 9
    if faults and faults[0][0] == "clock":
        found["tensors"]["m"]["alloc"] = -5
    assert told(graph, found) == faults


def arriving() -> tuple[Data, Data]:
    """x arrives two lines at a time; a pool over all of it adds each to 8 bytes at 40 and commits with the last."""
    graph = {
        "tensors": {"x": {"h": 4, "w": 3, "c": 2}, "y": {"h": 1, "w": 1, "c": 2}},
        "inputs": ["x"],
        "outputs": ["y"],
        "ops": [
            {"name": "p", "type": "pool", "inputs": ["x"], "output": "y", "kh": 4, "kw": 3, "sh": 1, "sw": 1}
            | {"pads": [0, 0, 0, 0], "dil": 1, "groups": 2}
        ],
    }
    planes = {"x": plane(0, 2, 3, 4, 0, 3, ring_rows=2), "y": plane(38, 2, 1, 1, 0, 4)}
    steps: list[Data] = []
    for first in (0, 2):
        steps.append({"input": "x", "rows": [first, first + 2], "clock": first})
        step = {"op": "p", "in_rows": [first, first + 2], "scratch": [{"offset": 40, "size": 8}], "clock": first + 1}
        steps.append(step | ({"commit": True} if first else {}))
    return graph, {"arena_size": 48, "tensors": planes, "schedule": steps}


LATE = (
    "overwritten",
    "2 bytes of y are lost before the end of the network reads them, first line 0, pixel 0, byte 0: nothing is there",
    None,
    "y",
    None,
)
ARRIVALS: list[tuple[Any, list[tuple]]] = [
    (lambda d: None, []),
    (
        lambda d: d["schedule"][0].update(odd=1),
        [
            ("schedule", "step 0: x does not arrive by rows", None, "x", None),
            ("schedule", "makes lines [2, 4] of x, line 0 is next", None, "x", None),
        ],
    ),
    (
        lambda d: d["tensors"]["x"].update(external=True),
        [
            ("schedule", "step 0: x does not arrive by rows", None, "x", None),
            ("schedule", "step 2: x does not arrive by rows", None, "x", None),
        ],
    ),
    (
        lambda d: d["schedule"][2].update(rows=[3, 4]),
        [("schedule", "makes lines [3, 4] of x, line 2 is next", None, "x", None)],
    ),
    (
        lambda d: d["schedule"][0].update(rows=[1, 2]),
        [
            ("schedule", "makes lines [1, 2] of x, line 0 is next", None, "x", None),
            ("schedule", "makes lines [2, 4] of x, line 0 is next", None, "x", None),
        ],
    ),
    (lambda d: d["schedule"][1].update(clock=0), []),
    (
        lambda d: d["schedule"][1]["scratch"][0].update(size=7),
        [
            ("scratch", "needs 8 bytes of scratch, has 7", "p", None, None),
            ("overwritten", "partial results are lost before line 2 of x is added", "p", None, None),
        ],
    ),
    (
        lambda d: [step["scratch"][0].update(size=9) for step in d["schedule"][1::2]],
        [
            ("arena", "its partial results are outside the arena", "p", None, None),
            ("arena", "its partial results are outside the arena", "p", None, None),
            LATE,
        ],
    ),
    (
        lambda d: [step["scratch"][0].update(offset=39) for step in d["schedule"][1::2]],
        [("overwritten", "its partial results lie over its output y", "p", "y", None)],
    ),
    (lambda d: [step["scratch"][0].update(offset=12, size=20) for step in d["schedule"][1::2]], []),
    (
        lambda d: [step["scratch"][0].update(offset=11, size=20) for step in d["schedule"][1::2]],
        [
            ("overwritten", "line 1 of x is lost before its scratch for p reads it: scratch is there", "p", "x", "scratch"),
            ("overwritten", "partial results are lost before line 2 of x is added", "p", None, None),
            ("overwritten", "line 3 of x is lost before its scratch for p reads it: scratch is there", "p", "x", "scratch"),
        ],
    ),
    (
        lambda d: d["tensors"]["x"].update(ring_rows=1),
        [
            ("overwritten", "line 0 of x is lost before line 0 and after of p reads it: x is there", "p", "x", "x"),
            ("overwritten", "line 0 of x is lost before its scratch for p reads it: x is there", "p", "x", "x"),
            ("overwritten", "line 2 of x is lost before line 2 and after of p reads it: x is there", "p", "x", "x"),
            ("overwritten", "line 2 of x is lost before its scratch for p reads it: x is there", "p", "x", "x"),
        ],
    ),
    (lambda d: d["schedule"].pop(0), [("schedule", "makes lines [2, 4] of x, line 0 is next", None, "x", None)]),
]


@pytest.mark.parametrize(("change", "faults"), ARRIVALS, ids=range(len(ARRIVALS)))
def test_faults_of_arrivals_and_partial_results(change, faults):
    graph, found = arriving()
    change(found)
    assert told(graph, found) == faults


def test_the_bytes_of_a_sum_decide_the_scratch():
    graph, found = arriving()
    graph["ops"][0]["sum_bytes"] = 5
    assert ("scratch", "needs 10 bytes of scratch, has 8", "p", None, None) in told(graph, found)


def residual() -> tuple[Data, Data]:
    """x -> a -> m; x -> b over m, to which m is added."""
    graph, found = two_layers()
    graph["ops"] = [conv("a", "x", "m"), conv("b", "x", "y", residual="m")]
    found["tensors"]["y"].update(offset=24)
    found["tensors"]["x"].update(release=1)
    found["arena_size"] = 48
    return graph, found


def test_faults_of_residuals():
    graph, found = residual()
    assert told(graph, found) == []
    for change, faults in (
        (
            lambda d: d["tensors"]["m"].update(release=0),
            [("lifetime", "reads m at clock 1, after its release 0", "b", "m", None)],
        ),
        (
            lambda d: d["schedule"].reverse(),
            [
                ("schedule", "runs before m is written", "b", "m", None),
                ("clock", "step 1 runs at clock 0, after clock 1", None, None, None),
            ],
        ),
        (
            lambda d: (d.update(arena_size=72), d["tensors"]["y"].update(offset=48)),
            [("residual", "its output y does not lie exactly over m", "b", "m", None)],
        ),
        (
            lambda d: d["tensors"]["y"].update(external=True),
            [("residual", "its output y does not lie exactly over m", "b", "m", None)],
        ),
        (
            lambda d: d["schedule"][1].update(scratch=[{"offset": 24, "size": 1}]),
            [
                ("overwritten", "its scratch lies over its output y", "b", "y", "scratch"),
                (
                    "overwritten",
                    "1 bytes of m are lost before b reads them, first line 0, pixel 0, byte 0: scratch is there",
                    "b",
                    "m",
                    "scratch",
                ),
            ],
        ),
        (
            lambda d: d["schedule"][1].update(rows=[0, 4]),
            [
                ("unsupported", "a conv with a residual does not run by lines", "b", None, None),
                ("overwritten", UNWRITTEN[1].replace("nothing", "m"), None, "y", "m"),
            ],
        ),
    ):
        broken = copy.deepcopy(found)
        change(broken)
        assert told(graph, broken) == faults


@pytest.mark.parametrize("type", ["fc", "softmax", "reshape"])
def test_an_operator_that_needs_all_does_not_run_by_lines(type):
    graph, found = two_layers()
    graph["ops"][1] = {"name": "b", "type": type, "inputs": ["m"], "output": "y"}
    found["schedule"][1]["rows"] = [0, 4]
    assert told(graph, found) == [("unsupported", f"a {type} does not run by lines", "b", None, None), UNWRITTEN]


def test_an_operator_of_an_unknown_type_must_be_a_view():
    graph, found = two_layers()
    graph["ops"][1] = {"name": "b", "type": "reshape", "inputs": ["m"], "output": "y"}
    assert told(graph, found) == [("unsupported", "an operator of type reshape must be a view", "b", None, None), UNWRITTEN]
    found["schedule"][1]["view"] = True
    moved = "24 bytes of y are lost before the view reads them, first line 0, pixel 0, byte 0: nothing is there"
    end = moved.replace("the view", "the end of the network")
    assert told(graph, found) == [("overwritten", moved, "b", "y", None), ("overwritten", end, None, "y", None)]
    found["tensors"]["y"]["offset"] = 24
    assert told(graph, found) == []


@pytest.mark.parametrize("axis", ["channels", "columns"])
def test_a_concatenation_in_place_is_a_view(axis):
    """Two tensors of 2 lines of 2 pixels of 1 byte as channels of a pixel, or as columns of a line; one byte further is a fault."""
    joined = {"h": 2, "w": 2, "c": 2} if axis == "channels" else {"h": 2, "w": 4, "c": 1}
    graph = {
        "tensors": {"x": {"h": 2, "w": 2, "c": 1}, "z": {"h": 2, "w": 2, "c": 1}, "y": joined},
        "inputs": ["x", "z"],
        "outputs": ["y"],
        "ops": [{"name": "c", "type": "concat", "inputs": ["x", "z"], "output": "y", "axis": axis}],
    }
    if axis == "channels":
        del graph["ops"][0]["axis"]
        each, at, whole = {"stride": 2}, 1, plane(0, 2, 2, 2, 0, 1)
    else:
        each, at, whole = {"pitch": 4}, 2, plane(0, 1, 4, 2, 0, 1)
    planes = {"x": plane(0, 1, 2, 2, -1, 0, **each), "z": plane(at, 1, 2, 2, -1, 0, **each), "y": whole}
    found = {"arena_size": 9, "tensors": planes, "schedule": [{"op": "c", "view": True, "clock": 0}]}
    assert told(graph, found) == []
    for change in ({"rescale": True}, {"type": "add"}):
        other = copy.deepcopy(graph)
        other["ops"][0].update(change)
        kind = change.get("type", "concat")
        assert told(other, found)[0] == ("view", f"an operator of type {kind} that computes cannot be a view", "c", None, None)
    planes["z"]["offset"] += 1
    assert {(kind, tensor) for kind, _, _, tensor, _ in told(graph, found)} == {("overwritten", "y")}
