"""n2d2py: from an INI or ONNX description of a network to a standalone integer C++ project."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from n2d2py.version import __version__ as __version__

if TYPE_CHECKING:
    from n2d2py.api import calibrate, compare, export, load, quantize, score
    from n2d2py.errors import N2D2Error
    from n2d2py.exports.cpp.library import load_export
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
    "n2d2py.api": ("calibrate", "compare", "export", "load", "quantize", "score"),
    "n2d2py.errors": ("N2D2Error",),
    "n2d2py.plugin": ("load_plugin",),
    "n2d2py.runtime": ("load_simulator",),
    "n2d2py.exports.cpp.library": ("load_export",),
    "n2d2py.stages.options": ("CalibrationOptions", "ExportOptions", "LoadOptions", "QuantizationOptions", "ScoreOptions"),
}
"""Where each name comes from; a module is imported when one of its names is first asked for."""


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'n2d2py' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
