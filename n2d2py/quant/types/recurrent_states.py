"""Number types of the states of a network: a state has the type of the output that it was in the call before.

A state that is computed has 16 bits, for its errors come back call after call. One whose values are only moved, such as the last lines
that a convolution has seen, is as exact in the bits of the tensor that it was taken from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.recurrent import STATE_BITS
from n2d2py.graph import Graph, Node
from n2d2py.graph.shapes import elements
from n2d2py.operators.arrays.recurrent import ArrayRecurrent
from n2d2py.operators.concat import Concat
from n2d2py.quant.observe.histogram import Histogram


@dataclass(frozen=True)
class StateTypes:
    """pairs: each state and the tensor whose integers its output holds, through the states before it; wide: tensors that have 16 bits for
    them.

    joined: by a tensor that begins or ends with a state taken from its other parts, these parts.
    """

    pairs: tuple[tuple[str, str], ...]
    wide: frozenset[str]
    joined: Mapping[str, tuple[str, ...]]

    @staticmethod
    def of(graph: Graph, source: Mapping[str, str]) -> StateTypes:
        """The states of a graph; `source` gives for each tensor the one whose integers it holds."""
        taken = {name: source[output] for name, output in zip(graph.kept, graph.becoming, strict=True)}
        pairs = tuple((name, _origin(taken, name)) for name in taken)
        states = set(taken)
        wide = frozenset(name for _, origin in pairs for name in _computed(graph, source, origin, states))
        joined = {}
        for node in graph.nodes:
            if isinstance(node.op, Concat) and node.op.alike:
                joined[node.output] = tuple(one for name in node.inputs if (one := source[name]) not in states)
        return StateTypes(pairs, wide, {name: parts for name, parts in joined.items() if parts})

    def of_join(self, name: str, types: Mapping[str, NumType]) -> NumType | None:
        """The type of a tensor that a state is joined with: that of the widest other part; None for other tensors."""
        parts = self.joined.get(name)
        return None if parts is None else max((types[one] for one in parts), key=lambda kind: kind.reach)

    def of_inputs(self, types: Mapping[str, NumType]) -> dict[str, NumType]:
        """The types of the states, from those of all other tensors."""
        return {name: types[origin] for name, origin in self.pairs}


def _origin(taken: Mapping[str, str], name: str) -> str:
    """The tensor that a state comes from, which is not a state itself; where states only change places, the first of them by name."""
    seen: list[str] = []
    while name in taken and name not in seen:
        seen.append(name)
        name = taken[name]
    return min(seen[seen.index(name) :]) if name in seen else name


def _computed(graph: Graph, source: Mapping[str, str], name: str, states: set[str]) -> set[str]:
    """A tensor and those joined in it, where layers compute all of them from states and inputs; none where values are only moved."""
    producer = graph.producer(name)
    if producer is None:
        return set()
    if not isinstance(producer.op, Concat):
        return {name}
    origins = {source[one] for one in producer.inputs}
    if origins & {*states, *graph.fed}:
        return set()
    found = [_computed(graph, source, one, states) for one in origins]
    return {name}.union(*found) if all(found) else set()


@dataclass(frozen=True)
class StateReaches:
    """The largest states of recurrent layers, by the tensors that hold these: results and initial states that are inputs.

    hidden: those of hidden states, which stay within 1 where they begin there; cells: largest cell state of each layer, by its output.
    changed: inputs that arithmetic changes before they are states, and what it makes of them.
    """

    tensors: Mapping[str, float]
    hidden: frozenset[str]
    cells: Mapping[str, float]
    changed: frozenset[str] = frozenset()

    @staticmethod
    def of(graph: Graph, source: Mapping[str, str], histograms: Mapping[str, Histogram]) -> StateReaches:
        """Return what `observe_states` has seen."""
        tensors: dict[str, float] = {}
        cells: dict[str, float] = {}
        hidden: set[str] = set()
        changed: set[str] = set()
        for node in graph.nodes:
            if not isinstance(node.op, ArrayRecurrent):
                continue
            names = dict(zip(("initial_h", "initial_c"), observed_names(node), strict=True))
            found = {role: histograms[name].largest for role, name in names.items() if name in histograms}
            if "initial_c" in found:
                cells[node.output] = found["initial_c"]
            made = "initial_c" if node.op.part else "initial_h"
            ends = [*zip(node.inputs[1:], node.op.given, strict=True), (node.output, made)] if node.op.given else []
            for name, role in ends:
                origin = source.get(name, name)
                tensors[origin] = max(tensors.get(origin, 0.0), found.get(role, 0.0))
                if role == "initial_h":
                    hidden.add(origin)
            for name, at in changed_inputs(graph, node).items():
                changed |= {name, source.get(node.inputs[at], node.inputs[at])}
        return StateReaches(
            tensors | {name: tensors.get(name, 0.0) for name in changed}, frozenset(hidden), cells, frozenset(changed)
        )


def changed_inputs(graph: Graph, node: Node) -> dict[str, int]:
    """Return the inputs of the network that arithmetic changes before they are states of a recurrent layer, as many values as these, with
    the number of the layer's input that they become."""
    found: dict[str, int] = {}
    if graph.states or not isinstance(node.op, ArrayRecurrent):
        return found
    for at, name in enumerate(node.inputs[1:], 1):
        ahead, is_changed, seen = [(name, False)], False, set()
        while ahead:
            one, is_changed = ahead.pop()
            producer = graph.producer(one)
            if producer is None and is_changed and elements(graph.shape(one)) == node.op.hidden:
                found[one] = at
            if producer is None or isinstance(producer.op, ArrayRecurrent) or one in seen:
                continue
            seen.add(one)
            ahead += [(each, is_changed or not producer.op.moves_values) for each in producer.inputs]
    return found


