"""The converters of the ONNX operators, one file per family; importing this package registers them."""

from n2d2py.frontend.onnx.converters import (
    activation,
    arithmetic,
    batchnorm,
    blocks,
    concat,
    conv,
    deconv,
    identity,
    layout,
    lrn,
    matmul,
    padding,
    pool,
    quantized,
    reduce,
    resize,
    softmax,
    taking,
)
from n2d2py.frontend.onnx.registry import register_converter

for _module in (
    conv,
    matmul,
    pool,
    reduce,
    batchnorm,
    activation,
    arithmetic,
    concat,
    padding,
    layout,
    identity,
    softmax,
    blocks,
    deconv,
    lrn,
    resize,
    taking,
    quantized,
):
    for _operator, _converter in _module.CONVERTERS.items():
        register_converter(_operator, _converter)
