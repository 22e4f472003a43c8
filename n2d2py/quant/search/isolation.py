"""Effect of one rounding alone: a layer in integers, or a tensor in steps, while all the rest is floating point."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np

from n2d2py import log
from n2d2py.graph import Graph, QuantGraph, QuantNode
from n2d2py.quant.observe.judged import row_weights
from n2d2py.quant.simulator import run_node
from n2d2py.reference.engine import FloatEngine

_ELEMENTS = 30_000_000
"""Values of all tensors that a batch may hold at once."""


def slices(graph: Graph, stimuli: np.ndarray) -> list[np.ndarray]:
    """Split samples (N, ...) into batches whose tensors fit into the memory limit."""
    size = max(1, _ELEMENTS // graph.element_count)
    return [stimuli[start : start + size] for start in range(0, len(stimuli), size)]


T = TypeVar("T")


def each_on_batches(
    graph: Graph, batches: Sequence[np.ndarray], items: Sequence[T], text: str, unit: str
) -> Iterator[tuple[T, dict[str, np.ndarray]]]:
    """Yield each item with the float values of all tensors, batch by batch; `text` and `unit` describe the progress."""
    engine = FloatEngine(graph, taps=list(graph.tensors))
    for index, batch in enumerate(batches):
        real = engine.run(batch)
        for item in log.progress(items, f"{text} {index + 1}/{len(batches)}", total=len(items), unit=unit):
            yield item, real


def output_weights(graph: Graph, batches: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Return factors of squared errors that make rows of outputs, and outputs, comparable (quant/observe/judged.py)."""
    engine = FloatEngine(graph)
    results = [engine.run(batch) for batch in batches]
    values = {name: np.concatenate([part[name] for part in results]) for name in graph.outputs}
    return {name: row_weights(each) / each[0].size for name, each in values.items()}


def run_isolated_layer(quantized: QuantGraph, node: QuantNode, real: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the stored output of one layer whose inputs are quantized real values."""
    return run_node(quantized, node, [quantized.type(name).quantize(real[name]) for name in node.inputs])[0]


class Tail:
    """The layers of a float graph that depend on some tensors, to recompute the outputs when these are replaced."""

    def __init__(self, graph: Graph, replaced: Sequence[str]):
        """Split the graph after `replaced`: tensors of the graph, inputs or results of layers."""
        reached, nodes = set(replaced), []
        for node in graph.nodes:
            if reached.intersection(node.inputs) and not set(replaced).issuperset(node.outputs):
                nodes.append(node)
                reached.update(node.outputs)
        computed = {name for node in nodes for name in node.outputs}
        part = Graph(graph.name)
        for name in dict.fromkeys(name for node in nodes for name in node.inputs if name not in computed):
            part.add_input(name, graph.shape(name))
        part.nodes, part.outputs = nodes, [name for name in graph.outputs if name in computed]
        part.tensors.update({name: graph.tensors[name] for name in computed})
        self._kept = [name for name in graph.outputs if name not in computed]
        self._part = part
        self._engine = FloatEngine(part) if part.outputs else None

    def outputs(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the network outputs from the values of all tensors, the replaced ones included."""
        results = self._engine.run({name: values[name] for name in self._part.inputs}) if self._engine else {}
        return {**{name: values[name] for name in self._kept}, **results}
