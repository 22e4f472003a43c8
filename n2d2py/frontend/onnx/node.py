"""What a converter sees of an ONNX node: attributes, constants, shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from n2d2py.frontend.onnx.registry import Unsupported
from n2d2py.graph.shapes import Shape

if TYPE_CHECKING:
    from n2d2py.frontend.onnx.builder import Builder

__all__ = ["OnnxNode"]


class OnnxNode:
    """One node of the model.

    Attributes:
        type, domain: operator, and where it is defined.
        name: name of the layer, which is the first output.
        inputs, outputs: ONNX tensor names; "" for an optional one that is absent.
    """

    def __init__(self, proto: onnx.NodeProto, builder: Builder, as_vector: bool = False):
        """`as_vector`: tensors are given as vectors of all their elements."""
        self._as_vector = as_vector
        self.type = proto.op_type
        self.domain = proto.domain
        self.name = proto.output[0]
        self.inputs = list(proto.input)
        self.outputs = list(proto.output)
        self._builder = builder
        self._attributes = {a.name: onnx.helper.get_attribute_value(a) for a in proto.attribute}

    @property
    def opset(self) -> int:
        """Version of the default operator set."""
        return self._builder.model.opset

    def attribute(self, name: str, default: Any = None) -> Any:
        """The value of an attribute; text as str, lists as lists; `default` when it is absent."""
        value = self._attributes.get(name, default)
        return value.decode(errors="replace") if isinstance(value, bytes) else value

    def attribute_names(self) -> list[str]:
        """Names of the attributes that are given."""
        return list(self._attributes)

    def has(self, index: int) -> bool:
        """Whether input `index` is given."""
        return index < len(self.inputs) and self.inputs[index] != ""

    def is_constant(self, index: int) -> bool:
        """Whether input `index` is known at import."""
        return self.has(index) and self.inputs[index] in self._builder.constants

    def constant(self, index: int, what: str) -> np.ndarray:
        """The value of input `index`; `what` names it in messages.

        Raises:
            Unsupported: when it is only known at run time.
        """
        if not self.is_constant(index):
            verb = "are" if what.endswith("s") and what != "bias" else "is"
            raise Unsupported(f"its {what} {verb} not constant", "export the model with constant weights and shapes")
        return self._builder.constants[self.inputs[index]]

    def optional_constant(self, index: int, what: str) -> np.ndarray | None:
        """As `constant`, None when the input is absent."""
        return self.constant(index, what) if self.has(index) else None

    def tensor(self, index: int = 0) -> str:
        """The graph tensor of a data input.

        Raises:
            Unsupported: when the input is a constant or absent.
        """
        if not self.has(index) or self.is_constant(index):
            raise Unsupported(f"its input {index} is a constant, not a tensor of the network")
        name = self.inputs[index]
        return self._builder.array(name) if self._as_vector else self._builder.plane(name)

    def shape(self, index: int = 0) -> Shape:
        """Shape of a data input, batch 1."""
        return self._builder.graph.shape(self.tensor(index))

    def require_rank(self, *ranks: int) -> Shape:
        """The shape of input 0.

        Raises:
            Unsupported: when its rank is none of `ranks`.
        """
        shape = self.shape()
        if len(shape) not in ranks:
            wanted = " or ".join(map(str, ranks))
            raise Unsupported(f"its input has rank {len(shape)}, only rank {wanted} is supported")
        return shape

    def require_single_output(self) -> None:
        """Raises Unsupported when an output after the first is read."""
        for name in self.outputs[1:]:
            if name and self._builder.is_read(name):
                raise Unsupported(f"its additional output '{name}' is used")

    def axes(self, rank: int, index: int = 1) -> list[int] | None:
        """Axes given as attribute (old opsets) or as input `index`, nonnegative and sorted; None if absent.

        Raises:
            Unsupported: when an axis is out of range or not constant.
        """
        axes = self.attribute("axes")
        if axes is None and self.has(index):
            axes = self.constant(index, "list of axes").reshape(-1).tolist()
        if axes is None:
            return None
        return sorted(self.axis_of(axis, rank) for axis in axes)

    @staticmethod
    def axis_of(axis: int, rank: int) -> int:
        """`axis` counted from the front.

        Raises:
            Unsupported: when it is out of range.
        """
        if not -rank <= axis < rank:
            raise Unsupported(f"its axis {axis} is outside rank {rank}")
        return int(axis) % rank
