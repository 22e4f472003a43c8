"""Exact overlap: the goals of every network, safety at the distance and not one byte closer, both directions."""

import itertools
import random
from dataclasses import replace

import pytest
from support import memory_networks as networks
from support.memory_execute import run
from support.memory_graphs import random_problem
from support.memory_networks import NETWORKS, Net
from support.tables import every

from n2d2py.memory.access import Overlay, Pointwise
from n2d2py.memory.buffers import dense
from n2d2py.memory.checker import check_map, check_plan
from n2d2py.memory.format import graph_json, map_json
from n2d2py.memory.overlap import safe_distances
from n2d2py.memory.plan import MemoryPlan, OpPlan, Plane, PlaneLayout, ScheduleStep
from n2d2py.memory.problem import OpSpec, TensorSpec
from n2d2py.memory.settings import Settings
from n2d2py.memory.strategies import plan_memory

# bytes, offsets aligned to 16
GOALS = {
    "resnet8": 33_792,
    "vww": 37_248,
    "ds_cnn": 8_640,
    "ad": 768,
    "mbv1_0.25_128": 66_048,
    "mbv1_0.25_224": 201_600,
    "mbv1_0.5_224": 403_200,
    "mbv1_1.0_224": 806_400,
    "mbv2_0.35_128": 198_144,
    "mbv2_0.35_224": 604_800,
    "mbv2_1.0_224": 1_209_600,
    "resnet18": 806_400,
    "resnet50": 1_609_216,
    "squeezenet": 792_064,
    "googlenet": 806_400,
    "densenet121": 1_107_456,
    "unet": 790_528,
}

# OptimizeAuto: the best of N2D2's plans
AUTO = {
    "resnet8": 34_816,
    "resnet50": 1_978_368,
    "googlenet": 874_720,
    "densenet121": 1_605_632,
    "unet": 1_048_576,
    "mbv2_1.0_224": 1_218_560,
}


@pytest.mark.parametrize("name", GOALS)
def test_overlap_reaches_the_goal(name):
    problem = NETWORKS[name]()
    plan = plan_memory(problem, strategy="OptimizeOverlap")
    assert plan.arena_bytes == plan.bound == GOALS[name]
    assert check_plan(problem, plan) == []
    assert not any(plane.offset % 16 for plane in plan.planes.values() if plane.size % 16 == 0)


@pytest.mark.parametrize("name", AUTO)
def test_auto_is_the_best_of_n2d2s_plans(name):
    problem = NETWORKS[name]()
    plan = plan_memory(problem, strategy="OptimizeAuto")
    assert plan.arena_bytes <= AUTO[name]
    assert check_plan(problem, plan) == []


def test_auto_stays_within_the_settings():
    plan = plan_memory(networks.googlenet(), Settings(optimize_buffer=False), strategy="OptimizeAuto")
    assert not any(plan.overlaps(networks.googlenet(), step.op) for step in plan.schedule)
    assert plan.options["OptimizeBufferMemory"] == 0


def one_op(rng: random.Random):
    """A random operator with an order, alone."""
    net = Net(rng.randint(1, 8), rng.randint(1, 8), rng.choice((1, 2, 3, 5)), rng.choice((1, 1, 2)))
    kind = rng.choice(("conv", "dw", "pool", "ew", "upsample", "pad", "concat"))
    net.element_bytes = rng.choice((1, 1, 2, 4))
    if kind in ("conv", "pool"):
        kernel, stride = (rng.randint(1, 4), rng.randint(1, 3)), (rng.randint(1, 3), rng.randint(1, 3))
        pads = tuple(rng.randint(0, kernel[i % 2] - 1) for i in range(4))
        t = net.tensors[net.input]
        if t.height + pads[0] + pads[2] < kernel[0] or t.width + pads[1] + pads[3] < kernel[1]:
            pads = "same"
        channels = rng.randint(1, 7) if kind == "conv" else t.channels
        net._window(kind, net.input, channels, kernel, stride, pads)
    elif kind == "dw":
        net.dw(net.input, rng.choice((1, 3)), rng.choice((1, 2)))
    elif kind == "ew":
        net.ew(net.input)
    elif kind == "upsample":
        net.upsample(net.input, 2)
    elif kind == "pad":
        net.pool(net.input, 1, 1, (1, 0, 2, 1))
    else:
        net.element_bytes = net.tensors[net.input].element_bytes
        other = net.tensor("other", *net.tensors[net.input].shape[:2], 2)
        net.concat(net.input, other)
        problem = net.done()
        return replace(problem, inputs=("input", "other"))
    return net.done()


