"""Rescales of all modes, C++ equal to Python: ties, the edges of the accumulator, a million random accumulators."""

import subprocess

import numpy as np
import pytest
from support import kernel_harness as harness
from support.kernel_rescale import CLAMPS, accumulators, cpp_type, doubling, within
from support.ops import Convert
from support.programs import run_command

from n2d2py.arithmetic import FLOAT32, FixedPointRescale, FloatRescale, NumType, Rescale, ShiftRescale, make_rescale


def rescales() -> dict[str, Rescale]:
    """Instances of every mode by name; the count is 1 or 5."""
    factors = np.array([0.0123, 0.00051, 0.9, 1.7e-6, 0.25])
    found = {
        "float_half": FloatRescale([0.5]),
        "float_one": FloatRescale([1.0]),
        "float_quarter": FloatRescale([0.25]),
        "float_ten": FloatRescale([0.1]),
        "float_small": FloatRescale([1.4013e-9]),
        "float_many": FloatRescale(factors),
        "shift_none": ShiftRescale(np.array([0])),
        "shift_one": ShiftRescale(np.array([1])),
        "shift_most": ShiftRescale(np.array([50])),
        "shift_many": ShiftRescale(np.arange(1, 6)),
        "double_equal": ShiftRescale(np.array([3]), np.array([3])),
        "double_wide": ShiftRescale(np.array([32]), np.array([2])),
        "fixed_unit": FixedPointRescale(np.array([1]), 0, 31),
        "fixed_half": FixedPointRescale(np.array([1]), 1, 31),
        "fixed_largest": FixedPointRescale(np.array([2**31 - 1]), 31, 31),
        "fixed16_ties": FixedPointRescale(np.array([3, 5, 7, 1, 32767]), 4, 15),
    }
    for twice in (True, False):
        name = "twice" if twice else "once"
        found[name], found[f"{name}_up"] = doubling(factors[:1], twice), doubling(np.array([9.7]), twice)
        found[f"{name}_many"] = doubling(factors, twice)
        found[f"{name}_half"] = doubling(np.array([0.5]), twice)
    for mode in ("Fixed-point16", "Fixed-point32", "Fixed-point-p32", "Single-shift", "Double-shift"):
        name = mode.replace("-", "").lower()
        found[name], found[f"{name}_many"] = make_rescale(mode, [0.0037])[0], make_rescale(mode, factors)[0]
    return found


def program(found: dict[str, Rescale], sum_type: str) -> str:
    """Reads accumulators (int64) and writes, for every rescale and clamp, the results as int32."""
    arrays, calls = [], []
    for name, rescale in found.items():
        kind, own = cpp_type(name, rescale)
        arrays += own
        calls += [
            f"    run<n2d2::Requantized<{ctype}, {kind}, {low}, {high}>, {rescale.count}>(in, count);"
            for ctype, (low, high) in CLAMPS.items()
        ]
    text = "\n".join(harness.array_text(array) for array in arrays)
    return f"""#include <cstdio>
#include <vector>
#include "n2d2/output.hpp"
{text}
template <class Epilogue, int Count>
static void run(const std::vector<std::int64_t>& in, std::size_t count) {{
    std::vector<std::int32_t> out(count);
    for (std::size_t i = 0; i < count; ++i)
        out[i] = Epilogue::apply(static_cast<{sum_type}>(in[i]), static_cast<int>(i % Count));
    std::fwrite(out.data(), 4, count, stdout);
}}
int main() {{
    std::vector<std::int64_t> in(1 << 21);
    const std::size_t count = std::fread(in.data(), 8, in.size(), stdin);
{chr(10).join(calls)}
    return 0;
}}
"""


