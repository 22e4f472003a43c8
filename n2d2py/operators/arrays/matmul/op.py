"""Matrix products of two arrays."""

from __future__ import annotations

from functools import reduce
from math import prod

import numpy as np

from n2d2py.arithmetic import FLOAT32, exact_float
from n2d2py.contracts.cpp.code import ChosenKernel, Selection
from n2d2py.contracts.cpp.epilogue import epilogue
from n2d2py.contracts.cpp.identifiers import float_literal
from n2d2py.contracts.cpp.isa import FLOATS, PRODUCT, sets_with
from n2d2py.contracts.cpp.layer import Layer, LayerCode, cpp
from n2d2py.contracts.cpp.parts import NATIVE, REAL_NATIVE, Call, Expression
from n2d2py.contracts.operator import register
from n2d2py.contracts.quant.quantizer import LayerTypes, Quantizer, peak, quantizer, refusal, rescaled_layer
from n2d2py.contracts.reference import OnnxWriter, onnx_emitter
from n2d2py.graph import Node, QuantNode, Shape
from n2d2py.operators.arrays.base import (
    ArrayOp,
    emit_constant,
    emit_flat,
    emit_operands,
    emit_take,
    loop_type,
    operand_pointers,
    output_pointer,
    strides,
)

View = tuple[int, ...]
"""(size, first, stride of each axis) of an operand in a vector of `size` elements; () for row-major."""


@register
class ArrayMatMul(ArrayOp):
    """scale * (left @ right): (..., M, K) times (..., K, N) with broadcast leading axes of one rank.

    Accumulators are float64 (integers: int64), in the order of K; float32 in the C++ of networks without integers.

    Attributes:
        scale: 1 for integers of a fixed type.
        views: `View` of left, right and the result in their vectors; () if all are row-major. The view of the result
            covers each of its elements once.
    """

    left: tuple[int, ...]
    right: tuple[int, ...]
    slots: tuple[int, ...] = (0, 1)
    result: str = ""
    scale: float = 1.0
    views: tuple[View, ...] = ()

    def operand_sizes(self) -> tuple[int, ...]:
        left, right, _ = self.full_views()
        return left[0], right[0]

    @property
    def batch(self) -> tuple[int, ...]:
        """Leading axes of the result."""
        return tuple(max(a, b) for a, b in zip(self.left[:-2], self.right[:-2], strict=True))

    @property
    def dims(self) -> tuple[int, ...]:
        """Dimensions of the result."""
        return (*self.batch, self.left[-2], self.right[-1])

    def full_views(self) -> tuple[View, View, View]:
        """Return the views of left, right and the result, also for row-major ones."""
        views = self.views or ((), (), ())
        left, right, result = (
            view or (prod(dims), 0, *strides(dims))
            for view, dims in zip(views, (self.left, self.right, self.dims), strict=True)
        )
        return left, right, result

    def output_size(self) -> int:
        return prod(self.dims)

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return self.output_size() * self.left[-1]

    def column_numbers(self, numbers: np.ndarray) -> np.ndarray | None:
        """Return the gain indices (1, size) of right as those of the result; None if a column of right has several."""
        right = numbers.reshape(1, -1)[:, view_positions(self.full_views()[1], self.right)]
        if (right != right[..., :1, :]).any():
            return None
        return self._to_vector(np.broadcast_to(right[..., :1, :], (1, *self.dims)))

    def _matrices(self, inputs: list[np.ndarray], node) -> tuple[np.ndarray, np.ndarray]:
        left, right, _ = self.full_views()
        a, b = self.operands(inputs, node)
        return strided_view(a, left, self.left), strided_view(b, right, self.right)

    def _to_vector(self, values: np.ndarray) -> np.ndarray:
        """Return the elements (N, dims) in the order of the vector of the result."""
        flat = np.empty((len(values), self.output_size()), values.dtype)
        strided_view(flat, self.full_views()[2], self.dims)[:] = values
        return flat

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        a, b = self._matrices(inputs, node)
        wide = np.float64 if a.dtype.kind == "f" else np.int64
        a, b = a.astype(wide), b.astype(wide)
        count = max(len(a), len(b))
        total = np.zeros((count, *self.dims), wide)
        for k in range(self.left[-1]):
            total += a[..., :, k, None] * b[..., k, None, :]
        if wide is np.float64:
            total *= self.scale
        return self.as_output(self._to_vector(total), inputs)

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """Compute acc = sum over k of (left - zero point) * (right - zero point), requantized unless of a fixed type."""
        if node.rescale is None:
            return super().run_integer(inputs, node, graph)
        exact = exact_float(node.bound)
        a, b = (
            x.astype(np.int64) - graph.type(name).zero_point
            for x, name in zip(self._matrices(inputs, node), node.inputs, strict=True)
        )
        return [self._to_vector(node.requantize(np.matmul(a.astype(exact), b.astype(exact)), graph.type(node.output)))]