def at_distance(problem, distance: int, backwards: bool) -> MemoryPlan:
    """The output `distance` bytes after the input, other inputs behind both."""
    op = problem.ops[0]
    base = max(0, -distance)
    planes, at = {}, base + problem.tensors["input"].bytes + abs(distance)
    at += problem.tensors[op.output].bytes + 16
    for name, t in problem.tensors.items():
        offset = base if name == "input" else base + distance if name == op.output else at + -at % 4
        planes[name] = Plane(offset, t.pixel_bytes, t.pixel_bytes, t.width, t.height, -1 if name in problem.inputs else 0, 1)
    end = max(p.offset + p.bytes for p in planes.values())
    return MemoryPlan("test", end, planes, (ScheduleStep(op.name, 0),), {op.name: OpPlan(backwards=backwards)})


def test_distances_are_safe_and_tight():
    """At the distance the checker and a byte-level run agree; nearer, the checker objects.

    The line rule is tight for whole lines that are read; elements of several bytes move by elements.
    """
    rng = random.Random(5)
    tight = {False: 0, True: 0}
    for _ in range(600):
        problem = one_op(rng)
        op, x = problem.ops[0], problem.tensors["input"]
        y = problem.tensors[op.output]
        found = safe_distances(op, x, dense(x), 0, y, dense(y), 0)
        unit = max(x.element_bytes, y.element_bytes)
        for backwards in (False, True):
            distance = -(-found.backward // unit) * unit if backwards else found.ahead // unit * unit
            plan = at_distance(problem, distance, backwards)
            assert check_plan(problem, plan) == [], (op, x, y, distance, backwards)
            assert run(problem, plan) == run(problem, None)
            limit = x.bytes if backwards else -y.bytes
            if unit == 1 and distance != limit:
                nearer = at_distance(problem, distance + (-1 if backwards else 1), backwards)
                tight[backwards] += check_plan(problem, nearer) != []
    assert min(tight.values()) > 150, tight


def test_directions_are_exchanged_with_objections():
    """A plan that needs its loops backwards is refused when they run forwards, and the reverse."""
    turned = backwards = 0
    for problem in (networks.resnet8(), networks.ds_cnn(), networks.vww()):
        plan = plan_memory(problem, strategy="OptimizeOverlap")
        backwards += len(plan.backwards)
        for name, how in plan.ops.items():
            added = problem.op(name).access.overlay is Overlay.POINTWISE
            if not plan.overlaps(problem, name) or (added and not how.backwards):
                continue
            ops = {**plan.ops, name: replace(how, backwards=not how.backwards)}
            faults = check_plan(problem, replace(plan, ops=ops))
            turned += 1
            assert any(f.kind == "overwritten" and f.op == name for f in faults), name
    assert turned >= 10 and backwards >= 3, (turned, backwards)


def test_a_plan_says_how_each_operator_runs():
    for seed in range(20):
        problem = random_problem(seed)
        plan = plan_memory(problem, strategy="OptimizeOverlap")
        assert set(plan.ops) == {op.name for op in problem.ops} == set(plan.order)
        assert all(plan.overlaps(problem, name) for name in plan.backwards) and not set(plan.views) & set(plan.backwards)


def test_the_map_names_loop_and_unit():
    problem = networks.ds_cnn()
    plan = plan_memory(problem, strategy="OptimizeOverlap")
    data = map_json(plan)
    loops = {step["op"]: step["loop"] for step in data["schedule"]}
    assert {op for op, loop in loops.items() if loop == "-h-w-c"} == set(plan.backwards) != set()
    assert {step["unit"] for step in data["schedule"]} == {"elem"}
    for change in ({"loop": "whc"}, {"loop": "chw"}, {"unit": "row"}):
        data["schedule"][1].update(change)
        assert {f.kind for f in check_map(graph_json(problem), data)} == {"unsupported"}
        data = map_json(plan)


def test_a_pointwise_loop_may_not_be_half_reversed():
    net = Net(3, 3, 2)
    net.ew(net.input)
    problem = net.done()
    data = map_json(at_distance(problem, 0, False))
    assert check_map(graph_json(problem), data) == []
    data["schedule"][0]["loop"] = "-hwc"
    assert {f.kind for f in check_map(graph_json(problem), data)} == {"unsupported"}


@pytest.mark.parametrize("alignment", [1, 16, 64])
def test_every_buffer_is_aligned(alignment):
    problem = networks.squeezenet11()
    plan = plan_memory(problem, Settings(buffer_alignment=alignment), strategy="OptimizeOverlap")
    inner = {name for op in problem.ops if op.name in plan.views for name in op.inputs}
    assert not any(p.offset % alignment for n, p in plan.planes.items() if n not in inner)
    assert check_plan(problem, plan) == []


def test_concatenations_are_copied_where_that_is_smaller():
    """U-Net: in place 1,048,576 at the least, copied line by line over an input 790,528."""
    plan = plan_memory(networks.unet(), strategy="OptimizeOverlap")
    largest = max((p for n, p in plan.planes.items() if n.startswith("concat")), key=lambda p: p.bytes)
    assert largest.bytes == 524_288
    assert not any(op.endswith("23") for op in plan.views)
    forced = plan_memory(networks.unet(), Settings(no_branch_concat=False), strategy="OptimizeOverlap")
    assert forced.views == () and forced.arena_bytes == plan.arena_bytes


def test_a_shared_input_is_overwritten_only_by_its_last_reader():
    net = Net(8, 8, 4)
    x = net.conv(net.input, 4, 3)
    a = net.conv(x, 4, 3)
    net.add(a, net.conv(x, 4, 1))
    problem = net.done()
    plan = plan_memory(problem, strategy="OptimizeOverlap")
    assert not plan.overlaps(problem, "conv1") and plan.overlaps(problem, "conv2")
    assert check_plan(problem, plan) == []


def test_the_bound_is_never_beaten():
    for seed in range(30):
        problem = random_problem(seed)
        element = max(t.element_bytes for t in problem.tensors.values())
        plan = plan_memory(problem, Settings(buffer_alignment=1), strategy="OptimizeOverlap")
        assert plan.arena_bytes > plan.bound - element


def places(tensor: TensorSpec, stride: int, part: int) -> list[list[range]]:
    """For each line of a tensor the bytes of its elements, in the order in which they are visited."""
    lines = []
    for y, x in itertools.product(range(tensor.height), range(tensor.width)):
        first = (y * tensor.width + x) * stride + part
        if x == 0:
            lines.append([])
        width = tensor.element_bytes
        lines[-1] += [range(first + c * width, first + (c + 1) * width) for c in range(tensor.channels)]
    return lines


def meets(a: range, b: range, distance: int) -> bool:
    return a.start + distance < b.stop and b.start < a.stop + distance


def safe_elements(source: list[range], output: list[range], distance: int, backwards: bool) -> bool:
    """No element is stored over one that is read later."""
    order = list(range(len(source)))[:: -1 if backwards else 1]
    return not any(meets(output[i], source[j], distance) for at, i in enumerate(order) for j in order[at + 1 :])


def limits(safe, span: int) -> tuple[int, int]:
    """The largest distance up to which all are safe forwards, the smallest from which all are backwards."""
    ahead = -span
    while ahead < span and safe(ahead + 1, False):
        ahead += 1
    behind = span
    while behind > -span and safe(behind - 1, True):
        behind -= 1
    return ahead, behind


@every("seed", range(40))
def test_pointwise_operators(seed):
    """Elements of other sizes, pixels with gaps, channels within wider pixels."""
    rng = random.Random(seed)
    height, width, channels = rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 3)
    sizes = [rng.choice((1, 2, 4)) for _ in range(2)]
    parts = [size * rng.randint(0, 1) for size in sizes]
    gaps = [size * rng.randint(0, 2) for size in sizes]
    tensors = [TensorSpec(name, height, width, channels, size) for name, size in zip("xy", sizes, strict=True)]
    strides = [t.pixel_bytes + part + gap for t, part, gap in zip(tensors, parts, gaps, strict=True)]
    forms = [
        PlaneLayout(part + t.pixel_bytes, stride, width, height, size)
        for t, part, stride, size in zip(tensors, parts, strides, sizes, strict=True)
    ]
    found = safe_distances(
        OpSpec("a", Pointwise(), ("x",), "y"), tensors[0], forms[0], parts[0], tensors[1], forms[1], parts[1]
    )
    source, output = (list(itertools.chain(*places(t, s, p))) for t, s, p in zip(tensors, strides, parts, strict=True))
    whole = [form.bytes for form in forms]

    def safe(distance: int, backwards: bool) -> bool:
        return safe_elements(source, output, distance, backwards)

    ahead, behind = (min(max(found, -whole[1]), whole[0]) for found in limits(safe, max(whole) + 1))
    assert found is not None
    told = min(found.ahead, whole[0]), max(found.backward, -whole[1])  # beyond them nothing is shared
    assert told[0] <= ahead and told[1] >= behind
    if not any(gaps) and not any(parts):  # without gaps nothing is given away
        assert told == (ahead, behind)


