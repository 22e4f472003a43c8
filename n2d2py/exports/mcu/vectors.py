"""The vectors that a board is tested with: inputs, and the integers of every layer as Python computes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from n2d2py.exports.base import ExportRequest
from n2d2py.exports.stimuli import hwc
from n2d2py.graph import QuantGraph
from n2d2py.quant.simulator import simulate

VECTORS = Path("test") / "vectors"
_SEED = 1


def _inputs(request: ExportRequest, count: int) -> list[np.ndarray]:
    """The first `count` stimuli; random integers of the whole range for those that there are not."""
    graph, random = request.graph, np.random.default_rng(_SEED)
    found = []
    for index, name in enumerate(graph.fed):
        kind, shape = graph.type(name), tuple(graph.shape(name)[1:])
        drawn = random.integers(kind.qmin, kind.qmax, (count, *shape), endpoint=True) if not kind.is_float else None
        values = random.standard_normal((count, *shape)) if drawn is None else drawn
        values = values.astype(kind.dtype)
        if request.stimuli.count:
            known = request.stimuli.inputs[index][:count]
            values[: len(known)] = known
        found.append(values)
    return found


def vector_bytes(graph: QuantGraph, order: Sequence[str], values: dict[str, np.ndarray], index: int) -> bytes:
    """Stimulus `index` of the stored `values` by tensor: the inputs, then the layers in `order`, all in HWC, little-endian."""
    outputs = {node.name: node.output for node in graph.nodes}
    tensors = [*graph.fed, *(outputs[name] for name in order)]
    arrays = (hwc(values[name][index]) for name in tensors)
    return b"".join(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes() for array in arrays)


def write_vectors(request: ExportRequest, count: int, folder: Path) -> None:
    """Writes `test/vectors/000.bin` and on into `folder`."""
    inputs = _inputs(request, count)
    (folder / VECTORS).mkdir(parents=True, exist_ok=True)
    calls = (request.graph.calls or count) if request.graph.states else 1
    for index in range(count):
        one = [values[index // calls * calls : index + 1] for values in inputs]
        values = simulate(request.graph, one, keep=True)
        data = vector_bytes(request.graph, request.memory_plan.order, values, -1)
        (folder / VECTORS / f"{index:03d}.bin").write_bytes(data)
