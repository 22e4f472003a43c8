"""The typed network: every tensor has a number type, every integer layer an explicit rescale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from n2d2py.arithmetic import NumType, Rescale
from n2d2py.arithmetic.exact import BLOCK
from n2d2py.errors import InternalError, Location
from n2d2py.graph.forms import Form, Moved, Weighted
from n2d2py.graph.port import Ends, FilePort, OneOutput
from n2d2py.graph.shapes import Shape

if TYPE_CHECKING:
    from n2d2py.contracts.functions import FunctionRow
    from n2d2py.contracts.operator import Op
    from n2d2py.graph.graph import Graph
    from n2d2py.graph.node import Node

OpT = TypeVar("OpT", bound="Op")
FormT = TypeVar("FormT", bound=Form)


@dataclass(frozen=True)
class QuantTensor:
    """A typed value on an edge; `shape` has batch 1 and the channel axis second."""

    name: str
    shape: Shape
    type: NumType

    @property
    def bytes(self) -> int:
        """Bytes of one stimulus."""
        return int(np.prod(self.shape[1:], dtype=np.int64)) * self.type.bytes


def requantized(
    acc: np.ndarray, rescale: Rescale, limits: tuple[int, int], kind: NumType, axis: int = 1, zero: int | None = None
) -> np.ndarray:
    """Return clamp(rescaled acc + `zero`, by default that of `kind`) as elements of `kind`; `axis`: channels of acc."""
    zero = kind.zero_point if zero is None else zero
    low, high = (limit - zero for limit in limits)
    sizes = [0 if at == axis % acc.ndim else size for at, size in enumerate(acc.shape)]
    cut = int(np.argmax(sizes))
    step = max(1, BLOCK * sizes[cut] // max(acc.size, 1))
    if step >= sizes[cut]:
        return (rescale.apply(acc, low, high, axis) + zero).astype(kind.dtype)
    result = np.empty(acc.shape, kind.dtype)
    for first in range(0, sizes[cut], step):
        at = (*[slice(None)] * cut, slice(first, first + step))
        result[at] = rescale.apply(acc[at], low, high, axis) + zero
    return result


@dataclass(frozen=True, eq=False)
class ResidualAdd:
    """The sum that a layer does with its own result q and its last input r, element by element:

        acc = multiplier * (q - zero point) + residual_multiplier * (r - zero point) + offset, then rescaled and clamped.

    `layer` is the name of the layer that it was, `type` that of q, `bound` the largest magnitude of any partial sum.
    """

    layer: str
    type: NumType
    multiplier: int
    residual_multiplier: int
    offset: int
    rescale: Rescale
    clamp: tuple[int, int]
    bound: int

    def apply(self, own: np.ndarray, residual: np.ndarray, kind: NumType, output: NumType) -> np.ndarray:
        """Return the stored elements of type `output` from the layer's own and those of type `kind` of the residual."""
        acc = self.multiplier * (own.astype(np.int64) - self.type.zero_point)
        acc = acc + self.residual_multiplier * (residual.astype(np.int64) - kind.zero_point) + self.offset
        return requantized(acc, self.rescale, self.clamp, output)

    def stored_offset(self, kind: NumType) -> int:
        """Return the bias for products of the stored integers, with the zero points in it."""
        return self.offset - self.multiplier * self.type.zero_point - self.residual_multiplier * kind.zero_point


