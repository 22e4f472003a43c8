"""exp and what follows from it in float32: the same bits in Python and in C++ of any width, and near float64."""

import subprocess
from math import erf, erfc
from pathlib import Path

import numpy as np
import pytest
from support.kernel_builds import FLAGS, SANITIZERS, TARGETS, need_isa
from support.programs import need, run_command
from support.tables import few_fast

from n2d2py.arithmetic import float32

KERNELS = Path(__file__).parents[2] / "kernels"
WARNINGS = ("-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", f"-I{KERNELS}")
PROGRAM = """
#include <cstdio>
#include "n2d2/activation.hpp"
#include "n2d2/functions.hpp"
template <class Function>
void run(const float* in) {
    float out[67];
    n2d2::reals::apply<Function, 67>(in, out);
    std::fwrite(out, 4, 67, stdout);
}
template <class Function>
using Vectors = n2d2::OnVectors<Function, n2d2::reals::Widest>;
struct Of { static constexpr float alpha() { return 1.0f; } static constexpr float gain() { return 1.0f; } static constexpr float rate() { return 1.0f; } };
int main() {
    using namespace n2d2;
    float in[67];
    while (std::fread(in, 4, 67, stdin) == 67) {
        run<exact::Exp>(in);
        run<Vectors<Exp<float>>>(in);
        run<Vectors<Elu<float, Of>>>(in);
        run<Vectors<Logistic<float>>>(in);
        run<Vectors<Tanh<float, Of>>>(in);
        run<Vectors<Erf<float>>>(in);
        run<Vectors<Softplus<float>>>(in);
        run<Vectors<Swish<float>>>(in);
        run<Vectors<Mish<float>>>(in);
        run<Vectors<Gelu<float>>>(in);
        run<Vectors<GeluTanh<float>>>(in);
    }
}
"""
_SPREAD = np.arange(0, 2**32, 65521, dtype=np.uint64).astype(np.uint32).view(np.float32)
_DENSE = np.linspace(-110, 110, 120_000, dtype=np.float32)
_EDGES = np.float32([0, -0.0, 1e-45, -1e-45, np.inf, -np.inf, np.nan, 88.7228394, 88.7229, -103.97, -103.98, 3e38, -3e38])
_ALL = np.concatenate([_SPREAD, _DENSE, np.float32(0.01) * _DENSE, _EDGES])
INPUTS = np.pad(_ALL, (0, -_ALL.size % 67))


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.where(x < 0, np.exp(x), 1) / (1 + np.exp(-np.abs(x)))


def _gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * np.vectorize(erfc)(-np.sqrt(0.5) * x)


REFERENCES = {
    "flushed": np.exp,
    "exp": np.exp,
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
    "erf": np.vectorize(erf),
    "softplus": lambda x: np.logaddexp(0, x),
    "swish": lambda x: x * _sigmoid(x),
    "mish": lambda x: x * np.tanh(np.logaddexp(0, x)),
    "gelu": _gelu,
    "gelu_tanh": lambda x: x * _sigmoid(np.sqrt(8 / np.pi) * (x + 0.044715 * x**3)),
}
ULP = {
    "flushed": 1.0,
    "exp": 1.0,
    "elu": 1.1,
    "sigmoid": 2.3,
    "tanh": 2.5,
    "erf": 5.5,
    "softplus": 3.0,
    "swish": 3.0,
    "mish": 4.0,
}
"""Largest errors in units of the last place of the result."""
OF_INPUT = {"gelu": 2.1, "gelu_tanh": 1.9}
"""Largest errors in units of the last place of the input."""
FLUSHED = ("flushed", "sigmoid", "softplus", "swish", "mish")
"""Those that may miss 2^-126, or as much of a larger input."""


def compiled(folder: Path, *command: str, emulator: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
    (folder / "run.cpp").write_text(PROGRAM)
    run_command(*command, *WARNINGS, "run.cpp", "-o", "run", cwd=folder)
    done = subprocess.run([*emulator, "./run"], cwd=folder, input=INPUTS.tobytes(), check=True, capture_output=True)
    found = np.frombuffer(done.stdout, np.float32).reshape(-1, len(REFERENCES), 67)
    return {name: found[:, k].reshape(-1) for k, name in enumerate(REFERENCES)}


@pytest.mark.compiles
@pytest.mark.parametrize("compiler", few_fast(["g++", "clang++"]))
def test_bits_and_errors(tmp_path, compiler):
    plain = compiled(tmp_path, compiler, *SANITIZERS, "-DN2D2_ISA_PORTABLE")
    with np.errstate(all="ignore"):
        for name, reference in REFERENCES.items():
            exact = reference(INPUTS.astype(np.float64))
            rounded = exact.astype(np.float32)
            finite = np.isfinite(rounded)
            found = plain[name]
            if name == "flushed":  # infinite from 2^127.5 on
                found = np.where(finite & (exact >= 2.0**127.4) & np.isinf(found), rounded, found)
            lost = 2.0**-126 * np.maximum(1, np.abs(INPUTS[finite])) if name in FLUSHED else 0
            away = np.abs(found[finite] - exact[finite]) - lost
            unit = np.spacing(np.abs((INPUTS if name in OF_INPUT else rounded)[finite]))
            assert (away / unit).max() <= (ULP | OF_INPUT)[name], name
            assert np.array_equal(rounded[~finite], found[~finite], equal_nan=True), name
    for name, function in {"flushed": float32.exp, "sigmoid": float32.sigmoid, "tanh": float32.tanh}.items():
        assert np.array_equal(function(INPUTS), plain[name], equal_nan=True), name
    for isa, flags in FLAGS.items():
        if isa != "amx":
            need_isa(isa)
            for level in ("-O0", "-O3"):
                for name, values in compiled(tmp_path, compiler, level, *flags).items():
                    assert np.array_equal(values, plain[name], equal_nan=True), (isa, level, name)


@pytest.mark.slow
@pytest.mark.parametrize("target", sorted(TARGETS))
def test_bits_on_other_processors(tmp_path, target):
    compiler, machine, emulator = TARGETS[target]
    need(compiler, emulator[0], "g++")
    found = compiled(tmp_path, compiler, "-O2", "-static", "-Wno-psabi", *machine, emulator=emulator)
    for name, values in compiled(tmp_path, "g++", "-O1", "-DN2D2_ISA_PORTABLE").items():
        assert np.array_equal(found[name], values, equal_nan=True), name
