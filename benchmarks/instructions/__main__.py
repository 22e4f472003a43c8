"""Instructions of the kernels under QEMU, portable against those for an instruction set: a table.

    python -m benchmarks.instructions [aarch64 | aarch64-dot | aarch64-i8mm | armv7 | mips64el-msa | riscv64-rvv256] [layer]

Each row is one layer, run REPEATS times and not at all in the same program; the difference is what is counted, by a plug-in of
QEMU (`count.c`). Needs g++ of the target (Debian: g++-aarch64-linux-gnu, g++-arm-linux-gnueabihf), qemu-user and gcc.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "tests")]

from common import header, row  # noqa: E402
from support import kernel_builds  # noqa: E402
from support import kernel_cases as cases  # noqa: E402
from support import kernel_harness as harness  # noqa: E402
from support.kernel_cases import S8, S16, U8  # noqa: E402

from n2d2py.arithmetic import FLOAT32  # noqa: E402
from n2d2py.exports.cpp.processors import TARGETS as PROCESSORS  # noqa: E402

TARGETS = {
    one.name: ([f"{one.prefix}g++", *one.flags], list(one.emulator))
    for one in PROCESSORS
    if one.processor in ("aarch64", "arm", "mips64el")
}
TARGETS |= {
    name: ([compiler, *machine], list(emulator))
    for name, (compiler, machine, emulator) in kernel_builds.TARGETS.items()
    if name.startswith("riscv64-rvv")
}
REPEATS = 4


def layers() -> dict[str, harness.Case]:
    """The layers of the table."""
    sweep = cases.Sweep(1)
    sweep.modes = iter(lambda: "Floating-point", None)
    one, two, three, none, both = (1, 1), (2, 2), (3, 3), (0, 0, 0, 0), (1, 1, 1, 1)
    u8, s8, s16, real = (U8, U8), (S8, S8), (S16, S16), (FLOAT32, FLOAT32)
    small, wide, odd = (1, 32, 16, 16), (1, 64, 16, 16), (1, 40, 16, 16)

    def conv(shape, outputs: int, kernel, stride, pads, groups: int, types, bits: int = 8) -> harness.Case:
        return sweep.conv(shape, outputs, cases.Window(kernel, stride, pads), types, groups=groups, weight_bits=bits)

    made = {
        "conv 3x3, 32 to 32, 16x16, u8": conv(small, 32, three, one, both, 1, u8),
        "conv 3x3, 32 to 32, 16x16, s8": conv(small, 32, three, one, both, 1, s8),
        "conv 1x1, 64 to 64, 12x12, u8": conv((1, 64, 12, 12), 64, one, one, none, 1, u8),
        "conv 3x3 s2, 3 to 16, 32x32, u8": conv((1, 3, 32, 32), 16, three, two, both, 1, u8),
        "depthwise 3x3, 64, 16x16, u8": conv(wide, 64, three, one, both, 64, u8),
        "depthwise 3x3 s2, 40, 16x16, s8": conv(odd, 40, three, two, both, 40, s8),
        "fully connected, 512 to 64, u8": sweep.fc((1, 512), 64, u8, "apart"),
        "fully connected, 256 to 10, s8": sweep.fc((1, 256), 10, s8, "apart"),
        "depthwise 3x3, 64, 16x16, u8, 16-bit weights": conv(wide, 64, three, one, both, 64, u8, 16),
        "depthwise 3x3 s2, 40, 16x16, s16": conv(odd, 40, three, two, both, 40, s16, 12),
        "conv 3x3, 32 to 32, 16x16, u8, 16-bit weights": conv(small, 32, three, one, both, 1, u8, 16),
        "conv 3x3, 32 to 32, 16x16, float32": conv(small, 32, three, one, both, 1, real),
        "many weights: conv 3x3, 128 to 128, 14x14, u8": conv((1, 128, 14, 14), 128, three, one, both, 1, u8),
    }
    made["conv 3x3, 32 to 32, 16x16, float32"].node.activation = None
    sweep.modes = iter(lambda: "Fixed-point", None)
    made["conv 1x1, 64 to 64, 12x12, u8, fixed point"] = conv((1, 64, 12, 12), 64, one, one, none, 1, u8)
    return made


def program(case: harness.Case) -> str:
    """A program that runs the layer as often as its argument says."""
    arena = case.arena()
    values = ",".join(map(str, arena.tolist()))
    return (
        harness.source(case, 0) + f"alignas(64) static unsigned char arena[] = {{{values}}};\n"
        "#include <cstdlib>\nint main(int, char** argv) {\n"
        "    for (int i = std::atoi(argv[1]); i > 0; --i) case0::run(arena);\n    return 0;\n}\n"
    )


def instructions(case: harness.Case, target: str, folder: Path, *flags: str) -> float:
    """Instructions of one run of the layer."""
    compiler, emulator = TARGETS[target]
    (folder / "layer.cpp").write_text(program(case))
    words = [*compiler, "-std=c++11", "-O3", "-static", *flags, f"-I{ROOT / 'kernels'}", "layer.cpp", "-o", "layer"]
    subprocess.run(words, cwd=folder, check=True)
    counts = []
    for repeats in (0, REPEATS):
        plugin = f"{folder / 'count.so'},to={folder / 'count.txt'}"
        subprocess.run([*emulator, "-plugin", plugin, "./layer", str(repeats)], cwd=folder, check=True)
        counts.append(int((folder / "count.txt").read_text()))
    return (counts[1] - counts[0]) / REPEATS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("target", nargs="?", default="aarch64", choices=sorted(TARGETS))
    parser.add_argument("layer", nargs="?", default="", help="what the names of the layers begin with")
    given = parser.parse_args()
    target = given.target
    header(f"Layer, {target}", "portable", "kernels", "ratio")
    ratios = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        subprocess.run(
            ["gcc", "-O2", "-shared", "-fPIC", Path(__file__).parent / "count.c", "-o", folder / "count.so"], check=True
        )
        for name, case in ((name, case) for name, case in layers().items() if name.startswith(given.layer)):
            portable = instructions(case, target, folder, "-DN2D2_ISA_PORTABLE")
            kernels = instructions(case, target, folder)
            ratios.append(portable / kernels)
            row(name, f"{portable:,.0f}", f"{kernels:,.0f}", f"{ratios[-1]:.2f}")
    row("geometric mean", "", "", f"{np.exp(np.mean(np.log(ratios))):.2f}")


if __name__ == "__main__":
    main()
