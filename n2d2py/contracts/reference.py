"""Declaration of the ONNX form of an operator: a function that writes the ONNX nodes of a layer.

    @onnx_emitter("Concat")
    def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
        writer.emit("Concat", node.inputs, output, axis=1)

Plug-ins and built-in operators use the same declaration. NumPy computes an operator without emitter.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from n2d2py.arithmetic.exact import LARGE, digest
from n2d2py.contracts.functions import FunctionRow
from n2d2py.contracts.windows import Pads
from n2d2py.graph import Graph, Node, Shape
from n2d2py.graph.shapes import memory_axes
from n2d2py.naming import FreshNames
from n2d2py.registry import Registry

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto


class NoOnnxForm(Exception):
    """A layer cannot be written in ONNX; the message has the layer and the reason."""


class OnnxWriter:
    """The model under construction."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.nodes: list[NodeProto] = []
        self.initializers: list[TensorProto] = []
        self.fresh = FreshNames(graph.tensors, first=1)
        self._large: dict[tuple[str, tuple[int, ...], bytes] | None, str] = {}

    def emit(self, op_type: str, inputs: Iterable[str], output: str | None = None, **attributes) -> str:
        """Add a node; return its output, a fresh name unless given."""
        from onnx import helper

        output = output or self.fresh(f"{op_type.lower()}_of")
        self.nodes.append(helper.make_node(op_type, list(inputs), [output], **attributes))
        return output

    def emit_all(self, op_type: str, inputs: Iterable[str], count: int, **attributes) -> list[str]:
        """Add a node with `count` outputs; return their fresh names."""
        from onnx import helper

        outputs = [self.fresh(f"{op_type.lower()}_{index}_of") for index in range(count)]
        self.nodes.append(helper.make_node(op_type, list(inputs), outputs, **attributes))
        return outputs

    def constant(self, values: np.ndarray | float | list, stem: str = "constant") -> str:
        """Add an initializer; floating-point values become float32."""
        array = np.asarray(values)
        array = array.astype(np.float32) if array.dtype.kind == "f" else array.astype(np.int64)
        return self.exact(np.ascontiguousarray(array), stem)

    def exact(self, values: np.ndarray, stem: str = "constant") -> str:
        """Add an initializer of the array's own type; layers share a large one of the same values."""
        from onnx import numpy_helper

        key = (values.dtype.str, values.shape, digest(values)) if values.nbytes >= LARGE else None
        if key in self._large:
            return self._large[key]
        name = self.fresh(stem)
        if key is not None:
            self._large[key] = name
        self.initializers.append(numpy_helper.from_array(values, name))
        return name

    @staticmethod
    def element(dtype: np.dtype | type) -> int:
        """Return ONNX's number of an element type: `to` of Cast."""
        from onnx import helper

        return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    def per_channel(self, values: np.ndarray, shape: Shape) -> str:
        """Add an initializer (C) that broadcasts over the positions of a tensor of `shape`."""
        return self.constant(np.asarray(values, np.float32).reshape(-1, *(1,) * (len(shape) - 2)))

    def weights(self, node: Node, ordered: Callable[[np.ndarray], np.ndarray] | None = None, axis: int | None = 0) -> str:
        """Add the weights (O, ...) of a layer, in ONNX's order by `ordered`.

        `axis`: output axis in that order, None if there is none; a QDQ writer has scales along it.
        """
        values = node.params["weights"]
        return self.constant(values if ordered is None else ordered(values), f"{node.name}_weights")

    def bias(self, node: Node) -> str:
        """Add the bias (O) of a layer."""
        return self.constant(node.params["bias"], f"{node.name}_bias")

    def pad(self, x: str, pads: Pads, fill: float = 0.0, output: str | None = None) -> str:
        """Write padding of `fill` around the images of x, or a crop; return the tensor."""
        top, left, bottom, right = pads
        amounts = self.constant([0, 0, top, left, 0, 0, bottom, right])
        return self.emit("Pad", [x, amounts, self.constant(fill)], output)

    def padded(self, x: str, pads: Pads, limit: tuple[int, int] | None, fill: float = 0.0) -> tuple[str, list[int]]:
        """Return (tensor, pads attribute); pads that the attribute cannot express become a Pad before.

        `limit`: the attribute must stay below these (vertical, horizontal) amounts.
        """
        fits = min(pads) >= 0 and (limit is None or all(p < limit[i % 2] for i, p in enumerate(pads)))
        return (x, list(pads)) if fits else (self.pad(x, pads, fill), [0, 0, 0, 0])

    # ---- tensors as arrays ------------------------------------------------------------------
    def array(self, tensor: str, dims: Sequence[int]) -> str:
        """Return the elements of a tensor, in memory order, with dimensions `dims` after the batch axis."""
        rank = len(self.graph.shape(tensor))
        if rank > 2:
            tensor = self.emit("Transpose", [tensor], perm=memory_axes(rank))
        return self.emit("Reshape", [tensor, self.constant([0, *dims])])

    def flat(self, tensor: str, output: str) -> None:
        """Add `output`, whose elements are those of `tensor` in memory order."""
        shape = self.graph.shape(output)
        axes = memory_axes(len(shape))
        target = self.constant([0, *(shape[axis] for axis in axes[1:])] if len(shape) > 2 else [0, -1])
        if len(shape) == 2:
            self.emit("Reshape", [tensor, target], output)
        else:
            self.emit("Transpose", [self.emit("Reshape", [tensor, target])], output, perm=np.argsort(axes).tolist())

    def operands(self, node: Node, shapes: Sequence[Shape] = (), slots: tuple[int, ...] = ()) -> list[str]:
        """Return each operand of an ArrayOp in its dimensions, or those of `shapes`, after a batch axis (1 for constants)."""
        result = []
        for index, (slot, dims) in enumerate(zip(slots or node.op.slots, shapes or node.op.operand_dims(), strict=True)):
            if slot >= 0:
                result.append(self.array(node.inputs[slot], dims))
            else:
                values = node.params[f"operand{index}"].reshape(1, *dims)
                result.append(self.constant(values) if values.dtype.kind == "f" else self.exact(np.ascontiguousarray(values)))
        return result

    def take(self, vector: str, size: int, axes: Sequence[np.ndarray], output: str | None = None) -> str:
        """Add y[i, j, ...] = x[axes[0][i] + axes[1][j] + ...] of a vector (N, size), flat; all sums lie within x.

        If the step of each axis divides the step of the axis before, x is reshaped to these steps, and no constant is longer
        than an axis. Otherwise all offsets are one constant.
        """
        firsts = [int(axis.min()) for axis in axes]
        steps = [int(np.gcd.reduce(axis - first)) for axis, first in zip(axes, firsts, strict=True)]
        order = sorted(range(len(axes)), key=lambda k: -steps[k])
        moving, still = ([k for k in order if bool(steps[k]) == moves] for moves in (True, False))
        rest, first = size, sum(firsts)
        dims, chosen = [], []
        for k in moving:
            count, odd = divmod(rest, steps[k])
            places = first // steps[k] + (axes[k] - firsts[k]) // steps[k]
            if odd or places.max() >= count:
                offsets = reduce(np.add.outer, axes).reshape(-1)
                return self.emit("Gather", [vector, self.exact(offsets)], output, axis=1)
            dims.append(count)
            chosen.append(places)
            rest, first = steps[k], first % steps[k]
        dims += [rest, *(1 for _ in still)]
        chosen += [np.array([first]), *(np.zeros(len(axes[k]), np.int64) for k in still)]
        result = self.emit("Reshape", [vector, self.constant([0, *dims])])
        for axis, (count, places) in enumerate(zip(dims, chosen, strict=True), 1):
            if not np.array_equal(places, np.arange(count)):
                result = self.emit("Gather", [result, self.exact(places)], axis=axis)
        where = [*moving, len(axes), *still]
        perm = [0, *(1 + where.index(k) for k in range(len(axes) + 1))]
        if perm != sorted(perm):
            result = self.emit("Transpose", [result], perm=perm)
        return self.emit("Reshape", [result, self.constant([0, -1])], output)

    # ---- layers -----------------------------------------------------------------------------
    def apply(self, function: FunctionRow, x: str, y: str) -> None:
        """Write y = function(x). Raise NoOnnxForm if the function has no ONNX form."""
        try:
            function.emit(self, x, y)
        except ValueError as error:
            raise NoOnnxForm(str(error)) from error

    def write(self, node: Node) -> None:
        """Write one layer with its activation. Raise NoOnnxForm if one of them has no ONNX form."""
        if node.op.kind not in EMITTERS or len(node.outputs) != 1:
            raise NoOnnxForm(f"the layer {node.name} ({node.op.kind}) has no ONNX form")
        if node.activation is None:
            EMITTERS[node.op.kind](self, node, node.output)
            return
        linear = self.fresh(f"{node.output}_linear")
        EMITTERS[node.op.kind](self, node, linear)
        self.apply(node.activation, linear, node.output)


Emitter = Callable[[OnnxWriter, Node, str], None]
"""Function that writes the ONNX nodes of one layer; the result is the tensor of the given name."""

EMITTERS: Registry[Emitter] = Registry("the ONNX emitter of", "n2d2py.operators.catalog")
"""ONNX emitters by operator kind."""
onnx_emitter = EMITTERS.declare
"""Decorator that registers an emitter for operators of these kinds."""
