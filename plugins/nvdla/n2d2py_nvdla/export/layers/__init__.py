"""Lowering of each operator to the accelerator, by kind. Importing this package registers all of them."""

from n2d2py_nvdla.export import islands  # noqa: F401
from n2d2py_nvdla.export.layers import (  # noqa: F401
    deconvolution,
    elements,
    elementwise,
    index_select,
    moves,
    normalization,
    pooling,
    resize,
    weighted,
)
from n2d2py_nvdla.export.layers.moves import plan_concatenations

__all__ = ["plan_concatenations"]
