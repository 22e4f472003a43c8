"""In which order operators read their inputs and store their outputs, as far as planning needs it.

Kernel contract: output lines are stored in order, any order inside a line (windows); pointwise
operators read all operands of an element before they store it, forwards; the others may read
anything at any time.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from n2d2py.memory.problem import OpSpec, TensorSpec

__all__ = [
    "TYPES",
    "Access",
    "access_of",
    "accumulates",
    "dead_lines",
    "faults",
    "in_known_terms",
    "partial_bytes",
    "scale_of",
    "table_lines",
    "work",
]


class Access(Enum):
    """How the output of an operator may lie over an input that dies at it."""

    WINDOW = "lines of the input die one after the other"
    POINTWISE = "element i of the input dies when element i of the output is stored"
    WHOLE = "the input is needed until the last store"
    VIEW = "no code: the output is the input's bytes"


TYPES: dict[str, Access] = {
    "conv": Access.WINDOW,
    "pool": Access.WINDOW,
    "pad": Access.WINDOW,
    "upsample": Access.WINDOW,
    "window": Access.WINDOW,
    "add": Access.POINTWISE,
    "ew": Access.POINTWISE,
    "fc": Access.WHOLE,
    "softmax": Access.WHOLE,
    "concat": Access.WHOLE,
    "copy": Access.WHOLE,
    "normalize": Access.WHOLE,
    "reshape": Access.VIEW,
}


def access_of(op: OpSpec, source: TensorSpec, output: TensorSpec) -> Access:
    """How `op` goes through `source`: a broadcast operand of a pointwise operator is needed to the
    end.
    """
    kind = TYPES[op.type]
    return Access.WHOLE if kind is Access.POINTWISE and source.shape != output.shape else kind


def accumulates(op: OpSpec, tensors: dict[str, TensorSpec]) -> bool:
    """Whether the operator can take its input line by line into partial results: a pool over the whole input."""
    if op.type != "pool":
        return False
    source, output = tensors[op.inputs[0]], tensors[op.output]
    window = (op.attributes["kh"], op.attributes["kw"])
    return (
        window == (source.height, source.width)
        and not any(op.attributes["pads"])
        and (output.height, output.width) == (1, 1)
        and source.height > 1
    )


def partial_bytes(op: OpSpec, tensors: dict[str, TensorSpec]) -> int:
    """Bytes of the partial results of an operator that accumulates; `sum_bytes` for each channel."""
    return tensors[op.output].channels * op.attributes.get("sum_bytes", 4)


def in_known_terms(op: OpSpec, tensors: dict[str, TensorSpec]) -> bool:
    """Whether any reader of maps knows the operator: no "window", one factor or dilation for both axes, and operands of
    the output's shape.
    """
    if TYPES[op.type] is Access.POINTWISE:
        return all(tensors[name].shape == tensors[op.output].shape for name in op.inputs)
    return op.type != "window" and all(isinstance(op.attributes.get(key, 1), int) for key in ("scale", "dil"))


def scale_of(op: OpSpec) -> tuple[int, int]:
    """The factors (vertical, horizontal) of an upsample."""
    scale = op.attributes["scale"]
    return (scale[0], scale[1]) if isinstance(scale, (list, tuple)) else (scale, scale)


def table_lines(op: OpSpec, name: str) -> list[range]:
    """For each line of the output of a "window" the lines of an input that it reads, as one range."""
    tables = [table for source, table in zip(op.inputs, op.attributes["lines"], strict=True) if source == name]
    return [
        range(min(first for first, _ in each), max(stop for _, stop in each)) if each else range(0)
        for each in ([pair for pair in pairs if pair[0] < pair[1]] for pairs in zip(*tables, strict=True))
    ]


def dead_lines(op: OpSpec, source: TensorSpec) -> Callable[[int], int]:
    """For a window operator: y -> how many leading input lines no output line >= y reads."""
    height = source.height
    if op.type == "window":
        needed = height
        firsts = []
        for lines in reversed(table_lines(op, source.name)):
            needed = min(needed, lines.start if lines else needed)
            firsts.append(needed)
        firsts.reverse()
        return lambda y: firsts[y] if y < len(firsts) else height
    if op.type == "upsample":
        factor = scale_of(op)[0]
        return lambda y: min(height, y // factor)
    stride = op.attributes["sh"] if op.type != "pad" else 1
    top = op.attributes["pads"][0]
    return lambda y: min(height, max(0, y * stride - top))


def work(op: OpSpec, tensors: dict[str, TensorSpec]) -> int:
    """About what an operator computes, in multiply-accumulates; a byte read or stored counts as four."""
    output = tensors[op.output]
    moved = output.bytes + sum(tensors[name].bytes for name in op.inputs)
    if op.type not in ("conv", "pool"):
        return 4 * moved
    taps = op.attributes["kh"] * op.attributes["kw"]
    depth = tensors[op.inputs[0]].channels // op.attributes.get("groups", 1) if op.type == "conv" else 1
    return prod(output.shape) * taps * depth + 4 * moved


def faults(op: OpSpec, tensors: dict[str, TensorSpec]) -> list[str]:
    """What is wrong with an operator whose tensors all exist; empty when nothing is."""
    if op.type not in TYPES:
        return [f"the operator type {op.type} is unknown; known: {', '.join(sorted(TYPES))}"]
    if not op.inputs:
        return ["the operator reads nothing"]
    if op.scratch_bytes < 0:
        return [f"scratch of {op.scratch_bytes} bytes"]
    sources, output = [tensors[name] for name in op.inputs], tensors[op.output]
    found = []
    if TYPES[op.type] in (Access.WINDOW, Access.VIEW) and op.type != "window" and len(sources) != 1:
        found.append(f"a {op.type} reads one tensor, not {len(sources)}")
    found += [f"{op.type} needs the attribute {key}" for key in _REQUIRED.get(op.type, ()) if key not in op.attributes]
    if found:
        return found
    if op.type in ("conv", "pool"):
        found += _window_faults(op, sources[0], output)
        found += _residual_faults(op, tensors)
    elif op.type == "window":
        found += _table_faults(op, sources, output)
    elif op.type == "reshape":
        if prod(sources[0].shape) != prod(output.shape) or sources[0].element_bytes != output.element_bytes:
            found.append(f"{sources[0].shape} cannot be seen as {output.shape}")
    elif op.type == "concat":
        if sum(t.channels for t in sources) != output.channels or any(t.shape[:2] != output.shape[:2] for t in sources):
            found.append(f"{[t.shape for t in sources]} do not concatenate to {output.shape} along channels")
    elif TYPES[op.type] is Access.POINTWISE and not any(t.shape == output.shape for t in sources):
        found.append(f"no operand has the shape {output.shape} of the output")
    elif op.type == "upsample":
        factors = scale_of(op)
        if output.shape != (sources[0].height * factors[0], sources[0].width * factors[1], sources[0].channels):
            found.append(f"{sources[0].shape} upsampled by {factors} is not {output.shape}")
    elif op.type == "pad":
        top, left, bottom, right = op.attributes["pads"]
        height, width = sources[0].height + top + bottom, sources[0].width + left + right
        if output.shape != (height, width, sources[0].channels):
            found.append(f"{sources[0].shape} padded by {op.attributes['pads']} is not {output.shape}")
    return found


_REQUIRED = {
    "conv": ("kh", "kw", "sh", "sw", "pads"),
    "pool": ("kh", "kw", "sh", "sw", "pads"),
    "pad": ("pads",),
    "upsample": ("scale",),
    "window": ("lines", "columns"),
}


def _residual_faults(op: OpSpec, tensors: dict[str, TensorSpec]) -> list[str]:
    if op.residual is None:
        return []
    residual, output = tensors[op.residual], tensors[op.output]
    if (residual.shape, residual.element_bytes) != (output.shape, output.element_bytes) or op.residual in op.inputs:
        return [f"its residual {op.residual} has not the form of its output, or is its input"]
    return []


def _table_faults(op: OpSpec, sources: list[TensorSpec], output: TensorSpec) -> list[str]:
    """Each input has a range of its lines for every line of the output, and of its columns for every column."""
    found = []
    for axis, key in enumerate(("lines", "columns")):
        sizes = [source.shape[axis] for source in sources]
        tables = op.attributes[key]
        if [len(table) for table in tables] != [output.shape[axis]] * len(sources) or any(
            not 0 <= first <= stop <= size for table, size in zip(tables, sizes, strict=True) for first, stop in table
        ):
            found.append(f"the table of {key} is not one of ranges within each input")
    return found


def _window_faults(op: OpSpec, source: TensorSpec, output: TensorSpec) -> list[str]:
    top, left, bottom, right = op.attributes["pads"]
    if (
        min(op.attributes[key] for key in ("kh", "kw", "sh", "sw")) < 1
        or min(top, left, bottom, right) < 0 < max(op.attributes["kh"], op.attributes["kw"]) - 1
    ):
        return ["kernel and stride must be at least 1, pads at least 0 but for a window of one pixel"]
    if op.type == "pool" and source.channels != output.channels:
        return [f"a pool keeps the channels; {source.channels} in, {output.channels} out"]
    return []
