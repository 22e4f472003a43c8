"""Attention scores without those that a mask computed at run time pushes far below the others of their row.

Masks add -10000 or the lowest float, or put minus infinity. A range that holds such scores would leave no steps to the others.
Constant masks are part of the Softmax already (passes/masked_softmax.py).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from n2d2py.graph import Graph, Node
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.softmax import Softmax

_NEGLIGIBLE = 24.0
"""Scores this far below the largest of their row count as nothing: 65,535 of them are a tenth of a 16-bit step."""
_WITHOUT_DIGITS = -(2.0**26)
"""Below it, float32 has steps of 8: a row of such scores is masked as a whole."""


class ScoreFloors:
    """Lower limits of the tensors that only softmaxes consume, directly, through copies, or as terms of sums.

    Attributes:
        taps: the tensors whose values `of` needs.
    """

    def __init__(self, graph: Graph):
        self._readers: dict[str, list[Node]] = {}
        self.taps: set[str] = set()
        for name in reversed([*graph.inputs, *(name for node in graph.nodes for name in node.outputs)]):
            readers = graph.consumers(name)
            if readers and name not in graph.outputs and all(map(self._leads_to_softmax, readers)):
                self._readers[name] = readers
                self.taps.update(name for node in readers if not node.op.moves_values for name in node.inputs)

    def _leads_to_softmax(self, node: Node) -> bool:
        op = node.op
        is_sum = isinstance(op, ElemWise) and op.is_plain_sum and min(op.weights, default=1) > 0
        sums = is_sum and node.activation is None and len(set(node.inputs)) == len(node.inputs)
        return _is_softmax(node) or ((sums or op.moves_values) and node.output in self._readers)

    def of(self, values: Mapping[str, np.ndarray]) -> dict[str, float]:
        """Return, by tensor, the limit below which scores have no effect on a batch."""
        floors: dict[str, float] = {}
        for name, readers in self._readers.items():
            floors[name] = min(self._floor(node, name, floors, values) for node in readers)
        return floors

    def _floor(self, node: Node, name: str, floors: Mapping[str, float], values: Mapping[str, np.ndarray]) -> float:
        if _is_softmax(node):
            return _least_maximum(node, values[name]) - _NEGLIGIBLE
        others = [] if node.op.moves_values else [float(values[other].max()) for other in node.inputs if other != name]
        return floors[node.output] - sum(others)


def _is_softmax(node: Node) -> bool:
    return type(node.op) is Softmax and not node.op.log


def _least_maximum(node: Node[Softmax], scores: np.ndarray) -> float:
    """Return the least of the largest scores of the rows that are not masked as a whole; minus infinity without such a row."""
    largest = node.op.to_rows(scores).max(-1)
    counted = largest[largest > _WITHOUT_DIGITS]
    return float(counted.min()) if counted.size else -np.inf
