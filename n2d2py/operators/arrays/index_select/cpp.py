"""The C++ of elements in another order."""

from __future__ import annotations

import numpy as np

from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.layer import Layer, cpp
from n2d2py.exports.cpp.parts import Array, Constants, Expression
from n2d2py.operators.arrays.lowering import loops


@cpp("ArrayIndexSelect")
def _lower(layer: Layer) -> LayerCode:
    """The C++ of a reordering: progressions as loops, everything else by tables."""
    op, first = layer.op, 0
    runs: list[Array | list[tuple[int, int]]] = []
    for index, offsets in enumerate(op.offsets):
        line = np.asarray(offsets, np.int64)
        if line.min() < 0 or (line.size > 2 and len(set(np.diff(line).tolist())) > 1):
            runs.append(layer.array(f"offsets{index}", line, "std::int32_t"))
            continue
        first += int(line[0])
        axis = (line.size, int(line[1] - line[0]) if line.size > 1 else 0)
        if runs and isinstance(runs[-1], list):
            runs[-1].append(axis)
        else:
            runs.append([axis])
    text = "n2d2::AxisEnd"
    for run in reversed(runs):
        if isinstance(run, Array):
            text = f"n2d2::TakeAxis<{run.values.size}, {run}, {text} >"
        else:
            text = loops([size for size, _ in run], [[step for _, step in run]], text)
    kind, fill = layer.output, op.stored_fill(layer.output)
    value = Constants(f"{layer.identifier}_fill", kind.cpp, {"value": fill if kind.is_float else int(fill)}, constexpr=False)
    types = {
        **layer.planes,
        "Axes": Expression.of(text, *(run for run in runs if isinstance(run, Array))),
        "Fill": Expression(value.name, (value,)),
    }
    config = layer.config("elements in another order", types, {"First": first})
    return layer.code("array_move", layer.call("arrayIndexSelect", config))