@every("seed", range(40))
def test_windows(seed):
    """Line by line: a line of the output may cover what no later one reads."""
    rng = random.Random(seed)
    net = Net(rng.randint(3, 9), rng.randint(2, 4), rng.randint(1, 3))
    kernel, stride = rng.randint(1, 3), rng.randint(1, 3)
    pads = tuple(rng.randint(0, kernel - 1) for _ in range(4))
    net.conv(
        net.input,
        rng.randint(1, 4),
        (kernel, 1),
        (stride, 1),
        (pads[0], 0, pads[2], 0),
        rng.choice((1, 1, 2)) if kernel < 3 else 1,
    )
    problem = net.done()
    op = problem.ops[0]
    x, y = problem.tensors["input"], problem.tensors[op.output]
    forms = [PlaneLayout(t.pixel_bytes, t.pixel_bytes, t.width, t.height, 1) for t in (x, y)]
    found = safe_distances(op, x, forms[0], 0, y, forms[1], 0)
    reads = op.reads(x, y.height)
    lines = [range(n * forms[0].line, (n + 1) * forms[0].line) for n in range(x.height)]
    stores = [range(n * forms[1].line, (n + 1) * forms[1].line) for n in range(y.height)]

    def safe(distance: int, backwards: bool) -> bool:
        order = list(range(y.height))[:: -1 if backwards else 1]
        return not any(
            meets(stores[n], lines[line], distance)
            for at, n in enumerate(order)
            for later in order[at:]
            for line in ([*range(reads[later][0], reads[later][-1] + 1)] if reads[later] else [])
        )

    ahead, behind = limits(safe, x.bytes + y.bytes)
    assert found is not None
    assert found.ahead == max(ahead, -y.bytes) or (found.ahead < ahead and not all(reads))
    assert found.backward == min(behind, x.bytes) or (found.backward > behind and not all(reads))