def states_after(node: Node, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Return the states (n, hidden) that a recurrent layer has after each of n calls, one after the other, for each state that is an input."""
    op = node.op
    assert isinstance(op, ArrayRecurrent)
    every = _streamed(op, inputs, node)
    return [every[role == "initial_c"][0, 0 if op.reverse else op.steps - 1 :: op.steps] for role in op.given]


def _streamed(op: ArrayRecurrent, inputs: list[np.ndarray], node: Node) -> tuple[np.ndarray, np.ndarray]:
    """All states (1, steps, hidden) of calls one after the other, each with the last states of the one before."""
    one = [inputs[0].reshape(1, -1), *(first[:1] for first in inputs[1:])]
    return replace(op, steps=op.steps * len(inputs[0])).all_states(one, node)


def observed_names(node: Node) -> tuple[str, str]:
    """The names that the statistics have for the states of a recurrent layer: the hidden ones, the cell states."""
    return f"{node.output} (hidden states)", f"{node.output} (cell states)"


def observe_states(node: Node, inputs: list[np.ndarray]) -> dict[str, np.ndarray]:
    """All states of a recurrent layer, by the names of the statistics; where they begin with states that are inputs, also those of the
    stimuli as calls one after the other, each with the last states of the one before."""
    op = node.op
    assert isinstance(op, ArrayRecurrent)
    runs = [op.all_states(inputs, node)]
    if op.given:
        runs.append(_streamed(op, inputs, node))
    states = [np.concatenate([run[at].reshape(-1) for run in runs]) for at in (0, 1)]
    return dict(list(zip(observed_names(node), states, strict=True))[: 2 if op.cell == "LSTM" else 1])


def recurrent_reach(producer: Node | None, reach: float) -> float:
    """The range of a 16-bit state: that with which a recurrent layer computes, so that its integers come back unchanged."""
    if producer is None or not isinstance(producer.op, ArrayRecurrent):
        return reach
    largest = 2**STATE_BITS - 1
    return largest * 2.0**-STATE_BITS * 2.0 ** np.ceil(np.log2(min(max(reach, 1.0), 128.0)))
