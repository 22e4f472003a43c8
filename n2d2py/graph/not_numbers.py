"""Constants of a graph that are not numbers (NaN): every result computed from one would be NaN too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from n2d2py.graph.graph import Graph
from n2d2py.graph.node import Node


def not_numbers(graph: Graph) -> Iterator[tuple[Node, str]]:
    """(layer, name of the constant or of the setting) for all that hold a NaN; infinities are numbers here."""
    for node in graph.nodes:
        for role, array in node.params.items():
            if array.dtype.kind == "f" and np.isnan(array).any():
                yield node, role
        for part in (node.op, node.activation):
            for name in _settings(part):
                yield node, name


def _settings(part: Any) -> Iterator[str]:
    """The fields of an operator or an activation that hold a NaN."""
    for field in fields(part) if is_dataclass(part) else ():
        if _holds_none(getattr(part, field.name)):
            yield field.name


def _holds_none(value: Any) -> bool:
    if isinstance(value, (float, np.floating)):
        return bool(np.isnan(value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f" and bool(np.isnan(value).any())
    if isinstance(value, (tuple, list)):
        return any(_holds_none(item) for item in value if not isinstance(item, (int, str)))
    return is_dataclass(value) and any(True for _ in _settings(value))
