"""Functions, moves and repeated operands, in all forms and in sizes around the vectors of the kernels."""

from collections.abc import Iterator
from itertools import cycle

import numpy as np

from n2d2py.arithmetic import FLOAT32, FLOAT64, NumType
from n2d2py.contracts.functions import (
    Abs,
    Elu,
    Erf,
    Exp,
    Gelu,
    GeluTanh,
    HardSigmoid,
    HardSwish,
    Log,
    Mish,
    Softsign,
    Sqrt,
    Tanh,
)
from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_cases import S8, S16, U8, U16, Sweep, Window
from support.kernel_resampling import deconv
from support.ops import DepthToSpace, IndexSelect, Reshape, Softmax, SpaceToDepth

FUNCTIONS = (
    Abs(),
    Elu(),
    Elu(1.67, 1.05),
    Elu(2.0, 1.0, 0.5),
    Erf(),
    Exp(),
    Gelu(),
    GeluTanh(),
    HardSigmoid(),
    HardSwish(),
    HardSwish(1.0, 3.0, 6.0),
    Log(),
    Mish(),
    Softsign(),
    Sqrt(),
)


def functions(sweep: Sweep) -> Iterator[harness.Case]:
    for function in FUNCTIONS:
        for kind in (FLOAT32, FLOAT64):
            case = sweep.activation(function, (1, 13, 5, 3), (kind, kind), "strided")
            if isinstance(function, (Log, Sqrt)):
                case.inputs["x"] = np.abs(case.inputs["x"]) + kind.dtype.type(0.01)
            yield case
        yield sweep.activation(function, (1, 7, 2, 3), (S8, U8), "apart")


def takes(sweep: Sweep) -> list[harness.Case]:
    placed = cycle(cases.POINTWISE_LAYOUTS)
    shapes = [
        ((1, 8), ((2, 3, 4),)),
        ((1, 8), ((7, 0, 0, 3),)),
        ((1, 5, 6), ((4, 3, 2), None)),
        ((1, 5, 6), (None, (1, 0, 0, 1, 5, 4))),
        ((1, 7, 5, 4), ((1, 3, 5), (4, 3, 2, 1, 0), None)),
        ((1, 4, 5, 6), (None, (1, 0, 1, 2, 3, 4, 3), (2, 1, 0, 1))),
        ((1, 3, 2, 2), ((2,), (1,), (0, 0, 0))),
    ]
    return [
        sweep.move(IndexSelect(indices), shape, kind, next(placed))
        for (shape, indices), kind in zip(shapes, cycle((U8, FLOAT32, S16, FLOAT64, S8)))
    ]


def blocks(sweep: Sweep) -> Iterator[harness.Case]:
    placed, kinds = cycle(cases.POINTWISE_LAYOUTS), cycle((U8, FLOAT32, S16, FLOAT64))
    for first in (False, True):
        for block, channels in ((2, 3), (3, 2), (1, 5)):
            yield sweep.move(DepthToSpace(block, first), (1, channels * block**2, 3, 4), next(kinds), next(placed))
            yield sweep.move(SpaceToDepth(block, first), (1, channels, 2 * block, 3 * block), next(kinds), next(placed))
    yield from [
        sweep.move(Softmax(log=True), (1, 10), FLOAT32, "apart"),
        sweep.move(Softmax(4, True), (1, 12, 3, 2), FLOAT64, "apart"),
    ]


def repeats(sweep: Sweep) -> Iterator[harness.Case]:
    placed, swap = cycle(cases.POINTWISE_LAYOUTS), cycle((False, True))
    others = ((1, 13, 1, 1), (1, 1, 5, 3), (1, 1, 1, 1), (1, 13, 5, 1), (1, 13, 1, 3), (1, 1, 1, 3))
    zero = NumType(8, False, zero_point=9)
    for operation in ("Prod", "Sum", "Min"):
        for other, kinds in zip(others, cycle(((U8, U8), (FLOAT32, FLOAT32), (S8, S8), (FLOAT64, FLOAT64), (zero, U8)))):
            yield sweep.repeated(operation, (1, 13, 5, 3), other, kinds, next(placed), next(swap))
    yield sweep.repeated("Sum", (1, 1, 4, 70), (1, 1, 1, 70), (U8, U8), "apart", False)
    yield sweep.repeated("Sum", (1, 1, 4, 70), (1, 1, 4, 1), (FLOAT32, FLOAT32), "apart", True)
    yield from [sweep.elemwise("Min", (1, 13, 4, 3), 3, kinds, "apart") for kinds in ((U8, S8), (S16, S16), (FLOAT32,))]


def element_cases(seed: int) -> list[harness.Case]:
    sweep = Sweep(seed)
    return [*functions(sweep), *takes(sweep), *blocks(sweep), *repeats(sweep)]


