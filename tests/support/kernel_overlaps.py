"""Cases whose output lies as far over an input as the planner lets it, lines forwards and backwards."""

from dataclasses import replace

from n2d2py.arithmetic import FLOAT32
from n2d2py.contracts.functions import LeakyRectifier, Swish
from n2d2py.memory.buffers import dense
from n2d2py.memory.from_graph import memory_problem
from n2d2py.memory.overlap import safe_distances
from n2d2py.memory.plan import OpPlan
from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_cases import K3, S8, S16, U8, U16, Window
from support.kernel_resampling import deconvolutions, resizes, unpools
from support.ops import Padding, Resize


def over(case: harness.Case, backwards: bool, target: str = "x", slack: int = 0) -> harness.Case:
    """The case with dense planes, the output at the planner's distance from `target`, or `slack` bytes farther on the safe
    side, the other inputs apart.
    """
    problem = memory_problem(case.graph)
    x, y, op = problem.tensors[target], problem.tensors["y"], problem.ops[0]
    found = safe_distances(op, x, dense(x), 0, y, dense(y), 0)
    assert found is not None, f"{op.layer} has no order\n{case}"
    unit = max(x.element_bytes, y.element_bytes)
    distance = -(-found.backward // unit) * unit if backwards else found.ahead // unit * unit
    distance += slack if backwards else -slack
    base = max(0, -distance) + 8 * unit
    base += -base % unit
    planes = {target: replace(case.planes[target], offset=base, stride=x.pixel_bytes, limit=None, wrap_offset=0, pitch=None)}
    planes["y"] = replace(case.planes["y"], offset=base + distance, stride=y.pixel_bytes, limit=None, wrap_offset=0, pitch=None)
    at = base + x.bytes + abs(distance) + y.bytes
    for name in case.inputs:
        if name != target:
            at += -at % 8
            planes[name] = replace(
                case.planes[name], offset=at, stride=problem.tensors[name].pixel_bytes, limit=None, wrap_offset=0, pitch=None
            )
            at += problem.tensors[name].bytes
    shared = base < base + distance + y.bytes and base + distance < base + x.bytes
    way = "backwards" if backwards else "forwards"
    return harness.Case(
        f"{case.title}, over {target} {way}", case.graph, planes, case.inputs, shared, run=OpPlan(backwards=backwards)
    )


def overlapping_cases(seed: int) -> list[harness.Case]:
    sweep = cases.Sweep(seed)
    made = []
    kinds = [(U8, U8), (S8, U8), (U8, S8), (S16, S16), (U8, U16), (S16, S8)]
    for i, window in enumerate(cases.WINDOWS * 2):
        channels = cases.CHANNELS[i % len(cases.CHANNELS)]
        groups, outputs = (channels, channels) if i % 2 else (1, (40, 5, 16)[i % 3])
        made.append(sweep.conv((1, channels, 9, 7), outputs, window, kinds[i % 6], groups=groups))
    made += [
        sweep.pool("Max", (1, 13, 9, 7), Window((3, 3), (2, 2), (1, 1, 1, 1)), False, (U8, U8)),
        sweep.pool("Average", (1, 70, 9, 7), Window((2, 2), (2, 2)), False, (S8, U8)),
        sweep.pool("Max", (1, 70, 9, 7), K3, False, (U8, U8)),
        sweep.pool("Average", (1, 70, 9, 7), Window((5, 3), (1, 2), (2, 1, 2, 1)), False, (S8, U8)),
        sweep.move(Padding((1, 2, 3, 1)), (1, 5, 7, 6), S8, "apart", top=1),
        sweep.move(Padding((-1, -1, 0, 2)), (1, 4, 7, 6), U8, "apart", top=-1),
        sweep.move(Resize((14, 15)), (1, 3, 7, 5), U8, "apart"),
        sweep.affine((1, 13, 5, 5), (U8, S8), "apart"),
        sweep.affine((1, 70, 3, 3), (S8, S16), "apart"),
        sweep.activation(Swish(), (1, 32, 5, 5), (S16, U8), "apart"),
        sweep.elemwise("Sum", (1, 13, 5, 5), 2, (U8, U8), "apart"),
        sweep.elemwise("Max", (1, 67, 5, 3), 3, (U8, S16), "apart"),
        sweep.elemwise("Sum", (1, 8, 5, 9), 2, (S16, U8), "apart"),
        sweep.concat((3, 8), (5, 5), (U8,), U8, "apart", False),
        sweep.concat((13, 4, 1), (5, 3), (U8, S8), S8, "apart", True),
        sweep.conv((1, 3, 9, 7), 5, K3, (FLOAT32, FLOAT32)),
        sweep.concat((3, 8), (5, 5), (FLOAT32,), FLOAT32, "apart", False),
    ]
    made[-2].node.activation = LeakyRectifier(0.1)
    next(case for case in made if case.node.op.kind == "Resize").node.clamp = (0, 255)
    made += [
        sweep.packed((1, c, 7, 5), bits, low, "apart", unpacks)
        for c, bits, low in ((24, 4, 0), (13, 2, -1))
        for unpacks in (False, True)
    ]
    made += [*list(deconvolutions(sweep))[seed % 3 :: 3], *list(resizes(sweep))[seed % 3 :: 3], *unpools(sweep)[seed % 2 :: 2]]
    return [over(case, backwards, name) for case in made for name in case.inputs for backwards in (False, True)]
