"""Execution of a Graph with NumPy, layer by layer."""

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from n2d2py.graph import Graph, Node


def run_graph(graph: Graph, inputs: Mapping[str, np.ndarray], keep: Collection[str] = ()) -> dict[str, np.ndarray]:
    """Return the network's outputs and the tensors named in `keep`, in the floating-point type of the inputs.

    `inputs` maps each network input to a batch (n, C, H, W); integer inputs are cast.
    """
    values = {name: x.astype(kind) if (kind := graph.kind(name)) else x for name, x in inputs.items()}
    return run_layers(graph.nodes, values, [*graph.outputs, *keep], Node.compute)


def run_layers(
    nodes: Sequence, values: dict[str, np.ndarray], wanted: Collection[str], run: Callable[..., list[np.ndarray]]
) -> dict[str, np.ndarray]:
    """Return the `wanted` tensors after layers that `run` computes from their inputs; frees others after their last use."""
    last = {name: index for index, node in enumerate(nodes) for name in node.inputs}
    wanted = dict.fromkeys(wanted)
    for index, node in enumerate(nodes):
        results = run(node, [values[name] for name in node.inputs])
        values.update(zip(node.outputs, results, strict=True))
        for name in {*node.inputs, *node.outputs}:
            if last.get(name, -1) <= index and name not in wanted:
                values.pop(name, None)
    return {name: values[name] for name in wanted}
