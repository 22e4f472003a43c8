"""Loops whose number of steps is known, step after step, and sequences as the list of their tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from n2d2py.frontend.onnx.model import to_array
from n2d2py.frontend.onnx.tensors import Tensors, tensors_read
from n2d2py.frontend.onnx.unsupported import Unsupported, refusing_misfits

LOOPS = ("Loop", "Scan")
SEQUENCES = (
    *("SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase", "SequenceAt", "SequenceLength"),
    *("SplitToSequence", "ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement"),
)
_MOST_STEPS = 1024
"""Steps of a loop, whose layers all become layers of the network."""
_UNKNOWN = "its number of steps is computed at run time"


def unrolled(node: onnx.NodeProto, tensors: Tensors) -> Iterator[onnx.NodeProto]:
    """The nodes of all steps of a Loop or a Scan; each is to be imported before the next one is asked for.

    Raises:
        Unsupported: where the number of steps depends on the inputs of the network.
    """
    body = next((one.g for one in node.attribute if one.name == "body"), onnx.GraphProto())
    with refusing_misfits():
        yield from (_loop if node.op_type == "Loop" else _scan)(node, body, tensors)


def _loop(node: onnx.NodeProto, body: onnx.GraphProto, tensors: Tensors) -> Iterator[onnx.NodeProto]:
    known = [
        tensors.constants.get(name) if name else np.array(most)
        for name, most in zip(node.input[:2], (np.inf, True), strict=True)
    ]
    trips, condition = known
    step, states = 0, list(node.input[2:])
    _check_steps(trips if node.input[0] and trips is not None else 0)
    made: list[list[str]] = [[] for _ in node.output[len(states) :]]
    while trips is not None and condition is not None and step < trips and condition:
        _check_steps(step)
        number = _constant(tensors, node, "step", np.array(step))
        given = [number, _constant(tensors, node, "condition", np.array(True)), *states]
        names = dict(zip((value.name for value in body.input), given, strict=True))
        yield from body_nodes(body, names, tensors)
        results = [names.get(value.name, value.name) for value in body.output]
        condition, states, step = tensors.constants.get(results[0]), results[1 : len(states) + 1], step + 1
        for one, name in zip(made, results[len(states) + 1 :], strict=True):
            one.append(name)
    if trips is None or condition is None:
        raise Unsupported(_UNKNOWN, "export the model with a fixed number of steps")
    yield from _renamed(states, node.output)
    for outer, parts in zip(node.output[len(states) :], made, strict=True):
        yield from _stacked(parts, outer, 0, tensors)


def _scan(node: onnx.NodeProto, body: onnx.GraphProto, tensors: Tensors) -> Iterator[onnx.NodeProto]:
    attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    count = attributes["num_scan_inputs"]
    first, results = len(node.input) - count, len(body.output) - (len(node.input) - count)
    if tensors.model.opset < 9:
        raise Unsupported("it scans sequences of a batch (opset 8)", "export the model with a newer opset")

    def listed(name: str, size: int) -> list[int]:
        return list(attributes.get(f"scan_{name}", [])) or [0] * size

    scanned, axes = list(node.input[first:]), listed("input_axes", count)
    shapes = [tensors.constants[name].shape if name in tensors.constants else tensors.dims_of(name) for name in scanned]
    (steps, *_), states = {shape[axis] for shape, axis in zip(shapes, axes, strict=True)}, list(node.input[:first])
    made: list[list[str]] = [[] for _ in range(results)]
    _check_steps(steps)
    for step in range(steps):
        parts = []
        for name, axis, back in zip(scanned, axes, listed("input_directions", count), strict=True):
            at = _constant(tensors, node, "step", np.array(steps - 1 - step if back else step))
            parts.append(tensors.fresh(f"{name}_step"))
            yield _read(helper.make_node("Gather", [name, at], parts[-1:], axis=axis), tensors)
        names = dict(zip((value.name for value in body.input), [*states, *parts], strict=True))
        yield from body_nodes(body, names, tensors)
        found = [names.get(value.name, value.name) for value in body.output]
        states = found[:first]
        for one, name in zip(made, found[first:], strict=True):
            one.append(name)
    yield from _renamed(states, node.output)
    ways = zip(node.output[first:], made, listed("output_axes", results), listed("output_directions", results), strict=True)
    for outer, parts, axis, back in ways:
        yield from _stacked(parts[::-1] if back else parts, outer, axis, tensors)


def _check_steps(steps: int | np.ndarray) -> None:
    if steps > _MOST_STEPS:
        raise Unsupported(f"it has more than {_MOST_STEPS:,} steps", "export the model with fewer")


def _constant(tensors: Tensors, node: onnx.NodeProto, what: str, value: np.ndarray) -> str:
    name = tensors.fresh(f"{node.output[0]}_{what}")
    tensors.constants[name] = value
    return name


def _read(node: onnx.NodeProto, tensors: Tensors) -> onnx.NodeProto:
    """A node that was made, whose results are read."""
    tensors.read.update(node.output)
    return node


def body_nodes(body: onnx.GraphProto, names: dict[str, str], tensors: Tensors) -> Iterator[onnx.NodeProto]:
    """The nodes of an inner graph with names of their own; `names` (what the graph calls a tensor: what it is called outside) gets its results."""
    for tensor in body.initializer:
        tensors.constants[tensor.name] = to_array(tensor, tensors.model.path)
    read = tensors_read(body)
    tensors.read |= read
    for node in body.node:
        _name_results(node, names, tensors)
        tensors.read.update(names[name] for name in node.output if name in read)
        yield _called(node, names, tensors)


def _name_results(node: onnx.NodeProto, names: dict[str, str], tensors: Tensors) -> None:
    for name in filter(None, node.output):
        names[name] = tensors.fresh(name)


def _called(node: onnx.NodeProto, names: Mapping[str, str], tensors: Tensors) -> onnx.NodeProto:
    """A copy with other names of tensors, in the graphs inside it too."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = [names.get(name, name) for name in node.input]
    copy.output[:] = [names.get(name, name) for name in node.output]
    for attribute in copy.attribute:
        for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            known = dict(names)
            for at, inner in enumerate(graph.node):
                _name_results(inner, known, tensors)
                graph.node[at].CopyFrom(_called(inner, known, tensors))
            for value in graph.output:
                value.name = known.get(value.name, value.name)
    return copy


