"""One-layer cases of the kernel sweeps on a Vulkan device: their arenas after the shaders have run."""

import os
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from n2d2py_vulkan import HOME
from n2d2py_vulkan.dispatch import Dispatch, NoShader, compiler, dispatches, spirv
from n2d2py_vulkan.target import missing_vulkan
from support.kernel_harness import ROOT, WARNINGS, Case
from support.programs import run_command

VALIDATION = {
    "VK_INSTANCE_LAYERS": "VK_LAYER_KHRONOS_validation",
    "VK_LAYER_ENABLES": "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT",
}
"""The environment of a program that the validation layer checks."""
MESSAGE = "Validation Error", "SYNC-HAZARD", "UNASSIGNED", "VUID"


def need_vulkan() -> None:
    """Skip the test where shaders cannot be compiled or run."""
    try:
        compiler()
    except Exception as missing:
        pytest.skip(str(missing))
    if reason := missing_vulkan():
        pytest.skip(reason)


@cache
def _has_validation() -> bool:
    printed = subprocess.run(["vulkaninfo", "--summary"], capture_output=True, text=True).stdout
    return "VK_LAYER_KHRONOS_validation" in printed


def need_validation() -> None:
    """Skip the test where the validation layer is not installed."""
    if not _has_validation():
        pytest.skip("vulkan-validationlayers or vulkan-tools is not installed")


def silent(printed: str) -> None:
    """Fail where the validation layer said something."""
    lines = [line for line in printed.splitlines() if any(word in line for word in MESSAGE)]
    assert not lines, "\n".join(lines[:4])


def lowered(cases: list[Case]) -> tuple[list[tuple[Case, list[Dispatch]]], list[str]]:
    """The cases that have shaders, each with its dispatches, and the reasons of the others."""
    found, reasons = [], []
    for case in cases:
        try:
            found.append((case, list(dispatches(case.node, case.graph, case.plan))))
        except NoShader as reason:
            reasons.append(str(reason))
    return found, reasons


def _words(case: Case, made: list[Dispatch], dot: bool) -> list[np.ndarray]:
    """The case in the form of `vulkan_cases.cpp`."""
    constants, words = [np.zeros(4, np.int32)], [np.array([len(made)])]
    length = 4
    for one in made:
        places = []
        for values in (one.weights.reshape(-1), one.parameters.reshape(-1)):
            places.append(length // 4)
            filled = np.zeros(-(-values.size // 4) * 4, np.int32)
            filled[: values.size] = values
            constants.append(filled)
            length += filled.size
        code = spirv(one.shader, one.pixels, dot and one.shader == "conv")
        words += [np.array([code.size]), code.view("<i4"), np.array([len(one.specialization), *one.specialization])]
        words.append(np.array([*one.groups, *one.places, *places]))
    arena = case.arena()
    filled = np.zeros(-(-arena.size // 4) * 4, np.uint8)
    filled[: arena.size] = arena
    return [*words, np.array([length]), *constants, np.array([arena.size]), filled.view("<i4")]


def check_on_device(cases: list[tuple[Case, list[Dispatch]]], folder: Path, dot: bool = False, **environment: str) -> None:
    """Run cases on a device under the validation layer and compare their arenas with Python's integers.

    Raises:
        AssertionError: with the first case that differs, or what the validation layer says.
    """
    program = folder / "vulkan_cases"
    if not program.exists():
        words = [
            "g++",
            *WARNINGS,
            "-O1",
            f"-I{HOME / 'kernels'}",
            str(ROOT / "tests/support/vulkan_cases.cpp"),
            "-o",
            str(program),
        ]
        run_command(*words, "-lvulkan")
    parts = [np.array([len(cases)]), *(part for case, made in cases for part in _words(case, made, dot))]
    np.concatenate([np.asarray(part).astype("<i4").reshape(-1) for part in parts]).tofile(folder / "cases.bin")
    values = {**os.environ, **VALIDATION, "N2D2_VULKAN_DOT": str(int(dot)), **environment}
    done = subprocess.run(
        [program, folder / "cases.bin", folder / "arenas.bin"], env=values, capture_output=True, text=True, errors="replace"
    )
    assert done.returncode == 0, done.stderr
    silent(done.stdout + done.stderr)
    arenas, at = np.fromfile(folder / "arenas.bin", np.uint8), 0
    for case, _ in cases:
        before = case.arena()
        case.check(before, arenas[at : at + before.size])
        at += before.size