@dataclass
class QuantNode(OneOutput, Generic[OpT]):
    """A layer over typed tensors. `form` is the arithmetic with its constants.

    Attributes:
        rescale: accumulator -> output integers; None where the layer moves values unchanged, and in float layers.
        clamp: inclusive integer range of the output (activation and type range together).
        bound: largest magnitude that any partial sum of the accumulator can reach.
        activation: only of real results; in integer layers it is part of `clamp` or of the form.
        residual: a sum with the last input that the layer does too; rescale, clamp and bound are those before it.
        zero_in_bias: whether the bias holds the zero point of the result too, so that the rescale gives stored integers.
    """

    name: str
    op: OpT
    inputs: list[str]
    outputs: list[str]
    form: Form = field(default_factory=Moved)
    rescale: Rescale | None = None
    clamp: tuple[int, int] | None = None
    bound: int = 0
    activation: FunctionRow | None = None
    location: Location | None = None
    source: list[str] = field(default_factory=list)
    residual: ResidualAdd | None = None
    zero_in_bias: bool = False

    @staticmethod
    def of(node: Node, form: Form, **fields: Any) -> QuantNode:
        """Return a layer with an integer or real form; name, operator, ends and sources are those of a float layer."""
        ends = list(node.inputs), list(node.outputs)
        return QuantNode(node.name, node.op, *ends, form, location=node.location, source=list(node.source), **fields)

    @property
    def params(self) -> dict[str, np.ndarray]:
        """The constants of the form by role: for what treats all forms alike, and for the rules of operators that serve
        nodes with and without number types. Arithmetic is chosen by the type of `form`."""
        return self.form.constants

    def form_as(self, form: type[FormT]) -> FormT:
        """Return `form`, of a layer that has one of this type."""
        if not isinstance(self.form, form):
            raise InternalError(f"{self.name} is {type(self.form).__name__}, not {form.__name__}")
        return self.form

    @property
    def acc_bits(self) -> int:
        """Bits of the accumulator in the exported code: 32, or 64 when the bound needs it."""
        return 32 if self.bound < 2**31 else 64

    @property
    def limits(self) -> tuple[int, int]:
        """`clamp`, of a layer that has one."""
        if self.clamp is None:
            raise InternalError(f"{self.name} has no limits")
        return self.clamp

    @property
    def rescaling(self) -> Rescale:
        """`rescale`, of a layer that has one."""
        if self.rescale is None:
            raise InternalError(f"{self.name} has no rescale")
        return self.rescale

    def requantize(self, acc: np.ndarray, kind: NumType, axis: int = 1) -> np.ndarray:
        """Return clamp(rescaled acc + zero point of `kind`) as stored elements; `axis` is the channel axis of `acc`. The zero
        point is added after rounding, unless the accumulator has it. For a floating-point `kind`: the activation of the real
        accumulator."""
        if kind.is_float:
            real = self.rescaling.real(acc, axis)
            return real if self.activation is None else self.activation(real).astype(kind.dtype)
        return requantized(acc, self.rescaling, self.limits, kind, axis, 0 if self.zero_in_bias else None)


@dataclass(frozen=True)
class StripPiece:
    """Columns [first, stop), or channels (`axis` 1), of a tensor that the network had before it was cut into strips."""

    tensor: str
    first: int
    stop: int
    axis: int = 3


