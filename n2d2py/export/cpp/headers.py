"""Which kernel headers a project needs: those its layers name and what these include."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from n2d2py.errors import InternalError

__all__ = ["copy_headers", "needed_headers", "plugin_header"]

_INCLUDE = re.compile(r'^\s*#\s*include\s+"(n2d2/[^"]+)"', re.MULTILINE)


_BESIDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
_PLUGINS: dict[str, Path] = {}


def plugin_header(folder: Path, name: str) -> str:
    """How an export includes the header `name` of a plug-in's folder: "plugins/<folder>/<name>"."""
    prefix, number = f"plugins/{folder.name}", 1
    while _PLUGINS.setdefault(prefix, folder) != folder:
        number += 1
        prefix = f"plugins/{folder.name}_{number}"
    return f"{prefix}/{name}"


def _source(header: str, kernels: Path) -> Path:
    for prefix, folder in _PLUGINS.items():
        if header.startswith(f"{prefix}/"):
            return folder / header[len(prefix) + 1 :]
    return kernels / header


def _included(header: str, source: Path) -> list[str]:
    """The kernel headers that a header includes, and those beside it where it is a plug-in's."""
    text = source.read_text(encoding="utf-8")
    found = _INCLUDE.findall(text)
    if header.startswith("plugins/"):
        found += [f"{header.rpartition('/')[0]}/{name}" for name in _BESIDE.findall(text) if (source.parent / name).is_file()]
    return found


def needed_headers(first: Iterable[str], kernels: Path) -> list[str]:
    """Paths such as "n2d2/convolution.hpp" below `kernels`, transitively, sorted."""
    needed: set[str] = set()
    waiting = sorted(first)
    while waiting:
        header = waiting.pop()
        if header in needed:
            continue
        source = _source(header, kernels)
        if not source.is_file():
            raise InternalError(f"the kernel header {header} does not exist")
        needed.add(header)
        waiting += _included(header, source)
    return sorted(needed)


def copy_headers(first: Iterable[str], kernels: Path, target: Path) -> None:
    """Copies the needed headers into the folder `target`."""
    for header in needed_headers(first, kernels):
        (target / header).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_source(header, kernels), target / header)
