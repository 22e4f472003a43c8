"""The kernels of ARM, RISC-V and MIPS, bit for bit, cross-compiled and run by QEMU: the sweep of the SIMD kernels."""

from itertools import cycle

import numpy as np
from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_builds import TARGETS, check_build, on_builds
from support.kernel_cases import sweep_cases
from support.kernel_lines import line_cases
from support.kernel_quantized_layers import weighted
from support.kernel_simd import channel_depthwise_cases, simd_cases
from support.ops import Conv, Fc

from n2d2py.arithmetic import FLOAT32, RESCALING_MODES, NumType


def test_few(tmp_path):
    """A handful, for the fast tests."""
    check_build(simd_cases(5)[::40][:2] + line_cases(5)[::24][1:], tmp_path, "aarch64-dot -O0")


def each_rescale_cases() -> list[harness.Case]:
    """Each rescale by channels in order and in blocks of 64; outputs around 8 and 16, words around four, tiles of one, of an odd
    number and of all pixels; kernels of three and of five lines; padding; zero points; inputs and weights of 16 bits; float32.
    """
    sweep = cases.Sweep(7)
    sweep.values = cycle(("random", "random", "high", "random", "low", "random"))  # no multiple of the layers of a mode
    u8, s8, s16, u16 = cases.U8, cases.S8, cases.S16, cases.U16
    one, around = (1, 1), (1, 1, 1, 1)
    centred = NumType(8, True, False, 1.0, -5)
    made = []
    drawn = (
        cycle(((16, 5, 3), (9, 5, 4), (4, 5, 5), (3, 5, 6), (5, 1, 3))),
        cycle((36, 21, 64, 7, 12)),
        cycle((16, 7, 25, 20, 9)),
        cycle((64, 83, 21, 9, 15)),
        cycle(((u8, u8), (s8, s8), (u8, s16), (s8, u16), (s8, u8))),
        cycle(((s8, u8), (u8, centred), (s8, s8))),
    )
    for mode, size, inputs, outputs, channels, kind, other in zip(RESCALING_MODES, *drawn, strict=False):
        sweep.modes = cycle((mode,))
        made += [
            sweep.conv((1, *size), outputs, cases.K3, kind),
            sweep.conv((1, inputs, 1, 1), 2 * outputs, cases.K1, other),
            sweep.depthwise((1, channels, 5, 7), cases.K3, kind),
            sweep.depthwise((1, 70, 6, 5), cases.Window((5, 4), (2, 1), around), other, zero=6),
            sweep.fc((1, inputs), outputs, other, "apart"),
        ]
    for rule in ("twice", "once"):  # TFLite's
        made += [
            weighted(sweep, Conv((1, 1), around), (1, 16, 5, 4), (25, 16, 3, 3), (s8, centred), "apart", rule),
            weighted(sweep, Conv((1, 1), around, one, 21), (1, 21, 5, 7), (21, 1, 3, 3), (u8, u8), "apart", rule),
            weighted(sweep, Fc(), (1, 36, 1, 1), (19, 36), (s8, s8), "apart", rule),
        ]
    for size, outputs, window, kind, bits in (
        ((8, 5, 4), 16, cases.K3, (u8, u8), 16),
        ((5, 4, 4), 25, cases.K3, (s16, s8), 8),
        ((7, 3, 5), 7, cases.K1, (u16, s16), 8),
        ((2, 1, 1), 17, cases.K1, (s8, u8), 16),
    ):
        made.append(sweep.conv((1, *size), outputs, window, kind, weight_bits=bits))
    real = (FLOAT32, FLOAT32)
    return [*made, sweep.conv((1, 5, 4, 5), 18, cases.K3, real), sweep.fc((1, 19), 21, real, "apart")]


@on_builds({"aarch64 -O0": 4, "armv7 -O0": 4})
def test_channels(tmp_path, build, every):
    """Depthwise layers of 16 bits: a few of those of all sets."""
    check_build(list(channel_depthwise_cases(cases.Sweep(6)))[::every], tmp_path, build)


FEW = {"aarch64-dot": 2, "armv7": 5, "wasm32-simd": 5, "mips64el-msa": 5, "riscv64-rvv256": 5}


@on_builds(
    {f"-O0 {target}": every for target, every in FEW.items()},
    "-O3 riscv64-rvv128|riscv64-rvv256|riscv64-rvv512|armv7|mips64el-msa|wasm32-simd",
    "clang++ --target=aarch64-linux-gnu,-O3 aarch64-dot",
)
def test_each_rescale(tmp_path, build, every):
    """With depthwise layers of 16 bits in the slow builds."""
    made = each_rescale_cases()[::every]
    check_build(made if every > 1 else [*made, *channel_depthwise_cases(cases.Sweep(6))], tmp_path, build)


@on_builds({}, "-O2 aarch64|armv7|mips64el-msa")
def test_weights_of_minus_128(tmp_path, build, every):
    """Two products of -128 by -128 do not fit into 16 bits: such layers add each by itself."""
    sweep = cases.Sweep(3)
    made = [sweep.conv((1, 7, 4, 5), 18, cases.K3, (cases.U8, cases.U8)), sweep.fc((1, 36), 21, (cases.U8, cases.S8), "apart")]
    for case in made:
        case.node.params["weights"][:] = -128
        case.inputs["x"][:] = np.where(np.arange(case.inputs["x"].size).reshape(case.inputs["x"].shape) % 3 == 0, 255, 0)
    check_build(made, tmp_path, build)


ALL = "|".join(sorted(TARGETS))


@on_builds({}, f"-O0|-O3 {ALL}")
def test_simd(tmp_path, build, every):
    check_build([*simd_cases(4), *line_cases(4)], tmp_path, build)


@on_builds({}, f"-O2 {ALL}")
def test_whole_sweep(tmp_path, build, every):
    check_build(sweep_cases(9, 66), tmp_path, build)
