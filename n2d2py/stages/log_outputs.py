"""`-log-outputs N`: every layer output of one stimulus as text, as N2D2 writes it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from n2d2py import log
from n2d2py.data.stimuli import Stimuli
from n2d2py.errors import N2D2Error
from n2d2py.files import file_names
from n2d2py.graph import Graph, QuantGraph
from n2d2py.graph.inputs import named_inputs
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.reference.engine import FloatEngine


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


def write_outputs(graph: Graph, quantized: QuantGraph | None, stimuli: Stimuli, number: int, folder: Path, tag: str) -> None:
    """Writes outputs_<tag>_<number>/env.dat and <layer>.dat for the `number`-th stimulus (from 1).

    With a typed network the stored integers are written, else the float values.

    Raises:
        N2D2Error: E513 when there are fewer stimuli.
    """
    if number > len(stimuli):
        raise N2D2Error(
            "E513", f"-log-outputs {number} exceeds the {len(stimuli)} test samples", remedy=f"give 1 to {len(stimuli)}"
        )
    # a call of a network with states comes after those since the last reset
    first = (number - 1) // stimuli.calls * stimuli.calls if stimuli.calls else number - 1
    x = np.stack([stimuli[index] for index in range(first, number)])
    if quantized is None:
        nodes = [(node.name, node.output) for node in graph.nodes]
        values = {**named_inputs(graph, x), **FloatEngine(graph, taps=[tensor for _, tensor in nodes]).run(x)}
    else:
        nodes = [(node.name, node.output) for node in quantized.nodes]
        values = simulate(quantized, quantize_inputs(quantized, [x]), keep=True)
    target = folder / f"outputs_{tag}_{number}"
    target.mkdir(parents=True, exist_ok=True)
    for index, name in enumerate(graph.inputs):
        (target / f"env{index or ''}.dat").write_text(matrix_text(values[name][-1]))
    files = file_names(name for name, _ in nodes)
    for name, tensor in nodes:
        (target / f"{files[name]}.dat").write_text(matrix_text(values[tensor][-1]))
    log.notice("outputs of sample %d: %s", number, target)
