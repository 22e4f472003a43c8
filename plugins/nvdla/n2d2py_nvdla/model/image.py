"""Image input of the convolution: pixel formats to channels, means, scale."""

from __future__ import annotations

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py_nvdla.firmware import FP16, INT8
from n2d2py_nvdla.model.formats import strided
from n2d2py_nvdla.model.integers import convert
from n2d2py_nvdla.program import Operation

FEATURE = 36
"""The data format of feature cubes; those below are pixels."""

ORDERS = {
    0: (0,),
    12: (0, 1, 2, 3),
    16: (0, 1, 2, 3),
    13: (2, 1, 0, 3),
    17: (2, 1, 0, 3),
    26: (2, 1, 0, 3),
    14: (1, 2, 3, 0),
    18: (1, 2, 3, 0),
    27: (1, 2, 3, 0),
    15: (3, 2, 1, 0),
    19: (3, 2, 1, 0),
    8: (0, 1, 2, 3),
}
"""Element of a pixel that is channel 0, 1, 2, 3 (R, G, B, A), by pixel format."""

_HALVES = (8,)


def pixels(memory: np.ndarray, base: int, operation: Operation, name: str) -> np.ndarray:
    """Return the image of a convolution as (C, H, W) in its processing precision: int32 or float16.

    Raises:
        N2D2Error: E903 for a pixel format that is not modelled.
    """
    op, cube = operation.op, operation.surface["src_data"]
    code = int(op["data_format"])
    if code not in ORDERS:
        raise N2D2Error(
            "E903",
            f"{operation.name}: pixel format {code} is not modelled",
            where=name,
            remedy="use an 8-bit format of one or four channels",
        )
    order = ORDERS[code]
    size = 2 if code in _HALVES else 1
    h, w = int(cube["height"]), int(cube["width"])
    view = strided(memory, base, (h, w * len(order) * size), (int(cube["line_stride"]), 1), f"{operation.name} src_data")
    raw = np.ascontiguousarray(view)
    precision = int(op["out_precision"])
    if code in _HALVES:
        return raw.view("<f2").reshape(h, w, len(order))[:, :, list(order)].transpose(2, 0, 1)
    values = (raw.view(np.int8) if op["pixel_override"] else raw).reshape(h, w, len(order))[:, :, list(order)]
    x = values.transpose(2, 0, 1).astype(np.int64)
    if precision == FP16:
        return x.astype(np.float16)
    cvt = op["in_cvt"]
    offset: int | np.ndarray = int(cvt["offset"])
    if op["mean_format"]:
        means = [int(op[field]) for field in ("mean_ry", "mean_gu", "mean_bv", "mean_ax")]
        offset = np.array(means[: len(order)], np.int64)[:, None, None]
    return convert(x, offset, int(cvt["scale"]), int(cvt["truncate"]), 8 if precision == INT8 else 16)
