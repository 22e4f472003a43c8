"""Execution of a Graph with NumPy, layer by layer."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from n2d2py.graph import Graph


def run_graph(graph: Graph, inputs: Mapping[str, np.ndarray], keep: Collection[str] = ()) -> dict[str, np.ndarray]:
    """Return the network's outputs and the tensors named in `keep`, in the floating-point type of the inputs.

    `inputs` maps each network input to a batch (n, C, H, W); integer inputs are cast. Other tensors are freed after their last
    use.
    """
    wanted = [*dict.fromkeys([*graph.outputs, *keep])]
    last = {name: index for index, node in enumerate(graph.nodes) for name in node.inputs}
    values = {name: x.astype(kind) if (kind := graph.kind(name)) else x for name, x in inputs.items()}
    for index, node in enumerate(graph.nodes):
        results = node.compute([values[name] for name in node.inputs])
        values.update(zip(node.outputs, results, strict=True))
        for name in {*node.inputs, *node.outputs}:
            if last.get(name, -1) <= index and name not in wanted:
                values.pop(name, None)
    return {name: values[name] for name in wanted}
