"""Compilation of the GLSL in `kernels/vulkan` to SPIR-V, and the names of its specialization constants."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from n2d2py import resources
from n2d2py.errors import N2D2Error

_CONSTANT = re.compile(r"layout\(constant_id = (\d+)\) const \w+ (\w+) = (-?[\w.]+);")
_INCLUDE = re.compile(r'^#include "(.+)"$', re.MULTILINE)
_DEFAULTS = {"false": 0, "true": 1}
LOCAL_SIZE = 3
"""The first specialization constants are the size of a work group."""


def source(shader: str) -> Path:
    """Return the file of a shader."""
    return resources.folder("kernels") / "vulkan" / f"{shader}.glsl"


@cache
def constant_defaults(shader: str) -> dict[str, int]:
    """Return the specialization constants of a shader after those of its work group, by number, with their defaults."""
    constants = sorted((int(number), name, text) for number, name, text in _CONSTANT.findall(_text(source(shader))))
    return {name: _DEFAULTS[text] if text in _DEFAULTS else int(text) for _, name, text in constants}


def _text(file: Path) -> str:
    """Return a file of GLSL with those that it includes."""
    text = file.read_text("utf-8")
    return text + "".join(_text(file.parent / name) for name in _INCLUDE.findall(text))


def compiler() -> str:
    """Return the program that compiles shaders: "glslc" or "glslangValidator". Raise E801 where neither is installed."""
    for name in ("glslc", "glslangValidator"):
        if shutil.which(name):
            return name
    what = "neither glslc nor glslangValidator is installed, so the shaders cannot be compiled"
    raise N2D2Error("E801", what, remedy="install one of them (apt install glslc, or glslang-tools)")


@cache
def spirv(shader: str, pixels: int, dot: bool) -> np.ndarray:
    """Return the SPIR-V words of a shader, uint32; `pixels`: positions of an invocation, `dot`: with integer dot products.

    Raises:
        N2D2Error: E801 without a compiler, E802 when it refuses the shader.
    """
    defines = [f"-DPIXELS={pixels}", f"-DDOT={int(dot)}"]
    with tempfile.TemporaryDirectory(prefix="n2d2py-") as folder:
        binary = Path(folder) / "shader.spv"
        if compiler() == "glslc":
            words = ["glslc", "-fshader-stage=compute", "-O", "--target-env=vulkan1.1", *defines]
        else:
            words = ["glslangValidator", "-S", "comp", "--target-env", "vulkan1.1", "--quiet", *defines]
        words += [str(source(shader)), "-o", str(binary)]
        done = subprocess.run(words, capture_output=True, text=True, errors="replace")
        if done.returncode:
            lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            what = f"the shader {shader} does not compile with {words[0]}: {(lines or ['no message'])[0]}"
            raise N2D2Error("E802", what, remedy=f"install a newer {words[0]}")
        return np.fromfile(binary, "<u4")
