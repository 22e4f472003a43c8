"""Integer simulator: runs a QuantGraph on NumPy arrays. Its integers are normative for every exported project."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from n2d2py.concurrency import ordered_map
from n2d2py.graph import QuantGraph, QuantNode, each_call
from n2d2py.graph.inputs import split_inputs
from n2d2py.reference.executor import run_layers


def quantize_inputs(graph: QuantGraph, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the stored values of real inputs (N, C, H, W), by the types of the user inputs. One array for several inputs has
    them concatenated (graph/inputs.py)."""
    if len(inputs) == 1:
        inputs = split_inputs(graph, inputs[0])
    return [graph.type(name).quantize(x) for name, x in zip(graph.inputs, inputs)]  # noqa: B905  states may be left out


def run_node(graph: QuantGraph, node: QuantNode, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Return the stored output of one layer from the stored values of its inputs."""
    if graph.is_integer(node) or node.op.mixes_types or graph.sums_integers(node):
        return node.op.run_integer(inputs, node, graph)
    outputs = node.op.run(inputs, node)
    if node.activation is not None:
        outputs = [node.activation(y) for y in outputs]
    return [y.astype(graph.type(name).dtype, copy=False) for y, name in zip(outputs, node.outputs, strict=True)]


def simulate(graph: QuantGraph, inputs: Sequence[np.ndarray], keep: bool = False) -> dict[str, np.ndarray]:
    """Return the stored network outputs for a batch, or with `keep` all tensors.

    `inputs` holds the stored values (N, C, H, W) of each user input, in order. Samples of a network with states are consecutive
    calls, the first one after a reset; with given states, each sample is independent.
    """
    names = graph.inputs if len(inputs) == len(graph.inputs) else graph.user_inputs
    inputs_by_name = {name: np.asarray(x, graph.type(name).dtype) for name, x in zip(names, inputs, strict=True)}
    if names == graph.inputs:
        return _simulate(graph, inputs_by_name, keep)
    results = each_call(graph, inputs_by_name, reset_states(graph), lambda values: _simulate(graph, values, keep))
    return results if keep else {name: results[name] for name in graph.outputs}


def reset_states(graph: QuantGraph) -> dict[str, np.ndarray]:
    """Return the stored states (1, ...) after a reset, by input: zeros."""
    return {name: graph.type(name).quantize(np.zeros(graph.shape(name), np.float32)) for name in graph.state_inputs}


def _simulate(graph: QuantGraph, inputs: Mapping[str, np.ndarray], keep: bool) -> dict[str, np.ndarray]:
    wanted = [*inputs, *(name for node in graph.nodes for name in node.outputs)] if keep else graph.outputs
    return run_layers(graph.nodes, dict(inputs), wanted, partial(run_node, graph))


def simulate_all(graph: QuantGraph, inputs: Sequence[np.ndarray], size: int) -> dict[str, np.ndarray]:
    """Return the stored outputs for any number of samples, in batches of `size` on all cores; states from reset to reset."""
    if graph.states:
        size = graph.calls or max(len(inputs[0]), 1)
    batches = ([x[start : start + size] for x in inputs] for start in range(0, len(inputs[0]), size))
    parts = list(ordered_map(lambda batch: simulate(graph, batch), batches))
    return {name: np.concatenate([part[name] for part in parts]) for name in graph.outputs}
