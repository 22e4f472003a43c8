"""What a rescaling mode costs: instructions for one rescaled and stored byte, counted by callgrind, as a Markdown table.

    python benchmarks/rescaling.py

The epilogue of the kernels alone: runs of 64 sums of 32 bits to bytes, one constant for the layer or one for each output, as
g++ -O3 compiles it for each instruction set. The difference between two numbers of repetitions is counted, so nothing else is
in it. Needs g++ and valgrind. How much accuracy each mode costs is measured by accuracy.py.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from common import header, machine, row
from support import kernel_harness as harness
from support.kernel_rescale import cpp_type
from support.programs import run_command

from n2d2py.arithmetic import RESCALING_MODES, make_rescale

RUN = 64
REPEATS = 2000
FLAGS = {
    "portable, scalar": ("-DN2D2_ISA_PORTABLE", "-fno-tree-vectorize", "-fno-tree-slp-vectorize"),
    "portable": ("-DN2D2_ISA_PORTABLE",),
    "SSE4.1": ("-msse4.1",),
    "AVX2": ("-mavx2",),
}


def program(mode: str, per_output: bool) -> str:
    """Stores runs of sums as often as its argument says."""
    factors = 2.0 ** np.random.default_rng(1).uniform(-14, -6, RUN if per_output else 1)
    kind, arrays = cpp_type("rescale", make_rescale(mode, factors)[0])
    text = "\n".join(harness.array_text(array) for array in arrays)
    return f"""#include <cstdlib>
#include "n2d2/pointwise.hpp"
{text}
typedef n2d2::Requantized<std::uint8_t, {kind}, 0, 255> Epilogue;
static std::int32_t sums[{RUN}];
static std::uint8_t bytes[{RUN}];
__attribute__((noinline)) static void once(const std::int32_t* in, std::uint8_t* out) {{
    n2d2::EpilogueRun<Epilogue, true, n2d2::Native>::template run<{RUN}>(in, 0, out);
}}
int main(int, char** words) {{
    for (int i = 0; i < {RUN}; ++i)
        sums[i] = (i * 7919) % 40000;
    for (int i = std::atoi(words[1]); i > 0; --i)
        once(sums, bytes);
    return bytes[3] == 77;
}}
"""


def instructions(binary: Path, repeats: int, folder: Path) -> int:
    """What callgrind counts for so many runs."""
    words = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder / 'out'}", str(binary), str(repeats)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])


def cost(mode: str, per_output: bool, flags: tuple[str, ...], folder: Path) -> float:
    """Instructions for one output."""
    source, binary = folder / "cost.cpp", folder / "cost"
    source.write_text(program(mode, per_output))
    run_command("g++", *harness.WARNINGS, "-O3", *flags, f"-I{harness.ROOT / 'kernels'}", source, "-o", binary)
    return (instructions(binary, REPEATS + 10, folder) - instructions(binary, 10, folder)) / (REPEATS * RUN)


def main() -> None:
    print(f"Machine: {machine()}. Instructions for one output: one constant for the layer / one for each output.\n")
    header("`-act-rescaling-mode`", *FLAGS)
    with tempfile.TemporaryDirectory() as name:
        for mode in [mode for mode in RESCALING_MODES if mode != "Fixed-point"]:
            cells = [
                " / ".join(f"{cost(mode, per_output, flags, Path(name)):.2f}" for per_output in (False, True))
                for flags in FLAGS.values()
            ]
            row(mode, *cells)


if __name__ == "__main__":
    main()
