"""Expansion of operators into simpler ONNX nodes, once the shapes of their inputs are known.

@expands("com.microsoft::QuickGelu")
def _quick_gelu(parts: Parts) -> None:
    x = parts.inputs[0]
    scaled = parts.add("Mul", x, parts.number(parts.attribute("alpha", 1.702)))
    parts.add("Mul", x, parts.add("Sigmoid", scaled), out=0)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
from onnx import helper

from n2d2py.contracts.onnx.nodes import OnnxNode, Unsupported
from n2d2py.contracts.onnx.tensors import Tensors
from n2d2py.graph.shapes import Shape
from n2d2py.registry import Registry


class Parts(OnnxNode):
    """A node, and the nodes that replace it; their constants are added to the model's.

    Attributes:
        nodes: the added nodes, in order.
    """

    def __init__(self, proto: onnx.NodeProto, tensors: Tensors):
        super().__init__(proto, tensors)
        self.nodes: list[onnx.NodeProto] = []

    def add(self, operator: str, *inputs: str, out: int | None = None, **attributes: Any) -> str:
        """Add a node with one result and return its name; with `out` the result is that output of the operator."""
        name = self.fresh(operator.lower()) if out is None else self.outputs[out]
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def add_along(self, operator: str, x: str, axes: list[int], since: int, **attributes: Any) -> str:
        """Add a node along `axes`, which are an attribute before the opset `since`, then an input."""
        if self.opset < since:
            return self.add(operator, x, axes=axes, **attributes)
        return self.add(operator, x, self.add_constant("axes", np.array(axes)), **attributes)

    def add_input(self, x: str, index: int, out: int | None = None) -> str:
        """Add the input `index` to `x` if it is given."""
        return self.add("Add", x, self.inputs[index], out=out) if self.has(index) else x

    def split(self, x: str, axis: int, sizes: Sequence[int]) -> list[str]:
        """Add nodes that split an axis into consecutive parts; return their names."""
        ends = np.cumsum([0, *sizes]).tolist()
        return [
            self.add("Slice", x, *(self.add_constant("bounds", np.array([index])) for index in (begin, end, axis)))
            for begin, end in pairwise(ends)
        ]

    def reshape(self, x: str, *dims: int, out: int | None = None) -> str:
        """Add a Reshape; 0 keeps a dimension."""
        return self.add("Reshape", x, self.add_constant("dims", np.array(dims, np.int64)), out=out)

    def add_constant(self, what: str, values: np.ndarray) -> str:
        """Add a constant; return its name."""
        name = self.fresh(what)
        self._tensors.constants[name] = values
        return name

    def number(self, value: float) -> str:
        """Add a constant scalar; return its name."""
        return self.add_constant("number", np.array(value, np.float32))

    def fresh(self, what: str) -> str:
        """Return an unused tensor name."""
        name = self._tensors.fresh(f"{self.name}_{what}")
        self._tensors.read.add(name)
        return name

    # ---- the replaced node ----------------------------------------------------------------------
    def is_output_used(self, index: int) -> bool:
        """True if output `index` has a consumer."""
        return index < len(self.outputs) and self._tensors.is_read(self.outputs[index])

    def dims(self, index: int) -> Shape:
        """Return the shape of input `index`. Raise Unsupported if the input is absent, or its shape is unknown."""
        name = self.inputs[index] if self.has(index) else ""
        if name not in self._tensors.constants and not self._tensors.is_tensor(name):
            raise Unsupported(f"its input {index} is missing or has no known shape", "export the model again")
        return self._tensors.known_shape(name)

    def kind(self, index: int) -> str:
        """Return the type of input `index` by its NumPy name: "" for real numbers."""
        return self._tensors.kind_of(self.inputs[index])

    def integer(self, index: int, what: str) -> int | None:
        """Return an input that is one integer; None if it is absent."""
        values = self.optional_constant(index, what)
        if values is not None and values.size != 1:
            raise Unsupported(f"its {what} has {values.size} values instead of one")
        return None if values is None else int(values.item())

    def attributes(self, *without: str) -> dict[str, Any]:
        """Return all attributes except the named ones."""
        return {name: value for name, value in self._attributes.items() if name not in without}


Expansion = Callable[[Parts], None]
"""Function that adds the nodes that replace one operator; the last ones produce its outputs."""

EXPANSIONS: Registry[Expansion] = Registry("the expansion of the ONNX operator", "n2d2py.frontend.onnx.expansions")
"""Expansions by operator; keys outside the default domain are "domain::Operator"."""
expands = EXPANSIONS.declare
"""Decorator that registers an expansion for ONNX operators."""
