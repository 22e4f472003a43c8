"""ONNX nodes, the layers that they become, and the registry of converters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from n2d2py.contracts.functions import ONNX_FUNCTIONS
from n2d2py.contracts.onnx.tensors import MixesSamples, Tensors, Unsupported
from n2d2py.contracts.operator import Op, make_operator
from n2d2py.graph import Node, Shape, complete_params
from n2d2py.registry import Registry

if TYPE_CHECKING:
    from onnx import NodeProto


ROUNDING = "n2d2py.rounding"
"""Metadata key of nodes translated from another format: `Node.rounding`."""
CELL_LIMIT = "n2d2py.cell_limit"
"""Metadata key of an LSTM: clipping limit of its cell state, for which ONNX has no attribute."""


class OnnxNode:
    """One node of the model.

    Attributes:
        type, domain: operator and its domain.
        name: name of the layer, equal to the first output that is present.
        inputs, outputs: ONNX tensor names; "" for an optional one that is absent.
        metadata: metadata of the node, strings by key.
    """

    def __init__(self, proto: NodeProto, tensors: Tensors):
        from onnx import helper

        self.type = proto.op_type
        self.domain = proto.domain
        self.name = next(filter(None, proto.output), "")
        self.inputs = list(proto.input)
        self.outputs = list(proto.output)
        self._tensors = tensors
        self._attributes = {a.name: helper.get_attribute_value(a) for a in proto.attribute}
        self.metadata = {entry.key: entry.value for entry in proto.metadata_props}

    @property
    def rounding(self) -> str:
        """Return the rounding mode, as `Node.rounding`."""
        return self.metadata.get(ROUNDING, "")

    @property
    def opset(self) -> int:
        """Return the version of the default operator set."""
        return self._tensors.model.opset

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return the value of an attribute, strings as str and lists as lists; `default` if it is absent."""
        value = self._attributes.get(name, default)
        return value.decode(errors="replace") if isinstance(value, bytes) else value

    def attribute_names(self) -> list[str]:
        """Return the names of the attributes that are present."""
        return list(self._attributes)

    def has(self, index: int) -> bool:
        """True if input `index` is given."""
        return index < len(self.inputs) and self.inputs[index] != ""

    def is_constant(self, index: int) -> bool:
        """True if input `index` is known at import."""
        return self.has(index) and self.inputs[index] in self._tensors.constants

    def constant(self, index: int, what: str) -> np.ndarray:
        """Return the value of input `index`; `what` names it in messages.

        Raises Unsupported: the value is only known at run time.
        """
        if not self.is_constant(index):
            verb = "are" if what.endswith("s") and what != "bias" else "is"
            raise Unsupported(f"its {what} {verb} not constant", "export the model with constant weights and shapes")
        return self._tensors.constants[self.inputs[index]]

    def optional_constant(self, index: int, what: str) -> np.ndarray | None:
        """Return the value of input `index` as `constant` does; None if it is absent."""
        return self.constant(index, what) if self.has(index) else None

    def tensor(self, index: int = 0) -> str:
        """Return the graph tensor of a data input. Raise Unsupported if the input is a constant or absent."""
        if not self.has(index) or self.is_constant(index):
            raise Unsupported(f"its input {index} is a constant, not a tensor of the network")
        return self._tensors.plane(self.inputs[index])

    def shape(self, index: int = 0) -> Shape:
        """Return the shape of a data input, batch 1."""
        return self._tensors.graph.shape(self.tensor(index))

    def integers(self, name: str, index: int, default: Any = None) -> Any:
        """Return a list from input `index`, or from the attribute in old opsets; `default` if it is absent.

        Raises Unsupported: the input is not constant.
        """
        if self.has(index):
            return self.constant(index, f"list of {name}").reshape(-1).tolist()
        return self.attribute(name, default)

    def axes(self, rank: int) -> list[int] | None:
        """Return the axes from input 1, or from the attribute in old opsets: nonnegative, sorted, unique; None if absent.

        Raises Unsupported: an axis is out of range or not constant.
        """
        axes = self.integers("axes", 1)
        return None if axes is None else sorted({self.axis_of(axis, rank) for axis in axes})

    def new_axes(self, rank: int) -> list[int]:
        """Return the axes of an Unsqueeze of an array of `rank` axes, as `axes` does.

        Raises Unsupported: as `axes`, and for a duplicate axis.
        """
        listed = self.integers("axes", 1) or []
        axes = self.axes(rank + len(listed)) or []
        if len(axes) < len(listed):
            raise Unsupported(f"its axes {', '.join(map(str, listed))} contain a duplicate")
        return axes

    @staticmethod
    def divide(size: int, what: str, by: int, parts: str) -> int:
        """Return `size` / `by`, as heads divide values. Raise Unsupported if it is not a whole number; `parts` says into what."""
        if by < 1 or size % by:
            raise Unsupported(f"its {size} {what} cannot be divided into {parts}")
        return size // by

    @staticmethod
    def axis_of(axis: int, rank: int) -> int:
        """Return `axis` as a nonnegative index. Raise Unsupported if the axis is out of range."""
        if not -rank <= axis < rank:
            raise Unsupported(f"its axis {axis} is outside rank {rank}")
        return int(axis) % rank