def view_positions(view: View, dims: tuple[int, ...]) -> np.ndarray:
    """Return the position in the vector of each element of an array of `dims`."""
    axes = (np.arange(size) * step for size, step in zip(dims, view[2:], strict=True))
    return np.asarray(reduce(np.add.outer, axes, np.int64(view[1])))


def strided_view(vector: np.ndarray, view: View, dims: tuple[int, ...]) -> np.ndarray:
    """Return the elements (N, dims) of a vector (N, size) at the strides of a view, without a copy."""
    steps = (step * vector.strides[1] for step in view[2:])
    return np.lib.stride_tricks.as_strided(vector[:, view[1] :], (len(vector), *dims), (vector.strides[0], *steps))


# ---- integers ------------------------------------------------------------------------------------
@quantizer("ArrayMatMul")
class MatMulQuantizer(Quantizer):
    """acc = sum over K of (a - zero point) (b - zero point); factor scale * s_a s_b / s_y."""

    def refuses(self, node: Node) -> str | None:
        op = node.op
        if op.result:
            return "a product of integers of a fixed type"
        if op.slots != (0, 1):
            return "a product of an array and constant matrices"
        return "a product times a factor that is not positive" if op.scale <= 0 else None

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        a, b = types.inputs
        bound = node.op.left[-1] * peak(a) * peak(b)
        if bound >= 2**53:
            raise refusal(node, "a product whose sums exceed 53 bits")
        return rescaled_layer(node, types, np.array([node.op.scale * a.scale * b.scale / types.output.scale]), bound)


# ---- C++ -----------------------------------------------------------------------------------------
@cpp("ArrayMatMul")
def _lower(layer: Layer) -> LayerCode:
    layer, op = layer.requiring_whole_input(), layer.op
    views, parts = op.full_views(), (op.left, op.right, op.dims)
    steps = [
        [0 if size == 1 else step for size, step in zip(dims, view[2:], strict=True)]
        for view, dims in zip(views, parts, strict=True)
    ]
    axes = loop_type(op.batch, [own[:-2] for own in steps])
    (left_row, left_depth), (right_depth, right_column), (row, column) = (own[-2:] for own in steps)
    rows, depth, columns = op.left[-2], op.left[-1], op.right[-1]
    if not (layer.integer and layer.node.rescale is not None) and not _is_float32(layer):
        moved = [
            Expression("{} + {}", (index, view[1])) if view[1] else index
            for index, view in zip((*operand_pointers(layer), output_pointer(layer)), views, strict=True)
        ]
        template = (axes, rows, depth, columns, left_row, left_depth, right_depth, right_column, row, column)
        call = Call("n2d2::arrayMatMul", template, (*moved[:2], float_literal(op.scale, "double"), moved[2]))
        return layer.code("array_matmul", call)
    selection = _selection(layer)
    left_first, right_first, first = (view[1] for view in views)
    left_zero, right_zero = (kind.zero_point for kind in layer.inputs)
    left = {"LeftFirst": left_first, "LeftRow": left_row, "LeftDepth": left_depth, "LeftZero": left_zero}
    right = {"RightFirst": right_first, "RightDepth": right_depth, "RightColumn": right_column, "RightZero": right_zero}
    result = {"OutFirst": first, "OutRow": row, "OutColumn": column}
    constants = {"Rows": rows, "Depth": depth, "Columns": columns, **left, **right, **result}
    planes = {"Left": layer.input_planes[0], "Right": layer.input_planes[1], "Output": layer.output_plane}
    stored = epilogue(layer, selection) if layer.integer else _scaled(layer)
    types = {**planes, "Axes": axes, "Sum": layer.sum_type(), "Epilogue": stored}
    config = layer.config(f"product of {rows} x {depth} and {depth} x {columns}", types, constants, selection)
    return layer.code("product", layer.call("product", config, inputs=("in0", "in1")), selection=selection)


