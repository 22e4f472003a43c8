"""Tiny loadables of our own, the places of the given ones, and changes of single fields."""

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from n2d2py_nvdla import Loadable, firmware, parse_loadable, write_loadable
from n2d2py_nvdla.config import CONFIGS
from n2d2py_nvdla.export.emit import emit
from n2d2py_nvdla.export.lower import lower
from n2d2py_nvdla.firmware import ABIS, INT8
from n2d2py_nvdla.tables import Address, Blob, Memory, Submit, Task, TensorDesc
from support.nvdla_networks import typed
from support.ops import ElemWise, Pool
from support.small_graphs import RELU, Net

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "nvdla"

needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/data/nvdla is not here")


def given() -> list[Path]:
    """All given loadables."""
    return sorted([*SHARED.glob("goldens/*_fbuf"), *SHARED.glob("onnc/*/*.nvdla"), *SHARED.glob("vectors/*/net.nvdla")])


def record(dtype: np.dtype, **values) -> np.void:
    """A record with fields by path, `a__b` for a.b."""
    made = np.zeros((), dtype)
    for path, value in values.items():
        target, *rest = path.split("__")
        view = made
        while rest:
            view, target, rest = view[target], rest[0], rest[1:]
        view[target] = value
    return made


def small_relu(abi: str = "v12", c: int = 3, h: int = 2, w: int = 5, atom: int = 8) -> Loadable:
    """One SDP operation from memory to memory: y = relu(x), int8."""
    surfaces = -(-c // atom)
    size = surfaces * h * w * atom
    table = firmware.ABIS[abi]
    cube = {
        "type": 0,
        "size": size,
        "width": w,
        "height": h,
        "channel": c,
        "line_stride": w * atom,
        "surf_stride": h * w * atom,
    }
    surface = np.zeros((), table.surfaces[firmware.SDP])
    for name, address in (("src_data", 1), ("dst_data", 2)):
        for key, value in {**cube, "address": address}.items():
            surface[name][key] = value
    for name in ("x1_data", "x2_data", "y_data"):
        surface[name]["type"], surface[name]["address"] = 2, -1
    op = record(
        firmware.SDP_DESC,
        lut_index=-1,
        out_cvt__scale=1,
        out_cvt__enable=1,
        batch_num=1,
        x1_op__enable=1,
        x1_op__type=0,
        x1_op__act=1,
    )
    common = record(firmware.COMMON, op_type=firmware.SDP)
    common["consumers"]["index"] = -1
    common["fused_parent"]["index"] = -1
    network = record(
        firmware.NETWORK,
        operation_desc_index=5,
        surface_desc_index=6,
        dependency_graph_index=4,
        lut_data_index=-1,
        roi_array_index=-1,
        surface_index=-1,
        stat_list_index=-1,
        num_rois=1,
        num_operations=1,
        num_addresses=7,
    )
    network["op_head"] = [-1, -1, 0, -1, -1, -1]
    parts = {
        "addr0": network.tobytes(),
        "dep_graph": common.tobytes(),
        "op_list": op.tobytes(),
        "surf_list": surface.tobytes() + bytes(firmware.SURFACE_SIZE - surface.itemsize),
    }
    memories = [Memory(0, 0, 1, 4096, 4096), Memory(1, 0, 5, size, 4096), Memory(2, 0, 9, size, 4096, tensor_desc_id=1)]
    for number, (name, data) in enumerate(parts.items()):
        memories.append(Memory(3 + number, 0, 3, len(data), 4096, [f"task-0-{name}"], [0]))
    tensors = [
        TensorDesc(
            name, number, 1 + number, size, 0, 3, 4, 2, 37 if atom == 8 else 36, 0, 1, c, h, w, 1, w * atom, h * w * atom
        )
        for number, name in enumerate(("in", "out"))
    ]
    return Loadable(
        (0, 7, 0),
        [Task(0, 1, -1, [3, 1, 2, 3, 4, 5, 6], [], [])],
        memories,
        [Address(m.id, m.id, 0, m.size) for m in memories],
        [],
        [Blob(f"task-0-{name}", len(data), 1, 0, table.firmware, data) for name, data in parts.items()],
        tensors,
        [],
        [Submit(0, [0])],
    )


SMALL = CONFIGS["nv_small"]


def loadable(abi: str = "v12"):
    """conv, pool, conv + residual, for nv_small: operations CONV SDP PDP CONV SDP CONV SDP."""
    return parse_loadable(written(abi))


@lru_cache
def written(abi: str) -> bytes:
    """The file of `loadable`."""
    net = Net((8, 10, 10))
    a = net.conv("a", "x", 16, pads=(1, 1, 1, 1), activation=RELU)
    p = net.add("p", Pool("Max", (2, 2), (2, 2)), a)
    b = net.conv("b", p, 16, pads=(1, 1, 1, 1), activation=RELU)
    c = net.conv("c", b, 16, pads=(1, 1, 1, 1))
    graph = net.done(net.add("s", ElemWise("Sum"), c, p))
    samples = np.random.default_rng(1).standard_normal((2, 8, 10, 10)).astype(np.float32)
    lowered, problems = lower(typed(graph, INT8, samples), SMALL, INT8)
    assert problems == []
    return write_loadable(emit(lowered, abi).loadable)


def change(one, blob: str, entry: int, size: int, dtype: np.dtype, field: str, value) -> None:
    """Sets a field, given as a path with dots, of an entry of a list of descriptors."""
    for candidate in one.blobs:
        if candidate.name == f"task-0-{blob}":
            data = bytearray(candidate.data)
            record = np.frombuffer(data, dtype, 1, entry * size)
            *path, last = field.split(".")
            for name in path:
                record = record[:, int(name)] if name.isdigit() else record[name]
            record[last] = value
            candidate.data = bytes(data)


def of_op(number: int, engine: int, field: str, value):
    return "op_list", number, firmware.OPERATION_SIZE, firmware.OPERATIONS[engine], field, value


def of_surface(number: int, engine: int, field: str, value):
    return "surf_list", number, firmware.SURFACE_SIZE, ABIS["v12"].surfaces[engine], field, value
