"""The values of every layer for one stimulus: real ones of the float network, integers of the typed one; as text by
`-log-outputs N`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import NumType
from n2d2py.data.stimuli import Stimuli
from n2d2py.errors import N2D2Error
from n2d2py.files import file_names
from n2d2py.graph import Graph, QuantGraph, dims_text, named_inputs, plain_port, stimulus_shape
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
    """Return the real values (1, ...) of a stimulus: by its position in a set, or from an array (C, H, W) or (1, C, H, W).
    Raise E509 for no set, E513 a position beyond it, E414 values of another shape."""
    if not isinstance(chosen, (int, np.integer)):
        wanted, values = stimulus_shape(graph), np.asarray(chosen, np.float32)
        port = graph.user_input_ports[0] if len(graph.user_inputs) == 1 else plain_port((1, *wanted))
        samples = port.samples(values[None] if values.shape == port.sample else values, (1, *wanted))
        if samples is None or len(samples) != 1:
            shape = dims_text(port.sample)
            what = f"the sample has shape {values.shape}, but the input has shape {shape}"
            raise N2D2Error("E414", what, remedy=f"give an array of shape {shape}")
        return samples
    if stimuli is None:
        raise N2D2Error("E509", "the model has no samples", where=where, remedy="load it with data, or give an array")
    if not 0 <= chosen < len(stimuli):
        raise N2D2Error("E513", f"sample {chosen} does not exist", remedy=f"give 0 to {len(stimuli) - 1}, or an array")
    return stimuli[int(chosen)][None]


def layer_values(graph: Graph, typed: QuantGraph | None, x: np.ndarray) -> Mapping[str, LayerValues]:
    """Return the values by name, inputs first, then layers in execution order; those of the typed network's layers where it is
    given.

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


def matrix_text(values: np.ndarray) -> str:
    """(C, H, W) as one matrix per channel with a blank line between; a vector as a near-square matrix padded with 0."""
    if values.ndim == 1:
        columns = int(np.ceil(np.sqrt(values.size)))
        rows = -(-values.size // columns)
        padded = np.zeros(rows * columns, values.dtype)
        padded[: values.size] = values
        values = padded.reshape(1, rows, columns)
    form = "{:d}".format if values.dtype.kind in "iu" else "{:.9g}".format
    return "\n".join("".join(" ".join(map(form, row)) + "\n" for row in np.atleast_2d(channel).tolist()) for channel in values)


def write_outputs(graph: Graph, quantized: QuantGraph | None, stimuli: Stimuli, number: int, folder: Path) -> None:
    """Write outputs_<test|export>_<number>/env.dat and <layer>.dat for the `number`-th stimulus (from 1). With a typed network
    the stored integers are written, else the float values. Raise E513 when there are fewer stimuli."""
    if number > len(stimuli):
        what = f"-log-outputs {number} exceeds the {len(stimuli)} test samples"
        raise N2D2Error("E513", what, remedy=f"give 1 to {len(stimuli)}")
    # a call of a network with states comes after those since the last reset
    first = (number - 1) // stimuli.calls * stimuli.calls if stimuli.calls else number - 1
    x = np.stack([stimuli[index] for index in range(first, number)])
    if quantized is None:
        nodes = [(node.name, node.output) for node in graph.nodes]
        values = {**named_inputs(graph, x), **FloatEngine(graph, taps=[tensor for _, tensor in nodes]).run(x)}
    else:
        nodes = [(node.name, node.output) for node in quantized.nodes]
        values = simulate(quantized, quantize_inputs(quantized, [x]), keep=True)
    target = folder / f"outputs_{'test' if quantized is None else 'export'}_{number}"
    target.mkdir(parents=True, exist_ok=True)
    for index, name in enumerate(graph.inputs):
        (target / f"env{index or ''}.dat").write_text(matrix_text(values[name][-1]))
    files = file_names(name for name, _ in nodes)
    for name, tensor in nodes:
        (target / f"{files[name]}.dat").write_text(matrix_text(values[tensor][-1]))
    log.notice("outputs of sample %d: %s", number, target)
