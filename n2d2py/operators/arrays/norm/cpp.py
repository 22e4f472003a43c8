"""The C++ of normalisations of lines."""

from __future__ import annotations

import numpy as np

from n2d2py.arithmetic.attention import mask_bits
from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.epilogue import epilogue
from n2d2py.exports.cpp.forms.select import vectors
from n2d2py.exports.cpp.layer import Layer, cpp
from n2d2py.exports.cpp.parts import Argument, Expression
from n2d2py.operators.arrays.lowering import kernel_call


@cpp("ArraySoftmax", "ArrayMaskedSoftmax")
def _lower_softmax(layer: Layer) -> LayerCode:
    """The C++ of a softmax."""
    op = layer.op
    if not layer.has("powers"):
        if not layer.has("mask"):
            return kernel_call(layer, "array_norm", "arraySoftmax", (op.outer, op.size, op.inner, bool(op.log)))
        mask = layer.array("mask", mask_bits(layer.values("mask")), "std::uint8_t")
        operands: list[Argument] = [f"n2d2::elements<{layer.input_planes[0]}>(in0)", mask]
        return kernel_call(layer, "array_norm", "arrayMaskedSoftmax", (op.outer, op.size, len(layer.values("mask"))), operands)
    layer, (low, high) = layer.apart(), layer.node.limits
    if layer.node.rescale is None:
        inverse = layer.array("numerator", layer.values("numerator"), "std::int64_t")
        share = Expression.of(f"n2d2::FixedShare<{inverse}>", inverse)
    else:
        inverse = layer.array("factor", layer.node.rescale.effective(), "float")
        share = Expression.of(f"n2d2::FloatShare<{inverse}>", inverse)
    sizes = {
        "Outer": op.outer,
        "Size": op.size,
        "Inner": op.inner,
        "Low": low,
        "High": high,
        "OutZero": layer.output.zero_point,
    }
    powers, tables = layer.values("powers"), ()
    if powers.dtype == np.uint16:
        tables = (layer.array("powers", powers, "std::uint16_t"),)
    else:
        sizes.update(zip(("Multiplier", "Shift", "Limit"), powers.tolist(), strict=True))
    masked = layer.has("mask")
    if masked:
        sizes["Masks"] = len(layer.values("mask"))
    config = layer.config(f"softmax of {op.size} integers", {**layer.planes, "Share": share}, sizes)
    if masked:
        tables = (*tables, layer.array("mask", layer.values("mask"), "std::uint8_t"))
    kernel = "integerMaskedSoftmax" if masked else "integerSoftmax"
    return layer.code("integer_softmax", layer.call(kernel, config, constants=tables))


@cpp("ArrayNorm")
def _lower_norm(layer: Layer) -> LayerCode:
    """The C++ of a normalisation."""
    op = layer.op
    if layer.has("epsilon"):
        return _integer_norm(layer.apart())
    part = ("", "mean", "inverse").index(op.part)
    operands: list[Argument] = [f"n2d2::elements<{layer.input_planes[0]}>(in0)", repr(op.epsilon), repr(op.added)]
    for role in ("gain", "shift"):
        if layer.has(role):
            operands.append(layer.array(role, layer.values(role).astype(layer.output.dtype), layer.output.cpp))
        else:
            operands.append(f"static_cast<const {layer.output.cpp}*>(nullptr)")
    sizes = (op.outer, op.inner, bool(op.centred), part, layer.has("gain"))
    return kernel_call(layer, "array_norm", "arrayNorm", sizes, operands)


def _integer_norm(layer: Layer) -> LayerCode:
    op, selection, total = layer.op, vectors(layer), layer.sum_type()
    sizes = {
        "Outer": op.outer,
        "Size": op.inner,
        "Centred": op.centred,
        "InputZero": layer.inputs[0].zero_point,
        "Fraction": int(layer.values("fraction")[0]),
    }
    gains, offsets = layer.values("gains"), layer.values("offsets")
    constants: tuple[Argument, ...] = ()
    if offsets.any() or len(gains) > 1:
        constants = (layer.array("gains", gains, "std::int16_t"), layer.array("offsets", offsets, total))
    else:
        sizes["Gain"] = int(gains[0])
    epsilon = layer.constants("epsilon", "std::int64_t", {"epsilon": int(layer.values("epsilon")[0])})
    types = {**layer.planes, "Sum": total, "Epilogue": epilogue(layer, selection), "Epsilon": epsilon}
    config = layer.config(f"normalisation of {op.inner} integers", types, sizes, selection)
    return layer.code("integer_norm", layer.call("integerNorm", config, constants=constants), selection=selection)
