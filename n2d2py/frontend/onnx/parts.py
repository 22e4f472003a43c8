"""Expansion of operators into simpler ONNX nodes: by the ONNX standard, or by functions that know the shapes of the inputs.

@expands("com.microsoft::QuickGelu")
def _quick_gelu(parts: Parts) -> None:
    x = parts.inputs[0]
    scaled = parts.add("Mul", x, parts.number(parts.attribute("alpha", 1.702)))
    parts.add("Mul", x, parts.add("Sigmoid", scaled), out=0)
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
from onnx import helper

from n2d2py import log
from n2d2py.contracts.onnx.nodes import OnnxNode, Unsupported, find_converter
from n2d2py.contracts.onnx.tensors import Tensors
from n2d2py.errors import Location
from n2d2py.frontend.onnx.folding import SHAPE_ARITHMETIC
from n2d2py.frontend.onnx.model import OnnxModel
from n2d2py.frontend.onnx.validation import run_limited
from n2d2py.graph import Shape
from n2d2py.registry import Registry


class Parts(OnnxNode):
    """A node, and the `nodes` that replace it, in order; their constants are added to the model's."""

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

    def add_input(self, x: str, index: int) -> str:
        """Add the input `index` to `x` if it is given."""
        return self.add("Add", x, self.inputs[index]) if self.has(index) else x

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
        return index < len(self.outputs) and self.outputs[index] in self._tensors.read

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

_ROUNDS = 4
"""Largest number of passes: a function body may contain other operators with function bodies."""


def expand_functions(model: OnnxModel) -> None:
    """Replace operators without converter by their function body in the ONNX standard, such as Attention or Shrink."""
    from onnx import inliner

    for number in range(_ROUNDS):
        versions = {entry.domain: entry.version for entry in model.proto.opset_import} | {"": model.opset}
        schemas = [(node, _function_schema(node, versions)) for node in model.proto.graph.node]
        functions = [(node, schema) for node, schema in schemas if schema is not None]
        if not functions:
            return
        if number == 0:  # for functions whose body depends on types; absent inputs have an empty one
            types = [helper.make_tensor_value_info(one.name, one.data_type, one.dims) for one in model.proto.graph.initializer]
            model.proto.graph.value_info.extend([onnx.ValueInfoProto(), *types])
        for node, schema in functions:  # defaults are made explicit: inlining drops a reference to an absent attribute
            given = {attribute.name for attribute in node.attribute}
            defaults = (one.default_value for name, one in schema.attributes.items() if name not in given)
            node.attribute.extend(value for value in defaults if value.type != value.UNDEFINED)
        kinds = sorted({(schema.domain, schema.name) for _, schema in functions})
        operators = ", ".join(name for _, name in kinds)
        inline = partial(inliner.inline_selected_functions, model.proto, kinds, inline_schema_functions=True)
        try:
            model.proto = run_limited(inline, operators, Location(model.path))
        except (RuntimeError, ValueError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
            log.detail("%s: %s cannot be expanded: %s", model.path, operators, str(error).splitlines()[0])
            return
        log.detail("%s: %s replaced by their definitions", model.path, operators)


def _function_schema(node: onnx.NodeProto, versions: dict[str, int]) -> onnx.defs.OpSchema | None:
    """Return the definition of an operator that is a function and has no converter; None for others."""
    if node.domain not in versions or node.op_type in SHAPE_ARITHMETIC or find_converter(node.op_type, node.domain):
        return None
    key = node.op_type, versions[node.domain], node.domain
    if not onnx.defs.has(*key):
        return None
    schema = onnx.defs.get_schema(*key)
    is_function = schema.has_function or schema.has_context_dependent_function  # pyright: ignore[reportAttributeAccessIssue]  (not in its stub)
    return schema if is_function else None
