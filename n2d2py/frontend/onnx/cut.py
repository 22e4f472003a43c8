"""Extraction of a part of an ONNX model between given input and output tensors."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import onnx

from n2d2py.contracts.onnx.skeleton import tensor_types, tensors_read
from n2d2py.errors import Location, N2D2Error, suggest


@dataclass(frozen=True)
class Cut:
    """Names of the tensors that become the inputs and outputs of a model; empty for the model's own."""

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()

    @classmethod
    def of(cls, inputs: str | Sequence[str] | None, outputs: str | Sequence[str] | None) -> Cut:
        """Return the cut for names, or for comma-separated strings."""
        texts = (each.split(",") if isinstance(each, str) else each or () for each in (inputs, outputs))
        return cls(*(tuple(name.strip() for name in names) for names in texts))

    def apply(self, proto: onnx.ModelProto, path: str) -> None:
        """Replace the inputs and outputs of a model, and remove dead code.

        A model input that the outputs still need remains.

        Raises N2D2Error: E305 an unknown tensor, a duplicate, one without effect, or one of unknown shape.
        """
        if not (self.inputs or self.outputs):
            return
        graph = proto.graph
        producers = {name: node for node in graph.node for name in node.output if name}
        stored = {tensor.name for tensor in graph.initializer}
        declared = [value for value in graph.input if value.name not in stored]
        self._check({*producers, *(value.name for value in declared)}, path)
        outputs = self.outputs or tuple(value.name for value in graph.output)
        read = self._find_dependencies(outputs, producers)
        for name in self.inputs:
            if name not in read:
                raise _cut_error(path, f"the input '{name}' has no effect, as no output depends on it", "leave it out")
        types = tensor_types(proto)
        nodes = [node for node in graph.node if any(name in read and name not in self.inputs for name in node.output)]
        ends = [value for value in declared if value.name in read and value.name not in self.inputs]
        inputs = [_typed_tensor(name, types, path) for name in self.inputs] + ends
        results = [types.get(name) or onnx.helper.make_empty_tensor_value_info(name) for name in outputs]
        constants = [tensor for tensor in graph.initializer if tensor.name in read]
        for field, values in (("node", nodes), ("input", inputs), ("output", results), ("initializer", constants)):
            copies = [type(value).FromString(value.SerializeToString()) for value in values]
            graph.ClearField(field)
            getattr(graph, field).extend(copies)

    def _check(self, known: set[str], path: str) -> None:
        for option, names in (("-inputs", self.inputs), ("-outputs", self.outputs)):
            for name in names:
                if name not in known:
                    remedy = suggest(name, known, "-describe lists the results of the layers")
                    raise _cut_error(path, f"{option} names '{name}', which is not a tensor of the model", remedy)
                if names.count(name) > 1:
                    raise _cut_error(path, f"{option} names '{name}' twice", "name it once")

    def _find_dependencies(self, outputs: tuple[str, ...], producers: dict[str, onnx.NodeProto]) -> set[str]:
        read, pending = set(), list(outputs)
        while pending:
            name = pending.pop()
            if name not in read and name not in self.inputs and name in producers:
                pending += tensors_read([producers[name]])
            read.add(name)
        return read


_MOST_PROPOSED = 12


def propose_outputs(nodes: Iterable[tuple[Sequence[str], Sequence[str]]], refused: set[str], outputs: Sequence[str]) -> str:
    """Return the remedy that ends a model before its refused nodes; "" if less than a third of the nodes would be left.

    `nodes`: inputs and outputs of each, in order. `refused`: results of the refused nodes. `outputs`: those of the model.
    """
    kept: dict[str, None] = {}
    lost, ends, left, count = set(refused), set(outputs), 0, 0
    for read, written in nodes:
        count += 1
        if lost.isdisjoint((*read, *written)):
            left += 1
            kept.update(dict.fromkeys(written))
        else:
            lost.update(written)
            ends.update(read)
    names = [name for name in kept if name in ends]
    if 3 * left < count or not 0 < len(names) <= _MOST_PROPOSED or any("," in name for name in names):
        return ""
    return f"; or end the model before it: -outputs {shlex.quote(','.join(names))}"


def _typed_tensor(name: str, types: dict[str, onnx.ValueInfoProto], path: str) -> onnx.ValueInfoProto:
    match = types.get(name)
    if match is None or not match.type.tensor_type.HasField("shape"):
        remedy = "name a tensor with a known shape, or run onnx.shape_inference on the file"
        raise _cut_error(path, f"the shape of the input '{name}' is not known", remedy)
    return match


def _cut_error(path: str, what: str, remedy: str) -> N2D2Error:
    return N2D2Error("E305", what, where=Location(path), remedy=remedy)
