"""Rescales of all modes as the kernels of each instruction set store them: runs of sums, one factor or one per output."""

import subprocess

import numpy as np
import pytest
from support import kernel_harness as harness
from support.kernel_builds import EMULATED, FLAGS, NEEDED, TARGETS, need_isa
from support.kernel_rescale import CLAMPS, accumulators, cpp_type, doubling, within
from support.programs import need, run_command

from n2d2py.arithmetic import RESCALING_MODES, FloatRescale, Rescale, make_rescale

RUN = 67
"""Sums that are stored at once: more than a block of every instruction set, and a rest."""
TYPES = ("std::uint8_t", "std::int8_t", "std::uint16_t", "std::int16_t")
"""Unsigned ones, and those of -no-unsigned."""


def rescales() -> dict[str, Rescale]:
    """Every mode for a whole layer and with a constant for each output; ties at factors that are powers of two."""
    factors = 2.0 ** np.random.default_rng(5).uniform(-26, 0, RUN)
    factors[::7] = 2.0 ** -np.arange(len(factors[::7]))
    found: dict[str, Rescale] = {}
    for mode in RESCALING_MODES:
        name = mode.replace("-", "").lower()
        for label, given in (("layer", factors[3:4]), ("half", np.array([2.0**-9])), ("outputs", factors)):
            found[f"{name}_{label}"], replaced = make_rescale(mode, given)
            assert not replaced, name
    for twice in (True, False):
        name = "twice" if twice else "once"
        found[f"{name}_layer"] = doubling(factors[3:4], twice)
        found[f"{name}_outputs"] = doubling(np.minimum(factors, 0.499), twice)
    return found


def program(found: dict[str, Rescale]) -> str:
    """Reads accumulators (int32, whole runs) and writes, for every rescale and type, the results as int32."""
    arrays, calls = [], []
    for name, rescale in found.items():
        kind, own = cpp_type(name, rescale)
        arrays += own
        calls += [
            f"    run<n2d2::Requantized<{ctype}, {kind}, {CLAMPS[ctype][0]}, {CLAMPS[ctype][1]}> >(in, count);"
            for ctype in TYPES
        ]
    text = "\n".join(harness.array_text(array) for array in arrays)
    return f"""#include <cstdio>
#include <vector>
#include "n2d2/pointwise.hpp"
#if N2D2_NEON
#include "n2d2/arm/neon_finish.hpp"
// Sums as tiles finish them, {RUN % 16} in the last panel.
template <class Epilogue, int Outputs>
static void panel(const std::int32_t* sums, int index, typename Epilogue::Type* out) {{
    const n2d2::neon::InOrder at = {{index}};
    const n2d2::neon::PanelEpilogue<Epilogue, Outputs> epilogue(at);
    int32x4_t vectors[4];
    for (int v = 0; v < 4; ++v)
        vectors[v] = n2d2::neon::four(sums + 4 * v, Outputs - 4 * v < 4 ? Outputs - 4 * v : 4);
    epilogue.store(vectors, out);
}}
#endif
{text}
template <class Epilogue>
static void run(const std::vector<std::int32_t>& in, std::size_t count) {{
    std::vector<std::int32_t> out(count);
    typename Epilogue::Type values[{RUN} + 16];
    for (std::size_t i = 0; i < count; i += {RUN}) {{
#if N2D2_NEON
        int j = 0;
        for (; j + 16 <= {RUN}; j += 16)
            panel<Epilogue, 16>(in.data() + i + j, j, values + j);
        panel<Epilogue, {RUN} % 16>(in.data() + i + j, j, values + j);
#else
        n2d2::EpilogueRun<Epilogue, true, n2d2::Native>::template run<{RUN}>(in.data() + i, 0, values);
#endif
        for (std::size_t j = 0; j < {RUN}; ++j)
            out[i + j] = values[j];
    }}
    std::fwrite(out.data(), 4, count, stdout);
}}
int main() {{
    std::vector<std::int32_t> in(1 << 21);
    const std::size_t count = std::fread(in.data(), 4, in.size(), stdin);
{chr(10).join(calls)}
    return 0;
}}
"""


def check(folder, count: int, compiler: str, flags: tuple[str, ...], emulator: tuple[str, ...] = ()) -> None:
    """Python's integers and those of the program on `count` random accumulators, every tie and edge."""
    need(compiler, *emulator[:1])
    found, acc = rescales(), accumulators(count, wide=False)
    acc = np.concatenate([acc, acc[: -acc.size % RUN]])
    np.random.default_rng(1).shuffle(acc)  # every value meets every constant sooner or later
    (folder / "rescale.cpp").write_text(program(found))
    run_command(
        compiler, *harness.WARNINGS, *flags, f"-I{harness.ROOT / 'kernels'}", folder / "rescale.cpp", "-o", folder / "rescale"
    )
    done = subprocess.run(
        [*emulator, folder / "rescale"], input=acc.astype(np.int32).tobytes(), capture_output=True, check=True
    )
    results = np.frombuffer(done.stdout, np.int32).reshape(len(found) * len(TYPES), acc.size)
    rows = iter(results)
    for name, rescale in found.items():
        for ctype in TYPES:
            expected = rescale.apply(acc.reshape(-1, RUN), *CLAMPS[ctype]).reshape(-1)
            wrong = np.flatnonzero((next(rows) != expected) & within(rescale, acc))
            assert not wrong.size, (
                f"{name} -> {ctype}: {wrong.size} wrong, first acc {acc[wrong[0]]} of output {wrong[0] % RUN}"
            )


def test_the_modes_are_all_there():
    found = rescales()
    kinds = {"FloatRescale", "FixedPointRescale", "ShiftRescale", "DoublingRescale"}
    assert {type(rescale).__name__ for rescale in found.values()} == kinds
    assert {rescale.count for rescale in found.values()} == {1, RUN}
    assert isinstance(found["floatingpoint_outputs"], FloatRescale)


@pytest.mark.parametrize("flags", [("-O0", "-DN2D2_ISA_PORTABLE"), ("-O1", "-mavx2")], ids="-".join)
def test_few(tmp_path, flags):
    if "-mavx2" in flags:
        need_isa("avx2")
    check(tmp_path, 20_000, "g++", flags)


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("isa", ["portable", "sse4", "avx2", "avx512"])
@pytest.mark.parametrize("level", ["-O0", "-O3"])
def test_a_million(tmp_path, compiler, isa, level):
    flags = {"portable": ("-DN2D2_ISA_PORTABLE",), "sse4": ("-msse4.1",), **FLAGS}[isa]
    if isa in NEEDED:
        need_isa(isa)
    check(tmp_path, 1_000_000, compiler, (level, *flags))


@pytest.mark.slow
@pytest.mark.parametrize("level", ["-O1", "-O3"])
def test_a_million_with_emulated_avx512(tmp_path, level):
    """Not at -O0, where some intrinsics are macros that no emulation replaces."""
    check(tmp_path, 1_000_000, "g++", (level, *EMULATED))


@pytest.mark.slow
@pytest.mark.parametrize("target", sorted(TARGETS))
@pytest.mark.parametrize("level", ["-O0", "-O3"])
def test_a_million_on_other_processors(tmp_path, target, level):
    compiler, machine, emulator = TARGETS[target]
    check(tmp_path, 1_000_000, compiler, ("-static", "-Wno-psabi", level, *machine), emulator)
