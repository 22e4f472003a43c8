"""Convolutions that add a residual where they store, bit for bit: the integers of two layers one after the other, on every instruction set."""

from __future__ import annotations

import platform
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_arm import TARGETS, check
from support.kernel_cases import S8, U8
from support.kernel_simd import AMX_TILES, EMULATED, ISAS, SANITIZERS, need_isa
from support.kernel_sweep import need
from support.kernel_winograd import SETS, forced

from n2d2py.arithmetic import RESCALING_MODES, NumType, make_rescale
from n2d2py.exports.cpp.identifiers import Identifiers
from n2d2py.exports.cpp.layer import layer_code
from n2d2py.graph import QuantGraph, QuantNode, QuantTensor
from n2d2py.graph.forms import Aligned
from n2d2py.memory.plan import OpPlan
from n2d2py.operators.elemwise import ElemWise
from n2d2py.passes.integer.residual_add import fuse_residual_adds

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


def adding(sweep: cases.Sweep, case: harness.Case, mode: str, old: NumType, out: NumType, swapped: bool, zero: int) -> Adding:
    """The convolution of `case` with a sum behind it, by multipliers up to 2^14 of both signs, a bias, and zero points where asked for."""
    graph, place = case.graph, case.planes["y"]
    shape, own = graph.shape("y"), graph.type("y")
    kinds = {
        "own": NumType(8, own.signed, zero_point=zero),
        "old": NumType(8, old.signed, zero_point=-zero if old.signed else zero),
        "y": NumType(8, out.signed, zero_point=zero // 2),
    }
    tensors = {"x": graph.tensors["x"], **{name: QuantTensor(name, shape, kind) for name, kind in kinds.items()}}
    weights = [int(sweep.rng.choice([1, 16384, -16384, *sweep.rng.integers(-16384, 16384, 3)])) for _ in range(2)]
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
    windows = cycle(
        (
            ((1, 1), (1, 1), (0, 0, 0, 0)),
            ((3, 3), (1, 1), (1, 1, 1, 1)),
            ((1, 1), (2, 2), (0, 0, 0, 0)),
            ((3, 2), (2, 1), (1, 0, 1, 1)),
        )
    )
    channels, sizes, layouts = (
        cycle((16, 5, 64, 33, 4, 3)),
        cycle(((7, 7), (5, 13), (1, 1), (9, 6))),
        cycle(("apart", "strided", "apart", "wrapped")),
    )
    for i, outputs in enumerate(OUTPUTS * 2):
        kernel, stride, pads = next(windows)
        groups = 2 if i % 7 == 6 else 1
        count, size = next(channels) * groups, next(sizes)
        if any(size[k] + pads[k] + pads[k + 2] < kernel[k] for k in (0, 1)):
            size = (4, 5)
        case = sweep.conv(
            (1, count, *size),
            outputs * groups,
            kernel,
            stride,
            pads,
            (1, 1),
            groups,
            next(kinds),
            next(layouts),
            9 * (i % 3 == 1),
        )
        made.append(adding(sweep, case, next(modes), next(old), next(out), i % 2 == 1, 11 * (i % 5 == 3)))
    return made


def winograd_cases(seed: int) -> list[Adding]:
    """Windows of 3 x 3 whose last line and column of tiles have one pixel, or two."""
    sweep, made = cases.Sweep(seed), []
    modes, kinds, old = cycle(RESCALING_MODES), cycle(KINDS), cycle((S8, U8, U8))
    for i, (outputs, size) in enumerate(
        zip((16, 5, 17, 40, 8, 33, 31, 64, 1), cycle(((7, 7), (6, 8), (1, 5), (5, 1), (8, 9), (22, 13))))
    ):
        case = sweep.conv(
            (1, (16, 5, 33)[i % 3], *size),
            outputs,
            (3, 3),
            (1, 1),
            (1, 1, 1, 1),
            (1, 1),
            1,
            next(kinds),
            ("apart", "strided")[i % 2],
        )
        made.append(adding(sweep, case, next(modes), next(old), (U8, S8)[i % 2], i % 3 == 1, 0))
    return made


def test_cases_add():
    """Every case is one call that stores over the residual, nearly all by SIMD kernels, and all rescales occur in both stages."""
    made = [*residual_cases(1), *winograd_cases(1)]
    codes = [layer_code(case.node, case.graph, case.plan, Identifiers(case.graph)) for case in made]
    assert all(code.sum == "total" and "n2d2::Added<" in code.config and "elemwise" not in code.call for code in codes)
    assert sum(bool(code.kernel) for code in codes) > 0.9 * len(codes)
    for at in (0, 1):
        assert {type(case.apart.nodes[at].rescale).__name__ for case in made} == {
            "FloatRescale",
            "FixedPointRescale",
            "ShiftRescale",
        }


def test_portable(tmp_path):
    need("g++")
    harness.check_all(residual_cases(1)[::12], tmp_path, "g++", ("-O1", "-DN2D2_ISA_PORTABLE"), units=2)


@pytest.mark.parametrize("isa", ISAS)
def test_residual(tmp_path, isa):
    need("g++")
    harness.check_all(residual_cases(1)[::18], tmp_path, "g++", ("-O1", *need_isa(isa)), units=2)


def test_residual_winograd(tmp_path, monkeypatch):
    need("g++")
    monkeypatch.setattr(harness, "layer_code", forced)
    harness.check_all(winograd_cases(1)[:1], tmp_path, "g++", ("-O1", *need_isa("avx2")), units=2)


def test_sums_of_a_small_last_group_as_the_compiler_orders_them(tmp_path):
    """g++ -O3 once read the buffer of such a group before it was stored."""
    need("g++")
    harness.check_all(residual_cases(2), tmp_path, "g++", ("-O3", *need_isa("sse4")), units=2)


@pytest.mark.slow
@pytest.mark.parametrize("isa", [*ISAS, ""])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize(
    "flags",
    [("-O0",), ("-O3",), ("-O3", "-fopenmp", "-DN2D2_PARALLEL_WORK=0"), SANITIZERS],
    ids=["O0", "O3", "O3-all-loops-parallel", "sanitizers"],
)
def test_residual_builds(tmp_path, compiler, flags, isa):
    need(compiler)
    if compiler == "clang++" and "-fopenmp" in flags:
        pytest.skip("OpenMP with g++ only")
    machine = need_isa(isa) if isa else ("-DN2D2_ISA_PORTABLE",)
    harness.check_all(residual_cases(2), tmp_path, compiler, (*flags, *machine), units=2)


@pytest.mark.slow
@pytest.mark.parametrize("isa", [one for one in SETS if one != "neon"])
@pytest.mark.parametrize(
    "flags",
    [("-O0",), ("-O3", "-fopenmp", "-DN2D2_PARALLEL_WORK=0"), SANITIZERS],
    ids=["O0", "O3-all-loops-parallel", "sanitizers"],
)
def test_residual_winograd_builds(tmp_path, monkeypatch, flags, isa):
    need("g++")
    monkeypatch.setattr(harness, "layer_code", forced)
    harness.check_all(winograd_cases(2), tmp_path, "g++", (*flags, *need_isa(isa)), units=2)


@pytest.mark.slow
@pytest.mark.parametrize("flags", [EMULATED, (*AMX_TILES, *EMULATED)], ids=["avx512", "amx"])
def test_residual_emulated(tmp_path, flags):
    need("g++")
    if platform.machine() not in ("x86_64", "AMD64") or not Path("/usr/include/simde/x86/avx512.h").is_file():
        pytest.skip("needs an x86 machine and SIMDe (libsimde-dev)")
    harness.check_all(residual_cases(3)[::2], tmp_path, "g++", ("-O1", *flags), units=2)


@pytest.mark.slow
@pytest.mark.parametrize("target", sorted(TARGETS))
@pytest.mark.parametrize("flags", ["-O0", "-O3"])
def test_residual_arm(tmp_path, target, flags):
    check(residual_cases(4), target, tmp_path, flags)
