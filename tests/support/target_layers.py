"""Layers alone that exports for other runtimes have in common, such an export on disk, and its results layer by layer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.contracts.functions import FUNCTIONS, Clip, HardSwish, LeakyRectifier, Tanh
from n2d2py.exports import ExportRequest, StoredStimuli, find_target
from n2d2py.graph import QuantGraph, QuantNode
from n2d2py.quant.simulator import quantize_inputs, run_node
from support import branched_networks, ops
from support.small_graphs import binary, single

CONVOLUTIONS = {
    "conv": lambda: single(ops.Conv(pads=(1, 1, 1, 1)), params=(8, 2, 3, 3), activation=Clip(0.0)),
    "depthwise": lambda: single(ops.Conv(groups=4, pads=(1, 1, 1, 1)), 4, (4, 1, 3, 3)),
    "multiplied": lambda: single(ops.Conv(groups=4, stride=(2, 2)), 4, (12, 1, 3, 3)),
    "grouped": lambda: single(ops.Conv(groups=2), 4, (6, 2, 3, 3)),
    "fc": lambda: single(ops.Fc(), params=(10, 128)),
}
MOVED = {
    "max": lambda: single(ops.Pool("Max", (3, 3), (2, 2), (1, 1, 0, 0)), 4),
    "up": lambda: single(ops.Resize((16, 24), "Nearest"), 4),
    "frame": lambda: single(ops.Padding((1, 0, 2, 1)), 4),
    "flat": lambda: single(ops.Reshape((256,)), 4),
    "turned": lambda: single(ops.Transpose((0, 2, 3, 1)), 4),
    "swapped": lambda: single(ops.Transpose((0, 3, 1, 2)), 4),
    "to space": lambda: single(ops.DepthToSpace(2), 8),
    "to space, channels first": lambda: single(ops.DepthToSpace(2, True), 8),
}
COMPUTED = {
    "affine": lambda: single(ops.Affine(), 4, (4,)),
    "mean": lambda: single(ops.Pool("Average", (2, 2), (2, 2)), 4),
    "framed mean": lambda: single(ops.Pool("Average", (3, 3), (2, 2), (1, 1, 1, 1)), 4),
    "inner mean": lambda: single(ops.Pool("Average", (3, 3), (1, 1), (1, 1, 1, 1), False), 4),
    "global": lambda: single(ops.Pool("Average", (8, 8)), 4),
    "bilinear": lambda: single(ops.Resize((16, 12), "Bilinear", "HalfPixel"), 4),
    "corners": lambda: single(ops.Resize((15, 15), "Bilinear", "AlignCorners"), 4),
    "deconv": lambda: single(ops.Deconv(stride=(2, 2)), 4, (6, 4, 3, 3)),
    "softmax": lambda: single(ops.Softmax(), 4),
    "logistic": lambda: single(ops.Activation(FUNCTIONS["Logistic"]()), 4),
    "swish": lambda: single(ops.Activation(FUNCTIONS["Swish"]()), 4),
    "tanh": lambda: single(ops.Activation(Tanh()), 4),
    "hard swish": lambda: single(ops.Activation(HardSwish()), 4),
    "leaky": lambda: single(ops.Activation(LeakyRectifier(0.1)), 4),
    "sum": lambda: binary(ops.ElemWise("Sum"), Clip(0.0)),
    "product": lambda: binary(ops.ElemWise("Prod"), None, (1, 1)),
    "largest": lambda: binary(ops.ElemWise("Max")),
    "joined": lambda: binary(ops.Concat()),
}


def written(typed: QuantGraph, folder: Path, target: str, count: int = 4, **parameters: Any) -> tuple[Any, dict]:
    """The runner of an export with `count` stimuli, and the details of its manifest."""
    found = find_target(target)
    stimuli = StoredStimuli(
        tuple(quantize_inputs(typed, [branched_networks.data(count, 5)])), (np.zeros((count, 1), np.int32),)
    )
    prepared = found.prepare(ExportRequest(typed, stimuli, parameters=parameters))
    prepared.check()
    found.write(prepared, folder)
    details = found.details(prepared)
    return found.runner(folder, details), details


def layer_by_layer(
    runner: Any, typed: QuantGraph, values: dict[str, np.ndarray], count: int = 4
) -> Iterator[tuple[QuantNode, NumType, np.ndarray, np.ndarray]]:
    """Each layer with its type, what Python computes from the runtime's inputs of the layer, and the runtime's result in that type.

    `values` receives the results of the runtime by tensor.
    """
    stored = quantize_inputs(typed, [branched_networks.data(count, 5)])
    found = runner.network().stored_layers(list(stored))
    values.update(zip(typed.inputs, stored, strict=True))
    for node in typed.nodes:
        (expected,) = run_node(typed, node, [values[name] for name in node.inputs])
        kind = typed.type(node.output)
        values[node.output] = kind.quantize(found[node.output]).reshape(expected.shape)
        yield node, kind, expected, values[node.output]