class Builder(Tensors):
    """Interface that converters use to add layers."""

    def layer(
        self,
        node: OnnxNode,
        op: Op,
        inputs: Sequence[str],
        params: Mapping[str, np.ndarray | None] | None = None,
        *,
        part: str | None = None,
        output: str | None = None,
        weights_at: int | None = None,
    ) -> str:
        """Add a layer that reads graph tensors; return its output tensor.

        The layer produces output 0 of `node` and has its name. With `part` it is an intermediate layer, named after the node
        and the part. With `output` it produces that later output of the node. `weights_at` is the node input with the weights,
        whose stored scales are kept.
        """
        name = (output or node.name) if part is None else self.fresh(f"{node.name}_{part}")
        given = (params or {}).items()
        checked = {role: None if array is None else self.parameter(name, role, array) for role, array in given}
        arrays, unbiased = complete_params(checked)
        grid = None if weights_at is None else self.weight_scales.get(node.inputs[weights_at])
        if grid is not None:
            scales = weight_scales(grid, len(arrays["weights"]))
            arrays |= {} if scales is None else {"weight_scales": scales}
        place = self.model.place(output or node.name)
        added = Node(name, op, list(inputs), [name], arrays, location=place, unbiased=unbiased, rounding=node.rounding)
        (shape,) = op.output_shapes([self.graph.shape(tensor) for tensor in inputs], added)
        if len(shape) > 4:
            raise Unsupported("its result has more axes than batch, channels, height and width")
        self.graph.add(added)
        if part is None:
            self.names[name] = name
        return name

    def guard_batch(self, node: OnnxNode, index: int, axis: int, verb: str, allowed: bool = False) -> None:
        """Raise MixesSamples if a layer mixes the samples of a batch."""
        name = node.inputs[index]
        is_free = self.model.batch is None or self.is_batched
        if axis == 0 and not allowed and is_free and name not in self.constants:
            dims = self.dims_of(name)
            if len(dims) > 1 and dims[0] == 1:
                reason = f"it {verb} the batch axis"
                raise MixesSamples(reason, "export the model with batch 1, or give -input-shape with a 1 in front")


Converter = Callable[[OnnxNode, Builder], None]
"""Function that adds the layers of one ONNX node and binds its outputs; it raises Unsupported before it adds any."""

CONVERTERS: Registry[Converter] = Registry("the converter of the ONNX operator", "n2d2py.operators.catalog")
"""Converters by operator, "domain::Operator" outside the default domain."""


def operator_key(op_type: str, domain: str) -> str:
    """Return the registry key of an operator: "Operator", or "domain::Operator" outside the default domain."""
    return op_type if domain in ("", "ai.onnx") else f"{domain}::{op_type}"


def find_converter(op_type: str, domain: str) -> Converter | None:
    """Return the converter of an operator, or None; for a function, a converter that adds an Activation layer."""
    key = operator_key(op_type, domain)
    return CONVERTERS.get(key) or (apply_function if key in ONNX_FUNCTIONS else None)


def apply_function(node: OnnxNode, builder: Builder) -> None:
    """Add an Activation layer, on an image or an array, for a node that is a function of `ONNX_FUNCTIONS`."""
    try:
        function = ONNX_FUNCTIONS[operator_key(node.type, node.domain)](node)
    except ValueError as error:
        raise Unsupported(str(error)) from error
    add_elementwise(node, builder, make_operator("Activation", function))


def elementwise_input(node: OnnxNode, builder: Builder) -> str:
    """Return the first input of a layer on single values: an image, or an array of any rank where there is no image."""
    x = node.inputs[0]
    is_image = x in builder.names or not builder.is_tensor(x) or bool(builder.kind_of(x))
    return node.tensor() if is_image else builder.array(x)


def add_elementwise(node: OnnxNode, builder: Builder, op: Op) -> None:
    """Add a layer on single values, whose output is an array if its input is one."""
    x, tensor = node.inputs[0], elementwise_input(node, builder)
    y = builder.layer(node, op, [tensor])
    if x not in builder.names and builder.arrays.get(x) == tensor:
        builder.arrays[y], builder.dims[y] = builder.names.pop(y), builder.dims_of(x)


MOVES = ("Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Cast", "Concat", "Slice", "Gather", "Expand")
"""Operators that only rearrange the values of a constant."""


def weight_scales(grid: np.ndarray, outputs: int) -> np.ndarray | None:
    """Return the per-tensor (1) or per-output (outputs) scale of weights from a scale for each weight.

    A transposed convolution has the outputs of one group on an axis, and its scales repeat. None for any other pattern.
    Quantization of the weights checks the fit.
    """
    if not grid.size:
        return None
    if (grid == grid.flat[0]).all():
        return grid.reshape(-1)[:1].astype(np.float32)
    for axis in range(grid.ndim):
        rows = np.moveaxis(grid, axis, 0).reshape(grid.shape[axis], -1)
        if (rows == rows[:, :1]).all() and outputs % len(rows) == 0:
            return np.tile(rows[:, 0], outputs // len(rows)).astype(np.float32)
    return None
