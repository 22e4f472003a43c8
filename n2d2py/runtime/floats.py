"""A float network with the interface of an export."""

from __future__ import annotations

import numpy as np

from n2d2py.graph import Graph
from n2d2py.reference.engine import FloatEngine
from n2d2py.runtime.base import Network, NetworkInfo
from n2d2py.runtime.simulator import ends


class FloatNetwork(Network):
    """A float network, run by ONNX Runtime or NumPy; its layers are not listed."""

    def __init__(self, graph: Graph):
        self.graph, self._engine = graph, FloatEngine(graph)
        self.info = NetworkInfo(graph.name, *ends(graph), (), 0)

    def _run(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
        values = self._engine.run(dict(zip(self.graph.user_inputs, inputs, strict=True)))
        return [values[name] for name in self.graph.user_outputs]