@pytest.mark.parametrize(
    "compiler, flags, wide",
    [
        pytest.param("g++", "-O3", False, id="g++-int32"),
        pytest.param("g++", "-O3", True, id="g++-int64", marks=pytest.mark.slow),
        pytest.param("g++", "-O2 -DN2D2_MASKS=1 -DN2D2_HALVES=1", False, id="masks-int32", marks=pytest.mark.slow),
        pytest.param("g++", "-O2 -DN2D2_MASKS=1 -DN2D2_HALVES=1", True, id="masks-int64"),
        pytest.param("clang++", "-O2", False, id="clang++-int32", marks=pytest.mark.slow),
        pytest.param("clang++", "-O2", True, id="clang++-int64", marks=pytest.mark.slow),
    ],
)
def test_cpp_equals_python(tmp_path, compiler, flags, wide):
    found = rescales()
    if wide:
        # Products must fit 64 bits: small multipliers only.
        found = {name: r for name, r in found.items() if isinstance(r, FloatRescale) or int(np.max(r.multipliers)) < 2**16}
    acc = accumulators(200_000, wide)
    (tmp_path / "rescale.cpp").write_text(program(found, "std::int64_t" if wide else "std::int32_t"))
    run_command(
        compiler,
        *harness.WARNINGS,
        *flags.split(),
        f"-I{harness.ROOT / 'kernels'}",
        tmp_path / "rescale.cpp",
        "-o",
        tmp_path / "rescale",
    )
    done = subprocess.run([tmp_path / "rescale"], input=acc.tobytes(), capture_output=True, check=True)
    results = np.frombuffer(done.stdout, np.int32).reshape(len(found) * len(CLAMPS), acc.size)
    rows = iter(results)
    for name, rescale in found.items():
        indices = np.arange(acc.size) % rescale.count
        for ctype, (low, high) in CLAMPS.items():
            expected = apply_each(rescale, acc, indices, low, high)
            got = next(rows)
            wrong = np.flatnonzero((got != expected) & within(rescale, acc))
            assert not wrong.size, (
                f"{name} -> {ctype}: {wrong.size} wrong, first acc {acc[wrong[0]]}: "
                f"C++ {got[wrong[0]]}, Python {expected[wrong[0]]}"
            )


def apply_each(rescale: Rescale, acc: np.ndarray, indices: np.ndarray, low: int, high: int) -> np.ndarray:
    """The normative result of acc[i] with constant indices[i]."""
    result = np.empty(acc.size, np.int64)
    for index in range(rescale.count):
        mine = acc[indices == index]
        table = np.zeros((1, rescale.count, mine.size), np.int64)
        table[0, index] = mine
        result[indices == index] = rescale.apply(table, low, high)[0, index]
    return result


def test_ties_are_where_the_definition_says():
    """Hand-written ties, so that Python and C++ cannot be wrong together."""
    acc = np.array([[-5, -3, -1, 1, 3, 5]]).T
    assert FloatRescale([0.5]).apply(acc, -127, 127).ravel().tolist() == [-2, -2, 0, 0, 2, 2]
    assert FixedPointRescale(np.array([1]), 1, 31).apply(acc, -127, 127).ravel().tolist() == [-2, -1, 0, 1, 2, 3]
    assert ShiftRescale(np.array([1])).apply(acc, -127, 127).ravel().tolist() == [-2, -1, 0, 1, 2, 3]
    double = ShiftRescale(np.array([2]), np.array([1]))  # 3/4
    assert double.apply(acc, -127, 127).ravel().tolist() == [-4, -2, -1, 1, 2, 4]


