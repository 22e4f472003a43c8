"""The converters of the ONNX operators, one file per family; importing this package registers them."""

from n2d2py.frontend.onnx.contract import onnx
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
    matmul,
    padding,
    pool,
    quantized,
    reduce,
    resize,
    softmax,
    taking,
)

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
    resize,
    taking,
    quantized,
):
    for _operator, _converter in _module.CONVERTERS.items():
        onnx(_operator)(_converter)
