"""Convolutions that add what lies where they store, for the sweeps of kernels."""

from dataclasses import dataclass, replace
from itertools import cycle

import numpy as np

from n2d2py.arithmetic import RESCALING_MODES, NumType, make_rescale
from n2d2py.graph import Aligned, QuantGraph, QuantNode, QuantTensor
from n2d2py.memory.plan import OpPlan
from n2d2py.passes.integer.residual_add import fuse_residual_adds
from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_cases import K1, K3, S8, U8, Window
from support.ops import ElemWise

KINDS = ((U8, U8), (S8, U8), (U8, S8), (S8, S8))


OUTPUTS = (1, 4, 7, 8, 15, 16, 17, 24, 31, 32, 33, 48, 50, 63, 64, 65, 80, 130)


@dataclass
class Adding(harness.Case):
    """A convolution that does a sum too: `old` is added to what it makes, `y` left behind; `apart`: the two layers."""

    apart: QuantGraph | None = None

    def expected(self) -> np.ndarray:
        """The integers of the two layers one after the other, which are those of the one."""
        conv, total = self.apart.nodes
        own = conv.op.run_integer([self.inputs["x"]], conv, self.apart)[0]
        values = {"own": own, "old": self.inputs["old"]}
        found = total.op.run_integer([values[name] for name in total.inputs], total, self.apart)[0]
        np.testing.assert_array_equal(super().expected(), found)
        return found


def adding(
    sweep: cases.Sweep, case: harness.Case, mode: str, old: NumType, out: NumType, swapped: bool, zero: int, wide: bool
) -> Adding:
    """The convolution of `case` with a sum behind it, by multipliers up to 2^14, or `wide` ones up to 2^21, of both signs, a bias, and
    zero points where asked for."""
    graph, place = case.graph, case.planes["y"]
    shape, own = graph.shape("y"), graph.type("y")
    kinds = {
        "own": NumType(8, own.signed, zero_point=zero),
        "old": NumType(8, old.signed, zero_point=-zero if old.signed else zero),
        "y": NumType(8, out.signed, zero_point=zero // 2),
    }
    tensors = {"x": graph.tensors["x"], **{name: QuantTensor(name, shape, kind) for name, kind in kinds.items()}}
    weights = [int(sweep.rng.choice([1, 16384, -16384, *sweep.rng.integers(-16384, 16384, 3)])) for _ in range(2)]
    weights = [weight * 131 if wide else weight for weight in weights]
    offset = int(sweep.rng.integers(-100000, 100000)) if swapped else 0
    bound = sum(abs(m) * 384 for m in weights) + abs(offset)
    factor = 2.0 ** np.floor(np.log2(kinds["y"].qmax * 1.5 / bound))
    clamp = (kinds["y"].qmin if swapped else kinds["y"].qmin // 3, kinds["y"].qmax - 9 * swapped)
    total = QuantNode(
        "total",
        ElemWise("Sum"),
        ["old", "own"] if swapped else ["own", "old"],
        ["y"],
        form=Aligned(np.array(weights, np.int32), np.array([offset], np.int32)),
        rescale=make_rescale(mode, np.array([factor]), acc_bits=32)[0],
        clamp=clamp,
        bound=bound,
    )
    graph = replace(graph, tensors=tensors, nodes=[replace(graph.nodes[0], outputs=["own"]), total], inputs=["x", "old"])
    planes = {"x": case.planes["x"], "old": place, "y": place}
    inputs = {**case.inputs, "old": sweep.stored(shape, NumType(8, old.signed))}
    fused = fuse_residual_adds(graph, [(graph.nodes[0].name, "total")])
    title, run = f"{case.title}, added to {old.name} by {mode}", OpPlan(aliases="old")
    return Adding(title, fused, planes, inputs, run=run, apart=graph)


def residual_cases(seed: int) -> list[Adding]:
    """Outputs around 8, 16, 64, every rescale of both stages, signs of all three tensors, windows, strides, groups, gaps between pixels."""
    sweep, made = cases.Sweep(seed), []
    modes, kinds, old, out = cycle(RESCALING_MODES), cycle(KINDS), cycle((U8, S8, S8, U8, S8)), cycle((U8, U8, S8))
    windows = cycle((K1, K3, Window((1, 1), (2, 2)), Window((3, 2), (2, 1), (1, 0, 1, 1))))
    channels, sizes = cycle((16, 5, 64, 33, 4, 3)), cycle(((7, 7), (5, 13), (1, 1), (9, 6)))
    layouts = cycle(("apart", "strided", "apart", "wrapped"))
    for i, outputs in enumerate(OUTPUTS * 2):
        window = next(windows)
        groups = 2 if i % 7 == 6 else 1
        count, size = next(channels) * groups, next(sizes)
        if any(size[k] + window.pads[k] + window.pads[k + 2] < window.kernel[k] for k in (0, 1)):
            size = (4, 5)
        shape, form = (1, count, *size), {"groups": groups, "zero": 9 * (i % 3 == 1)}
        case = sweep.conv(shape, outputs * groups, window, next(kinds), next(layouts), **form)
        zero, wide = 11 * (i % 5 == 3), i % 8 in (0, 5)
        made.append(adding(sweep, case, next(modes), next(old), next(out), i % 2 == 1, zero, wide))
    return made


def winograd_cases(seed: int) -> list[Adding]:
    """Windows of 3 x 3 whose last line and column of tiles have one pixel, or two."""
    sweep, made = cases.Sweep(seed), []
    modes, kinds, old = cycle(RESCALING_MODES), cycle(KINDS), cycle((S8, U8, U8))
    for i, (outputs, size) in enumerate(
        zip((16, 5, 17, 40, 8, 33, 31, 64, 1), cycle(((7, 7), (6, 8), (1, 5), (5, 1), (8, 9), (22, 13))))
    ):
        case = sweep.conv((1, (16, 5, 33)[i % 3], *size), outputs, K3, next(kinds), ("apart", "strided")[i % 2])
        made.append(adding(sweep, case, next(modes), next(old), (U8, S8)[i % 2], i % 3 == 1, 0, i % 3 == 0))
    return made
