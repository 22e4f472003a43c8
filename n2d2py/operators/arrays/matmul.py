"""Matrix products: of two arrays, or of rows and constant weights (Fc). MatMul and Gemm are one, Einsum is several."""

from functools import reduce
from math import prod

import numpy as np

from n2d2py.arithmetic import FLOAT32, exact_float
from n2d2py.contracts.cpp import Call, ChosenKernel, Expression, Layer, LayerCode, Selection, cpp, epilogue, float_literal
from n2d2py.contracts.cpp.isa import FLOATS, PRODUCT, sets_with
from n2d2py.contracts.cpp.parts import NATIVE, REAL_NATIVE
from n2d2py.contracts.facets import OnnxWriter, onnx_emitter, register
from n2d2py.contracts.quant.quantizer import LayerTypes, Quantizer, peak, quantizer, refusal, rescaled_layer
from n2d2py.graph import Node, QuantNode, Shape
from n2d2py.operators.arrays.base import ArrayOp, loop_type, operand_pointers, output_pointer, strides
from n2d2py.operators.arrays.reduce import reduce_axes
from n2d2py.operators.arrays.values import Arrays, Unsupported, Value, onnx
from n2d2py.operators.conv import Fc

View = tuple[int, ...]
"""(size, first, stride of each axis) of an operand in a vector of `size` elements; () for row-major."""


@register
class ArrayMatMul(ArrayOp):
    """scale * (left @ right): (..., M, K) times (..., K, N) with broadcast leading axes of one rank.

    Accumulators are float64 (integers: int64), in the order of K; float32 in the C++ of networks without integers.

    `scale` is 1 for integers of a fixed type. `views`: `View` of left, right and the result in their vectors; () if all are
    row-major. The view of the result covers each of its elements once.
    """

    left: tuple[int, ...]
    right: tuple[int, ...]
    slots: tuple[int, ...] = (0, 1)
    result: str = ""
    scale: float = 1.0
    views: tuple[View, ...] = ()

    def operand_dims(self) -> tuple[Shape, ...]:
        left, right, _ = self.full_views()
        return left[:1], right[:1]

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
        views = zip(self.views or ((), (), ()), (self.left, self.right, self.dims), strict=True)
        left, right, result = (view or (prod(dims), 0, *strides(dims)) for view, dims in views)
        return left, right, result

    def output_dims(self) -> Shape:
        return self.dims

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
        exact, operands = exact_float(node.bound), zip(self._matrices(inputs, node), node.inputs, strict=True)
        a, b = ((x.astype(np.int64) - graph.type(name).zero_point).astype(exact) for x, name in operands)
        return [self._to_vector(node.requantize(np.matmul(a, b), graph.type(node.output)))]


def view_positions(view: View, dims: tuple[int, ...]) -> np.ndarray:
    """Return the position in the vector of each element of an array of `dims`."""
    axes = (np.arange(size) * step for size, step in zip(dims, view[2:], strict=True))
    return np.asarray(reduce(np.add.outer, axes, np.int64(view[1])))


def strided_view(vector: np.ndarray, view: View, dims: tuple[int, ...]) -> np.ndarray:
    """Return the elements (N, dims) of a vector (N, size) at the strides of a view, without a copy."""
    steps = (step * vector.strides[1] for step in view[2:])
    return np.lib.stride_tricks.as_strided(vector[:, view[1] :], (len(vector), *dims), (vector.strides[0], *steps))


