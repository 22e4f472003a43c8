"""Description of a network as plain data, for `-describe` and the reports."""

from typing import Any

from n2d2py.graph.graph import Graph
from n2d2py.graph.node import Node
from n2d2py.graph.quant import QuantGraph, QuantNode
from n2d2py.graph.shapes import n2d2_dims


def layer_macs(graph: Graph | QuantGraph, node: Node | QuantNode) -> int:
    """Return the multiply-accumulates of one layer for one sample."""
    return node.op.macs([graph.shape(name) for name in node.inputs], graph.shape(node.outputs[0]), node)


def layer_params(node: Node) -> int:
    """Return the number of trained parameters of one layer."""
    roles = {"weights", "bias", "scale", "mean", "variance"} - ({"bias"} if node.unbiased else set())
    return sum(int(array.size) for role, array in node.params.items() if role in roles)


def describe(graph: Graph) -> dict[str, Any]:
    """Return {"name", "inputs", "outputs", "layers": [...], "macs", "params"} with dimensions in the order X Y C. As in N2D2,
    the input of a layer with several has the sum of their channels. Helper nodes are not listed: their consumers show their
    inputs."""
    maker = {name: node.name for node in graph.nodes for name in node.outputs}
    helpers = {node.outputs[0]: node for node in graph.nodes if node.helper}
    layers = []
    for node in graph.nodes:
        if node.helper:
            continue
        inputs = _declared_inputs(node, helpers)
        dims = [n2d2_dims(graph.shape(name)) for name in inputs]
        layers.append(
            {
                "name": node.name,
                "type": node.op.kind,
                "parents": [maker.get(name, name) for name in inputs],
                "input_dims": [*dims[0][:2], sum(d[2] for d in dims)],
                "output_dims": n2d2_dims(graph.shape(node.outputs[0])),
                "macs": layer_macs(graph, node),
                "params": layer_params(node),
            }
        )
    return {
        "name": graph.name,
        "inputs": {name: n2d2_dims(graph.shape(name)) for name in graph.inputs},
        "outputs": [maker.get(name, name) for name in graph.outputs],
        "layers": layers,
        "macs": sum(layer["macs"] for layer in layers),
        "params": sum(layer["params"] for layer in layers),
    }


def _declared_inputs(node: Node, helpers: dict[str, Node]) -> list[str]:
    return [
        name
        for name_of_input in node.inputs
        for name in (_declared_inputs(helpers[name_of_input], helpers) if name_of_input in helpers else [name_of_input])
    ]
