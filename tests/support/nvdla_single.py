"""Loadables of one hardware operation with given bytes, for comparing the functional model with scalar arithmetic."""

import numpy as np

from n2d2py_nvdla import Loadable, Program, firmware, parse_loadable, write_loadable
from n2d2py_nvdla.config import HardwareConfig
from n2d2py_nvdla.firmware import ABIS, BYTES
from n2d2py_nvdla.model import run_program
from n2d2py_nvdla.model.formats import DTYPES
from n2d2py_nvdla.tables import Address, Blob, Memory, Submit, Task

__all__ = ["Cube", "fill", "run_one"]


class Cube:
    """A feature cube with strides that may leave gaps, and its place in a memory of its own.

    Attributes:
        lanes: elements of an atom; `components` values stand for each.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        precision: int,
        atom: int,
        gap: tuple[int, int] = (0, 0),
        components: int = 1,
        offset: int = 0,
        lanes: int = 0,
    ):
        self.shape, self.precision, self.components, self.offset = shape, precision, components, offset
        self.lanes = lanes or atom // BYTES[precision]
        c, h, w = shape
        self.pixel = self.lanes * components * BYTES[precision]
        self.line = w * self.pixel + gap[0] * atom
        self.surface = h * self.line + gap[1] * atom
        self.surfaces = -(-c // self.lanes)
        self.size = self.surfaces * self.surface

    def at(self, c: int, h: int, w: int) -> int:
        """Byte of an element in its memory."""
        return (
            self.offset
            + c // self.lanes * self.surface
            + h * self.line
            + w * self.pixel
            + c % self.lanes * self.components * BYTES[self.precision]
        )

    def get(self, data: bytes, c: int, h: int, w: int, component: int = 0):
        """An element."""
        size = BYTES[self.precision]
        at = self.at(c, h, w) + component * size
        return np.frombuffer(data[at : at + size], DTYPES[self.precision])[0]

    def descriptor(self, cube: np.ndarray, address: int) -> None:
        """Fills a data cube descriptor."""
        c, h, w = self.shape
        for name, value in {
            "type": 0,
            "address": address,
            "size": self.size,
            "width": w,
            "height": h,
            "channel": c,
            "line_stride": self.line,
            "surf_stride": self.surface,
        }.items():
            cube[name] = value
        if "offset" in cube.dtype.names:
            cube["offset"] = self.offset


def fill(size: int, seed: int) -> bytes:
    """Random bytes."""
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8).tobytes()


def run_one(
    config: HardwareConfig,
    engine: int,
    op: np.void,
    cubes: dict[str, Cube],
    data: dict[str, bytes],
    luts: list[np.void] = (),
    planes: dict[str, int] | None = None,
    surface: np.void | None = None,
    exact: bool = True,
) -> bytes:
    """The bytes of `dst_data` (a memory of the size of its entry in `data`, which it holds before) after one operation.

    Args:
        cubes, data: by name of the cube.
        planes: plane strides by name of the cube.
        surface: a filled surface descriptor in place of `cubes`; address 1 is "src_data", 2 is "dst_data".
    """
    if planes is None:
        planes = {}
    abi = ABIS["v12"]
    names = ["src_data", "dst_data", *(name for name in data if name not in ("src_data", "dst_data"))]
    if surface is None:
        made = np.zeros((), abi.surfaces[engine])
        for name in firmware.CUBES[engine]:
            made[name]["type"], made[name]["address"] = 2, -1
            if name in cubes:
                cubes[name].descriptor(made[name], 1 + names.index(name))
                made[name]["plane_stride"] = planes.get(name, 0)
        surface = made[()]
    common = np.zeros((), firmware.COMMON)
    common["op_type"] = engine
    common["consumers"]["index"] = common["fused_parent"]["index"] = -1
    first = 1 + len(names)
    network = np.zeros((), firmware.NETWORK)
    for name, value in {
        "dependency_graph_index": first,
        "operation_desc_index": first + 1,
        "surface_desc_index": first + 2,
        "lut_data_index": first + 3 if luts else -1,
        "num_rois": 1,
        "num_operations": 1,
        "num_luts": len(luts),
        "op_head": [0 if one == engine else -1 for one in range(6)],
    }.items():
        network[name] = value
    parts = {
        "addr0": network.tobytes(),
        **data,
        "dep_graph": common.tobytes(),
        "op_list": op.tobytes() + bytes(firmware.OPERATION_SIZE - op.itemsize),
        "surf_list": surface.tobytes() + bytes(firmware.SURFACE_SIZE - surface.itemsize),
    }
    if luts:
        parts["lut_list"] = b"".join(lut.tobytes() for lut in luts)
    order = ["addr0", *names, "dep_graph", "op_list", "surf_list", *(["lut_list"] if luts else [])]
    memories = [
        Memory(i, 0, 9 if name == "dst_data" else 3, len(parts[name]), 4096, [name], [0]) for i, name in enumerate(order)
    ]
    memories[order.index("dst_data")].flags = 8 | 2 | 1
    loadable = Loadable(
        (0, 7, 0),
        [Task(0, 1, -1, list(range(len(order))), [], [])],
        memories,
        [Address(m.id, m.id, 0, m.size) for m in memories],
        [],
        [Blob(name, len(parts[name]), 1, 0, (0, 12, 3), parts[name]) for name in order],
        [],
        [],
        [Submit(0, [0])],
    )
    program = Program.of(parse_loadable(write_loadable(loadable)), "one.nvdla", "v12")
    return run_program(program, [], config, exact=exact).outputs[0].tobytes()
