"""Number types of states: a state input has the type of the output that it was in the previous call.

A computed state has 16 bits, because its errors accumulate over calls. A state that is only copied, such as the last rows of
a convolution's input, keeps the bits of the tensor it is copied from.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.histogram import Histogram
from n2d2py.arithmetic.recurrent import STATE_BITS
from n2d2py.graph import Graph, Node, elements
from n2d2py.operators import ArrayRecurrent, Concat


class States:
    """Relations between states and tensors, and calibrated ranges of recurrent states, from the histograms of `observe_states`.

    Attributes:
        pairs: each state, and the tensor that its values come from, through other states.
        wide: tensors with 16 bits because a state is computed from them.
        joined: by Concat of a state with the tensors that the state is copied from, these tensors.
        tensors: largest magnitude of the state that a tensor holds: results, and initial states that are inputs.
        hidden: the tensors with hidden states, which stay within [-1, 1] if they start there.
        cells: largest cell state of each recurrent layer, by its output.
        changed: inputs that are modified by arithmetic before they become states, and the modified tensors.
    """

    def __init__(self, graph: Graph, source: Mapping[str, str], histograms: Mapping[str, Histogram]):
        """`source` maps each tensor to the tensor that its integers are copied from."""
        sources = {name: source[output] for name, output in zip(graph.state_inputs, graph.state_outputs, strict=True)}
        self.pairs = [(name, _final_source(sources, name)) for name in sources]
        self.wide = {name for _, origin in self.pairs for name in _computed_parts(graph, source, origin, set(sources))}
        self.joined: dict[str, list[str]] = {}
        self.tensors: dict[str, float] = {}
        self.cells: dict[str, float] = {}
        self.hidden: set[str] = set()
        self.changed: set[str] = set()
        for node in graph.nodes:
            if isinstance(node.op, Concat) and node.op.alike:
                parts = [one for name in node.inputs if (one := source[name]) not in sources]
                self.joined |= {node.output: parts} if parts else {}
            if isinstance(node.op, ArrayRecurrent):
                self._add_layer(node, source, histograms)
                for name, index in changed_inputs(graph, node).items():
                    self.changed |= {name, source.get(node.inputs[index], node.inputs[index])}
        self.tensors = dict.fromkeys(self.changed, 0.0) | self.tensors

    def _add_layer(self, node: Node, source: Mapping[str, str], histograms: Mapping[str, Histogram]) -> None:
        names = dict(zip(("initial_h", "initial_c"), observed_names(node), strict=True))
        largest = {role: histograms[name].largest for role, name in names.items() if name in histograms}
        if "initial_c" in largest:
            self.cells[node.output] = largest["initial_c"]
        result_role = "initial_c" if node.op.part else "initial_h"
        ends = [*zip(node.inputs[1:], node.op.given, strict=True), (node.output, result_role)] if node.op.given else []
        for name, role in ends:
            origin = source.get(name, name)
            self.tensors[origin] = max(self.tensors.get(origin, 0.0), largest.get(role, 0.0))
            if role == "initial_h":
                self.hidden.add(origin)

    def type_of_concat(self, name: str, types: Mapping[str, NumType]) -> NumType | None:
        """Return the type of a Concat with a state: the widest type of its other inputs; None for other tensors."""
        parts = self.joined.get(name)
        return None if parts is None else max((types[one] for one in parts), key=lambda kind: kind.max_abs)


def _final_source(sources: Mapping[str, str], name: str) -> str:
    """Return the tensor that a state comes from; for states that only swap places, the first of them by name."""
    visited: list[str] = []
    while name in sources and name not in visited:
        visited.append(name)
        name = sources[name]
    return min(visited[visited.index(name) :]) if name in visited else name


def _computed_parts(graph: Graph, source: Mapping[str, str], name: str, states: set[str]) -> set[str]:
    """Return a computed tensor and the inputs of its Concat; empty if values are copied from states or inputs."""
    producer = graph.producer(name)
    if producer is None:
        return set()
    if not isinstance(producer.op, Concat):
        return {name}
    origins = {source[one] for one in producer.inputs}
    if origins & {*states, *graph.user_inputs}:
        return set()
    parts = [_computed_parts(graph, source, one, states) for one in origins]
    return {name}.union(*parts) if all(parts) else set()


def changed_inputs(graph: Graph, node: Node) -> dict[str, int]:
    """Return inputs that arithmetic modifies before they are the state of a recurrent layer, with its input's index."""
    indices: dict[str, int] = {}
    if graph.states or not isinstance(node.op, ArrayRecurrent):
        return indices
    for index, name in enumerate(node.inputs[1:], 1):
        pending, is_changed, visited = [(name, False)], False, set()
        while pending:
            one, is_changed = pending.pop()
            producer = graph.producer(one)
            if producer is None and is_changed and elements(graph.shape(one)) == node.op.hidden:
                indices[one] = index
            if producer is None or isinstance(producer.op, ArrayRecurrent) or one in visited:
                continue
            visited.add(one)
            pending += [(each, is_changed or not producer.op.moves_values) for each in producer.inputs]
    return indices


def states_after(node: Node, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Return the states (n, hidden) after each of n consecutive calls, for each state that is an input of the layer."""
    op = node.op
    assert isinstance(op, ArrayRecurrent)
    states = _states_of_calls(op, inputs, node)
    return [states[role == "initial_c"][0, 0 if op.reverse else op.steps - 1 :: op.steps] for role in op.given]


def _states_of_calls(op: ArrayRecurrent, inputs: list[np.ndarray], node: Node) -> tuple[np.ndarray, np.ndarray]:
    """Return all states (1, steps, hidden) of consecutive calls, each starting with the last states of the previous one."""
    one = [inputs[0].reshape(1, -1), *(first[:1] for first in inputs[1:])]
    return replace(op, steps=op.steps * len(inputs[0])).all_states(one, node)


def observed_names(node: Node) -> tuple[str, str]:
    """Return the names of a recurrent layer's hidden and cell states in the statistics."""
    return f"{node.output} (hidden states)", f"{node.output} (cell states)"


def observe_states(node: Node, inputs: list[np.ndarray]) -> dict[str, np.ndarray]:
    """Return all states of a recurrent layer, by their names in the statistics.

    If the initial states are inputs, the states of the samples as consecutive calls are included.
    """
    op = node.op
    assert isinstance(op, ArrayRecurrent)
    runs = [op.all_states(inputs, node)]
    if op.given:
        runs.append(_states_of_calls(op, inputs, node))
    states = [np.concatenate([run[index].reshape(-1) for run in runs]) for index in (0, 1)]
    return dict(list(zip(observed_names(node), states, strict=True))[: 2 if op.cell == "LSTM" else 1])


def recurrent_range(producer: Node | None, limit: float) -> float:
    """Return the range of a 16-bit state: the one of the recurrent kernel, so that its integers are fed back unchanged."""
    if producer is None or not isinstance(producer.op, ArrayRecurrent):
        return limit
    largest = 2**STATE_BITS - 1
    return largest * 2.0**-STATE_BITS * 2.0 ** np.ceil(np.log2(min(max(limit, 1.0), 128.0)))