@dataclass(repr=False)
class QuantGraph(Ends):
    """A typed network in execution order; what memory, export and the integer simulator work on.

    Attributes:
        bits: the `-nbbits` of the export: positive integer, negative floating point.
        pieces: of a network in strips, what each tensor is a piece of that the network did not have before.
        packed: of a network with packed activations, the tensor whose integers each packed one holds.
        unpacked: the tensor that each one is that was unpacked for a reader.
        aliases, states, calls, input_ports, output_ports: as in Graph.
    """

    name: str
    bits: int
    tensors: dict[str, QuantTensor] = field(default_factory=dict)
    nodes: list[QuantNode] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    pieces: dict[str, StripPiece] = field(default_factory=dict)
    packed: dict[str, str] = field(default_factory=dict)
    unpacked: dict[str, str] = field(default_factory=dict)
    states: int = 0
    calls: int = 0
    input_ports: list[FilePort] = field(default_factory=list)
    output_ports: list[FilePort] = field(default_factory=list)

    @staticmethod
    def without_layers(graph: Graph, bits: int, types: Mapping[str, NumType]) -> QuantGraph:
        """Return a network with the name, the ends, the aliases and the states of a float one, and its tensors that have types."""
        names = ("inputs", "outputs", "aliases", "states", "calls", "input_ports", "output_ports")
        tensors = {name: QuantTensor(name, t.shape, types[name]) for name, t in graph.tensors.items() if name in types}
        return QuantGraph(graph.name, bits, tensors, **{name: copy(getattr(graph, name)) for name in names})

    @property
    def state_bytes(self) -> int:
        """Bytes of the states."""
        return sum(self.tensors[name].bytes for name in self.state_inputs)

    def origin(self, tensor: str) -> str:
        """Return the tensor of the network, before cutting into strips or packing, that `tensor` is a piece of or holds."""
        if tensor in self.pieces:
            return self.pieces[tensor].tensor
        return self.packed.get(tensor) or self.unpacked.get(tensor) or tensor

    def with_pieces(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the values (N, C, H, W) of tensors by name, with those of their pieces and of the unpacked ones."""
        pieces = {
            name: values[one.tensor].take(range(one.first, one.stop), one.axis)
            for name, one in self.pieces.items()
            if one.tensor in values
        }
        unpacked = {name: values[one] for name, one in self.unpacked.items() if one in values}
        return {**values, **pieces, **unpacked}

    def type(self, tensor: str) -> NumType:
        """Return the number type of a tensor."""
        return self.tensors[tensor].type

    def consumers(self, tensor: str) -> list[QuantNode]:
        """Return the nodes that read `tensor`, in order."""
        return [node for node in self.nodes if tensor in node.inputs]

    def is_integer(self, node: QuantNode) -> bool:
        """True if the node computes in integers (all its tensors have integer types)."""
        return not any(self.type(name).is_float for name in node.inputs + node.outputs)

    def sums_integers(self, node: QuantNode) -> bool:
        """True if the node turns its integer sums into real numbers."""
        return isinstance(node.form, Weighted) and self.type(node.output).is_float

    def is_float(self, node: QuantNode | Node) -> bool:
        """True if the node computes in floating point alone (all its tensors have such types)."""
        return all(self.type(name).is_float for name in [*node.inputs, *node.outputs])

    @property
    def is_mixed(self) -> bool:
        """True if some layers of an integer network compute in floating point."""
        return self.bits > 0 and any(not self.is_integer(node) for node in self.nodes)

    def verify(self) -> None:
        """Check order, types and bounds. Raises InternalError with the first broken invariant."""
        known = set(self.inputs)
        for node in self.nodes:
            for name in node.inputs:
                if name not in known:
                    raise InternalError(f"{node.name} reads {name} before it is written")
            known.update(node.outputs)
            if self.is_integer(node):
                for name in node.outputs:
                    kind = self.type(name) if node.residual is None else node.residual.type
                    if node.clamp and not (kind.qmin <= node.clamp[0] <= node.clamp[1] <= kind.qmax):
                        raise InternalError(f"{node.name}: clamp {node.clamp} leaves {kind.name}")
        self.verify_outputs(known)
        for name, output in zip(self.state_inputs, self.state_outputs, strict=True):
            if self.type(name) != self.type(output):
                raise InternalError(f"the state {name} has another type than {output}, which it was")

    def dump(self) -> dict[str, Any]:
        """Return the typed graph as plain data, without the parameter values."""
        return {
            "name": self.name,
            "bits": self.bits,
            "tensors": {
                t.name: {"shape": list(t.shape), "type": t.type.name, "scale": t.type.scale, "zero_point": t.type.zero_point}
                for t in self.tensors.values()
            },
            "inputs": self.inputs,
            "outputs": self.outputs,
            **({"states": self.states} if self.states else {}),
            "nodes": [
                {
                    "name": n.name,
                    "op": repr(n.op),
                    "inputs": n.inputs,
                    "outputs": n.outputs,
                    "clamp": list(n.clamp) if n.clamp else None,
                    "bound": int(n.bound),
                    **({"residual": n.residual.layer} if n.residual else {}),
                    **({"zero_in_bias": True} if n.zero_in_bias else {}),
                }
                for n in self.nodes
            ],
        }


def outputs_from(graph: QuantGraph) -> dict[str, int]:
    """Return for each tensor the outputs that need it: bit i is set if output i is or is computed from the tensor."""
    needed = dict.fromkeys([*graph.inputs, *(name for node in graph.nodes for name in node.outputs)], 0)
    for index, name in enumerate(graph.outputs):
        needed[name] |= 1 << index
    for node in reversed(graph.nodes):
        bits = 0
        for name in node.outputs:
            bits |= needed[name]
        for name in node.inputs:
            needed[name] |= bits
    return needed


def nodes_for(graph: QuantGraph, outputs: Iterable[str]) -> list[QuantNode]:
    """Return the nodes that the named outputs need, in order."""
    named = set(outputs)
    wanted = sum(1 << index for index, name in enumerate(graph.outputs) if name in named)
    needs = outputs_from(graph)
    return [node for node in graph.nodes if any(needs[name] & wanted for name in node.outputs)]
