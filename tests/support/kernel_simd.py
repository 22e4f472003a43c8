"""Cases of sizes around each block of the kernels of instruction sets."""

from collections.abc import Iterator
from itertools import cycle

import numpy as np

from n2d2py.arithmetic import FLOAT32, NumType
from n2d2py.graph.forms import Weighted
from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_cases import K1, K3, LAYOUTS, S8, S16, U8, U16, Window
from support.kernel_overlaps import over

KINDS = ((U8, U8), (S8, U8), (U8, S8), (S8, S8), (U8, S16), (S8, U16), (U8, NumType(32)))


def byte_weights(case: harness.Case) -> harness.Case:
    """The case with its 16-bit weights divided to 8 bits, as layers with 16-bit inputs and 8-bit weights have them; those of 8 bits stay."""
    if case.node.form.weights.dtype == np.int8:
        return case
    form = case.node.form = Weighted(*(array // 260 for array in case.node.params.values()))
    case.node.bound = int(form.weights[0].size * 128 * 2**16 + np.abs(form.bias).max())
    return case


def dense_cases(sweep: cases.Sweep) -> Iterator[harness.Case]:
    """Outputs around 16, inputs around 4, pixels around a tile, several blocks of windows, every layout."""
    kinds, placed = cycle(KINDS), cycle(LAYOUTS)
    for outputs, channels in zip(
        (1, 15, 16, 17, 31, 33, 47, 48, 63, 64, 65, 80, 81, 96, 128, 130), cycle((4, 5, 16, 63, 64, 65, 3, 32))
    ):
        size = [(1, 1), (1, 5), (6, 8), (7, 7), (5, 13)][outputs % 5]
        yield sweep.conv((1, channels, *size), outputs, K1, next(kinds), next(placed))
    for i, window in enumerate(cases.WINDOWS):
        channels, outputs = (3, 20, 33, 1, 16)[i % 5], (16, 40, 70)[i % 3]
        yield sweep.conv((1, channels, 9, 11), outputs, window, next(kinds), next(placed), zero=9 * (i % 2))
    for kind, layout in zip(KINDS, ("over", "ring", "wrapped", "over", "apart", "ring", "apart"), strict=True):
        yield sweep.conv((1, 72, 13, 12), 24, K3, kind, layout)
    for i, (kind, layout) in enumerate(zip(((S16, U8), (U16, S8), (S16, S16), (U16, U16)) * 3, cycle(LAYOUTS))):
        channels, outputs = (1, 3, 8, 33)[i % 4], (16, 64, 5, 48, 33)[i % 5]
        kernel, pads = (((1, 1), (0, 0, 0, 0)), ((3, 2), (1, 1, 1, 0)))[i % 2]
        yield byte_weights(sweep.conv((1, channels, 6, 7), outputs, Window(kernel, pads=pads), kind, layout, zero=5 * (i % 2)))
    yield sweep.conv((1, 64, 5, 6), 48, K3, (S8, S8), "over", groups=2)
    yield sweep.conv((1, 36, 7, 6), 51, Window((3, 1), pads=(1, 0, 1, 0)), (U8, U8), "ring", groups=3)


def line_cases(sweep: cases.Sweep) -> Iterator[harness.Case]:
    """Windows read from padded lines where a kernel has that: lines of whole and of unequal tiles, several blocks, input beyond the
    last window, padding on each side, strides, dilated lines, kernels of one line and of one column."""
    kinds, placed = cycle(KINDS), cycle(("apart", "wrapped", "over", "apart", "ring"))
    for i, (channels, outputs, window, size) in enumerate(
        (
            (16, 16, K3, (9, 16)),
            (4, 20, Window((3, 3), (2, 2), (1, 1, 0, 0)), (9, 26)),
            (8, 33, Window((5, 5), pads=(2, 2, 2, 2)), (7, 17)),
            (16, 16, Window((3, 1), pads=(1, 0, 1, 0)), (8, 24)),
            (12, 24, Window((1, 4), pads=(0, 2, 0, 1)), (6, 25)),
            (16, 40, Window((3, 3), pads=(2, 1, 2, 1), dilation=(2, 1)), (10, 16)),
            (16, 16, Window((2, 2), (2, 3)), (9, 52)),
            (20, 64, K3, (7, 24)),
            (64, 16, Window((3, 3), pads=(0, 3, 0, 0)), (24, 46)),
            (32, 7, Window((3, 3), pads=(1, 0, 1, 2)), (12, 35)),
            (2, 16, Window((3, 2), pads=(1, 1, 1, 0)), (8, 33)),
            (4, 48, Window((7, 7), (2, 2), (3, 3, 3, 3)), (14, 48)),
        )
    ):
        yield sweep.conv((1, channels, *size), outputs, window, next(kinds), next(placed), zero=6 * (i % 2))
    for kind in ((S16, U8), (U16, S8)):
        yield byte_weights(sweep.conv((1, 8, 8, 16), 16, K3, kind))


def depthwise_cases(sweep: cases.Sweep) -> Iterator[harness.Case]:
    """Channels around 16 and 64, 1 to 9 lines of a kernel, lines longer than a buffer."""
    kinds, placed = cycle(KINDS), cycle(LAYOUTS)
    kernels = cycle([(3, 3), (1, 1), (4, 2), (5, 5), (2, 3), (8, 1), (9, 3), (3, 3)])
    for i, channels in enumerate((1, 15, 16, 17, 48, 63, 64, 65, 79, 80, 81, 112, 127, 128, 129, 192)):
        kernel, stride = next(kernels), ((1, 1), (2, 2), (1, 2))[i % 3]
        pads = (kernel[0] // 2, kernel[1] // 2, (kernel[0] - 1) // 2, (kernel[1] - 1) // 2)
        size = ((6, 7), (9, 35), (5, 17))[i % 3]
        window = Window(kernel, stride, pads)
        yield sweep.depthwise((1, channels, *size), window, next(kinds), next(placed), zero=7 * (i % 2))
    for i, channels in enumerate((1, 3, 4, 5, 7, 8, 9, 12, 13, 16, 20, 24, 28, 40, 56, 68, 72, 96, 136, 144, 16)):
        stride, width = ((1, 1), (2, 2), (1, 1), (1, 2), (2, 1))[i % 5], (1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 34)[i % 11]
        before, after = ((0, 0), (1, 1), (0, 1), (2, 0), (1, 0), (2, 2), (4, 1))[i % 7]
        pads = (before % 3, before, 2, max(after, 3 - width - before))
        window = Window((3, 3), stride, pads)
        yield sweep.depthwise((1, channels, 1 + i % 6, width), window, next(kinds), next(placed), zero=5 * (i % 2))
    yield sweep.depthwise((1, 64, 9, 9), Window((3, 3), (1, 1), (2, 2, 2, 2), (2, 2)), (S8, U8), "over")
    yield sweep.depthwise((1, 80, 9, 9), Window((3, 2), (1, 2), (1, 3, 1, 0), (1, 3)), (U8, S16), zero=3)


def channel_depthwise_cases(sweep: cases.Sweep) -> Iterator[harness.Case]:
    """Depthwise layers whose inputs or weights have 16 bits: channels around 4, 8, 16 and 32, even and odd kernels, long ones, runs of
    pixels of one length and of two, strides, dilations, pads beyond the input, zero points, every layout."""
    placed = cycle(LAYOUTS)
    kinds = cycle(
        [(U8, S16, 16), (S8, U8, 16), (S16, S16, 12), (U16, U16, 12), (U16, S8, 8), (S16, U8, 8), (S16, NumType(32), 12)]
        + [(U16, NumType(8, False, zero_point=9), 8)]
    )
    geometry = cycle(
        [
            ((3, 3), (1, 1), (1, 1), (6, 7)),
            ((5, 5), (1, 1), (1, 1), (5, 14)),
            ((1, 7), (1, 1), (1, 1), (3, 25)),
            ((2, 2), (2, 2), (1, 1), (7, 13)),
            ((3, 3), (2, 2), (1, 1), (9, 13)),
            ((3, 3), (1, 1), (2, 2), (6, 5)),
            ((4, 2), (1, 3), (1, 1), (5, 8)),
            ((7, 1), (2, 1), (1, 1), (9, 1)),
            ((1, 1), (1, 1), (1, 1), (2, 33)),
            ((2, 19), (1, 1), (1, 1), (3, 8)),
            ((3, 11), (1, 2), (1, 2), (4, 30)),
        ]
    )
    for i, channels in enumerate((1, 3, 17, 33, 70, 4, 5, 8, 9, 12, 15, 16, 20, 31, 32, 40, 56, 64, 65, 96, 3, 70, 33, 17, 1)):
        kernel, stride, dilation, size = next(geometry)
        kind, output, bits = next(kinds)
        safe_distances = [(k - 1) * d for k, d in zip(kernel, dilation, strict=True)]
        before = [(half // 2, 0, half, half // 2)[i % 4] for half in safe_distances]
        pads = (*before, *(half - least + i % 2 for half, least in zip(safe_distances, before, strict=True)))
        taps = kernel[0] * kernel[1]
        bits = bits if bits in (8, 16) or taps <= 9 else 10 - taps // 26
        window, form = Window(kernel, stride, pads, dilation), {"zero": 7 * (i % 3 == 1), "weight_bits": bits}
        yield sweep.depthwise((1, channels, *size), window, (kind, output), next(placed), **form)


def line_depthwise_cases(sweep: cases.Sweep) -> Iterator[harness.Case]:
    """Depthwise layers of 4 to 32 channels in dense lines: vectors of several pixels, one to four lines, strides, dilations, both paddings."""
    kinds = cycle((*KINDS[:4], (U8, NumType(8, True, zero_point=9)), (S8, NumType(8, False, zero_point=9))))
    kernels = cycle([(3, 3), (1, 1), (4, 2), (2, 5), (3, 4), (3, 3), (2, 2), (3, 9), (4, 3)])
    for i, (channels, width) in enumerate(
        ((8, 48), (16, 24), (32, 23), (4, 33), (8, 9), (16, 5), (32, 3), (8, 17), (16, 31), (32, 8), (4, 67), (8, 41))
        + ((8, 47), (16, 7), (32, 4), (16, 12), (32, 6), (8, 32), (4, 16), (8, 20))
    ):
        kernel, stride = next(kernels), ((1, 1), (2, 2), (1, 1), (2, 1), (1, 2))[i % 5]
        dilation = (1, 2) if i % 7 == 3 else (1, 1)
        left = (1, 0, 2, 1, 3)[i % 5] % kernel[1]
        pads = (kernel[0] // 2, left, (kernel[0] - 1) // 2, (kernel[1] - 1) * dilation[1] - left + i % 2)
        window = Window(kernel, stride, pads, dilation)
        yield sweep.depthwise((1, channels, 5, width), window, next(kinds), zero=7 * (i % 3))


def full_cases(sweep: cases.Sweep) -> list[harness.Case]:
    """Fully connected layers around 16 and 8 * 16 outputs."""
    shapes = cycle([(1, 64), (1, 5), (1, 67), (1, 16, 3, 2), (1, 5, 4, 3)])
    return [
        sweep.fc(next(shapes), outputs, kind, layout)
        for outputs, kind, layout in zip((1, 15, 16, 17, 127, 128, 129, 144, 250), cycle(KINDS), cycle(cases.POINTWISE_LAYOUTS))
    ] + [
        byte_weights(sweep.fc(next(shapes), outputs, (kind, U8), layout))
        for outputs, kind, layout in ((17, S16, "apart"), (130, U16, "apart"), (10, S16, "strided"), (16, U16, "wrapped"))
    ]


def run_cases(sweep: cases.Sweep) -> Iterator[harness.Case]:
    """Pointwise layers in runs around 16, 32 and 64 elements."""
    placed = cycle(cases.POINTWISE_LAYOUTS)
    for i, (channels, columns) in enumerate(
        ((1, 16), (7, 5), (16, 1), (31, 1), (32, 3), (33, 2), (64, 1), (80, 1), (96, 2), (129, 1))
    ):
        kinds = (KINDS[i % 4][0], U8, S8)[: 2 + i % 2]
        yield sweep.elemwise(
            ("Sum", "Max", "Sum", "Min")[i % 4], (1, channels, 2, columns), 2 + i % 2, (*kinds, KINDS[i % 7][1]), next(placed)
        )
        yield sweep.affine((1, channels, 2, columns), KINDS[i % 7], next(placed))


def zero_cases(sweep: cases.Sweep) -> Iterator[harness.Case]:
    """Outputs with a zero point, as quantized files have them, in the kernels with a last stage in registers."""
    placed = cycle(cases.POINTWISE_LAYOUTS)
    for i, (signed, zero) in enumerate(((False, 131), (True, -17), (False, 3), (True, 100), (False, 255), (True, -128))):
        kinds = ((U8, S8)[i % 2], NumType(8, signed, zero_point=zero))
        yield sweep.conv((1, (16, 5)[i % 2], 6, 7), (16, 40, 7)[i % 3], K3, kinds, next(placed))
        channels = (64, 17, 8)[i % 3]
        yield sweep.depthwise((1, channels, 7, 6), K3, kinds, next(placed))
        yield sweep.fc((1, 20), (10, 48)[i % 2], kinds, next(placed))
        yield sweep.elemwise("Sum", (1, (33, 8, 64)[i % 3], 2, 3), 2, (U8, S8, kinds[1]), next(placed))
    for wide in (NumType(16, False, zero_point=300), NumType(16, zero_point=-77)):
        yield sweep.conv((1, 5, 5, 6), 33, K1, (U8, wide))
        yield sweep.depthwise((1, 20, 6, 9), K3, (S16, wide))


def real_cases(sweep: cases.Sweep) -> Iterator[harness.Case]:
    """float32: outputs around 16, channels around 4, 8 and 16, pixels around a tile, padding, strides, groups of 16."""
    kinds, placed = (FLOAT32, FLOAT32), cycle(LAYOUTS)
    for outputs, channels, window in zip(
        (1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 70), cycle((1, 3, 8, 16, 17, 20, 5)), cycle(cases.WINDOWS[:5] + cases.WINDOWS[6:8])
    ):
        yield sweep.conv((1, channels, 6, 7), outputs, window, kinds, next(placed))
    yield sweep.conv((1, 12, 5, 7), 64, Window((3, 1), pads=(1, 0, 1, 0)), kinds, groups=4)
    for channels, window in zip(cycle((3, 8, 9, 16, 20, 33, 4)), cases.WINDOWS[1:]):
        yield sweep.depthwise((1, channels, 9, 7), window, kinds, next(placed))
    yield from [
        sweep.fc((1, 37), outputs, kinds, layout) for outputs, layout in ((10, "apart"), (65, "strided"), (144, "apart"))
    ]


def simd_cases(seed: int) -> list[harness.Case]:
    """The cases of all SIMD kernels; forwards and backwards over the input where there is room."""
    sweep = cases.Sweep(seed)
    made = [
        *dense_cases(sweep),
        *line_cases(sweep),
        *depthwise_cases(sweep),
        *line_depthwise_cases(sweep),
        *channel_depthwise_cases(sweep),
        *full_cases(sweep),
        *run_cases(sweep),
        *zero_cases(sweep),
        *real_cases(sweep),
    ]
    apart = [
        sweep.conv((1, c, 9, 14), o, K3, kinds, groups=c if c == o else 1)
        for c, o, kinds in ((96, 96, (U8, U8)), (20, 40, (S8, U8)), (64, 16, (U8, S8)), (72, 72, (S8, S8)))
    ]
    return made + [over(case, backwards) for case in apart for backwards in (False, True)]
