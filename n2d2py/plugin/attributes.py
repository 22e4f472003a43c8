"""Attributes of what a plug-in declares, and the errors that name its file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import MISSING, field
from typing import Any, get_args, get_origin, get_type_hints

from n2d2py.errors import Location, N2D2Error


def attribute(
    default: Any = MISSING,
    *,
    onnx: str | None = None,
    ini: str | None = None,
    spatial: bool = False,
    choices: Sequence[str] = (),
    doc: str = "",
) -> Any:
    """Declare an attribute of an operator; without `default` every layer must give it.

    `onnx` and `ini` are its names there: by default its own name, and that in CamelCase (`kernel_shape`,
    KernelShape). With `spatial` the INI gives X before Y, as it does for windows, and Python and C++ see Y before X.
    `choices` limits a text. Its type is int, float, bool, str, tuple[int, ...] or tuple[float, ...].
    """
    return field(
        default=default, metadata={"onnx": onnx, "ini": ini, "spatial": spatial, "choices": tuple(choices), "doc": doc}
    )


def camel(name: str) -> str:
    """kernel_shape -> KernelShape."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def attribute_type(cls: type, name: str) -> tuple[type, bool]:
    """(int, float, bool or str; whether it is a tuple of these) of an attribute.

    Raises:
        N2D2Error: E022 for another type.
    """
    hint = get_type_hints(cls)[name]
    if hint in (int, float, bool, str):
        return hint, False
    items = set(get_args(hint)) - {Ellipsis}
    if get_origin(hint) is tuple and items in ({int}, {float}):
        return items.pop(), True
    what = f"the attribute {name} has the type {getattr(hint, '__name__', hint)}"
    raise incomplete(cls, what, "use int, float, bool, str, tuple[int, ...] or tuple[float, ...]")


def incomplete(cls: type, what: str, remedy: str) -> N2D2Error:
    """E022 at the file of a class."""
    return N2D2Error("E022", f"{cls.__name__}: {what}", where=place_of(cls), remedy=remedy)


def place_of(declared: Any) -> Location:
    """Return the file of a plug-in's class or function."""
    module = sys.modules.get(declared.__module__)
    return Location(getattr(module, "__plugin_path__", None) or getattr(module, "__file__", None) or declared.__module__)


def failed(cls: Any, node: Any, what: str) -> N2D2Error:
    """E024: an operator cannot take a layer."""
    where = getattr(node, "location", None) or (Location(section=node.name) if node is not None else None)
    remedy = f"check the layer, or correct the plug-in {place_of(type(cls)).file}"
    return N2D2Error("E024", f"{type(cls).__name__}: {what}", where=where, remedy=remedy)


def crashed(cls: Any, node: Any, method: str, error: Exception) -> N2D2Error:
    module = sys.modules.get(type(cls).__module__)
    home, line, trace = getattr(module, "__file__", None), None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == home:
            line = trace.tb_lineno
        trace = trace.tb_next
    layer = f" for the layer '{node.name}'" if node is not None else ""
    what = f"{type(cls).__name__}.{method}() failed{layer}: {type(error).__name__}: {error}"
    return N2D2Error("E024", what, where=Location(place_of(type(cls)).file, line), remedy="correct the plug-in")
