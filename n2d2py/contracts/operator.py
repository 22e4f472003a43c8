"""The contract of an operator and the registry of all operators."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from n2d2py.errors import Location, N2D2Error
from n2d2py.graph.shapes import Shape
from n2d2py.registry import Registry, dataclass_transform


class OpNode(Protocol):
    """Interface of a layer for its operator: a Node of a Graph or a QuantNode of a QuantGraph."""

    name: str
    inputs: list[str]
    outputs: list[str]
    location: Location | None

    @property
    def op(self) -> Op: ...

    @property
    def params(self) -> dict[str, np.ndarray]: ...


class Op:
    """An operator: a frozen dataclass of attributes with the rules below.

    Arrays are (N, C, H, W) or (N, C). N may be any batch size, although shapes are declared with N = 1.

    Attributes:
        kind: name in the registry and in reports; the name of the class unless it says another.
        moves_values: the output contains values of the first input unchanged, or means of them. It shares the input's
            number type (max pooling, padding, resizing, layout changes).
        nonnegative: no output is below zero for any input.
        is_part: the output is a part of the input in the same memory; exports have no code for the layer.
        mixes_types: `run_integer` also accepts and returns floating-point tensors.
        macs_per_output: multiply-accumulates of each output element.
        same_bits: the kernel is bit-exact on every machine in floating point too, so it may stay float in an integer network.
    """

    kind: ClassVar[str] = ""
    moves_values: ClassVar[bool] = False
    nonnegative: ClassVar[bool] = False
    is_part: ClassVar[bool] = False
    mixes_types: ClassVar[bool] = False
    macs_per_output: ClassVar[int] = 0
    same_bits: ClassVar[bool] = False

    def output_shapes(self, inputs: list[Shape], node: OpNode) -> list[Shape]:
        """Return the shapes of the outputs for inputs of these shapes; by default, the shape of the first input.

        Raises:
            N2D2Error: E2xx if the operator does not accept them.
        """
        return inputs[:1]

    def error(self, code: str, node: OpNode, what: str, remedy: str = "correct the layer before it") -> N2D2Error:
        """Return an error of the layer; `what` follows its kind and name."""
        return N2D2Error(code, f"{self.kind} '{node.name}' {what}", where=node.location, remedy=remedy)

    def require_rank(self, shape: Shape, rank: int, node: OpNode) -> None:
        """Raise E201 unless `shape` has `rank` axes (batch included)."""
        if len(shape) != rank:
            text = "x".join(map(str, shape))
            raise self.error("E201", node, f"requires an input of rank {rank}, but its input has shape {text}")

    def output_kinds(self, kinds: list[str], node: OpNode) -> list[str]:
        """Return the kinds of the outputs for inputs of these kinds ("" for real numbers)."""
        return [kinds[0] if self.moves_values else ""] * len(node.outputs)

    def macs(self, inputs: list[Shape], output: Shape, node: OpNode) -> int:
        """Return the multiply-accumulates of one inference; 0 for operators that only move or compare values."""
        return self.macs_per_output * prod(output)

    def run(self, inputs: list[np.ndarray], node: OpNode) -> list[np.ndarray]:
        """Return the floating-point result in the type of the inputs, before the node's activation."""
        raise NotImplementedError

    def run_integer(self, inputs: list[np.ndarray], node: Any, graph: Any) -> list[np.ndarray]:
        """Return the stored integers of the outputs for those of the inputs; exports must match them exactly.

        `node` is a QuantNode, `graph` its QuantGraph. By default, an operator that moves values moves integers in the same way.

        Raises:
            N2D2Error: E510 if the operator has no integer form.
        """
        if self.moves_values:
            return self.run(inputs, node)
        what = f"{self.kind} is not supported in integers"
        remedy = "remove the layer, or export with -nbbits -32"
        raise N2D2Error("E510", what, where=node.location or node.name, remedy=remedy)


OPERATORS: Registry[type[Op]] = Registry("the operator", "n2d2py.operators.catalog")
"""All operators by kind."""


OpT = TypeVar("OpT", bound=type[Op])


@dataclass_transform(frozen_default=True)
def register(op: OpT) -> OpT:
    """Make a class a frozen dataclass and register it as an operator, by its kind (class decorator).

    Raises:
        InternalError: if another class has the same kind.
    """
    if "__dataclass_params__" not in vars(op):
        dataclass(frozen=True)(op)
    op.kind = vars(op).get("kind") or op.__name__
    OPERATORS.add(op.kind, op)
    return op


def make_operator(kind: str, *attributes: Any) -> Op:
    """Return an operator by kind and attributes, for callers that cannot import its class."""
    result: Any = OPERATORS[kind]
    return result(*attributes)


def operator_kinds() -> dict[str, type[Op]]:
    """Return all registered operators by kind."""
    return OPERATORS.snapshot()
