"""n2d2py: from an INI or ONNX description of a network to a standalone integer C++ project."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from n2d2py.version import __version__ as __version__

if TYPE_CHECKING:
    from n2d2py.api import calibrate, compare, export, load, quantize, score
    from n2d2py.errors import N2D2Error
    from n2d2py.export.cpp.library import load_export
    from n2d2py.plugin import load_plugin
    from n2d2py.runtime import load_simulator
    from n2d2py.stages.options import CalibrationOptions, ExportOptions, LoadOptions, QuantizationOptions, ScoreOptions

__all__ = [
    "CalibrationOptions",
    "ExportOptions",
    "LoadOptions",
    "N2D2Error",
    "QuantizationOptions",
    "ScoreOptions",
    "calibrate",
    "compare",
    "export",
    "load",
    "load_export",
    "load_plugin",
    "load_simulator",
    "quantize",
    "score",
]


_MODULES = {
    "n2d2py.api": ("calibrate", "compare", "load", "quantize", "score"),
    "n2d2py.errors": ("N2D2Error",),
    "n2d2py.plugin": ("load_plugin",),
    "n2d2py.runtime": ("load_simulator",),
    "n2d2py.export.cpp.library": ("load_export",),
    "n2d2py.stages.options": ("CalibrationOptions", "ExportOptions", "LoadOptions", "QuantizationOptions", "ScoreOptions"),
}
"""Where each name comes from; a module is imported when one of its names is first asked for."""


class _ExportPackage(ModuleType):
    """The package of the exports; called, it is the function `export` of the API."""

    def __call__(self, *args: Any, **given: Any) -> Any:
        return import_module("n2d2py.api").export(*args, **given)


class _Package(ModuleType):
    """This package: its part `export` is a function too."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "export" and isinstance(value, ModuleType):
            value.__class__ = _ExportPackage
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name == "export":
        return import_module("n2d2py.export")
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'n2d2py' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
