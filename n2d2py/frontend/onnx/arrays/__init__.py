"""Converters to operators on arrays: tensors of any rank and kind, along any axis.

They take what the converters to image layers leave: those make the fast layers of an image network.
"""

from collections.abc import Callable
from functools import partial

from n2d2py.frontend.onnx.arrays import indices, integers, maps, matrices, norms, reductions, resize, shapes, windows
from n2d2py.frontend.onnx.arrays.values import Arrays
from n2d2py.frontend.onnx.contract import Builder, OnnxNode, onnx_array


def _on_arrays(convert: Callable[[Arrays], None], node: OnnxNode, builder: Builder) -> None:
    convert(Arrays(node, builder))


for _module in (maps, shapes, matrices, reductions, norms, windows, resize, indices, integers):
    for _operator, _converter in _module.CONVERTERS.items():
        onnx_array(_operator)(partial(_on_arrays, _converter))

__all__ = ["Arrays"]
