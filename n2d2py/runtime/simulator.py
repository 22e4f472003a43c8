"""An export run in Python: the integers that its compiled form must give."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from n2d2py.arithmetic import FLOAT32, NumType, plain_type
from n2d2py.graph import Graph, QuantGraph, nodes_for, outputs_from
from n2d2py.quant.simulator import simulate
from n2d2py.reference.engine import FloatEngine
from n2d2py.runtime.base import LayerInfo, Network, NetworkInfo, TensorInfo
from n2d2py.runtime.graph_file import GRAPH_FILE, read_graph


def ends(graph: Graph | QuantGraph) -> tuple[tuple[TensorInfo, ...], tuple[TensorInfo, ...]]:
    """Return the inputs and the outputs that are not states."""

    def kind(name: str) -> NumType:
        if isinstance(graph, QuantGraph):
            return graph.type(name)
        return plain_type(graph.kind(name)) if graph.kind(name) else FLOAT32

    ports = (
        zip(graph.user_inputs, graph.user_input_ports, strict=True),
        zip(graph.user_outputs, graph.user_output_ports, strict=True),
    )
    inputs, outputs = (
        tuple(TensorInfo(name, tuple(graph.shape(name)), kind(name), port) for name, port in each) for each in ports
    )
    return inputs, outputs


class Simulator(Network):
    """A QuantGraph with the interface of a compiled export."""

    def __init__(self, graph: QuantGraph):
        self.graph = graph

        self._nodes = [node for node in graph.nodes if not node.op.is_part]
        layers = tuple(
            LayerInfo(node.name, tuple(graph.shape(node.output)), graph.type(node.output), operation=node.op.kind)
            for node in self._nodes
        )
        self.info = NetworkInfo(graph.name, *ends(graph), layers, 0)

    def _run(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
        values = self._simulate(inputs, keep=False)
        return [values[name] for name in self.graph.user_outputs]

    def _run_layers(self, inputs: list[np.ndarray]) -> dict[str, np.ndarray]:
        values = self._simulate(inputs, keep=True)
        return {node.name: values[node.output] for node in self._nodes}

    def _run_for(self, inputs: list[np.ndarray], outputs: list[int]) -> list[np.ndarray]:
        if self.graph.states:
            return super()._run_for(inputs, outputs)
        names = [self.graph.outputs[index] for index in outputs]
        part = replace(self.graph, outputs=list(dict.fromkeys(names)), nodes=nodes_for(self.graph, names))
        values = Simulator(part)._simulate(inputs, keep=False)
        return [values[name] for name in names]

    def _needed(self, outputs: list[int]) -> set[int]:
        if self.graph.states:
            return super()._needed(outputs)
        needs = outputs_from(self.graph)
        wanted = sum(1 << index for index in set(outputs))
        return {index for index, name in enumerate(self.graph.inputs) if needs[name] & wanted}

    def _simulate(self, inputs: list[np.ndarray], keep: bool) -> dict[str, np.ndarray]:
        """Return the stored values by tensor. For an empty batch one sample is simulated and dropped."""
        if len(inputs[0]):
            return simulate(self.graph, inputs, keep)
        values = simulate(self.graph, [np.zeros((1, *x.shape[1:]), x.dtype) for x in inputs], keep)
        return {name: array[:0] for name, array in values.items()}


def load_simulator(path: Path | str) -> Simulator:
    """Return the network of the export in folder `path`, run by the Python integers.

    Raises:
        N2D2Error: E806 when the folder holds no readable network.
    """
    return Simulator(read_graph(Path(path) / GRAPH_FILE))


class FloatNetwork(Network):
    """A float network, run by ONNX Runtime or NumPy; its layers are not listed."""

    def __init__(self, graph: Graph):
        self.graph, self._engine = graph, FloatEngine(graph)
        self.info = NetworkInfo(graph.name, *ends(graph), (), 0)

    def _run(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
        values = self._engine.run(dict(zip(self.graph.user_inputs, inputs, strict=True)))
        return [values[name] for name in self.graph.user_outputs]
