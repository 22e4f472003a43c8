"""Cases of every kernel that can run line by line, one or two lines at a call."""

from n2d2py.arithmetic import FLOAT32
from n2d2py.contracts.functions import Swish
from n2d2py.memory.plan import OpPlan
from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_cases import K1, K3, S8, S16, U8, U16, Window
from support.ops import Padding, Resize


def by_lines(case: harness.Case, keeps: bool = False) -> harness.Case:
    """The case with an output that is made line by line; `keeps`: a global pool that takes its input so."""
    last = case.arena().size
    run = OpPlan(streamed=True, partial=last + 3 if keeps else None)
    return harness.Case(f"{case.title}, by lines", case.graph, case.planes, case.inputs, run=run)


def line_cases(seed: int) -> list[harness.Case]:
    sweep = cases.Sweep(seed)
    kinds = [(U8, U8), (S8, U8), (U8, S8), (S16, S16), (U8, U16), (S16, S8)]
    made = []
    for i, window in enumerate(cases.WINDOWS * 2):
        channels = cases.CHANNELS[i % len(cases.CHANNELS)]
        groups, outputs = (channels, channels) if i % 2 else (1, (40, 5, 16)[i % 3])
        layout = ("apart", "wrapped", "strided", "columns")[i % 4]
        made.append(sweep.conv((1, channels, 9, 7), outputs, window, kinds[i % 6], layout, groups=groups))
    made += [
        sweep.conv((1, 16, 9, 23), 40, K1, (U8, U8), "wrapped"),
        sweep.conv((1, 32, 5, 9), 16, K1, (S8, S8)),
        sweep.conv((1, 16, 7, 9), 32, K3, (U8, U8), groups=2),
        sweep.conv((1, 3, 9, 7), 5, K3, (FLOAT32, FLOAT32)),
        sweep.pool("Max", (1, 70, 9, 7), Window((3, 3), (2, 2), (1, 1, 1, 1)), False, (U8, U8), "wrapped"),
        sweep.pool("Average", (1, 13, 9, 7), Window((3, 3), (1, 2), (1, 1, 1, 1)), False, (S8, U8)),
        sweep.move(Padding((1, 2, 3, 1)), (1, 5, 7, 6), S8, "apart", top=1),
        sweep.move(Resize((14, 15)), (1, 3, 7, 5), U8, "apart"),
        sweep.affine((1, 70, 3, 3), (S8, S16), "wrapped"),
        sweep.activation(Swish(), (1, 32, 5, 5), (S16, U8), "apart"),
        sweep.elemwise("Sum", (1, 67, 5, 3), 3, (U8, S16), "wrapped"),
        sweep.concat((13, 4, 1), (5, 3), (U8, S8), S8, "apart", True),
        sweep.concat((3, 8), (5, 5), (FLOAT32,), FLOAT32, "apart", False),
        sweep.packed((1, 24, 7, 5), 4, 0, "apart", False),
        sweep.packed((1, 13, 5, 7), 2, -1, "wrapped", False),
        sweep.packed((1, 24, 7, 5), 4, -7, "wrapped", True),
        sweep.packed((1, 9, 5, 7), 1, 0, "strided", True),
    ]
    next(case for case in made if case.node.op.kind == "Resize").node.clamp = (0, 255)
    pools = [
        sweep.pool(mode, shape, Window(shape[2:]), True, kind, layout)
        for mode in ("Max", "Average")
        for shape, kind, layout in (
            ((1, 24, 7, 7), (U8, U8), "apart"),
            ((1, 70, 5, 3), (S16, S16), "wrapped"),
            ((1, 5, 4, 6), (FLOAT32, FLOAT32), "apart"),
        )
    ]
    return [by_lines(case) for case in made] + [by_lines(case, True) for case in pools]
