"""Converters to operators on arrays: tensors of any rank and kind, along any axis.

They take what the converters to image layers leave: those make the fast layers of an image network.
"""

from n2d2py.frontend.onnx.arrays import indices, integers, maps, matrices, norms, reductions, resize, shapes, windows
from n2d2py.frontend.onnx.arrays.values import Arrays
from n2d2py.frontend.onnx.registry import register_array_converter

for _module in (maps, shapes, matrices, reductions, norms, windows, resize, indices, integers):
    for _operator, _converter in _module.CONVERTERS.items():
        register_array_converter(_operator, _converter)

__all__ = ["Arrays"]