def add_matmul(a: Arrays, left: Value, right: Value, result: str | None = None) -> Value:
    """Add left @ right by the rules of numpy.matmul; the kind is `result`, or that of `left` by default."""
    if not left.dims or not right.dims:
        raise Unsupported("a scalar operand is not supported")
    x = a.reshape(left, (1, *left.dims)) if len(left.dims) == 1 else left
    y = a.reshape(right, (*right.dims, 1)) if len(right.dims) == 1 else right
    rank = max(len(x.dims), len(y.dims))
    x, y = (a.reshape(v, (1,) * (rank - len(v.dims)) + tuple(v.dims)) for v in (x, y))
    if x.dims[-1] != y.dims[-2]:
        raise Unsupported(f"its operands of {list(left.dims)} and {list(right.dims)} cannot be multiplied")
    batch = np.broadcast_shapes(x.dims[:-2], y.dims[:-2])
    op = ArrayMatMul(tuple(x.dims), tuple(y.dims), a.slots([x, y]), left.kind if result is None else result)
    output = a.add(op, [x, y], (*batch, x.dims[-2], y.dims[-1]), label="product")
    dims = list(output.dims)
    if len(right.dims) == 1:
        dims.pop(-1)
    if len(left.dims) == 1:
        dims.pop(-1 if len(right.dims) == 1 else -2)
    return a.reshape(output, dims)


def _check_batch_axes(a: Arrays) -> None:
    """Raise Unsupported unless the batch axis of both operands stays the first axis of the result, with the same length."""
    values = [a.value(0), a.value(1)]
    rank = max(len(value.dims) for value in values)
    for index, (value, other) in enumerate(zip(values, reversed(values), strict=True)):
        if len(value.dims) == 2:
            is_summed = index == 1 or bool(a.node.attribute("transA", 0))
            a.builder.guard_batch(a.node, index, 0, "sums or moves", allowed=not is_summed and rank == 2)
        else:
            a.builder.guard_batch(a.node, index, 0, "moves", allowed=len(value.dims) == rank)
            repeats = len(other.dims) == rank and other.dims[0] != 1
            a.builder.guard_batch(a.node, index, 0, "repeats", allowed=not repeats)


@onnx("MatMul", "Gemm")
def _matmul(a: Arrays) -> None:
    node, alpha, beta = a.node, a.node.attribute("alpha", 1.0), a.node.attribute("beta", 1.0)
    if _add_fc(a, alpha, beta):
        return
    _check_batch_axes(a)
    left = a.transpose(a.value(0), (1, 0)) if node.attribute("transA", 0) else a.value(0)
    right = a.transpose(a.value(1), (1, 0)) if node.attribute("transB", 0) else a.value(1)
    product = add_matmul(a, left, right)
    if alpha != 1.0:
        product = a.map("Mul", product, a.const(alpha, product))
    if a.node.has(2):
        bias = a.value(2)
        bias = bias if beta == 1.0 else a.map("Mul", bias, a.const(beta, bias))
        product = a.map("Add", product, bias)
    a.bind(product)


def _add_fc(a: Arrays, alpha: float, beta: float) -> bool:
    node = a.node
    if node.is_constant(0) or not node.is_constant(1) or node.attribute("transA", 0):
        return False
    weights = node.constant(1, "weights")
    if weights.ndim != 2 or (node.has(2) and not node.is_constant(2)):
        return False
    weights = weights if node.attribute("transB", 0) else weights.T
    bias = node.constant(2, "bias").astype(np.float64) if node.has(2) else None
    if bias is not None and (bias.size not in (1, len(weights)) or bias.ndim > 2):
        return False
    x = a.image()
    if x.image is None or len(x.dims) != 2:
        return False
    bias = None if bias is None else np.broadcast_to(bias.reshape(-1) * beta, (len(weights),))
    weights = weights if alpha == 1 else weights.astype(np.float64) * alpha
    a.builder.layer(node, Fc(), [x.image], {"weights": weights, "bias": bias}, weights_at=1)
    params = a.builder.graph.nodes[-1].params
    if "weight_scales" in params:
        params["weight_scales"] = params["weight_scales"] * np.float32(abs(alpha) or 1)
    return True


