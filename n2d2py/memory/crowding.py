"""How much of a network is in memory beside each tensor."""

from __future__ import annotations

from n2d2py.memory.problem import MemoryProblem


def bytes_beside(problem: MemoryProblem) -> dict[str, int]:
    """For each tensor the most bytes of tensors, itself among them, that are needed at one operator while it is; nothing overlaps."""
    last = len(problem.ops)
    born = dict.fromkeys(problem.inputs, 0)
    read = dict.fromkeys(problem.outputs, last)
    for at, op in enumerate(problem.ops):
        born.setdefault(op.output, at)
        for name in op.inputs:
            read[name] = max(at, read.get(name, 0))
    lives = {name: (born[name], max(born[name], read.get(name, 0))) for name in born}
    live = [sum(problem.tensors[name].bytes for name, (a, b) in lives.items() if a <= at <= b) for at in range(last + 1)]
    return {name: max(live[a : b + 1]) for name, (a, b) in lives.items()}
