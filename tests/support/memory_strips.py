"""Memory problems with segments of operators in strips or slices, as the rewriting of a network makes them."""

from collections.abc import Sequence
from dataclasses import replace

from n2d2py.memory.access import Access, Concatenated, Joined, TensorSpec, Window
from n2d2py.memory.problem import MemoryProblem, OpSpec
from n2d2py.memory.strips import Columns, SegmentCut, beginning_at, shifted, slice_name, strip_name, window_columns


def with_strips(problem: MemoryProblem, cuts: Sequence[SegmentCut]) -> MemoryProblem:
    """Return the problem with the operators of `cuts` strip by strip, or slice by slice."""
    last = {cut.ops[-1]: cut for cut in cuts}
    inside = {name for cut in cuts for name in cut.ops}
    gone = {op.output for op in problem.ops if op.name in inside and op.name not in last}
    tensors = {name: tensor for name, tensor in problem.tensors.items() if name not in gone}
    ops: list[OpSpec] = []
    for op in problem.ops:
        if op.name in last:
            ops += _rewritten(last[op.name], problem, tensors)
        elif op.name not in inside:
            ops.append(op)
    return MemoryProblem(tensors, problem.inputs, problem.outputs, tuple(ops))


def _rewritten(cut: SegmentCut, problem: MemoryProblem, tensors: dict[str, TensorSpec]) -> list[OpSpec]:
    return _strips(cut, problem, tensors) if cut.strips else _slices(cut, problem, tensors)


def _slices(cut: SegmentCut, problem: MemoryProblem, tensors: dict[str, TensorSpec]) -> list[OpSpec]:
    """Return the operators slice by slice, with their concatenation; outputs are added to `tensors`."""
    known = {op.name: op for op in problem.ops}
    members = [known[name] for name in cut.ops]
    found, inner = [], {op.output for op in members}
    for number, (first, stop) in enumerate(cut.slices):
        for op in members:
            name = slice_name(op.output, number)
            tensors[name] = replace(problem.tensors[op.output], name=name, channels=stop - first)
            inputs = tuple(slice_name(each, number) if each in inner else each for each in op.inputs)
            found.append(replace(op, name=slice_name(op.name, number), inputs=inputs, output=name))
    names = tuple(slice_name(members[-1].output, number) for number in range(cut.count))
    return [*found, OpSpec(members[-1].name, Concatenated(), names, members[-1].output, layer="Concat")]


def _strips(cut: SegmentCut, problem: MemoryProblem, tensors: dict[str, TensorSpec]) -> list[OpSpec]:
    """Return the operators strip by strip, with the view that joins them; outputs are added to `tensors`."""
    known = {op.name: op for op in problem.ops}
    members = [known[name] for name in cut.ops]
    found = [_strip(member, problem, strip, number, tensors) for number, strip in enumerate(cut.strips) for member in members]
    names = tuple(strip_name(members[-1].output, number) for number in range(cut.count))
    return [*found, OpSpec(members[-1].name, Joined(), names, members[-1].output, layer="SideBySide")]


def narrowed(access: Access, read: Sequence[Columns], columns: Columns, height: int) -> Access:
    """Return `access` for an operator that computes only `columns` of its output: input n holds the columns `read[n]`, and
    `height` is that of the output."""
    if isinstance(access, Window):
        return beginning_at(access, window_columns(access, columns), read[0])
    if all(each == columns for each in read):
        return access
    return shifted([columns[0] - begin for begin, _ in read], height, columns[1] - columns[0], access)


def _strip(
    op: OpSpec, problem: MemoryProblem, strip: dict[str, Columns], number: int, tensors: dict[str, TensorSpec]
) -> OpSpec:
    """Return an operator for one strip; its output is added to `tensors`."""
    output = problem.tensors[op.output]
    first, stop = columns = strip[op.output]
    name = strip_name(op.output, number)
    tensors[name] = replace(output, name=name, width=stop - first)
    read = [strip.get(each, (0, problem.tensors[each].width)) for each in op.inputs]
    inputs = tuple(strip_name(each, number) if each in strip else each for each in op.inputs)
    return replace(
        op,
        name=strip_name(op.name, number),
        access=narrowed(op.access, read, columns, output.height),
        inputs=inputs,
        output=name,
    )
