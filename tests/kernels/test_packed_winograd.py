"""Winograd convolutions of packed weights: bit for bit."""

from itertools import cycle

from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_builds import LEVELS, check_build, on_builds
from support.kernel_cases import S8, S16, U8
from support.kernel_overlaps import over
from support.kernel_packed import FEWER, WEIGHTS, winograd_case

from n2d2py.arithmetic import NumType
from n2d2py.contracts.cpp.identifiers import Identifiers
from n2d2py.contracts.cpp.layer import ExportChoices, layer_code

LAYOUTS = ("apart", "strided", "wrapped", "over", "strided wrapped")


def fours_cases(seed: int) -> list[harness.Case]:
    """Channels around vectors of 16, panels and rests of 8, sizes that are no multiples of four, one block and several, every layout."""
    sweep, made = cases.Sweep(seed), []
    outputs, kinds = cycle((16, 24, 32, 40)), cycle((*WEIGHTS, *FEWER))
    sizes, pads = (
        cycle(((8, 8), (7, 11), (13, 10), (16, 9), (7, 8))),
        cycle(((1, 1, 1, 1), (1, 0, 0, 1), (2, 2, 2, 2), (1, 1, 1, 1))),
    )
    types, inputs, layouts = cycle((U8, S8, S16, NumType(32))), cycle((U8, S8, U8)), cycle(LAYOUTS)
    for channels in (8, 12, 16, 20, 32, 44, 48, 64, 84, 128):
        made.append(
            winograd_case(
                sweep,
                channels,
                next(outputs),
                next(sizes),
                next(pads),
                next(types),
                next(layouts),
                next(kinds),
                5,
                next(inputs),
            )
        )
    made.append(winograd_case(sweep, 64, 24, (31, 34), (1, 1, 1, 1), U8, "apart", "random", 0))
    apart = [winograd_case(sweep, channels, 16, (15, 14), (1, 1, 1, 1), U8, "apart", "odd", 0) for channels in (16, 64)]
    return made + [over(case, backwards) for case in apart for backwards in (False, True)]


def test_the_cases_use_it():
    choices = ExportChoices(prepacks_weights=False)
    codes = [layer_code(case.node, case.graph, case.plan, Identifiers(case.graph), choices) for case in fours_cases(1)]
    uses = [code.winograd is not None and "WinogradOnStack = 1" in code.config for code in codes]
    assert sum(uses) > 0.8 * len(uses), uses


@on_builds(
    {"-O0 avx2": 2, "-O0 emulated-avxvnni": 4, "-O0 aarch64": 100}, f"g++|clang++ {LEVELS} avx2|sse4", "aarch64|armv7 -O0|-O3"
)
def test_packed_winograd(tmp_path, build, every):
    check_build(fours_cases(2)[::-1][::every], tmp_path, build)
