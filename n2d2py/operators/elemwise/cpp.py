"""C++ of element-wise combinations: one operand struct for each input."""

from __future__ import annotations

from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.epilogue import epilogue
from n2d2py.exports.cpp.forms.select import vectors
from n2d2py.exports.cpp.isa import TWO_BYTES
from n2d2py.exports.cpp.layer import Layer, cpp
from n2d2py.exports.cpp.parts import Call, Expression

_TERMS = {
    "Sum": "SumTerms",
    "AbsSum": "AbsSumTerms",
    "Max": "MaxTerms",
    "Min": "MinTerms",
    "Prod": "ProdTerms",
    "EuclideanSum": "EuclideanTerms",
}


def _coefficients(layer: Layer) -> tuple[list, list]:
    """Return (weights, shifts) of the operands: multipliers and offset in integers, the operator's in floating point.

    Pre-quantized networks dequantize their integers first; the weights are the scales.
    """
    op, count = layer.op, len(layer.inputs)
    weights, shifts = [1] * count, [0] * count
    if layer.has("scales"):
        weights = list(layer.values("scales"))
    elif layer.integer and op.operation != "Prod":
        weights = [int(m) for m in layer.values("multipliers")]
        if op.operation == "Sum":
            shifts[0] = int(layer.values("offset")[0])
    elif not layer.integer and op.operation not in ("Prod", "Max", "Min"):
        weights, shifts = op.coefficients(count)
    return weights, shifts


@cpp("ElemWise")
def lower(layer: Layer) -> LayerCode:
    """Return the C++ of an element-wise layer."""
    layer, operation, selection = layer.pointwise(), layer.op.operation, vectors(layer, TWO_BYTES)
    sum_type = "float" if layer.has("scales") else layer.sum_type()
    operands = [
        layer.constants(
            f"operand{i}",
            sum_type,
            {"zero": layer.inputs[i].zero_point, "weight": weight, "shift": shift},
            {"Plane": plane, "Extent": layer.output_plane},
        )
        for i, (plane, weight, shift) in enumerate(zip(layer.input_planes, *_coefficients(layer), strict=True))
    ]
    terms = ", ".join([sum_type, f"n2d2::{_TERMS[operation]}", *map(str, operands)])
    config = layer.config(
        f"{operation} of {len(operands)}",
        {
            "Output": layer.output_plane,
            "Operands": Expression.of(f"n2d2::Terms<{terms}>", *operands),
            "Epilogue": epilogue(layer, selection),
        },
        {"PerChannel": layer.integer and layer.node.rescaling.count > 1, "Serial": layer.serial},
        selection,
    )
    declared = f"const unsigned char* const operands[] = {{{', '.join(layer.bases)}}};"
    return layer.code("elemwise", Call("n2d2::elemwise", (config,), ("operands", "out"), (declared,)), selection=selection)
