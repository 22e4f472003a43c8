"""The values of every layer for one stimulus: real ones of the float network, integers of the typed one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.data.stimuli import Stimuli
from n2d2py.errors import N2D2Error
from n2d2py.graph import Graph, QuantGraph
from n2d2py.graph.inputs import named_inputs, stimulus_shape
from n2d2py.graph.port import plain_port
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.reference.engine import FloatEngine


@dataclass(frozen=True)
class LayerValues:
    """Output of a layer for one stimulus.

    Attributes:
        name: of the layer, or of an input of the network.
        float: real values (C, H, W) or (F,) of the float network.
        integer: what the typed network stores, of the same shape; None of a float network.
        type: how `integer` stands for real values; None of a float network.
    """

    name: str
    float: np.ndarray
    integer: np.ndarray | None = None
    type: NumType | None = None

    @property
    def dequantized(self) -> np.ndarray | None:
        """The real values that the integers stand for."""
        return None if self.integer is None or self.type is None else self.type.dequantize(self.integer)


def one_stimulus(graph: Graph, stimuli: Stimuli | None, chosen: int | np.ndarray, where: str) -> np.ndarray:
    """The real values (1, ...) of a stimulus: by its position in a set, or given as (C, H, W) or (1, C, H, W).

    Raises:
        N2D2Error: E509 no set, E513 a position beyond it, E414 values of another shape.
    """
    if not isinstance(chosen, (int, np.integer)):
        wanted, given = stimulus_shape(graph), np.asarray(chosen, np.float32)
        port = graph.fed_ports[0] if len(graph.fed) == 1 else plain_port((1, *wanted))
        samples = port.samples(given[None] if given.shape == port.sample else given, (1, *wanted))
        if samples is None or len(samples) != 1:
            shape = "x".join(map(str, port.sample))
            raise N2D2Error(
                "E414",
                f"the sample has shape {given.shape}, but the input has shape {shape}",
                remedy=f"give an array of shape {shape}",
            )
        return samples
    if stimuli is None:
        raise N2D2Error("E509", "the model has no samples", where=where, remedy="load it with data, or give an array")
    if not 0 <= chosen < len(stimuli):
        raise N2D2Error("E513", f"sample {chosen} does not exist", remedy=f"give 0 to {len(stimuli) - 1}, or an array")
    return stimuli[int(chosen)][None]


def layer_values(graph: Graph, typed: QuantGraph | None, x: np.ndarray) -> Mapping[str, LayerValues]:
    """Values by name, inputs first, then layers in execution order; those of the typed network's layers where it is given.

    Args:
        x: real values (1, ...) of one stimulus.
    """
    layers = [(node.name, node.outputs) for node in (typed or graph).nodes]
    tensors = {name: name for name in graph.inputs}
    for name, outputs in layers:
        tensors.update({name: outputs[0]} if len(outputs) == 1 else {f"{name}:{one}": one for one in outputs})
    engine = FloatEngine(graph, taps=[tensor for tensor in tensors.values() if tensor not in graph.inputs])
    real = {**named_inputs(graph, x), **engine.run(x)}
    if typed is None:
        return {name: LayerValues(name, real[tensor][0]) for name, tensor in tensors.items()}
    stored = simulate(typed, quantize_inputs(typed, [x]), keep=True)
    return {name: LayerValues(name, real[tensor][0], stored[tensor][0], typed.type(tensor)) for name, tensor in tensors.items()}
