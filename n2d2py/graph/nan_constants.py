"""Detection of NaN constants: every result computed from one would be NaN too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from n2d2py.graph.graph import Graph
from n2d2py.graph.node import Node


def nan_constants(graph: Graph) -> Iterator[tuple[Node, str]]:
    """Yield (layer, name of the constant or attribute) for all that hold a NaN. Infinities are allowed."""
    for node in graph.nodes:
        for role, array in node.params.items():
            if array.dtype.kind == "f" and np.isnan(array).any():
                yield node, role
        for part in (node.op, node.activation):
            for name in _nan_fields(part):
                yield node, name


def _nan_fields(part: Any) -> Iterator[str]:
    """Yield the fields of an operator or activation that hold a NaN."""
    for field in fields(part) if is_dataclass(part) else ():
        if _is_nan(getattr(part, field.name)):
            yield field.name


def _is_nan(value: Any) -> bool:
    if isinstance(value, (float, np.floating)):
        return bool(np.isnan(value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f" and bool(np.isnan(value).any())
    if isinstance(value, (tuple, list)):
        return any(_is_nan(item) for item in value if not isinstance(item, (int, str)))
    return is_dataclass(value) and any(True for _ in _nan_fields(value))
