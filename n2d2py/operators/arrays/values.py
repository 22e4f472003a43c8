"""Declaration of the import of an ONNX operator: a function of its node that adds layers to the Graph.

    @onnx("Sub")
    def _from_onnx(a: Arrays) -> None:
        a.bind(a.map("Sub", a.value(0), a.value(1)))

Values are images, arrays or constants, with their ONNX dimensions. Plug-ins and built-in operators use the same declaration.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from n2d2py.contracts.onnx.nodes import CONVERTERS, Builder, OnnxNode, Unsupported, apply_function
from n2d2py.contracts.onnx.tensors import MergesBatchAxis, Value, check_positions, check_size, constant_kind
from n2d2py.contracts.operator import Op
from n2d2py.graph import Node, Shape, dims_text
from n2d2py.operators.arrays.base import strides
from n2d2py.operators.arrays.map import MAP_FUNCTIONS, ArrayMap
from n2d2py.operators.index_select import IndexSelect
from n2d2py.operators.reshape import Reshape, Transpose, transpose_source


class Arrays:
    """Adds layers for one ONNX node: on images if a value is an image and the operation keeps its batch, else on arrays."""

    def __init__(self, node: OnnxNode, builder: Builder):
        self.node, self.builder = node, builder

    def value(self, index: int) -> Value:
        """Return input `index`, never as an image. Raise Unsupported if it is absent."""
        if not self.node.has(index):
            raise Unsupported(f"its input {index} is missing")
        return self.vector(self.builder.value(self.node.inputs[index]))

    def input(self) -> Value:
        """Return the first input unchanged: an image if it is one, else as `value` does."""
        image = self.builder.names.get(self.node.inputs[0])
        return self.value(0) if image is None else self.image_value(image)

    def image(self) -> Value:
        """Return the first input as an image if possible, even at the cost of a transposition; else as `value` does."""
        name = self.node.inputs[0]
        try:
            return self.image_value(self.builder.plane(name)) if self.builder.is_tensor(name) else self.value(0)
        except Unsupported:
            return self.value(0)

    def has_images(self) -> bool:
        """True if all inputs that are tensors of the network are images."""
        return all(name in self.builder.names or name in self.builder.constants for name in self.node.inputs if name)

    def apply_function(self) -> bool:
        """Add an Activation if the node is a function of `ONNX_FUNCTIONS` of a real tensor; return False otherwise."""
        try:
            apply_function(self.node, self.builder)
        except Unsupported:
            return False
        return True

    def vector(self, value: Value) -> Value:
        """Return the value as a vector or constant. Raise MergesBatchAxis if the batch axis is not separate."""
        if value.is_constant:
            return value
        if self.builder.is_batched:
            raise MergesBatchAxis("it mixes the batch axis with others", "keep the batch axis first and whole")
        if value.image is None:
            return value
        return replace(value, tensor=self.builder.vector(value.image, self.node.name), image=None)

    def values(self) -> list[Value]:
        """Return all inputs."""
        return [self.value(index) for index in range(len(self.node.inputs))]

    @staticmethod
    def const(array: object, like: Value | None = None) -> Value:
        """Return a constant, of the kind of `like`."""
        result = np.asarray(array)
        if like is not None:
            result = result.astype(like.kind or np.float32)
        return Value(result.shape, constant_kind(result), None, result)

    def is_output_used(self, index: int) -> bool:
        """True if output `index` has a name and a consumer."""
        return index < len(self.node.outputs) and self.node.outputs[index] in self.builder.read

    # ---- layers ---------------------------------------------------------------------------
    def layer(self, op: Op, x: Value, label: str, params: Mapping[str, np.ndarray | None] | None = None) -> Value:
        """Add a layer on an image."""
        assert x.image is not None
        return self.image_value(self.builder.layer(self.node, op, [x.image], params, part=label))

    def before_transpose(self, operator: Callable[[tuple[int, ...]], Op], x: Value) -> Value:
        """Add a layer on an image before its transposition; `operator` returns it for the permutation of the axes."""
        assert x.image is not None
        source, order = transpose_source(x.image, self.builder.graph)
        result = self.layer(operator(order), self.image_value(source), "channels")
        return result if source == x.image else self.layer(Transpose(order), result, "turned")

    def image_value(self, tensor: str) -> Value:
        """Return a graph tensor as a value."""
        return Value(self.builder.graph.shape(tensor), self.builder.graph.kind(tensor), image=tensor)

    def add(self, op: Op, inputs: Sequence[Value], dims: Shape, label: str = "") -> Value:
        """Add a layer with operands `inputs`, whose constants become parameters; `op` has matching slots.

        If all operands are constants, compute the result at once.
        """
        builder, inputs = self.builder, [self.vector(value) for value in inputs]
        check_size(dims)
        dims = tuple(int(d) for d in dims)
        constants = {f"operand{index}": value.constant for index, value in enumerate(inputs)}
        params = {role: self._parameter(array) for role, array in constants.items() if array is not None}
        name = builder.fresh(f"{self.node.name}_{label or op.kind.lower()}")
        tensors = [value.tensor for value in inputs if value.tensor is not None]
        node = Node(name, op, tensors, [name], params, location=builder.model.place(self.node.name))
        if not tensors:
            operands = [params[f"operand{index}"].reshape(1, -1) for index in range(len(inputs))]
            known = replace(op, slots=tuple(range(len(inputs))))  # pyright: ignore[reportArgumentType]  operators are dataclasses
            (output,) = known.run(operands, node)
            return Value(dims, constant_kind(output), None, output.reshape(dims))
        builder.graph.add(node)
        return Value(dims, builder.graph.kind(name), name)

    def _parameter(self, array: np.ndarray) -> np.ndarray:
        if array.dtype.kind == "f" or array.dtype.name == "bfloat16":
            return self.builder.parameter(self.node.name, "constant", array, finite=False)
        return np.ascontiguousarray(array)

    @staticmethod
    def slots(values: Sequence[Value]) -> tuple[int, ...]:
        """Return the input index of each operand; -1 for constants."""
        result, count = [], 0
        for value in values:
            result.append(-1 if value.is_constant else count)
            count += not value.is_constant
        return tuple(result)

    def map(self, function: str, *values: Value, result: str | None = None) -> Value:
        """Add function(values), broadcast; the result has the kind of the first operand by default."""
        kind = values[0].kind if result is None else result
        try:
            dims = np.broadcast_shapes(*(value.dims for value in values))
        except ValueError:
            text = " and ".join(dims_text(value.dims) or "1" for value in values)
            raise Unsupported(f"its operands of {text} cannot be broadcast") from None
        if all(value.is_constant for value in values):
            with np.errstate(all="ignore"):
                output = np.asarray(MAP_FUNCTIONS[function](*(value.constant for value in values)))
            return Value(dims, kind, None, output.astype(kind or np.float32))
        shapes = tuple((1,) * (len(dims) - len(value.dims)) + tuple(value.dims) for value in values)
        op = ArrayMap(function, tuple(dims), shapes, self.slots(values), kind)
        return self.add(op, values, dims, label=function.lower())

    def take(self, value: Value, offsets: Sequence[Sequence[int]], dims: Shape, fill: float = 0.0) -> Value:
        """Return the elements at sums of offsets, one list for each axis of any factorization of `dims`."""
        check_positions(len(axis) for axis in offsets)
        op = IndexSelect(tuple(tuple(int(o) for o in axis) for axis in offsets), float(fill))
        if value.constant is not None:
            positions, filled = op.positions()
            result = value.constant.reshape(-1)[positions].copy()
            result[filled] = np.asarray(fill).astype(result.dtype)
            return Value(tuple(dims), value.kind, None, result.reshape(dims))
        axes = zip(op.indices, strides([len(axis) for axis in offsets]), strict=True)
        in_order = all(axis == tuple(range(0, len(axis or ()) * step, step)) for axis, step in axes)
        if in_order and prod(map(len, offsets)) == value.size:
            return replace(value, dims=tuple(dims))
        return self.add(op, [value], dims, label="taken")

    def select(self, value: Value, positions: dict[int, Sequence[int]], fill: float = 0.0) -> Value:
        """Select positions[axis] of some axes; negative positions are filled.

        An image stays one if no position is filled and the batch is unchanged; the layer then precedes a transposition.
        """
        check_size(len(positions.get(axis, range(size))) for axis, size in enumerate(value.dims))
        if value.image is not None:
            selected = {axis: tuple(p) for axis, p in positions.items() if list(p) != list(range(value.dims[axis]))}
            if not selected:
                return value
            if 0 not in selected and all(min(each) >= 0 for each in selected.values()):
                axes = range(1, len(value.dims))
                return self.before_transpose(
                    lambda order: IndexSelect(tuple(selected.get(order.index(a)) for a in axes)), value
                )
            value = self.vector(value)
        axes = enumerate(zip(value.dims, strides(value.dims), strict=True))
        offsets = [[p * step if p >= 0 else -1 for p in positions.get(axis, range(size))] for axis, (size, step) in axes]
        return self.take(value, offsets, tuple(len(axis) for axis in offsets), fill)

    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        """Permute axes: axis i of the result is axis order[i]."""
        if value.image is not None and order[0] == 0:
            source, before = transpose_source(value.image, self.builder.graph)
            image, permutation = self.image_value(source), tuple(before[axis] for axis in order)
            is_same = permutation == tuple(range(len(permutation)))
            return image if is_same else self.layer(Transpose(permutation), image, "turned")
        value = self.vector(value)
        steps = strides(value.dims)
        offsets = [[p * steps[axis] for p in range(value.dims[axis])] for axis in order]
        return self.take(value, offsets, tuple(value.dims[axis] for axis in order))

    def expand(self, value: Value, dims: Sequence[int]) -> Value:
        """Repeated along axes of length 1, with new axes in front."""
        check_positions(dims)
        check_size(dims)
        if len(dims) > len(value.dims):
            value = self.reshape(self.vector(value), (1,) * (len(dims) - len(value.dims)) + tuple(value.dims))
        return self.select(value, {axis: [0] * new for axis, new in enumerate(dims) if value.dims[axis] != new})

    def reshape(self, value: Value, dims: Sequence[int]) -> Value:
        """Return the same elements in other dimensions."""
        dims = tuple(int(d) for d in dims)
        if prod(dims) != value.size or min(dims, default=0) < 0:
            raise Unsupported(f"its shape {list(dims)} does not match its input of {value.size} elements")
        if value.image is not None and 2 <= len(dims) <= 4 and dims[0] == 1:
            return value if dims == value.dims else self.layer(Reshape(dims[1:]), value, "shaped")
        value = self.vector(value)
        return replace(value, dims=dims, constant=None if value.constant is None else value.constant.reshape(dims))

    def cast(self, value: Value, kind: str) -> Value:
        """Return the value as another kind."""
        return value if value.kind == kind else self.map("Cast", value, result=kind)

    def tensor(self, value: Value) -> Value:
        """Return the value as a tensor; a constant is broadcast by a layer of the network."""
        if not value.is_constant:
            return value
        anchor = next((v for v in self.values() if not v.is_constant), None)
        if anchor is None:
            raise Unsupported("all its inputs are constants")
        first = self.select(self.reshape(anchor, (anchor.size,)), {0: [0]})
        return self.map("Right", self.reshape(first, (1,) * len(value.dims)), value, result=value.kind)

    def bind(self, value: Value, index: int = 0) -> None:
        """Set `value` as output `index` of the node."""
        if self.node.outputs[index]:
            self.builder.bind(self.node.outputs[index], value)


def onnx(*operators: str) -> Callable[[Callable[[Arrays], None]], Callable[[Arrays], None]]:
    """Return a decorator that registers a converter for ONNX operators, "Operator" or "domain::Operator"; a second converter
    is an InternalError."""
    names = [operator.removeprefix("ai.onnx::") for operator in operators]

    def register_converter(convert: Callable[[Arrays], None]) -> Callable[[Arrays], None]:
        CONVERTERS.declare(*names)(lambda node, builder: convert(Arrays(node, builder)))
        return convert

    return register_converter
