"""The engines that move bytes: BDMA copies memory, RUBIK rearranges cubes."""

from __future__ import annotations

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py_nvdla.firmware import BYTES
from n2d2py_nvdla.model.formats import DTYPES, strided
from n2d2py_nvdla.model.machine import Machine
from n2d2py_nvdla.program import DlaTask, Operation

CONTRACT, SPLIT, MERGE = range(3)


def bdma(machine: Machine, task: DlaTask, operation: Operation) -> None:
    """Add copies of lines, repeated over lines and surfaces."""
    count = min(int(operation.op["num_transfers"]), int(operation.surface["num_transfers"]), 20)
    for number in range(count):
        one = operation.surface["transfers"][number]
        shape = (max(int(one["surface_repeat"]), 1), max(int(one["line_repeat"]), 1), int(one["line_size"]))
        views = []
        for side in ("source", "destination"):
            what = f"{operation.name} transfer {number} {side}"
            memory, base = machine.at(task.addresses, int(one[f"{side}_address"]), 0, what, side == "destination")
            views.append(strided(memory, base, shape, (int(one[f"{side}_surface"]), int(one[f"{side}_line"]), 1), what))
        views[1][...] = views[0].copy()


def rubik(machine: Machine, task: DlaTask, operation: Operation) -> None:
    """Contract (channels to pixels, for transposed convolutions), split (feature to planes), merge (the reverse)."""
    op, surface = operation.op, operation.surface
    mode, precision = int(op["mode"]), int(op["precision"])
    if mode > MERGE or precision >= len(BYTES):
        raise N2D2Error(
            "E903",
            f"{operation.name}: mode {mode} in precision {precision} does not exist",
            where=machine.name,
            remedy="compile it again",
        )
    lanes = machine.config.lanes(precision)
    if mode == MERGE:
        machine.write_cube(task, operation, "dst_data", _planes(machine, task, operation, "src_data", precision).copy())
        return
    x = machine.read_cube(task, operation, "src_data", precision)
    if mode == SPLIT:
        planes = _planes(machine, task, operation, "dst_data", precision)
        planes[...] = x[: len(planes)]
        return
    sy, sx = int(op["stride_y"]), int(op["stride_x"])
    c = int(surface["dst_data"]["channel"])
    step = -(-c // lanes) * lanes
    h, w = x.shape[1:]
    if sy * sx * step > len(x) or 0 in (sy, sx):
        raise N2D2Error(
            "E903",
            f"{operation.name}: {len(x)} channels are not {sx}x{sy} times {step}",
            where=machine.name,
            remedy="compile it again",
        )
    parts = x[: sy * sx * step].reshape(sy, sx, step, h, w)
    machine.write_cube(task, operation, "dst_data", parts.transpose(2, 3, 0, 4, 1).reshape(step, h * sy, w * sx))


def _planes(machine: Machine, task: DlaTask, operation: Operation, name: str, precision: int) -> np.ndarray:
    cube = operation.surface[name]
    what = f"{operation.name} {name}"
    memory, base = machine.place(task, cube, what, name == "dst_data")
    size = BYTES[precision]
    shape = (int(cube["channel"]), int(cube["height"]), int(cube["width"]) * size)
    view = strided(memory, base, shape, (int(cube["plane_stride"]), int(cube["line_stride"]), 1), what)
    return view.view(DTYPES[precision])
