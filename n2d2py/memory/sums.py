"""Sums that may be stored over one of their operands: where the order of the operators and the lifetimes of tensors allow it.

Of the two operands of a sum the one that is computed later is a convolution's output that nothing else reads. A convolution that does
the sum too stores it exactly over the other operand, which dies at it, and what it makes by itself is never in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from n2d2py.memory.access import Pointwise, PoolWindow, Window
from n2d2py.memory.problem import MemoryProblem

Fits = Callable[[str, str], bool]
"""True if the arithmetic of a convolution, by name, and of a sum can be that of one layer."""


@dataclass(frozen=True)
class ResidualSum:
    """A convolution and the sum that it does: layer names, the tensor that is added."""

    conv: str
    sum: str
    residual: str


def residual_sums(problem: MemoryProblem, fits: Fits = lambda conv, sum: True) -> list[ResidualSum]:
    """Every sum of two tensors of bytes that a convolution can do where it stores, of those that `fits` allows.

    In the order of the operators, whatever else reads the residual runs before the convolution. Inputs and outputs of the network,
    whose place is the caller's choice, and tensors that views share are left alone.
    """
    made = {op.output: at for at, op in enumerate(problem.ops)}
    readers: dict[str, list[int]] = {}
    for at, op in enumerate(problem.ops):
        for name in op.inputs:
            readers.setdefault(name, []).append(at)
    names = problem.views
    views = {at for at, op in enumerate(problem.ops) if op.name in names}
    kept = {*problem.inputs, *problem.outputs}
    found = []
    for at, op in enumerate(problem.ops):
        tensors = [problem.tensors[name] for name in (op.output, *op.inputs)]
        if (
            not (isinstance(op.access, Pointwise) and op.layer == "ElemWise")
            or len(set(op.inputs)) != 2
            or len(op.inputs) != 2
            or kept & {op.output, *op.inputs}
            or any((t.shape, t.element_bytes) != (tensors[0].shape, 1) for t in tensors)
        ):
            continue
        residual, own = sorted(op.inputs, key=made.__getitem__)
        conv, others = problem.ops[made[own]], [reader for reader in readers[residual] if reader != at]
        if (
            isinstance(conv.access, Window)
            and not isinstance(conv.access, PoolWindow)
            and readers[own] == [at]
            and made[residual] not in views
            and all(other < made[own] for other in others)
            and not views & {*others, *readers.get(op.output, ())}
            and fits(conv.name, op.name)
        ):
            found.append(ResidualSum(conv.name, op.name, residual))
    return found
