"""The float network: tensors by name, and nodes in topological order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from n2d2py.errors import InternalError, Location, N2D2Error
from n2d2py.graph.node import Node, Precision
from n2d2py.graph.port import Ends, FilePort
from n2d2py.graph.shapes import MAX_TENSOR, Shape, dims_text, elements

if TYPE_CHECKING:
    from n2d2py.contracts.operator import Op


Predicate = Callable[[Node], bool]


class Links:
    """Index of the producer of each tensor (`writer`) and of its consumers (`readers`, in the order of the network, each once).
    It follows the rewrites of the graph. `members` are the ids of the nodes."""

    def __init__(self, nodes: Iterable[Node]):
        self.writer: dict[str, Node] = {}
        self.readers: dict[str, list[Node]] = {}
        self.members: set[int] = set()
        for node in nodes:
            self.add(node)

    def add(self, node: Node, nodes: Sequence[Node] = ()) -> None:
        """Add a node; `nodes`: those of the network, if it is not the last one."""
        self.members.add(id(node))
        for name in node.outputs:
            self.writer.setdefault(name, node)
        for name in dict.fromkeys(node.inputs):
            self.readers.setdefault(name, []).append(node)
            if nodes:
                self._in_order(name, nodes)

    def remove(self, node: Node) -> None:
        """Remove a node."""
        self.members.discard(id(node))
        for name in node.outputs:
            if self.writer.get(name) is node:
                del self.writer[name]
        for name in dict.fromkeys(node.inputs):
            self.readers[name].remove(node)

    def redirect(self, old: str, new: str, nodes: list[Node]) -> None:
        """Let the consumers of `old` read `new`."""
        moved = self.readers.pop(old, [])
        present = self.readers.setdefault(new, [])
        known = {id(node) for node in present}
        present += [node for node in moved if id(node) not in known]
        self._in_order(new, nodes)

    def differ(self, other: Links) -> bool:
        """True if two indexes disagree about any tensor in use."""
        read, also_read = ({name: nodes for name, nodes in one.readers.items() if nodes} for one in (self, other))
        return (read, self.writer, self.members) != (also_read, other.writer, other.members)

    def _in_order(self, name: str, nodes: Sequence[Node]) -> None:
        if len(self.readers[name]) > 1:
            self.readers[name].sort(key=nodes.index)


@dataclass(frozen=True)
class Tensor:
    """A value on an edge: its name and its shape with batch 1 (channel axis second).

    `kind` is "" for real numbers, whose type the export chooses, or a fixed type ("bool", "int64", ...).
    """

    name: str
    shape: Shape
    kind: str = ""


def complete_params(params: Mapping[str, np.ndarray | None]) -> tuple[dict[str, np.ndarray], bool]:
    """Return the parameters with zeros for a bias of None, and whether it was (`Node.unbiased`). Raises InternalError for
    others."""
    arrays = {role: array for role, array in params.items() if array is not None}
    missing = [role for role in params if role not in arrays]
    if any(role != "bias" for role in missing):
        raise InternalError(f"parameters without values: {', '.join(missing)}")
    return arrays | {role: np.zeros(len(arrays["weights"]), np.float32) for role in missing}, bool(missing)


class Graph(Ends):
    """A network of float operators. `nodes` are in execution order; every tensor has one producer.

    Attributes:
        aliases: name of a removed tensor or layer -> tensor that now holds its result.
        precisions: requested precision by layer name; it survives the merging of layers.
        states: number of last inputs that are states: the last outputs of the previous call, in the same order; 0 at first.
        calls: number of samples that are consecutive calls between two resets; 0: all samples.
        input_ports, output_ports: inputs and outputs as in the file, in order; empty without a file.
        float_inputs: inputs that an integer network takes in floating point.
    """

    def __init__(self, name: str):
        self.name = name
        self.tensors: dict[str, Tensor] = {}
        self.nodes: list[Node] = []
        self.inputs: list[str] = []
        self.outputs: list[str] = []
        self.aliases: dict[str, str] = {}
        self.precisions: dict[str, Precision] = {}
        self.states = 0
        self.calls = 0
        self.input_ports: list[FilePort] = []
        self.output_ports: list[FilePort] = []
        self.float_inputs: frozenset[str] = frozenset()
        self._index = Links(())
        self._known: tuple[list[Node], int, int] | None = None

    # ---- the index ------------------------------------------------------------------------
    def _state(self) -> tuple[list[Node], int, int]:
        return self.nodes, len(self.nodes), Node.edits

    @property
    def element_count(self) -> int:
        """The number of elements of all tensors."""
        return sum(elements(tensor.shape) for tensor in self.tensors.values())

    @property
    def _links(self) -> Links:
        """Return the index of producers and consumers, rebuilt after changes that it did not follow."""
        known = self._known
        if known is None or known[0] is not self.nodes or known[1:] != (len(self.nodes), Node.edits):
            self._index = Links(self.nodes)
            self._known = self._state()
        return self._index

    # ---- building -------------------------------------------------------------------------
    def add_input(self, name: str, shape: Shape, kind: str = "") -> str:
        """Declare a network input; return its name. Raises N2D2Error (E240 if its size is 0 or too large)."""
        check_size(f"the input '{name}'", shape, None)
        self.tensors[name] = Tensor(name, tuple(shape), kind)
        self.inputs.append(name)
        return name

    def add(self, node: Node, at: int | None = None) -> Node:
        """Append a node, or insert it at index `at`, and compute the shapes of its outputs. Raises N2D2Error if the operator
        cannot take these shapes; E240 if its result would be empty or huge. Raises InternalError if an input is unknown or an
        output has another producer."""
        for name in node.inputs:
            if name not in self.tensors:
                raise InternalError(f"{node.name} reads the unknown tensor {name}")
        shapes = node.op.output_shapes([self.tensors[name].shape for name in node.inputs], node)
        if len(shapes) != len(node.outputs):
            raise InternalError(f"{node.name}: {len(shapes)} shapes for {len(node.outputs)} outputs")
        kinds = node.op.output_kinds([self.tensors[name].kind for name in node.inputs], node)
        for name, shape, kind in zip(node.outputs, shapes, kinds, strict=True):
            check_size(f"the output of {node.op.kind} '{node.name}'", shape, node.location)
            if name in self.tensors:
                raise InternalError(f"tensor {name} is written twice")
            self.tensors[name] = Tensor(name, tuple(int(d) for d in shape), kind)
        links = self._links
        self.nodes.insert(len(self.nodes) if at is None else at, node)
        links.add(node, () if at is None else self.nodes)
        self._known = self._state()
        return node

    def add_before(self, node: Node, op: Op, source: str, name: str, params: dict[str, np.ndarray] | None = None) -> str:
        """Insert a helper layer with one input directly before `node`; return its output, `name` or a fresh name like it."""
        name = self.fresh_name(name)
        layer = Node(name, op, [source], [name], params or {}, location=node.location, helper=True)
        return self.add(layer, self.nodes.index(node)).output

    def view_output(self, node: Node, inner: str, dims: tuple[int, ...], view: Op) -> Node:
        """Let `node` write a fresh tensor like `inner` of `dims`, and add after it, and return, the helper layer `view` that turns
        this tensor into the former output."""
        output, inner = node.output, self.fresh_name(inner)
        self.tensors[inner] = Tensor(inner, (1, *dims))
        node.outputs = [inner]
        layer = Node(self.fresh_name(f"{output}_view"), view, [inner], [output], location=node.location, helper=True)
        self.nodes.insert(self.nodes.index(node) + 1, layer)
        return layer

    def add_after(self, node: Node, op: Op, inner: str, name: str) -> Node:
        """Insert a layer that takes over the output of `node`, whose result gets a fresh name like `inner`; return the layer."""
        result, inner = node.output, self.fresh_name(inner)
        self.tensors[inner] = replace(self.tensors.pop(result), name=inner)
        node.outputs = [inner]
        layer = Node(self.fresh_name(name), op, [inner], [result], location=node.location)
        return self.add(layer, self.nodes.index(node) + 1)

    # ---- asking ---------------------------------------------------------------------------
    def kind(self, tensor: str) -> str:
        """Return the kind of a tensor: "" for real numbers."""
        return self.tensors[tensor].kind

    def producer(self, tensor: str) -> Node | None:
        """Return the node that writes `tensor`; None for an input."""
        return self._links.writer.get(tensor)

    def required_producer(self, tensor: str) -> Node:
        """Return the node that writes `tensor`. Raises InternalError for an input."""
        node = self.producer(tensor)
        if node is None:
            raise InternalError(f"no layer writes {tensor}")
        return node

    def consumers(self, tensor: str) -> list[Node]:
        """Return the nodes that read `tensor`, in order, each once."""
        return list(self._links.readers.get(tensor, ()))

    def producers(self, node: Node) -> list[Node]:
        """Return the nodes that write the inputs of `node`, one for each input that is not a network input."""
        return [producer for name in node.inputs if (producer := self.producer(name)) is not None]

    def followers(self, node: Node) -> list[Node]:
        """Return the nodes that read the outputs of `node`."""
        return [reader for name in node.outputs for reader in self.consumers(name)]

    def __contains__(self, node: object) -> bool:
        """True if a node is part of the network."""
        return id(node) in self._links.members

    def sole_consumer(self, tensor: str) -> Node | None:
        """Return the only consumer of `tensor`; None if it has several or none, or is a network output."""
        readers = self.consumers(tensor)
        return readers[0] if len(readers) == 1 and tensor not in self.outputs else None

    def feeds_only(self, tensor: str, accepts: Predicate, passes: Predicate = lambda node: False) -> bool:
        """True if a tensor has consumers, and each is accepted or passes it on to a tensor for which the same is true."""
        readers = self.consumers(tensor)
        return bool(readers) and all(
            accepts(node) or (passes(node) and self.feeds_only(node.output, accepts, passes)) for node in readers
        )

    def joins_ends(self, node: Node) -> bool:
        """True if removing this node would turn a network output into an input or a second output."""
        return node.output in self.outputs and (node.inputs[0] in self.inputs or node.inputs[0] in self.outputs)

    def is_last(self, tensor: str) -> bool:
        """True if a tensor, or a copy of it, is a network output and nothing computes with it."""
        readers = self.consumers(tensor)
        moved = all(one.op.moves_values and one.activation is None and self.is_last(one.output) for one in readers)
        return moved and (bool(readers) or tensor in self.outputs)

    def node(self, name: str) -> Node:
        """Return the node called `name`. Raises KeyError if there is none."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)

    def precision(self, node: Node) -> Precision:
        """Return the precision requested for a layer, by its name or that of a layer merged into it; the last one counts."""
        result = Precision()
        for name in dict.fromkeys([node.name, *node.source]):
            requested = self.precisions.get(name)
            result = requested.over(result) if requested is not None else result
        return result

    def resolve(self, name: str) -> str | None:
        """Return the tensor that holds the result of a layer or tensor called `name`, or None."""
        visited = set()
        while name in self.aliases and name not in visited:
            visited.add(name)
            name = self.aliases[name]
        if name in self.tensors:
            return name
        return next((node.outputs[0] for node in self.nodes if name in node.source), None)

    # ---- rewriting ------------------------------------------------------------------------
    def bypass(self, node: Node) -> None:
        """Remove a node with one input and one output: its consumers read its input instead."""
        self.remove(node)
        self.redirect(node.output, node.inputs[0])

    def remove(self, node: Node) -> None:
        """Remove a node from the list. Its output tensors stay until they are redirected."""
        links = self._links
        self.nodes.remove(node)
        links.remove(node)
        self._known = self._state()

    def redirect(self, old: str, new: str) -> None:
        """Let all consumers of `old`, and the network outputs, use `new`; `old` becomes its alias."""
        links = self._links
        for node in self.consumers(old):
            node.inputs = [new if name == old else name for name in node.inputs]
        links.redirect(old, new, self.nodes)
        self._known = self._state()
        self.outputs = [new if name == old else name for name in self.outputs]
        self.tensors.pop(old, None)
        self.aliases[old] = new

    def rename_tensor(self, old: str, new: str) -> None:
        """Rename a tensor. The layer that writes it keeps its name."""

        def renamed(names: Iterable[str]) -> list[str]:
            return [new if name == old else name for name in names]

        self.tensors = {one.name: one for one in (replace(t, name=new) if t.name == old else t for t in self.tensors.values())}
        for node in self.nodes:
            node.inputs, node.outputs = renamed(node.inputs), renamed(node.outputs)
        self.inputs, self.outputs = renamed(self.inputs), renamed(self.outputs)
        self.float_inputs = frozenset(renamed(self.float_inputs))
        self.aliases = dict(zip(self.aliases, renamed(self.aliases.values()), strict=True))

    def fresh_name(self, name: str) -> str:
        """Return `name` with underscores appended until no tensor and no layer has it."""
        names = set(self.tensors) | {node.name for node in self.nodes}
        while name in names:
            name += "_"
        return name

    def absorb(self, node: Node, consumer: Node) -> None:
        """Replace the output of `node` by that of its only consumer, which is removed.

        The tensor between them disappears; its name becomes an alias of the result.
        """
        between, result = node.output, consumer.output
        self.remove(consumer)
        links = self._links
        self.tensors.pop(between)
        node.outputs = [result]
        del links.writer[between]
        links.writer[result] = node
        self._known = self._state()
        node.source = node.source + consumer.source
        self.aliases[between] = result

    def prune(self) -> list[Node]:
        """Remove dead nodes, whose results reach no output; return them."""
        needed, remaining, dropped = set(self.outputs), [], []
        for node in reversed(self.nodes):
            if needed.intersection(node.outputs):
                needed.update(node.inputs)
                remaining.append(node)
            else:
                dropped.append(node)
        self.nodes = remaining[::-1]
        present = needed | set(self.inputs) | {name for node in remaining for name in node.outputs}
        self.tensors = {name: t for name, t in self.tensors.items() if name in present}
        return dropped[::-1]

    def copy(self) -> Graph:
        """Return a copy that can be rewritten independently; parameter arrays are shared."""
        other = Graph(self.name)
        other.__dict__.update({name: copy(value) for name, value in self.__dict__.items()})
        other.nodes = [
            replace(n, inputs=list(n.inputs), outputs=list(n.outputs), params=dict(n.params), source=list(n.source))
            for n in self.nodes
        ]
        other._known = None
        return other

    # ---- checking and dumping ---------------------------------------------------------------
    def verify(self) -> None:
        """Check order, producers, shapes and names. Raises InternalError with the first broken invariant."""
        if Links(self.nodes).differ(self._links):
            raise InternalError("a node was reconnected without updating the index of the graph")
        known, names = set(self.inputs), set()
        for node in self.nodes:
            if node.name in names:
                raise InternalError(f"two nodes are called {node.name}")
            names.add(node.name)
            missing = [name for name in node.inputs if name not in known]
            if missing:
                raise InternalError(f"{node.name} reads {missing[0]} before it is written")
            shapes = node.op.output_shapes([self.shape(name) for name in node.inputs], node)
            for name, shape in zip(node.outputs, shapes, strict=True):
                if name in known:
                    raise InternalError(f"{name} is written twice")
                if self.shape(name) != tuple(shape):
                    raise InternalError(f"{name}: shape {self.shape(name)}, operator says {tuple(shape)}")
                known.add(name)
        self.verify_outputs(known)

    def dump(self) -> dict[str, Any]:
        """Return the graph as plain data, without parameter values."""
        return {
            "name": self.name,
            "inputs": {name: list(self.shape(name)) for name in self.inputs},
            "outputs": list(self.outputs),
            **({"states": self.states} if self.states else {}),
            **({"float_inputs": sorted(self.float_inputs)} if self.float_inputs else {}),
            "nodes": [
                {
                    "name": n.name,
                    "op": repr(n.op),
                    "inputs": n.inputs,
                    "outputs": {name: list(self.shape(name)) for name in n.outputs},
                    "params": {role: list(a.shape) for role, a in sorted(n.params.items())},
                    "activation": repr(n.activation) if n.activation else None,
                }
                for n in self.nodes
            ],
        }


def check_size(what: str, shape: Shape, where: Location | None) -> None:
    count = elements(shape)
    if not 0 < count <= MAX_TENSOR:
        text = f"{count:,} elements, at most {MAX_TENSOR:,} are supported" if count else "no elements"
        raise N2D2Error("E240", f"{what} of {dims_text(shape[1:])} has {text}", where=where, remedy="correct its dimensions")
