"""The states of a network in the C++ project: they lie after the tensors in the arena, and stay there between inferences."""

from __future__ import annotations

from dataclasses import dataclass

from n2d2py.exports.cpp.identifiers import Identifiers
from n2d2py.exports.cpp.text import comment
from n2d2py.graph import QuantGraph
from n2d2py.graph.shapes import elements

_ALIGNMENT = 8
"""Of each state, and of the first one after the tensors: that of the largest element."""


@dataclass(frozen=True)
class StateView:
    """A state: `label` names its input and its output, `offset` and `size` its bytes in the arena, `reset` its elements after a reset.

    Attributes:
        base: the pointer in `execute` that the input's plane is relative to.
        plane, becoming: the plane structs of the input and of the output.
    """

    label: str
    name: str
    output: str
    ctype: str
    count: int
    offset: int
    size: int
    reset: int
    base: str
    plane: str
    becoming: str


def state_views(graph: QuantGraph, arena_bytes: int, identifiers: Identifiers) -> list[StateView]:
    """The states after an arena of that many bytes of tensors."""
    views, at = [], arena_bytes
    ends = zip(graph.state_inputs, graph.state_outputs, strict=True)
    for index, (name, output) in enumerate(ends):
        kind, count = graph.type(name), elements(graph.shape(name))
        at = -(-at // _ALIGNMENT) * _ALIGNMENT
        views.append(
            StateView(
                f"{comment(name)}, then {comment(output)}",
                name,
                output,
                kind.cpp,
                count,
                at,
                count * kind.bytes,
                kind.zero_point,
                f"state{index}_base",
                identifiers.plane(name),
                identifiers.plane(output),
            )
        )
        at += count * kind.bytes
    return views


def bytes_with_states(graph: QuantGraph, arena_bytes: int) -> int:
    """The bytes of an arena with the states after its tensors."""
    at = arena_bytes
    for name in graph.state_inputs:
        at = -(-at // _ALIGNMENT) * _ALIGNMENT + elements(graph.shape(name)) * graph.type(name).bytes
    return at
