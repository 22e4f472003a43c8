"""Initial values of layers whose stored weights are not wanted (ONNX_init=0)."""

from __future__ import annotations

import numpy as np

from n2d2py.graph import Graph
from n2d2py.operators.batchnorm import BatchNorm
from n2d2py.operators.conv import Conv
from n2d2py.operators.fc import Fc

_NEUTRAL = {"bias": 0.0, "mean": 0.0, "scale": 1.0, "variance": 1.0}


def set_initial_values(graph: Graph, seed: int) -> None:
    """Gives the layers Conv, Fc and BatchNorm of a graph under construction initial values in place of stored ones.

    Weights are normal with variance 2 / fan-in, a batch normalisation does nothing, biases are 0.
    """
    for index, node in enumerate(graph.nodes):
        if not isinstance(node.op, (Conv, Fc, BatchNorm)):
            continue
        for role, array in node.params.items():
            if role == "weights":
                deviation = np.sqrt(2.0 / np.prod(array.shape[1:]))
                normal = np.random.default_rng(seed + index).normal(0.0, deviation, array.shape)
                node.params[role] = normal.astype(np.float32)
            elif role in _NEUTRAL:
                node.params[role] = np.full(array.shape, _NEUTRAL[role], np.float32)
