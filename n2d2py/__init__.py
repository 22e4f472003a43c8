"""n2d2py: from an INI or ONNX description of a network to a standalone integer C++ project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from n2d2py.export.cpp.library import load_export
    from n2d2py.plugin import load_plugin
    from n2d2py.runtime import load_simulator

__all__ = ["load_export", "load_plugin", "load_simulator"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """The functions of the package, imported when they are first asked for."""
    if name == "load_plugin":
        from n2d2py.plugin import load_plugin

        return load_plugin
    if name == "load_export":
        from n2d2py.export.cpp.library import load_export

        return load_export
    if name == "load_simulator":
        from n2d2py.runtime import load_simulator

        return load_simulator
    raise AttributeError(f"module 'n2d2py' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
