"""Residual sums that can be stored over one of their operands, given the operator order and the lifetimes.

The operand of a sum that is computed later must be the output of a convolution without other consumers. The convolution then
adds the other operand in its epilogue and stores the sum exactly over it. Its own result is never in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from n2d2py.memory.access import Pointwise, PoolWindow, Window
from n2d2py.memory.problem import MemoryProblem

Fits = Callable[[str, str], bool]
"""Predicate: the arithmetic of a convolution and a sum, by name, can be one layer."""


@dataclass(frozen=True)
class ResidualSum:
    """A convolution with its sum: layer names, and the added tensor."""

    conv: str
    sum: str
    residual: str


def residual_sums(problem: MemoryProblem, fits: Fits = lambda conv, sum: True) -> list[ResidualSum]:
    """Return every sum of two 8-bit tensors that a convolution can compute in its epilogue, of those that `fits` allows.

    All other consumers of the residual run before the convolution. Network inputs and outputs, whose place the caller chooses,
    and tensors shared by views are excluded.
    """
    producers = {op.output: index for index, op in enumerate(problem.ops)}
    readers: dict[str, list[int]] = {}
    for index, op in enumerate(problem.ops):
        for name in op.inputs:
            readers.setdefault(name, []).append(index)
    names = problem.views
    views = {index for index, op in enumerate(problem.ops) if op.name in names}
    ends = {*problem.inputs, *problem.outputs}
    sums = []
    for index, op in enumerate(problem.ops):
        tensors = [problem.tensors[name] for name in (op.output, *op.inputs)]
        if (
            not (isinstance(op.access, Pointwise) and op.layer == "ElemWise")
            or len(set(op.inputs)) != 2
            or len(op.inputs) != 2
            or ends & {op.output, *op.inputs}
            or any((t.shape, t.element_bytes) != (tensors[0].shape, 1) for t in tensors)
        ):
            continue
        residual, result = sorted(op.inputs, key=producers.__getitem__)
        conv, others = problem.ops[producers[result]], [reader for reader in readers[residual] if reader != index]
        if (
            isinstance(conv.access, Window)
            and not isinstance(conv.access, PoolWindow)
            and readers[result] == [index]
            and producers[residual] not in views
            and all(other < producers[result] for other in others)
            and not views & {*others, *readers.get(op.output, ())}
            and fits(conv.name, op.name)
        ):
            sums.append(ResidualSum(conv.name, op.name, residual))
    return sums
