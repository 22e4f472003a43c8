"""Layers alone that exports for other runtimes have in common, such an export on disk, and its results layer by layer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.contracts.functions import FUNCTIONS, Clip, HardSwish, LeakyRectifier, Tanh
from n2d2py.exports import ExportRequest, StoredStimuli, find_target
from n2d2py.graph import QuantGraph, QuantNode
from n2d2py.operators.concat import Concat
from n2d2py.operators.conv import Conv, Deconv, Fc
from n2d2py.operators.depth_to_space import DepthToSpace
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.padding import Padding
from n2d2py.operators.pointwise import Activation, Affine
from n2d2py.operators.pool import Pool
from n2d2py.operators.reshape import Reshape, Transpose
from n2d2py.operators.resize import Resize
from n2d2py.operators.softmax import Softmax
from n2d2py.quant.simulator import quantize_inputs, run_node
from support import branched_networks
from support.small_graphs import binary, single

CONVOLUTIONS = {
    "conv": lambda: single(Conv(pads=(1, 1, 1, 1)), params=(8, 2, 3, 3), activation=Clip(0.0)),
    "depthwise": lambda: single(Conv(groups=4, pads=(1, 1, 1, 1)), 4, (4, 1, 3, 3)),
    "multiplied": lambda: single(Conv(groups=4, stride=(2, 2)), 4, (12, 1, 3, 3)),
    "grouped": lambda: single(Conv(groups=2), 4, (6, 2, 3, 3)),
    "fc": lambda: single(Fc(), params=(10, 128)),
}
MOVED = {
    "max": lambda: single(Pool("Max", (3, 3), (2, 2), (1, 1, 0, 0)), 4),
    "up": lambda: single(Resize((16, 24), "Nearest"), 4),
    "frame": lambda: single(Padding((1, 0, 2, 1)), 4),
    "flat": lambda: single(Reshape((256,)), 4),
    "turned": lambda: single(Transpose((0, 2, 3, 1)), 4),
    "swapped": lambda: single(Transpose((0, 3, 1, 2)), 4),
    "to space": lambda: single(DepthToSpace(2), 8),
    "to space, channels first": lambda: single(DepthToSpace(2, True), 8),
}
COMPUTED = {
    "affine": lambda: single(Affine(), 4, (4,)),
    "mean": lambda: single(Pool("Average", (2, 2), (2, 2)), 4),
    "framed mean": lambda: single(Pool("Average", (3, 3), (2, 2), (1, 1, 1, 1)), 4),
    "inner mean": lambda: single(Pool("Average", (3, 3), (1, 1), (1, 1, 1, 1), False), 4),
    "global": lambda: single(Pool("Average", (8, 8)), 4),
    "bilinear": lambda: single(Resize((16, 12), "Bilinear", "HalfPixel"), 4),
    "corners": lambda: single(Resize((15, 15), "Bilinear", "AlignCorners"), 4),
    "deconv": lambda: single(Deconv(stride=(2, 2)), 4, (6, 4, 3, 3)),
    "softmax": lambda: single(Softmax(), 4),
    "logistic": lambda: single(Activation(FUNCTIONS["Logistic"]()), 4),
    "swish": lambda: single(Activation(FUNCTIONS["Swish"]()), 4),
    "tanh": lambda: single(Activation(Tanh()), 4),
    "hard swish": lambda: single(Activation(HardSwish()), 4),
    "leaky": lambda: single(Activation(LeakyRectifier(0.1)), 4),
    "sum": lambda: binary(ElemWise("Sum"), Clip(0.0)),
    "product": lambda: binary(ElemWise("Prod"), None, (1, 1)),
    "largest": lambda: binary(ElemWise("Max")),
    "joined": lambda: binary(Concat()),
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
