"""Exports under the compilers: no warning at any level, no finding of the sanitizers, always the same outputs."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.e2e_run import export, needs_compiler, stored_stimuli
from support.programs import need

import n2d2py

pytestmark = needs_compiler

SANITIZERS = "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
BITS = {"int8": ("-calib", "16"), "int16": ("-calib", "16", "-nbbits", "16"), "float32": ("-nbbits", "-32")}


def build_and_run(folder: Path, *variables: str) -> np.ndarray:
    """The outputs of bin/run_export over the exported stimuli, (N, values), of an export built without a warning."""
    done = subprocess.run(
        ["make", "-j2", "-B", "all", *variables], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert done.returncode == 0 and "warning" not in done.stdout, done.stdout
    ran = subprocess.run(
        [folder / "bin" / "run_export", "-outputs", "all.bin"],
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"},
    )
    assert ran.returncode == 0, ran.stdout
    (info,) = n2d2py.load_simulator(folder).info.outputs
    return np.fromfile(folder / "all.bin", info.dtype).reshape(-1, info.shape[1])


def check(folder: Path, *variables: str) -> None:
    expected = n2d2py.load_simulator(folder).run_raw(stored_stimuli(folder)[0])
    found = build_and_run(folder, *variables)
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    else:
        np.testing.assert_array_equal(found, expected)


def test_a_small_export_is_clean_under_the_sanitizers(tmp_path):
    folder = export("LeNet", tmp_path, "-calib", "16", "-db-export", "4")
    check(folder, "OPT=-O0", "OPENMP=0", f"CXXFLAGS=-Werror {SANITIZERS}")


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("flags", ["-O0", "-O3", f"-O1 {SANITIZERS}"], ids=["O0", "O3", "sanitized"])
@pytest.mark.parametrize(
    "network,kind", [("MobileNet", "int8"), ("LeNet", "int16"), ("branches", "int8"), ("branches", "float32")]
)
def test_every_compiler_agrees(network, kind, flags, compiler, tmp_path):
    need(compiler)
    folder = export(network, tmp_path, *BITS[kind], "-db-export", "6")
    check(folder, f"CXX={compiler}", f"OPT={flags}", "CXXFLAGS=-Werror")


@pytest.mark.slow
@pytest.mark.parametrize("openmp,arch", [("0", "-march=native"), ("1", ""), ("0", "")])
def test_threads_and_instructions_do_not_change_the_integers(openmp, arch, tmp_path):
    folder = export("MobileNet", tmp_path, *BITS["int8"], "-db-export", "6")
    check(folder, f"OPENMP={openmp}", f"ARCH={arch}", "OPT=-O3", "CXXFLAGS=-Werror")


@pytest.mark.slow
def test_cmake_builds_the_same(tmp_path):
    need("cmake")
    folder = export("LeNet", tmp_path, *BITS["int8"], "-db-export", "6")
    build = tmp_path / "build"
    for words in (["cmake", "-S", folder, "-B", build], ["cmake", "--build", build, "-j2"]):
        done = subprocess.run(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0 and "warning" not in done.stdout.lower(), done.stdout
    subprocess.run([build / "run_export", "-outputs", tmp_path / "all.bin"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    expected = n2d2py.load_simulator(folder).run_raw(stored_stimuli(folder)[0])
    np.testing.assert_array_equal(np.fromfile(tmp_path / "all.bin", expected.dtype).reshape(expected.shape), expected)
