"""Writes a float Graph as an ONNX model (opset 17) with a free batch dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from n2d2py.graph import Graph, Node
from n2d2py.graph.shapes import Shape
from n2d2py.operators.functions import Function
from n2d2py.registry import Registry

__all__ = ["NoSpelling", "OnnxWriter", "register_spelling", "to_onnx"]

OPSET = 17
IR_VERSION = 8

Spelling = Callable[["OnnxWriter", Node, str], None]
"""Writes the ONNX nodes of one layer so that the result is the tensor of the given name."""
SPELLINGS: Registry[Spelling] = Registry(
    "the ONNX nodes of", "n2d2py.reference.spellings", "n2d2py.reference.array_spellings", "n2d2py.reference.resampling"
)
"""How ONNX Runtime computes layers, by operator kind."""


class NoSpelling(Exception):
    """A layer cannot be written in ONNX; the text says which one and why."""


def register_spelling(kind: str, spelling: Spelling) -> None:
    """Makes `spelling` responsible for the operators of a kind.

    Raises:
        InternalError: when another one has it.
    """
    SPELLINGS.add(kind, spelling)


class OnnxWriter:
    """The model being written."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[TensorProto] = []
        self._names = set(graph.tensors)

    def fresh(self, stem: str) -> str:
        """A name that starts with `stem` and that nothing else has."""
        name, number = stem, 1
        while name in self._names:
            name, number = f"{stem}_{number}", number + 1
        self._names.add(name)
        return name

    def emit(self, op_type: str, inputs: Iterable[str], output: str | None = None, **attributes) -> str:
        """Adds a node; returns its output, a fresh name unless given."""
        output = output or self.fresh(f"{op_type.lower()}_of")
        self.nodes.append(helper.make_node(op_type, list(inputs), [output], **attributes))
        return output

    def emit_all(self, op_type: str, inputs: Iterable[str], count: int, **attributes) -> list[str]:
        """Adds a node with `count` outputs; returns their fresh names."""
        outputs = [self.fresh(f"{op_type.lower()}_{index}_of") for index in range(count)]
        self.nodes.append(helper.make_node(op_type, list(inputs), outputs, **attributes))
        return outputs

    def constant(self, values: np.ndarray | float | list, stem: str = "constant") -> str:
        """Adds an initializer; floating-point values become float32."""
        array = np.asarray(values)
        array = array.astype(np.float32) if array.dtype.kind == "f" else array.astype(np.int64)
        name = self.fresh(stem)
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def integer(self, value: int, dtype: np.dtype) -> str:
        """Adds an initializer that holds one integer of this type."""
        name = self.fresh("integer")
        self.initializers.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def per_channel(self, values: np.ndarray, shape: Shape) -> str:
        """An initializer (C) that broadcasts over the positions of a tensor of `shape`."""
        return self.constant(np.asarray(values, np.float32).reshape(-1, *(1,) * (len(shape) - 2)))

    def apply(self, function: Function, x: str, y: str) -> None:
        """Writes y = function(x).

        Raises:
            NoSpelling: for a function without ONNX spelling.
        """
        try:
            function.emit(self, x, y)
        except ValueError as error:
            raise NoSpelling(str(error)) from error

    def write(self, node: Node) -> None:
        """Writes one layer with its activation.

        Raises:
            NoSpelling: for an operator without ONNX spelling.
        """
        if node.op.kind not in SPELLINGS or len(node.outputs) != 1:
            raise NoSpelling(f"the layer {node.name} ({node.op.kind}) has no ONNX spelling")
        if node.activation is None:
            SPELLINGS[node.op.kind](self, node, node.output)
            return
        linear = self.fresh(f"{node.output}_linear")
        SPELLINGS[node.op.kind](self, node, linear)
        self.apply(node.activation, linear, node.output)


def to_onnx(graph: Graph, taps: Iterable[str] = ()) -> onnx.ModelProto:
    """An ONNX model with the same inputs and outputs; `taps` names tensors that become outputs too.

    Raises:
        NoSpelling: when a layer cannot be written.
    """
    writer = OnnxWriter(graph)
    for node in graph.nodes:
        writer.write(node)
    outputs = [name for name in dict.fromkeys([*graph.outputs, *taps]) if name not in graph.inputs]
    model = helper.make_model(
        helper.make_graph(
            writer.nodes,
            graph.name or "network",
            [_value(graph, name) for name in graph.inputs],
            [_value(graph, name) for name in outputs],
            writer.initializers,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="n2d2py",
    )
    return model


def _value(graph: Graph, name: str) -> onnx.ValueInfoProto:
    kind = graph.kind(name)
    element = TensorProto.FLOAT if not kind else helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    return helper.make_tensor_value_info(name, element, ["N", *graph.shape(name)[1:]])