@onnx("Einsum")
def _einsum(a: Arrays) -> None:
    """Add a matrix product for each further operand, or sum and transpose a single one."""
    values = a.values()
    names, result = _terms(a.node.attribute("equation").replace(" ", ""), [len(value.dims) for value in values])
    if [len(name) for name in names] != [len(value.dims) for value in values]:
        raise Unsupported("its equation does not match the number or the ranks of its inputs")
    if len(set(result)) != len(result) or not set(result) <= set("".join(names)):
        raise Unsupported("its equation has an unknown or repeated letter in its result")
    for index, name in enumerate(names):
        verb = "moves" if name[:1] and name[0] in result else "sums"
        a.builder.guard_batch(a.node, index, 0, verb, allowed=name[:1] == result[:1])
        sizes = {
            one.dims[other.index(name[0])] for other, one in zip(names, values, strict=True) if name[:1] and name[0] in other
        }
        repeats = len(sizes) > 1 and values[index].dims[0] == 1
        a.builder.guard_batch(a.node, index, 0, "repeats", allowed=not repeats)
    names, values = zip(*(_take_diagonals(a, name, value) for name, value in zip(names, values, strict=True)), strict=True)
    name, value = names[0], values[0]
    for index, (other, factor) in enumerate(zip(names[1:], values[1:], strict=True), 2):
        needed = set(result).union(*names[index:])
        letters = "".join(c for c in dict.fromkeys(name + other) if c in needed)
        value = _contract(a, _sum_unused(a, name, value, other, needed), _sum_unused(a, other, factor, name, needed), letters)
        name = letters
    value = _sum(a, value, [index for index, c in enumerate(name) if c not in result])
    needed = [c for c in name if c in result]
    a.bind(a.transpose(value, [needed.index(c) for c in result]))


def _take_diagonals(a: Arrays, name: str, value: Value) -> tuple[str, Value]:
    """Return an operand whose letters differ: the diagonal over the axes of a repeated one, as the last axis."""
    for letter in sorted({letter for letter in name if name.count(letter) > 1}):
        axes = [axis for axis, other in enumerate(name) if other == letter]
        rest = [axis for axis, other in enumerate(name) if other != letter]
        (size, *others), front = {value.dims[axis] for axis in axes}, [value.dims[axis] for axis in rest]
        if others or 0 in axes:
            raise Unsupported(f"the axes of '{letter}' differ in size, or one is the batch")
        value = a.reshape(a.transpose(value, [*rest, *axes]), (*front, size ** len(axes)))
        step = sum(size**power for power in range(len(axes)))
        value = a.select(value, {len(rest): range(0, size ** len(axes), step)})
        name = "".join(name[axis] for axis in rest) + letter
    return name, value


def _terms(equation: str, ranks: list[int]) -> tuple[list[str], str]:
    """Return the letters of each operand and of the result; axes of an ellipsis get unused letters from "A" on."""
    terms, arrow, result = equation.partition("->")
    names = terms.split(",")
    if not arrow:
        result = "..." * ("..." in terms) + "".join(sorted(c for c in set(terms) - {",", "."} if terms.count(c) == 1))
    free = [chr(code) for code in range(ord("A"), ord("A") + 64) if chr(code) not in equation]
    counts = [rank - len(name) + 3 for name, rank in zip(names, ranks, strict=False) if "..." in name]
    axes = "".join(free[: max(counts, default=0)])
    names = [
        name.replace("...", axes[len(axes) - max(0, rank - len(name) + 3) :]) for name, rank in zip(names, ranks, strict=False)
    ] + names[len(ranks) :]
    return names, result.replace("...", axes)


def _sum_unused(a: Arrays, letters: str, value: Value, other: str, needed: set[str]) -> tuple[str, Value]:
    unused = [index for index, c in enumerate(letters) if c not in other and c not in needed]
    rest = "".join(c for index, c in enumerate(letters) if index not in unused)
    return rest, _sum(a, value, unused)


