"""`memory_mapping.log`: per layer, where its output lies and from which clock to which."""

from __future__ import annotations

from n2d2py.memory.plan import MemoryPlan, Plane
from n2d2py.memory.problem import MemoryProblem


def mapping_text(problem: MemoryProblem, plan: MemoryPlan) -> str:
    """The log: one block per tensor in the order of execution, one line per plane, then the arena.

    `start (hex) -> end (hex) [+ start (hex) -> end (hex)] [size] @ alloc to release`: bytes, ends
    exclusive, the second range where the plane wraps. Inputs are written at clock -1.
    """
    specs = {op.name: op for op in problem.ops}
    lines = [f"# arena {plan.arena_bytes} bytes, {plan.strategy}", "# start -> end [bytes] @ first clock to last clock"]
    for name in problem.inputs:
        lines += ["", name, "  " + _plane_line(plan.planes[name])]
    first = {step.op: step for step in reversed(plan.schedule) if not step.arrives}
    for step in (first[name] for name in plan.order):
        note = "  (view, no code)" if step.op in plan.views else "  (by lines)" if step.lines else ""
        lines += ["", step.op, "  " + _plane_line(plan.planes[specs[step.op].output]) + note]
        if step.op in plan.scratch:
            scratch = plan.scratch[step.op]
            lines.append(
                "  "
                + _range(scratch.offset, scratch.offset + scratch.size)
                + f" [{scratch.size}] @ {step.clock} to {step.clock}  (scratch)"
            )
    return "\n".join(lines) + "\n"


def _range(begin: int, end: int) -> str:
    return f"{begin} (0x{begin:08X}) -> {end} (0x{end:08X})"


def _plane_line(plane: Plane) -> str:
    life = f"[{plane.bytes}] @ {plane.alloc} to {plane.release}"
    if plane.external:
        return f"outside the arena {life}"
    ranges = plane.intervals()
    text = _range(*ranges[0])
    if len(ranges) > 1:
        text += f" + {_range(*ranges[1])}"
    stride = f" stride {plane.stride} of {plane.size}" if plane.stride != plane.size else ""
    return f"{text} {life}{stride}"