def _is_float32(layer: Layer) -> bool:
    """True for a product of two float32 activations whose bits no integer depends on."""
    real = all(kind == FLOAT32 for kind in (*layer.inputs, layer.output))
    return real and layer.op.slots == (0, 1) and not layer.graph.is_mixed


def _scaled(layer: Layer) -> Expression:
    """Return the type that stores a float sum times the factor of the product."""
    activation = Expression.type("n2d2::Linear", "float")
    if layer.op.scale != 1:
        activation = Expression.type("n2d2::Scaled", "float", layer.constants("scale", "float", {"gain": layer.op.scale}))
    return Expression.type("n2d2::Activated", "float", activation)


def _selection(layer: Layer) -> Selection:
    """Return the optimized kernel for float32, or signed 16-bit integers without zero points whose accumulators fit 32 bits."""
    kernel = "panels of 16 columns, packed at run time"
    if not layer.integer:
        return Selection("floating point", ChosenKernel(kernel, sets_with(FLOATS), REAL_NATIVE))
    for kind in layer.inputs:
        if max(kind.qmax - kind.zero_point, kind.zero_point - kind.qmin) > 2**15 - 1:
            return Selection(f"{kind.name} inputs less their zero point exceed 16 bits")
    if layer.node.bound >= 2**31:
        return Selection("its sums have 64 bits")
    names = " and ".join(kind.name for kind in layer.inputs)
    return Selection(f"{names} inputs, int32 sums", ChosenKernel(kernel, sets_with(PRODUCT), NATIVE))


# ---- ONNX, as ONNX Runtime computes it -----------------------------------------------------------
@onnx_emitter("ArrayMatMul")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    if not op.views and op.scale == 1:
        emit_flat(writer, writer.emit("MatMul", emit_operands(writer, node, (op.left, op.right))), output)
        return
    views = op.full_views()
    parts = []
    vectors = emit_operands(writer, node, ((views[0][0],), (views[1][0],)))
    for vector, (size, first, *steps), dims in zip(vectors, views, (op.left, op.right), strict=False):
        axes = [np.arange(count) * step for count, step in zip(dims, steps, strict=True)]
        result = emit_take(writer, vector, size, [np.array([first]), *axes])
        parts.append(writer.emit("Reshape", [result, writer.constant([0, *dims])]))
    result = writer.emit("MatMul", parts)
    if op.scale != 1:
        result = writer.emit("Mul", [result, emit_constant(writer, np.array([op.scale]), "")])
    ordered = writer.emit("Reshape", [result, writer.constant([0, -1])])
    axes = [np.arange(count) * step for count, step in zip(op.dims, strides(op.dims), strict=True)]
    steps = views[2][2:]  # each element occurs once: the strides are nested
    emit_take(writer, ordered, op.output_size(), [axes[k] for k in sorted(range(len(steps)), key=lambda k: -steps[k])], output)
