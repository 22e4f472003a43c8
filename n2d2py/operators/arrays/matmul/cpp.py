"""The C++ of matrix products."""

from __future__ import annotations

from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.epilogue import epilogue
from n2d2py.exports.cpp.isa import PRODUCT, sets_with
from n2d2py.exports.cpp.layer import Layer, cpp
from n2d2py.exports.cpp.parts import NATIVE, Call, Expression
from n2d2py.exports.cpp.selection import ChosenKernel, Selection
from n2d2py.exports.cpp.text import float_literal
from n2d2py.operators.arrays.lowering import loop_type, operand_pointers, output_pointer


@cpp("ArrayMatMul")
def _lower(layer: Layer) -> LayerCode:
    """Return the C++ of a matrix product."""
    layer, op = layer.requiring_whole_input(), layer.op
    views, parts = op.full_views(), (op.left, op.right, op.dims)
    steps = [
        [0 if size == 1 else step for size, step in zip(dims, view[2:], strict=True)]
        for view, dims in zip(views, parts, strict=True)
    ]
    axes = loop_type(op.batch, [own[:-2] for own in steps])
    (left_row, left_depth), (right_depth, right_column), (row, column) = (own[-2:] for own in steps)
    rows, depth, columns = op.left[-2], op.left[-1], op.right[-1]
    if layer.node.rescale is None:
        moved = [
            Expression.of(f"{at} + {view[1]}", at) if view[1] else at
            for at, view in zip((*operand_pointers(layer), output_pointer(layer)), views, strict=True)
        ]
        template = (axes, rows, depth, columns, left_row, left_depth, right_depth, right_column, row, column)
        call = Call("n2d2::arrayMatMul", template, (*moved[:2], float_literal(op.scale, "double"), moved[2]))
        return layer.code("array_matmul", call)
    selection = _selection(layer)
    constants = {
        "Rows": rows,
        "Depth": depth,
        "Columns": columns,
        "LeftFirst": views[0][1],
        "LeftRow": left_row,
        "LeftDepth": left_depth,
        "LeftZero": layer.inputs[0].zero_point,
        "RightFirst": views[1][1],
        "RightDepth": right_depth,
        "RightColumn": right_column,
        "RightZero": layer.inputs[1].zero_point,
        "OutFirst": views[2][1],
        "OutRow": row,
        "OutColumn": column,
    }
    types = {
        "Left": layer.input_planes[0],
        "Right": layer.input_planes[1],
        "Output": layer.output_plane,
        "Axes": axes,
        "Sum": layer.sum_type(),
        "Epilogue": epilogue(layer, selection),
    }
    config = layer.config(f"product of {rows} x {depth} and {depth} x {columns}", types, constants, selection)
    return layer.code("product", layer.call("product", config, inputs=("in0", "in1")), selection=selection)


def _selection(layer: Layer) -> Selection:
    """Return the optimized kernel for signed 16-bit integers, without zero points, whose accumulators fit 32 bits."""
    for kind in layer.inputs:
        if max(kind.qmax - kind.zero_point, kind.zero_point - kind.qmin) > 2**15 - 1:
            return Selection(f"{kind.name} inputs less their zero point exceed 16 bits")
    if layer.node.bound >= 2**31:
        return Selection("its sums have 64 bits")
    kernel = ChosenKernel("panels of 16 columns, packed at run time", sets_with(PRODUCT), NATIVE)
    return Selection(f"{layer.inputs[0].name} and {layer.inputs[1].name} inputs, int32 sums", kernel)
