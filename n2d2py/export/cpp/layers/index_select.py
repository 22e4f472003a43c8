"""Chosen positions of each axis: arithmetic progressions as constants, others as tables."""

from __future__ import annotations

import numpy as np

from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.epilogue import moving_epilogue
from n2d2py.export.cpp.layer import Layer, cpp
from n2d2py.export.cpp.parts import Expression

__all__ = ["lower"]

_AXES = {2: ("channels",), 3: ("channels", "columns"), 4: ("channels", "lines", "columns")}
"""Rank -> what each axis after the batch is in memory."""


@cpp("IndexSelect")
def lower(layer: Layer) -> LayerCode:
    """The C++ of a layer that takes chosen positions.

    Raises:
        N2D2Error: E703 for a tensor of more than three axes after the batch.
    """
    rank = len(layer.input_shape)
    if rank not in _AXES:
        raise layer.beyond_axes(layer.input_shape)
    taken = {role: Expression("n2d2::TakeRange<0, 1>") for role in _AXES[4]}
    for role, positions in zip(_AXES[rank], layer.apart().op.indices, strict=True):
        if positions is not None:
            taken[role] = _positions(layer, role, positions)
    names = {"Lines": "lines", "Columns": "columns", "Taken": "channels"}
    types = {name: Expression.of(str(taken[role]), *taken.values()) for name, role in names.items()}
    types = {**layer.planes, **types, "Epilogue": moving_epilogue(layer)}
    return layer.code("index_select", layer.call("indexSelect", layer.config("chosen positions", types, {"Serial": 0})))


def _positions(layer: Layer, role: str, positions: tuple[int, ...]) -> Expression:
    """The C++ type that gives the positions."""
    steps = set(np.diff(positions).tolist())
    if len(steps) <= 1:
        return Expression(f"n2d2::TakeRange<{positions[0]}, {steps.pop() if steps else 1}>")
    if role == "channels" and (turns := _turns(positions)):
        return Expression("n2d2::TakeTurns<{}, {}, {}>".format(*turns))
    table = layer.array(role, np.array(positions), "std::int32_t")
    return Expression.of(f"n2d2::TakeTable<{table}>", table)


def _turns(positions: tuple[int, ...]) -> tuple[int, int, int] | None:
    """(first, groups, step) where the positions are those of `groups` runs, `step` apart, taken in turn: a channel shuffle."""
    first, step = positions[0], positions[1] - positions[0]
    groups = next((i for i, p in enumerate(positions) if p != first + i * step), len(positions))
    made = tuple(first + i % groups * step + i // groups for i in range(len(positions)))
    return (first, groups, step) if made == tuple(positions) else None
