"""Shared by the operators on arrays: dimensions, and their C++ (loops as types, operands as pointers)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from n2d2py.contracts.cpp import Argument, Call, Expression, Layer, LayerCode, Reference
from n2d2py.contracts.operator import Op
from n2d2py.graph import Shape, dims_text


def kind_dtype(kind: str, real: np.dtype | type = np.float32) -> np.dtype:
    """Return the NumPy type of a tensor kind; `real` for real numbers (kind "")."""
    return np.dtype(real) if not kind else np.dtype(np.bool_ if kind == "bool" else kind)


class ArrayOp(Op):
    """An operator on vectors; constant operands are parameters "operand0", "operand1", ...

    Subclasses define `slots`, the input index of each operand or -1 for a constant, and `result`, the kind of the output.
    """

    slots: tuple[int, ...] = (0,)
    result: str = ""
    mixes_types = True

    def operand_dims(self) -> tuple[Shape, ...]:
        """Return the dimensions of each operand."""
        raise NotImplementedError

    def output_dims(self) -> Shape:
        """Return the dimensions of the output."""
        raise NotImplementedError

    def operand_sizes(self) -> tuple[int, ...]:
        """Return the number of elements of each operand."""
        return tuple(map(prod, self.operand_dims()))

    def output_size(self) -> int:
        """Return the number of elements of the output."""
        return prod(self.output_dims())

    def output_kinds(self, kinds: list[str], node) -> list[str]:
        return [self.result]

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        for index, (slot, size) in enumerate(zip(self.slots, self.operand_sizes(), strict=True)):
            dims = inputs[slot][1:] if slot >= 0 else (np.size(node.params.get(f"operand{index}", 0)),)
            if tuple(dims) != (size,) and (slot >= 0 or dims != (1,)):
                what = f"requires an array of {size} elements instead of {dims_text(dims)}"
                remedy = "correct the layer before it" if slot >= 0 else "correct the shape of its constants"
                raise self.error("E208", node, what, remedy)
        return [(1, self.output_size())]

    def operands(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        """Return the operands (N or 1, dims), constants in the type of the real inputs."""
        real, result = self.real_dtype(inputs), []
        for index, (slot, dims) in enumerate(zip(self.slots, self.operand_dims(), strict=True)):
            x = inputs[slot] if slot >= 0 else node.params[f"operand{index}"].reshape(1, -1)
            result.append((x.astype(real) if slot < 0 and x.dtype.kind == "f" else x).reshape(len(x), *dims))
        return result

    def real_dtype(self, inputs: list[np.ndarray]) -> np.dtype:
        """Return the type of real results."""
        return next((x.dtype for x in inputs if x.dtype.kind == "f"), np.dtype(np.float32))

    def as_output(self, values: np.ndarray, inputs: list[np.ndarray]) -> list[np.ndarray]:
        """Return the result as [(N, E)] in the type of its kind."""
        count = max(len(x) for x in inputs)
        values = np.broadcast_to(values, (count, *values.shape[1:])).reshape(count, -1)
        return [np.ascontiguousarray(values.astype(kind_dtype(self.result, self.real_dtype(inputs)), copy=False))]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """Compute with integers of a fixed type unchanged; quantized integers are only moved or compared."""
        results = zip(self.run(inputs, node), node.outputs, strict=True)
        return [y.astype(graph.type(name).dtype, copy=False) for y, name in results]


def strides(dims: Sequence[int]) -> list[int]:
    """Return the row-major stride of each axis, in elements."""
    return [prod(dims[axis + 1 :]) for axis in range(len(dims))]


def around_axis(dims: Shape, axis: int) -> tuple[int, int, int]:
    """Return the number of elements before an axis, its size, and the number of elements after it."""
    return prod(dims[:axis]), dims[axis], prod(dims[axis + 1 :])


@dataclass(frozen=True)
class AxisOp(ArrayOp):
    """An operator along the middle axis of its first operand (outer, size, inner)."""

    outer: int
    size: int
    inner: int

    def operand_dims(self) -> tuple[Shape, ...]:
        return ((self.outer, self.size, self.inner),)

    def output_dims(self) -> Shape:
        return self.outer, self.size, self.inner


_CTYPES = {
    "bool": "std::uint8_t",
    "float32": "float",
    "float64": "double",
    **{f"{sign}int{bits}": f"std::{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def loop_type(sizes: Sequence[int], steps: Sequence[Sequence[int]], inner: Reference = "n2d2::AxisEnd") -> Reference:
    """Return the C++ type of nested loops over `sizes` around `inner`; steps[k] are the strides of operand k."""
    merged: list[tuple[int, list[int]]] = []
    for axis, size in enumerate(sizes):
        if size == 1:
            continue
        own = [operand[axis] for operand in steps]
        if merged and all(before == step * size for before, step in zip(merged[-1][1], own, strict=True)):
            merged[-1] = (merged[-1][0] * size, own)
        else:
            merged.append((size, own))
    loops = inner
    for size, own in reversed(merged):
        loops = Expression("n2d2::Axis<{}, {}, {}, {}, {} >", (size, *[*own, 0, 0][:3], loops))
    return loops


def broadcast_strides(dims: Sequence[int]) -> list[int]:
    """Return row-major strides, 0 along axes of length 1."""
    return [0 if size == 1 else step for size, step in zip(dims, strides(dims), strict=True)]


def operand_pointers(layer: Layer, slots: Sequence[int] | None = None) -> list[Argument]:
    """Return a C++ pointer for each operand."""
    results: list[Argument] = []
    real = next((kind.dtype.name for kind in (layer.output, *layer.inputs) if kind.is_float), "float32")
    for index, slot in enumerate(slots or layer.op.slots):
        if slot >= 0:
            results.append(f"n2d2::elements<{layer.input_planes[slot]}>(in{slot})")
            continue
        values = layer.values(f"operand{index}")
        name = real if values.dtype.kind == "f" else values.dtype.name
        results.append(layer.array(f"operand{index}", values.astype(np.uint8 if name == "bool" else name), _CTYPES[name]))
    return results


def kernel_call(
    layer: Layer, header: str, function: str, template: Sequence[Argument], arguments: Sequence[Argument] = ()
) -> LayerCode:
    """Return the call of a kernel with template arguments; it gets the first input, or `arguments`, and the output."""
    operands = arguments or (f"n2d2::elements<{layer.input_planes[0]}>(in0)",)
    return layer.code(header, Call(f"n2d2::{function}", tuple(template), (*operands, output_pointer(layer))))


def output_pointer(layer: Layer) -> str:
    """Return a C++ pointer to the output."""
    return f"n2d2::elements<{layer.output_plane}>(out)"
