"""Shared by the tests of nvdla: the checker: valid files pass, every wrong value is refused with what is wrong."""

from functools import lru_cache

import numpy as np

from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.pool import Pool
from n2d2py_nvdla import firmware, parse_loadable, write_loadable
from n2d2py_nvdla.config import CONFIGS
from n2d2py_nvdla.export.emit import emit
from n2d2py_nvdla.export.lower import lower
from n2d2py_nvdla.firmware import ABIS, INT8
from support.nvdla_networks import RELU, Net, typed

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
