"""Unrolling of loops with a known number of steps, and sequences as lists of tensors."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import onnx
from onnx import helper

from n2d2py.contracts.onnx.skeleton import subgraphs, tensors_read
from n2d2py.contracts.onnx.tensors import Tensors, Unsupported, refuse_misfits
from n2d2py.frontend.onnx.model import to_array
from n2d2py.frontend.onnx.parts import Parts

LOOPS = ("Loop", "Scan")
SEQUENCES = (
    *("SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase", "SequenceAt", "SequenceLength"),
    *("SplitToSequence", "ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement"),
)
_MAX_STEPS = 1024
"""Largest number of steps of a loop; each adds its layers to the network."""
_NO_LIMIT = (2**31 - 1, 2**63 - 1)
"""Numbers of steps of loops that their conditions end, as tf2onnx writes them."""


def unroll_loop(parts: Parts, tensors: Tensors) -> Iterator[onnx.NodeProto]:
    """Yield the nodes of all steps of a Loop or a Scan; the caller imports each before it requests the next.

    Raises Unsupported: the number of steps depends on the inputs of the network.
    """
    with refuse_misfits():
        yield from (_unroll_loop if parts.type == "Loop" else _unroll_scan)(parts, parts.attribute("body"), tensors)


def _unroll_loop(parts: Parts, body: onnx.GraphProto, tensors: Tensors) -> Iterator[onnx.NodeProto]:
    trips = tensors.constants.get(parts.inputs[0]) if parts.has(0) else np.array(np.inf)
    condition = tensors.constants.get(parts.inputs[1]) if parts.has(1) else np.array(True)
    step, states, outputs = 0, parts.inputs[2:], parts.outputs
    _check_steps(0 if not parts.has(0) or trips is None or trips in _NO_LIMIT else trips)
    scanned: list[list[str]] = [[] for _ in outputs[len(states) :]]
    while trips is not None and condition is not None and step < trips and condition:
        _check_steps(step)
        inputs = [parts.add_constant("step", np.array(step)), parts.add_constant("condition", np.array(True)), *states]
        results: list[str] = []
        yield from body_nodes(body, inputs, results, tensors)
        condition, states, step = tensors.constants.get(results[0]), results[1 : len(states) + 1], step + 1
        for one, name in zip(scanned, results[len(states) + 1 :], strict=True):
            one.append(name)
    if trips is None or condition is None:
        raise Unsupported("its number of steps is computed at run time", "export the model with a fixed number of steps")
    yield from _add_outputs(parts, states, [(one, 0) for one in scanned])


def _unroll_scan(parts: Parts, body: onnx.GraphProto, tensors: Tensors) -> Iterator[onnx.NodeProto]:
    count = parts.attribute("num_scan_inputs")
    first = len(parts.inputs) - count
    results = len(body.output) - first
    if parts.opset < 9:
        raise Unsupported("it scans sequences of a batch (opset 8)", "export the model with a newer opset")

    def listed(name: str, size: int) -> list[int]:
        return list(parts.attribute(f"scan_{name}", [])) or [0] * size

    states, scanned, axes = parts.inputs[:first], parts.inputs[first:], listed("input_axes", count)
    (steps, *_) = {parts.dims(first + at)[axis] for at, axis in enumerate(axes)}
    outputs: list[list[str]] = [[] for _ in range(results)]
    _check_steps(steps)
    for step in range(steps):
        read = []
        for name, axis, back in zip(scanned, axes, listed("input_directions", count), strict=True):
            at = parts.add_constant("step", np.array(steps - 1 - step if back else step))
            read.append(parts.fresh("read"))
            yield helper.make_node("Gather", [name, at], read[-1:], axis=axis)
        found: list[str] = []
        yield from body_nodes(body, [*states, *read], found, tensors)
        states = found[:first]
        for one, name in zip(outputs, found[first:], strict=True):
            one.append(name)
    ways = zip(outputs, listed("output_axes", results), listed("output_directions", results), strict=True)
    yield from _add_outputs(parts, states, [(one[::-1] if back else one, axis) for one, axis, back in ways])


def _add_outputs(parts: Parts, states: Sequence[str], scanned: Sequence[tuple[list[str], int]]) -> list[onnx.NodeProto]:
    """Add the nodes of a loop's outputs: the last states, and the step results stacked along new axes; return all nodes."""
    for out, name in enumerate(states):
        if parts.outputs[out]:
            parts.add("Identity", name, out=out)
    for out, (names, axis) in enumerate(scanned, len(states)):
        _add_stack(parts, names, axis, out)
    return parts.nodes


