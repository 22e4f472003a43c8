"""Which kernel headers a project needs: those its layers name and what these include."""
from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Iterable

from n2d2py.errors import InternalError

__all__ = ["needed_headers", "copy_headers"]

_INCLUDE = re.compile(r'^\s*#\s*include\s+"(n2d2/[^"]+)"', re.MULTILINE)


def needed_headers(first: Iterable[str], kernels: Path) -> list[str]:
    """Paths such as "n2d2/convolution.hpp" below `kernels`, transitively, sorted."""
    needed: set[str] = set()
    waiting = sorted(first)
    while waiting:
        header = waiting.pop()
        if header in needed:
            continue
        if not (kernels / header).is_file():
            raise InternalError(f"the kernel header {header} does not exist")
        needed.add(header)
        waiting += _INCLUDE.findall((kernels / header).read_text(encoding="utf-8"))
    return sorted(needed)


def copy_headers(first: Iterable[str], kernels: Path, target: Path) -> None:
    """Copies the needed headers into the folder `target`."""
    for header in needed_headers(first, kernels):
        (target / header).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(kernels / header, target / header)
