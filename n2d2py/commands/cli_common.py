"""Shared by the commands of this package: the files they are given, and runs of the tool."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from n2d2py import resources
from n2d2py.errors import N2D2Error
from n2d2py.exports.parameters import parameters_file, preset_names


def split_options(words: list[str]) -> tuple[list[str], list[str]]:
    """Return the words of the command, and those after `--`."""
    cut = words.index("--") if "--" in words else len(words)
    return words[:cut], words[cut + 1 :]


def networks(parser: argparse.ArgumentParser, names: list[str]) -> list[Path]:
    """Return the network files on the command line, or two of the installation. End the command if a file is missing."""
    if not names:
        return [resources.folder("models") / name for name in ("LeNet.ini", "MobileNet.ini")]
    files = [Path(word) for word in _words(names)]
    for file in files:
        if not file.is_file():
            parser.error(f"{file} is missing")
    return files


def parameter_files(parser: argparse.ArgumentParser, names: list[str]) -> list[Path]:
    """Return the files of export parameters, by path or name of a preset; by default all presets."""
    paths = []
    for word in _words(names) if names else preset_names():
        try:
            file = parameters_file(word)
        except N2D2Error as error:
            parser.error(error.line())
        if not file.is_file():
            parser.error(f"{file} is missing")
        paths.append(file)
    return paths


def _words(values: list[str]) -> list[str]:
    """Return the words: files unchanged, others split at blanks, as in -m "a.ini b.ini"."""
    return [part for word in values for part in ([word] if Path(word).is_file() else word.split())]


def weights_of(network: Path) -> str:
    """Value of -w: NET.npz next to the network where there is one."""
    weights = network.with_suffix(".npz")
    return str(weights) if weights.is_file() else "/dev/null"


def build_tools_missing() -> str | None:
    """Message about the build tools that this machine lacks."""
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None:
        return f"{compiler} is missing: install a C++ compiler (Debian, Ubuntu: apt install g++)"
    if shutil.which("make") is None:
        return "make is missing: install it (Debian, Ubuntu: apt install make)"
    return None


def run_tool(words: list[str]) -> subprocess.CompletedProcess[str]:
    """Run `n2d2py` with these words in a separate process; its stdout and stderr are one text."""
    return subprocess.run(
        [sys.executable, "-m", "n2d2py", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
