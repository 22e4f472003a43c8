"""Chosen positions of each axis: arithmetic progressions as constants, others as tables."""

from __future__ import annotations

import numpy as np

from n2d2py.errors import InternalError, N2D2Error
from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.layers.builder import LayerBuilder

__all__ = ["code"]

_AXES = {2: ("channels",), 3: ("channels", "columns"), 4: ("channels", "lines", "columns")}
"""Rank -> what each axis after the batch is in memory."""


def code(*layer) -> LayerCode:
    """The C++ of a layer that takes chosen positions.

    Raises:
        N2D2Error: E703 for a tensor of more than three axes after the batch.
    """
    build = LayerBuilder(*layer)
    rank = len(build.input_shape)
    if rank not in _AXES:
        raise N2D2Error(
            "E703",
            f"layer '{build.node.name}': Take of a tensor of rank {rank} ({'x'.join(map(str, build.input_shape))})",
            where=build.node.location,
            remedy="the C++ export holds tensors of at most channels, height and width",
        )
    if build.serial:
        raise InternalError(f"{build.node.name}: the output of a Take lies over its input")
    taken = dict.fromkeys(("channels", "lines", "columns"), "n2d2::TakeRange<0, 1>")
    for role, positions in zip(_AXES[rank], build.node.op.indices, strict=True):
        if positions is not None:
            taken[role] = _positions(build, role, positions)
    config = build.config(
        f"{build.node.name}: chosen positions",
        {
            "Input": build.input_plane,
            "Output": build.output_plane,
            "Lines": taken["lines"],
            "Columns": taken["columns"],
            "Taken": taken["channels"],
            "Epilogue": build.moving_epilogue(),
        },
        {"Serial": 0},
    )
    return build.code("take", f"n2d2::take<{config}>(in0, out);")


def _positions(build: LayerBuilder, role: str, positions: tuple[int, ...]) -> str:
    """The C++ type that gives the positions."""
    steps = set(np.diff(positions).tolist())
    if len(steps) <= 1:
        return f"n2d2::TakeRange<{positions[0]}, {steps.pop() if steps else 1}>"
    if role == "channels" and (turns := _turns(positions)):
        return "n2d2::TakeTurns<{}, {}, {}>".format(*turns)
    return f"n2d2::TakeTable<{build.array(role, np.array(positions), 'std::int32_t')}>"


def _turns(positions: tuple[int, ...]) -> tuple[int, int, int] | None:
    """(first, groups, step) where the positions are those of `groups` runs, `step` apart, taken in turn: a channel shuffle."""
    first, step = positions[0], positions[1] - positions[0]
    groups = next((i for i, p in enumerate(positions) if p != first + i * step), len(positions))
    made = tuple(first + i % groups * step + i // groups for i in range(len(positions)))
    return (first, groups, step) if made == tuple(positions) else None