@pytest.mark.parametrize("value", [0, 1])
def test_selections_and_products(value, tmp_path):
    """By masks and by halves: all types, both ends of each, differences that leave the type, carries of products."""
    source = tmp_path / "selected.cpp"
    source.write_text("""#include "n2d2/steady.hpp"
template <class T>
static int wrong(T a, T b) {
    return (n2d2::lower(a, b) != (b < a ? b : a)) + (n2d2::higher(a, b) != (a < b ? b : a));
}
template <class T>
static int all() {
    typedef std::numeric_limits<T> L;
    const T values[] = {L::lowest(), T(L::lowest() + 1), T(L::lowest() / 2), T(-2), T(-1), T(0), T(1), T(2), T(77), T(L::max() / 2), T(L::max() - 1), L::max()};
    int found = 0;
    for (T a : values)
        for (T b : values)
            found += wrong(a, b);
    return found;
}
template <class T, std::int64_t Low, std::int64_t High>
static int limits(T reach) {
    const T values[] = {-reach, T(Low - 1), T(Low), T(Low + 1), T(0), T(High - 1), T(High), T(High + 1), reach};
    int found = 0;
    for (T x : values)
        found += n2d2::held<Low, High>(x) != (x < T(Low) ? T(Low) : x > T(High) ? T(High) : x);
    return found;
}
template <class T>
static int both(T reach) {
    return limits<T, 0, 255>(reach) + limits<T, -128, 127>(reach) + limits<T, 5, 99>(reach) + limits<T, -32767, 32767>(reach) +
           limits<T, 7, 7>(reach) + limits<T, -2147483647, 2147483646>(reach);
}
static int products() {
    const std::int64_t values[] = {0, 1, -1, 0xFFFF, 0x10000, -0x10000, 0x7FFFFFFF, -0x7FFFFFFF - 1, 0x7FFF8000, 0x12345678, -0x1234FFFF, 0xFFFFFFFF};
    int found = 0;
    for (std::int64_t a : values)
        for (std::int64_t b : values) {
            const std::int32_t p = std::int32_t(a), q = std::int32_t(b);
            const std::int64_t product = std::int64_t(p) * q;
            found += n2d2::times<std::int64_t>(p, q) != product;
            found += n2d2::times<std::int64_t>(a, q) != a * q;
            found += n2d2::times<std::int64_t>(std::int16_t(p), std::uint16_t(q)) != std::int64_t(std::int16_t(p)) * std::uint16_t(q);
            found += n2d2::roundedHigh(p, q) != ((product + (std::int64_t(1) << 31)) >> 32);
        }
    return found;
}
int main() {
    return products() + all<std::int8_t>() + all<std::uint8_t>() + all<std::int16_t>() + all<std::uint16_t>() + all<std::int32_t>() +
           all<std::uint32_t>() + all<std::int64_t>() + all<float>() + both<std::int32_t>((1 << 30) + 2) +
           both<std::int64_t>(std::int64_t(3) << 61);
}
""")
    program, sanitizers = tmp_path / "selected", ("-fsanitize=undefined", "-fno-sanitize-recover")
    words = [
        "g++",
        *harness.WARNINGS,
        "-O1",
        *sanitizers,
        f"-DN2D2_MASKS={value}",
        f"-DN2D2_HALVES={value}",
        f"-I{harness.ROOT / 'kernels'}",
    ]
    run_command(*words, source, "-o", program)
    run_command(program)


def test_fast_math_is_refused(tmp_path):
    source = tmp_path / "fast.cpp"
    source.write_text('#include "n2d2/env.hpp"\n')
    words = ["g++", "-std=c++11", "-ffast-math", f"-I{harness.ROOT / 'kernels'}", "-fsyntax-only", source]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode != 0 and "-ffast-math changes the results" in done.stderr


def test_a_conversion_by_hand():
    """5 * 0.5 = 2.5 is a tie between 1 and 2 steps of 1 (to even: 2), with zero points on both sides."""
    from n2d2py.graph import QuantGraph, QuantNode, QuantTensor
    from n2d2py.quant.simulator import simulate

    kinds = {"x": NumType(8, True, scale=0.5, zero_point=-3), "r": FLOAT32, "y": NumType(8, False, scale=1.0, zero_point=4)}
    nodes = [
        QuantNode("r", Convert(True), ["x"], ["r"]),
        QuantNode("y", Convert(), ["r"], ["y"], rescale=make_rescale("Floating-point", np.ones(1))[0], clamp=(0, 255)),
    ]
    graph = QuantGraph("net", 8, {name: QuantTensor(name, (1, 3), kind) for name, kind in kinds.items()}, nodes, ["x"], ["y"])
    values = simulate(graph, [np.array([[2, 0, -103]])], keep=True)
    assert values["r"].tolist() == [[2.5, 1.5, -50.0]] and values["r"].dtype == np.float32
    assert values["y"].tolist() == [[6, 6, 0]]
