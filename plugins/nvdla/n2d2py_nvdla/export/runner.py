"""Running an NVDLA export: its loadable on the functional model, stimulus by stimulus."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py import log
from n2d2py.concurrency import ordered_map
from n2d2py.errors import InternalError
from n2d2py.exports.stimuli import read_arrays
from n2d2py.graph import QuantGraph
from n2d2py.runtime.runner import Runner
from n2d2py_nvdla import Program, read_loadable
from n2d2py_nvdla.config import config
from n2d2py_nvdla.export.files import LAYERS, LOADABLE
from n2d2py_nvdla.model import run_program
from n2d2py_nvdla.tables import TensorDesc
from n2d2py_nvdla.tensors import tensor_array, tensor_bytes


class _Network:
    """The loadable as a network on stored values of a typed graph."""

    def __init__(self, runner: LoadableRunner):
        self._runner = runner

    def stored_layers(self, inputs: list[np.ndarray]) -> dict[str, np.ndarray]:
        """Real results of the hardware layers by network layer, (N, C, H, W)."""
        found: dict[str, list[np.ndarray]] = {}
        for sample in zip(*inputs, strict=True):
            done = self._runner.run(list(sample), trace=True)
            for layer in self._runner.facts["layers"]:
                found.setdefault(layer["tensor"], []).append(self._runner.layer(layer, done.trace))
        return {tensor: np.stack(values) for tensor, values in found.items()}


def _described(ports: list[tuple[int, TensorDesc | None]]) -> list[TensorDesc]:
    """Return the tensor descriptors of the inputs or outputs; an export writes one for each."""
    found = [tensor for _, tensor in ports if tensor is not None]
    if len(found) != len(ports):
        raise InternalError("an input or output of the loadable has no tensor descriptor")
    return found


class LoadableRunner(Runner):
    """out.nvdla on the functional model; fp16 sums in float64, which is fast and within the last bit."""

    label = "loadable"
    slack = 0.02

    def __init__(self, folder: Path, details: Mapping[str, Any]):
        self._folder = folder
        self.facts: dict[str, Any] = json.loads((folder / LAYERS).read_text(encoding="utf-8"))
        self.program = Program.of(read_loadable(folder / LOADABLE), LOADABLE)
        self._config = config(self.facts["configuration"])
        self._cache: dict[tuple, np.ndarray] = {}

    def run(self, sample: list[np.ndarray], trace: bool = False):
        """One inference of stored inputs (C, H, W) or (C)."""
        tensors = _described(self.program.inputs)
        data = [tensor_bytes(tensor, values) for tensor, values in zip(tensors, sample, strict=True)]
        return run_program(self.program, data, self._config, trace=trace, cache=self._cache)

    def layer(self, layer: dict[str, Any], trace: dict[tuple[int, int], np.ndarray]) -> np.ndarray:
        """Return the real result of a hardware layer, put together from its operations."""
        shape = layer["shape"]
        whole = np.zeros(shape, np.float32)
        for number in range(layer["first"], layer["last"] + 1):
            place = layer["places"][number - layer["first"]]
            if place is not None and (layer["task"], number) in trace:
                c, row, column, row_step, column_step, lanes = place if len(place) == 6 else (*place, 1, 1, 0)
                values = trace[layer["task"], number]
                if lanes:  # surfaces are lines, lines are columns
                    values = values.reshape(-1, lanes, values.shape[1]).transpose(1, 0, 2)[: shape[0] - c]
                channels, rows, columns = values.shape
                whole[c : c + channels, row::row_step, column::column_step][:, :rows, :columns] = (
                    values.astype(np.float32) * layer["scale"]
                )
        return whole

    def outputs(self, graph: QuantGraph, count: int) -> dict[str, np.ndarray]:
        """Return the outputs in the types of `graph`."""
        inputs = read_arrays(self._folder, len(graph.inputs), count)
        tensors = _described(self.program.outputs)
        found: dict[str, list[np.ndarray]] = {name: [] for name in graph.outputs}
        for done in log.progress(
            ordered_map(lambda sample: self.run(list(sample)), zip(*inputs, strict=True)),
            "running the loadable",
            total=count,
            unit="stimulus",
        ):
            for name, port, tensor, data in zip(graph.outputs, self.facts["outputs"], tensors, done.outputs, strict=True):
                real = tensor_array(tensor, data).astype(np.float32) * np.float32(port["scale"])
                found[name].append(real)
        return {
            name: graph.type(name).quantize(np.stack(values)).reshape(count, *graph.shape(name)[1:])
            for name, values in found.items()
        }

    def network(self) -> Any:
        """Return the layers that -compare requests."""
        return _Network(self)