def _renamed(inner: Sequence[str], outer: Sequence[str]) -> Iterator[onnx.NodeProto]:
    """Identities that bind tensors to the outputs of the node."""
    for name, result in zip(inner, outer, strict=False):
        if result:
            yield helper.make_node("Identity", [name], [result])


def _stacked(parts: list[str], outer: str, axis: int, tensors: Tensors) -> Iterator[onnx.NodeProto]:
    """One result of all steps along a new axis."""
    if not parts:
        raise Unsupported("it has no steps, so that one of its results is empty")
    if not outer:
        return
    each, by_input = [], tensors.model.opset >= 13
    axes = _constant(tensors, helper.make_node("", [], [outer]), "axis", np.array([axis])) if by_input else ""
    for name in parts:
        each.append(tensors.fresh(f"{name}_step"))
        node = (
            helper.make_node("Unsqueeze", [name, axes], each[-1:])
            if by_input
            else helper.make_node("Unsqueeze", [name], each[-1:], axes=[axis])
        )
        yield _read(node, tensors)
    yield helper.make_node("Concat", each, [outer], axis=axis)


def sequenced(node: onnx.NodeProto, sequences: dict[str, list[str]], tensors: Tensors) -> list[onnx.NodeProto]:
    """The nodes that stand for one on sequences; `sequences` has the tensors of each by name, and gets its result.

    Raises:
        Unsupported: for positions that depend on the inputs of the network.
    """
    kind, result, name = node.op_type, node.output[0], next(iter(node.input), "")
    attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    found = list(sequences.get(name, []))
    if kind == "SplitToSequence":
        sequences[result], nodes = _split(node, attributes, tensors)
        return nodes
    if kind == "OptionalHasElement":
        tensors.constants[result] = np.array(bool(name))
        return []
    if kind in ("Optional", "OptionalGetElement") and name not in sequences:
        return [*_renamed([name] if name else [], [result])]
    if kind == "SequenceLength":
        tensors.constants[result] = np.array(len(found))
        return []
    if kind == "ConcatFromSequence":
        if not attributes.get("new_axis", 0):
            return [helper.make_node("Concat", found, [result], axis=attributes["axis"])]
        return [*_stacked(found, result, attributes["axis"], tensors)]
    if kind == "SequenceConstruct":
        found = list(node.input)
    elif kind in ("SequenceInsert", "SequenceErase", "SequenceAt"):
        inserts = kind == "SequenceInsert"
        at = _position(node.input[1 + inserts :], len(found) + inserts, tensors)
        if kind == "SequenceAt":
            return [*_renamed([found[at]], [result])]
        found[at : at + (not inserts)] = [node.input[1]] * inserts
    sequences[result] = found
    return []


def _position(given: Sequence[str], count: int, tensors: Tensors) -> int:
    """The position of one of `count` tensors, the last one where it is left out."""
    if given and given[0] and given[0] not in tensors.constants:
        raise Unsupported("its position is computed at run time", "export the model without sequences")
    at = int(tensors.constants[given[0]].item()) if given and given[0] else -1
    if not -count <= at < count:
        raise Unsupported(f"its position {at} is outside {count} tensors", "export the model again")
    return at % count


def _split(node: onnx.NodeProto, attributes: Mapping[str, Any], tensors: Tensors) -> tuple[list[str], list[onnx.NodeProto]]:
    """The parts of SplitToSequence: of given lengths, of one length but for the last, or of 1."""
    x, axis = node.input[0], attributes.get("axis", 0)
    length = (tensors.constants[x].shape if x in tensors.constants else tensors.dims_of(x))[axis]
    sizes, keeps = np.ones(length, np.int64), attributes.get("keepdims", 1)
    if len(node.input) > 1:
        if node.input[1] not in tensors.constants:
            raise Unsupported("its lengths are computed at run time", "export the model with constant lengths")
        given, keeps = tensors.constants[node.input[1]], 1
        sizes = given if given.ndim else np.diff([*range(0, length, int(given)), length])
    names: list[str] = []
    nodes = []
    for size, end in zip(sizes, np.cumsum(sizes), strict=True):
        names.append(tensors.fresh(f"{node.output[0]}_part"))
        if keeps:
            bounds = [_constant(tensors, node, "bound", np.array([number])) for number in (end - size, end, axis)]
            made = helper.make_node("Slice", [x, *bounds], names[-1:])
        else:
            made = helper.make_node("Gather", [x, _constant(tensors, node, "at", np.array(end - size))], names[-1:], axis=axis)
        nodes.append(_read(made, tensors))
    return names, nodes