def _contract(a: Arrays, first_term: tuple[str, Value], second_term: tuple[str, Value], result: str) -> Value:
    """Return the sum of products of two operands over the letters that `result` lacks."""
    (left, x), (right, y) = first_term, second_term
    first, second = dict(zip(left, x.dims, strict=True)), dict(zip(right, y.dims, strict=True))
    repeated = [c for c in left if first[c] != second.get(c, first[c])]  # axes of length 1 and n
    for c in repeated:
        if 1 not in (first[c], second[c]):
            raise Unsupported(f"its operands have {first[c]} and {second[c]} elements along '{c}'")
    batch = [c for c in left if c in right and c in result]
    shared = [c for c in left if c in right and c not in result]
    rows, columns = [c for c in left if c not in right], [c for c in right if c not in left]
    x = _sum(a, x, [left.index(c) for c in shared if first[c] > second[c]], keep=True)
    y = _sum(a, y, [right.index(c) for c in shared if second[c] > first[c]], keep=True)
    sizes = {**first, **second} | {c: max(first[c], second[c]) if c in batch else 1 for c in repeated}
    x = a.transpose(x, [left.index(c) for c in (*batch, *rows, *shared)])
    y = a.transpose(y, [right.index(c) for c in (*batch, *shared, *columns)])
    depth = prod(sizes[c] for c in shared)
    lines = [[one[c] for c in batch] for one in (first, second)]
    lines = [[prod(each)] for each in lines] if lines[0] == lines[1] else lines
    x = a.reshape(x, (*lines[0], prod(sizes[c] for c in rows), depth))
    output = add_matmul(a, x, a.reshape(y, (*lines[1], depth, prod(sizes[c] for c in columns))))
    order = [*batch, *rows, *columns]
    output = a.reshape(output, [sizes[c] for c in order])
    return a.transpose(output, [order.index(c) for c in result])


def _sum(a: Arrays, value: Value, axes: list[int], keep: bool = False) -> Value:
    return reduce_axes(a, "Sum", value, axes, keep) if axes else value


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


@cpp("ArrayMatMul")
def _lower(layer: Layer) -> LayerCode:
    layer, op = layer.requiring_whole_input(), layer.op
    views = op.full_views()
    parts = zip(views, (op.left, op.right, op.dims), strict=True)
    steps = [[0 if size == 1 else step for size, step in zip(dims, view[2:], strict=True)] for view, dims in parts]
    axes = loop_type(op.batch, [own[:-2] for own in steps])
    (left_row, left_depth), (right_depth, right_column), (row, column) = (own[-2:] for own in steps)
    rows, depth, columns = op.left[-2], op.left[-1], op.right[-1]
    if not (layer.integer and layer.node.rescale is not None) and not _is_float32(layer):
        pointers = zip((*operand_pointers(layer), output_pointer(layer)), views, strict=True)
        moved = [Expression("{} + {}", (pointer, view[1])) if view[1] else pointer for pointer, view in pointers]
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
    activation = Expression.type("n2d2::Linear", "float")
    if layer.op.scale != 1:
        activation = Expression.type("n2d2::Scaled", "float", layer.constants("scale", "float", {"gain": layer.op.scale}))
    return Expression.type("n2d2::Activated", "float", activation)


def _selection(layer: Layer) -> Selection:
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


@onnx_emitter("ArrayMatMul")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    if not op.views and op.scale == 1:
        writer.flat(writer.emit("MatMul", writer.operands(node, (op.left, op.right))), output)
        return
    views = op.full_views()
    parts = []
    vectors = writer.operands(node)
    for vector, (size, first, *steps), dims in zip(vectors, views, (op.left, op.right), strict=False):
        axes = [np.arange(count) * step for count, step in zip(dims, steps, strict=True)]
        result = writer.take(vector, size, [np.array([first]), *axes])
        parts.append(writer.emit("Reshape", [result, writer.constant([0, *dims])]))
    result = writer.emit("MatMul", parts)
    if op.scale != 1:
        result = writer.emit("Mul", [result, writer.constant([float(op.scale)])])
    ordered = writer.emit("Reshape", [result, writer.constant([0, -1])])
    axes = [np.arange(count) * step for count, step in zip(op.dims, strides(op.dims), strict=True)]
    steps = views[2][2:]  # each element occurs once: the strides are nested
    writer.take(ordered, op.output_size(), [axes[k] for k in sorted(range(len(steps)), key=lambda k: -steps[k])], output)