def turned(channels: int, groups: int, first: int = 0, count: int | None = None) -> tuple[int, ...]:
    """The channels of a shuffle of `groups`, `count` of them from `first` on."""
    order = [g * (channels // groups) + i for i in range(channels // groups) for g in range(groups)]
    return tuple(order[first : first + (count or channels)])


def shuffles(sweep: Sweep) -> Iterator[harness.Case]:
    placed, kinds = cycle(cases.POINTWISE_LAYOUTS), cycle((U8, S8, FLOAT32, S16))
    for channels, groups, first, count in (
        (48, 2, 0, 24),
        (48, 2, 24, 24),
        (96, 2, 0, 96),
        (24, 3, 0, 24),
        (40, 4, 0, 18),
        (600, 2, 300, 300),
        (320, 4, 0, 320),
        (512, 256, 0, 512),
        (12, 2, 1, 7),
        (6, 6, 0, 5),
    ):
        yield sweep.move(
            IndexSelect((turned(channels, groups, first, count), None, None)), (1, channels, 3, 5), next(kinds), next(placed)
        )
    yield sweep.move(IndexSelect((tuple(range(3, 290)), None, (2, 0, 1))), (1, 300, 2, 3), U8, "strided")


def is_real_concat(sweep: Sweep) -> Iterator[harness.Case]:
    """Channels and columns around a tile of 64 and a vector of 32."""
    placed = cycle(cases.POINTWISE_LAYOUTS)
    kinds = cycle(((U8, S8), (S8, U8), (U8, U8), (S8, S8), (S16, U8), (S8, U16), (U16, S16)))
    for parts, size in (
        ((1, 2), (3, 70)),
        ((8, 8), (2, 16)),
        ((24, 40), (3, 5)),
        ((63, 64, 65), (2, 3)),
        ((128, 96), (2, 2)),
        ((31, 33), (1, 9)),
        ((16, 130), (3, 4)),
    ):
        pair = next(kinds)
        yield sweep.concat(parts, size, pair, pair[-1], next(placed), True)
        yield sweep.concat(parts, size, pair[:1], pair[0], next(placed), False)


def gates(sweep: Sweep) -> Iterator[harness.Case]:
    """Images times one factor for each channel, or for each pixel."""
    placed, swap = cycle(cases.POINTWISE_LAYOUTS), cycle((False, True))
    kinds = cycle(((U8, U8), (S8, S8), (U8, S8), (S8, U8), (FLOAT32, FLOAT32)))
    for channels, size in (
        (1, (3, 70)),
        (5, (3, 13)),
        (16, (4, 8)),
        (24, (3, 7)),
        (32, (2, 5)),
        (48, (5, 3)),
        (63, (2, 2)),
        (64, (2, 3)),
        (72, (2, 3)),
        (96, (2, 2)),
        (144, (2, 3)),
    ):
        yield sweep.repeated("Prod", (1, channels, *size), (1, channels, 1, 1), next(kinds), next(placed), next(swap))
        yield sweep.repeated("Sum", (1, channels, *size), (1, 1, *size), next(kinds), next(placed), next(swap))
    for channels, layout in ((24, "strided"), (13, "strided"), (40, "wrapped")):
        yield cases.in_place(
            sweep.elemwise("Sum", (1, channels, 5, 5), 2, (U8, U8), layout), "x", 3 if layout == "wrapped" else 0
        )


def layouts(sweep: Sweep) -> Iterator[harness.Case]:
    """Images to vectors and back: blocks of 8 and 16 channels and pixels, and what is left of them."""
    placed = cycle(cases.POINTWISE_LAYOUTS)
    kinds = cycle((U8, S8, FLOAT32, S16, FLOAT64))
    for channels, size in (
        (16, (4, 8)),
        (17, (3, 11)),
        (8, (8, 8)),
        (40, (7, 7)),
        (3, (16, 16)),
        (33, (1, 40)),
        (64, (5, 13)),
        (24, (16, 2)),
        (1, (4, 4)),
    ):
        for first, second in (
            ((channels, *size), (channels * size[0] * size[1],)),
            ((channels * size[0] * size[1],), (channels, *size)),
            ((channels, *size), (size[0] * size[1], channels)),
            ((channels, *size), (channels, size[0] * size[1])),
        ):
            yield sweep.move(Reshape(second), (1, *first), next(kinds), next(placed))


def enlarged(sweep: Sweep) -> Iterator[harness.Case]:
    """Transposed convolutions whose phases are convolutions."""
    placed = cycle(("apart", "strided", "apart", "over", "wrapped"))
    windows = cycle(
        (
            Window((2, 2), (2, 2)),
            Window((4, 4), (2, 2), (1, 1, 1, 1)),
            Window((3, 3), (2, 2), (1, 1, 0, 0)),
            Window((5, 3), (2, 1), (2, 1, 1, 1)),
            Window((6, 4), (3, 2), (4, 1, 0, 2)),
            Window((2, 3), (1, 3), (0, 0, 1, 0)),
        )
    )
    for channels, outputs in ((16, 8), (5, 17), (33, 16), (8, 40), (64, 32), (1, 3), (12, 70)):
        window, kinds = next(windows), next(sweep.kinds)
        yield deconv(sweep, channels, outputs, window, 1, kinds, next(placed))
        yield deconv(sweep, channels, outputs, window, 1, (U8, S8), "apart")


def tables(sweep: Sweep) -> Iterator[harness.Case]:
    """Tables of bytes around vectors of 32."""
    placed = cycle(("apart", "strided", "wrapped"))
    for (channels, size), kinds in zip(
        ((64, (2, 3)), (7, (3, 9)), (1, (4, 32)), (33, (3, 2)), (100, (2, 1)), (5, (2, 200)), (63, (1, 1))),
        cycle(((U8, U8), (S8, U8), (S8, S8), (U8, S8), (U8, S16))),
    ):
        yield sweep.activation(Tanh(), (1, channels, *size), kinds, next(placed))
    yield cases.in_place(sweep.activation(Tanh(), (1, 70, 5, 5), (U8, U8), "apart"), "x", 17)
    yield cases.in_place(sweep.activation(Tanh(), (1, 64, 3, 5), (S8, S8), "apart"))


def vector_size_cases(seed: int) -> list[harness.Case]:
    sweep = Sweep(seed)
    return [*shuffles(sweep), *is_real_concat(sweep), *gates(sweep), *layouts(sweep), *enlarged(sweep), *tables(sweep)]
