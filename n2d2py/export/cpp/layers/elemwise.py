"""Element-wise combination of several tensors: one operand struct per input."""

from __future__ import annotations

from n2d2py.errors import InternalError
from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.layers.builder import LayerBuilder

__all__ = ["code"]

_TERMS = {
    "Sum": "SumTerms",
    "AbsSum": "AbsSumTerms",
    "Max": "MaxTerms",
    "Min": "MinTerms",
    "Prod": "ProdTerms",
    "EuclideanSum": "EuclideanTerms",
}


def _coefficients(build: LayerBuilder) -> tuple[list, list]:
    """(weights, shifts) of the operands: multipliers and offset in integers, the operator's in floating point.

    The integers of a network that came quantized are combined as the real numbers that they stand for.
    """
    op, count = build.node.op, len(build.node.inputs)
    weights, shifts = [1] * count, [0] * count
    if "scales" in build.node.params:
        weights = list(build.node.params["scales"])
    elif build.integer and op.operation != "Prod":
        weights = [int(m) for m in build.node.params["multipliers"]]
        if op.operation == "Sum":
            shifts[0] = int(build.node.params["offset"][0])
    elif not build.integer and op.operation not in ("Prod", "Max", "Min"):
        weights, shifts = op.coefficients(count)
    return weights, shifts


def code(*layer) -> LayerCode:
    """The C++ of an element-wise layer."""
    build = LayerBuilder(*layer)
    operation = build.node.op.operation
    build.pointwise()
    if build.integer and operation == "EuclideanSum":
        raise InternalError(f"{build.node.name}: a Euclidean sum of integers")
    sum_type = "float" if "scales" in build.node.params else build.sum_type()
    operands = []
    for i, (name, weight, shift) in enumerate(zip(build.node.inputs, *_coefficients(build), strict=True)):
        values = {"zero": build.inputs[i].zero_point, "weight": weight, "shift": shift}
        operands.append(
            build.constants(
                f"operand{i}", sum_type, values, {"Plane": build.identifiers.plane(name), "Extent": build.output_plane}
            )
        )
    terms = ", ".join([sum_type, f"n2d2::{_TERMS[operation]}", *operands])
    build.vectors()
    per_channel = build.integer and build.node.rescaling.count > 1
    config = build.config(
        f"{build.node.name}: {operation} of {len(operands)}",
        {"Output": build.output_plane, "Operands": f"n2d2::Terms<{terms}>", "Epilogue": build.epilogue()},
        {"PerChannel": per_channel, "Serial": build.serial},
    )
    bases = ", ".join(f"in{i}" for i in range(len(operands)))
    call = f"const unsigned char* const operands[] = {{{bases}}};\nn2d2::elemwise<{config}>(operands, out);"
    return build.code("elemwise", call)
