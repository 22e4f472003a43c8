"""exp and what follows from it in float32: the same bits in Python and in C++ of any width, and near float64."""

import subprocess
from math import erf
from pathlib import Path

import numpy as np
import pytest
from support.kernel_simd import FLAGS, SANITIZERS, need_isa
from support.programs import run_command
from support.tables import few_fast

from n2d2py.arithmetic import float32

KERNELS = Path(__file__).parents[2] / "kernels"
WARNINGS = ("-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", f"-I{KERNELS}")
PROGRAM = """
#include <cstdio>
#include "n2d2/activation.hpp"
template <class Function>
void run(const float* in) {
    float out[67];
    n2d2::reals::apply<n2d2::OnVectors<Function, n2d2::reals::Widest>, 67>(in, out);
    std::fwrite(out, 4, 67, stdout);
}
struct Of { static constexpr float alpha() { return 1.0f; } static constexpr float gain() { return 1.0f; } static constexpr float rate() { return 1.0f; } };
int main() {
    using namespace n2d2;
    float in[67];
    while (std::fread(in, 4, 67, stdin) == 67) {
        run<Exp<float>>(in);
        run<Elu<float, Of>>(in);
        run<Logistic<float>>(in);
        run<Tanh<float, Of>>(in);
        run<Erf<float>>(in);
        run<Softplus<float>>(in);
    }
}
"""
_SPREAD = np.arange(0, 2**32, 65521, dtype=np.uint64).astype(np.uint32).view(np.float32)
_DENSE = np.linspace(-110, 110, 120_000, dtype=np.float32)
_EDGES = np.float32([0, -0.0, 1e-45, -1e-45, np.inf, -np.inf, np.nan, 88.7228394, 88.7229, -103.97, -103.98, 3e38, -3e38])
_ALL = np.concatenate([_SPREAD, _DENSE, np.float32(0.01) * _DENSE, _EDGES])
INPUTS = np.pad(_ALL, (0, -_ALL.size % 67))
REFERENCES = {
    "exp": np.exp,
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "sigmoid": lambda x: np.where(x < 0, np.exp(x), 1) / (1 + np.exp(-np.abs(x))),
    "tanh": np.tanh,
    "erf": np.vectorize(erf),
    "softplus": lambda x: np.logaddexp(0, x),
}
ULP = {"exp": 1.1, "elu": 1.7, "sigmoid": 2.1, "tanh": 2.5, "erf": 1.3, "softplus": 3.0}


def compiled(folder: Path, *command: str) -> dict[str, np.ndarray]:
    (folder / "run.cpp").write_text(PROGRAM)
    run_command(*command, *WARNINGS, "run.cpp", "-o", "run", cwd=folder)
    done = subprocess.run([folder / "run"], input=INPUTS.tobytes(), check=True, capture_output=True)
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
            assert np.array_equal(np.isfinite(rounded), np.isfinite(plain[name])), name
            finite = np.isfinite(rounded)
            away = np.abs(plain[name][finite] - exact[finite]) / np.spacing(np.abs(rounded[finite]))
            assert away.max() <= ULP[name], name
            assert np.array_equal(rounded[~finite], plain[name][~finite], equal_nan=True), name
    for name in ("exp", "sigmoid", "tanh"):
        assert np.array_equal(getattr(float32, name)(INPUTS), plain[name], equal_nan=True), name
    for isa, flags in FLAGS.items():
        if isa != "amx":
            need_isa(isa)
            for level in ("-O0", "-O3"):
                for name, values in compiled(tmp_path, compiler, level, *flags).items():
                    assert np.array_equal(values, plain[name], equal_nan=True), (isa, level, name)
