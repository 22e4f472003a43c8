"""Orders of constants that the export leaves to the build: `dnn/derive.cpp` makes them of the panels of SIMD kernels.

A line of `dnn/parameters/derived.list` names the file to make, the file that it is made of, and how that one lies.
"""

from __future__ import annotations

from n2d2py.exports.cpp.arrays import is_file
from n2d2py.exports.cpp.parts import Array


def panel_file(name: str) -> str:
    """The file of the panels of an array, the first of its forms."""
    return f"{name}_1.bin"


def row_derivation(array: Array) -> str:
    """The line for the rows of the portable kernel; "" where the export has to hold them."""
    order = array.order
    if order is None or not array.forms or not all(is_file(one, "once") for one in (array.values, array.forms[0].values)):
        return ""
    sizes = f"{order.rows} {order.inputs} {order.outputs} {order.each} {int(order.filled)} {array.values.dtype.itemsize}"
    return f'derive rows "{array.name}.bin" "{panel_file(array.name)}" {sizes}'


def winograd_derivation(name: str, weights: Array, tile: int) -> str:
    """The line for the transformed weights `name`, of tiles of so many outputs in each direction, of a layer with the direct ones `weights`."""
    if weights.order is None:
        return ""
    return f'derive winograd "{name}.bin" "{panel_file(weights.name)}" {weights.order.rows} {weights.order.inputs // 9} {tile}'
