"""Modules of the package run from changed syntax trees, through the import system: no file is written."""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Callable
from types import CodeType

__all__ = ["replace_code"]

Codes = Callable[[str], "CodeType | None"]
"""The code to run for the file of a path, or None for the file's own."""


class _Loader(importlib.machinery.SourceFileLoader):
    codes: Codes

    def get_code(self, fullname: str) -> CodeType | None:
        return self.codes(self.path) or super().get_code(fullname)


class _Finder:
    """Finds the modules of a package as ever, and gives them the loader above."""

    def __init__(self, package: str, codes: Codes):
        self.package = package
        self.loader = type("Loader", (_Loader,), {"codes": staticmethod(codes)})

    def find_spec(self, name: str, path=None, target=None):
        if name.split(".")[0] != self.package:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = self.loader(spec.loader.name, spec.loader.path)
        return spec


def replace_code(package: str, codes: Codes) -> None:
    """From now on the modules of `package` run what `codes` gives for their files; none of them may be imported yet."""
    if any(name.split(".")[0] == package for name in sys.modules):
        raise RuntimeError(f"{package} is imported already")
    sys.meta_path.insert(0, _Finder(package, codes))
