"""Number types of the states of a network: a state has the type of the output that it was in the call before.

A state that is computed has 16 bits, for its errors come back call after call. One whose values are only moved, such as the last lines
that a convolution has seen, is as exact in the bits of the tensor that it was taken from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.recurrent import STATE_BITS
from n2d2py.graph import Graph, Node
from n2d2py.operators.arrays.concat import ArrayConcat
from n2d2py.operators.arrays.recurrent import ArrayRecurrent
from n2d2py.operators.concat import Concat


@dataclass(frozen=True)
class KeptStates:
    """pairs: each state and the tensor whose integers its output holds; wide: tensors that have 16 bits for them.

    joined: by a tensor that begins or ends with a state taken from its other parts, these parts.
    """

    pairs: tuple[tuple[str, str], ...]
    wide: frozenset[str]
    joined: Mapping[str, tuple[str, ...]]

    @staticmethod
    def of(graph: Graph, source: Mapping[str, str]) -> KeptStates:
        """The states of a graph; `source` gives for each tensor the one whose integers it holds."""
        ends = zip(graph.kept, graph.becoming, strict=True)
        pairs = tuple((name, source[output]) for name, output in ends)
        states = {name for name, _ in pairs}
        wide = frozenset(name for _, origin in pairs for name in _computed(graph, source, origin, states))
        joined = {}
        for node in graph.nodes:
            if isinstance(node.op, ArrayConcat) and node.op.alike:
                joined[node.output] = tuple(one for name in node.inputs if (one := source[name]) not in states)
        return KeptStates(pairs, wide, {name: parts for name, parts in joined.items() if parts})

    def of_join(self, name: str, types: Mapping[str, NumType]) -> NumType | None:
        """The type of a tensor that a state is joined with: that of the widest other part; None for other tensors."""
        parts = self.joined.get(name)
        return None if parts is None else max((types[one] for one in parts), key=lambda kind: kind.reach)

    def of_inputs(self, types: Mapping[str, NumType]) -> dict[str, NumType]:
        """The types of the states, from those of all other tensors."""
        return {name: types[origin] for name, origin in self.pairs}


def _computed(graph: Graph, source: Mapping[str, str], name: str, states: set[str]) -> set[str]:
    """A tensor and those joined in it, where layers compute all of them from states and inputs; none where values are only moved."""
    producer = graph.producer(name)
    if producer is None:
        return set()
    if not isinstance(producer.op, (Concat, ArrayConcat)):
        return {name}
    origins = {source[one] for one in producer.inputs}
    if origins & {*states, *graph.fed}:
        return set()
    found = [_computed(graph, source, one, states) for one in origins]
    return {name}.union(*found) if all(found) else set()


def recurrent_reach(producer: Node | None, reach: float) -> float:
    """The range of a state of 16 bits: that with which a recurrent layer computes, so that its integers come back unchanged."""
    if producer is None or not isinstance(producer.op, ArrayRecurrent):
        return reach
    largest = 2**STATE_BITS - 1
    return largest * 2.0**-STATE_BITS * (2.0 ** np.ceil(np.log2(min(max(reach, 1.0), 16.0))) if producer.op.part else 1.0)