def _check_steps(steps: int | np.ndarray) -> None:
    if steps > _MAX_STEPS:
        raise Unsupported(f"it has more than {_MAX_STEPS:,} steps", "export the model with fewer")


def body_nodes(body: onnx.GraphProto, inputs: list[str], results: list[str], tensors: Tensors) -> Iterator[onnx.NodeProto]:
    """Yield the nodes of a subgraph under new names, then set `results`, the outer names of its outputs."""
    names = dict(zip((value.name for value in body.input), inputs, strict=True))
    for tensor in body.initializer:
        tensors.constants[tensor.name] = to_array(tensor, tensors.model.path)
    read = tensors_read(body.node).union(value.name for value in body.output)
    tensors.read |= read
    for node in body.node:
        _name_results(node, names, tensors)
        tensors.read.update(names[name] for name in node.output if name in read)
        yield _renamed_copy(node, names, tensors)
    results[:] = [names.get(value.name, value.name) for value in body.output]


def _name_results(node: onnx.NodeProto, names: dict[str, str], tensors: Tensors) -> None:
    for name in filter(None, node.output):
        names[name] = tensors.fresh(name)


def _renamed_copy(node: onnx.NodeProto, names: Mapping[str, str], tensors: Tensors) -> onnx.NodeProto:
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = [names.get(name, name) for name in node.input]
    copy.output[:] = [names.get(name, name) for name in node.output]
    for graph in subgraphs(copy):
        known = dict(names)
        for index, inner in enumerate(graph.node):
            _name_results(inner, known, tensors)
            graph.node[index].CopyFrom(_renamed_copy(inner, known, tensors))
        for value in graph.output:
            value.name = known.get(value.name, value.name)
    return copy


def _add_stack(parts: Parts, names: Sequence[str], axis: int, out: int) -> None:
    if not names:
        raise Unsupported("it has no steps, so that one of its results is empty")
    if not parts.outputs[out]:
        return
    parts.add("Concat", *(parts.add_along("Unsqueeze", name, [axis], 13) for name in names), out=out, axis=axis)


def expand_sequence(parts: Parts, sequences: dict[str, list[str]]) -> None:
    """Add the nodes that replace a sequence operator; `sequences` has the tensors of each by name, and gets its result.

    Raises Unsupported: a position depends on the inputs of the network.
    """
    kind, result, name = parts.type, parts.outputs[0], next(iter(parts.inputs), "")
    match = list(sequences.get(name, []))
    if kind == "OptionalHasElement":
        parts.add("Identity", parts.add_constant("known", np.array(bool(name))), out=0)
    elif kind in ("Optional", "OptionalGetElement") and name not in sequences:
        if name:
            parts.add("Identity", name, out=0)
    elif kind == "SequenceLength":
        parts.add("Identity", parts.add_constant("length", np.array(len(match))), out=0)
    elif kind == "ConcatFromSequence" and parts.attribute("new_axis", 0):
        _add_stack(parts, match, parts.attribute("axis"), 0)
    elif kind == "ConcatFromSequence":
        parts.add("Concat", *match, out=0, axis=parts.attribute("axis"))
    elif kind == "SequenceAt":
        parts.add("Identity", match[_list_position(parts, 1, len(match))], out=0)
    else:
        sequences[result] = _changed_sequence(parts, kind, match)


def _changed_sequence(parts: Parts, kind: str, items: list[str]) -> list[str]:
    if kind == "SplitToSequence":
        return _split_to_sequence(parts)
    if kind == "SequenceConstruct":
        return parts.inputs
    if kind == "SequenceInsert":
        items.insert(_list_position(parts, 2, len(items) + 1), parts.inputs[1])
    elif kind == "SequenceErase":
        del items[_list_position(parts, 1, len(items))]
    return items


def _list_position(parts: Parts, index: int, count: int) -> int:
    """Return a position among `count` tensors; the last one if input `index` is absent."""
    position = parts.integer(index, "position")
    return range(count)[-1 if position is None else position]


def _split_to_sequence(parts: Parts) -> list[str]:
    """Add the parts of SplitToSequence: of given lengths, of one length (the last may be shorter), or of 1."""
    x, axis, lengths = parts.inputs[0], parts.attribute("axis", 0), parts.optional_constant(1, "list of lengths")
    length = parts.dims(0)[axis]
    if lengths is None and not parts.attribute("keepdims", 1):
        return [parts.add("Gather", x, parts.add_constant("at", np.array(index)), axis=axis) for index in range(length)]
    sizes = np.ones(length, np.int64) if lengths is None else lengths
    return parts.split(x, axis, (sizes if sizes.ndim else np.diff([*range(0, length, int(sizes)), length])).tolist())
