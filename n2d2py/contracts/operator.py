"""The contract of an operator and the registry of all operators."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from n2d2py.arithmetic import exact_float
from n2d2py.errors import Location, N2D2Error
from n2d2py.graph.shapes import Shape, dims_text
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
        """Return the shapes of the outputs for inputs of these shapes, by default that of the first one; E2xx if they do not fit."""
        return inputs[:1]

    def error(self, code: str, node: OpNode, what: str, remedy: str = "correct the layer before it") -> N2D2Error:
        """Return an error of the layer; `what` follows its kind and name."""
        return N2D2Error(code, f"{self.kind} '{node.name}' {what}", where=node.location, remedy=remedy)

    def require_rank(self, shape: Shape, rank: int, node: OpNode) -> None:
        """Raise E201 unless `shape` has `rank` axes (batch included)."""
        if len(shape) != rank:
            raise self.error("E201", node, f"requires an input of rank {rank}, but its input has shape {dims_text(shape)}")

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

        `node` is a QuantNode, `graph` its QuantGraph. By default, an operator that moves values moves integers in the same way;
        for others, E510 says that they have no integer form.
        """
        if self.moves_values:
            return self.run(inputs, node)
        what = f"{self.kind} is not supported in integers"
        remedy = "remove the layer, or export with -nbbits -32"
        raise N2D2Error("E510", what, where=node.location or node.name, remedy=remedy)


class WeightedOp(Op):
    """An operator with parameters "weights" and "bias" (O), always present after loading: sums of products plus the bias."""

    def sums(self, x: np.ndarray, node: OpNode, dtype: np.dtype, zero_point: int) -> np.ndarray:
        """Return the sums without the bias, (N, O, ...), as a new array of `dtype`; `zero_point` of x is 0 in floating point."""
        raise NotImplementedError

    def _accumulators(self, x: np.ndarray, node: OpNode, dtype: np.dtype, zero_point: int = 0) -> np.ndarray:
        result = self.sums(x, node, dtype, zero_point)
        result += node.params["bias"].astype(dtype).reshape(-1, *(1,) * (result.ndim - 2))
        return result

    def run(self, inputs: list[np.ndarray], node: OpNode) -> list[np.ndarray]:
        return [self._accumulators(inputs[0], node, inputs[0].dtype)]

    def run_integer(self, inputs: list[np.ndarray], node: Any, graph: Any) -> list[np.ndarray]:
        """Requantize the accumulators, and add the second input if the layer has a residual."""
        kinds, added = [graph.type(name) for name in (*node.inputs, node.output)], node.residual
        acc = self._accumulators(inputs[0], node, exact_float(node.bound), kinds[0].zero_point)
        if added is None:
            return [node.requantize(acc, kinds[-1])]
        return [added.apply(node.requantize(acc, added.type), inputs[1], *kinds[1:])]


OPERATORS: Registry[type[Op]] = Registry("the operator", "n2d2py.operators.catalog")
"""All operators by kind."""


OpT = TypeVar("OpT", bound=type[Op])


@dataclass_transform(frozen_default=True)
def register(op: OpT) -> OpT:
    """Make a class a frozen dataclass and register it by its kind (class decorator); a second class is an InternalError."""
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
