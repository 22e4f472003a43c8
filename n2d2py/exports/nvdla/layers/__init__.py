"""How each operator runs on the accelerator, by kind. Importing this package registers all of them."""

from n2d2py.exports.nvdla import islands  # noqa: F401
from n2d2py.exports.nvdla.layers import (  # noqa: F401
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
from n2d2py.exports.nvdla.layers.moves import plan_concatenations

__all__ = ["plan_concatenations"]
