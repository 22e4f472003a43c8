"""C++ of normalizations along rows."""

from __future__ import annotations

from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.epilogue import epilogue
from n2d2py.exports.cpp.forms.select import vectors
from n2d2py.exports.cpp.layer import Layer, cpp
from n2d2py.exports.cpp.parts import Argument
from n2d2py.graph.shapes import elements
from n2d2py.operators.arrays.lowering import kernel_call


@cpp("Normalize")
def _lower_norm(layer: Layer) -> LayerCode:
    """Return the C++ of a normalization."""
    op, rows = layer.op, elements(layer.input_shape) // layer.op.size
    layer = layer.requiring_whole_input()
    if layer.has("epsilon"):
        return _integer_norm(layer, rows)
    part = ("", "mean", "inverse").index(op.part)
    operands: list[Argument] = [f"n2d2::elements<{layer.input_planes[0]}>(in0)", repr(op.epsilon), repr(op.added)]
    for role in ("gain", "shift"):
        if layer.has(role):
            operands.append(layer.array(role, layer.values(role).astype(layer.output.dtype), layer.output.cpp))
        else:
            operands.append(f"static_cast<const {layer.output.cpp}*>(nullptr)")
    sizes = (rows, op.size, bool(op.centred), op.power, bool(op.summed), part, layer.has("gain"))
    return kernel_call(layer, "array_norm", "arrayNorm", sizes, operands)


def _integer_norm(layer: Layer, rows: int) -> LayerCode:
    op, selection, total = layer.op, vectors(layer), layer.sum_type()
    sizes = {
        "Outer": rows,
        "Size": op.size,
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
    config = layer.config(f"normalisation of {op.size} integers", types, sizes, selection)
    return layer.code("integer_norm", layer.call("integerNorm", config, constants=constants), selection=selection)
