"""Layers that the document asks for without writing them: InsertBatchNormAfterConv."""

from __future__ import annotations

import numpy as np

from n2d2py.frontend.ini.contract import LayerContext
from n2d2py.graph import Node, Tensor
from n2d2py.operators.batchnorm import BatchNorm

_INITIAL = {"scales": 1.0, "biases": 0.0, "means": 0.0, "variances": 1.0}
_ROLES = {"scales": "scale", "biases": "bias", "means": "mean", "variances": "variance"}


def insert_batchnorm(context: LayerContext) -> None:
    """Puts the BatchNorm <layer>_batchnorm behind the convolution just built.

    It takes over the layer's tensor and activation. Its statistics are those stored under its name, else mean 0
    and variance 1.
    """
    graph, name = context.graph, context.name
    conv = graph.nodes[-1]
    shape, channels = graph.shape(name), graph.shape(name)[1]
    between, inserted = f"{name}_linear", f"{name}_batchnorm"
    while between in graph.tensors:
        between += "_"
    del graph.tensors[name]
    graph.tensors[between] = Tensor(between, shape)
    conv.outputs, activation, conv.activation = [between], conv.activation, None
    params = {}
    for stored, value in _INITIAL.items():
        array = np.full(channels, value, np.float32)
        if context.weights is not None and context.weights.has(inserted, stored):
            array = context.weights.load(inserted, stored, array, conv.location)
        params[_ROLES[stored]] = array
    graph.add(Node(inserted, BatchNorm(), [between], [name], params, activation, conv.location))
