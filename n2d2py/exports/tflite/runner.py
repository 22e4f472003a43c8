"""Runner of a .tflite file in LiteRT with its standard kernels."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import NumType
from n2d2py.exports.stimuli import read_arrays
from n2d2py.exports.tflite.file import need_schema
from n2d2py.graph import QuantGraph
from n2d2py.runtime.runner import PackageRunner, stack_samples


class LiteRtRunner(PackageRunner):
    """Runner of the model in LiteRT's interpreter."""

    label = "LiteRT"
    remedy = "pip install n2d2py[litert]"
    module = "ai_edge_litert"

    def __init__(self, folder: Path, details: Mapping[str, Any]):
        super().__init__(folder, details)
        self.label = f"LiteRT ({details['kernels']})"

    def outputs(self, graph: QuantGraph, count: int) -> dict[str, np.ndarray]:
        inputs = read_arrays(self._folder, len(graph.inputs), count)
        interpreter = open_model(self._folder / self._details["file"], self._details["kernels"])
        ports = dict(zip(graph.outputs, interpreter.get_output_details(), strict=True))
        types = [graph.type(name) for name in graph.inputs]

        def run(sample: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
            _run_sample(interpreter, types, sample)
            return {name: interpreter.get_tensor(port["index"])[0].copy() for name, port in ports.items()}

        samples = log.progress(zip(*inputs, strict=True), "running the model", total=count, unit="stimulus")
        return {
            name: _stored(values, graph.type(name), ports[name]["quantization"]).reshape(count, *graph.shape(name)[1:])
            for name, values in stack_samples(map(run, samples)).items()
        }

    def network(self) -> Any:
        return _Layers(self._folder, self._details)


class _Layers:
    """The model, and the values of all its layers by the kernels of `LiteRtRunner.outputs`."""

    def __init__(self, folder: Path, details: Mapping[str, Any]):
        self._details = details
        self._interpreter = open_model(folder / details["file"], details["kernels"], details["tensors"].values())
        self._grids = {one["index"]: one["quantization"] for one in self._interpreter.get_tensor_details()}

    def stored_layers(self, inputs: list[np.ndarray]) -> dict[str, np.ndarray]:
        types = [NumType(**self._details["types"][name]) for name in self._details["inputs"]]

        def run(sample: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
            _run_sample(self._interpreter, types, sample)
            return {name: self._real(index) for name, index in self._details["tensors"].items()}

        return stack_samples(map(run, zip(*inputs, strict=True)))

    def _real(self, index: int) -> np.ndarray:
        """Return the dequantized values of a tensor (C, H, W)."""
        values, grid = self._interpreter.get_tensor(index)[0], self._grids[index]
        real = real_numbers(values, grid) if values.dtype == np.int8 else values.copy()
        return real.transpose(2, 0, 1) if real.ndim == 3 else real


def open_model(path: Path, kernels: str, tensors: Collection[int] = ()) -> Any:
    """Return the model in LiteRT's interpreter.

    Args:
        kernels: XNNPACK, the default delegate (with built-in kernels for operators that it does not have); or Reference.
        tensors: tensors to read after a run. They become outputs, since the delegate keeps no others.
    """
    litert = import_module("ai_edge_litert.interpreter")
    kinds = litert.OpResolverType
    data = _with_outputs(path.read_bytes(), tensors) if tensors else path.read_bytes()
    interpreter = litert.Interpreter(
        model_content=data,
        num_threads=1,
        experimental_op_resolver_type={"XNNPACK": kinds.AUTO, "Reference": kinds.BUILTIN_REF}[kernels],
    )
    interpreter.allocate_tensors()
    return interpreter


def _with_outputs(data: bytes, tensors: Collection[int]) -> bytes:
    """Return the model with more outputs, after its own."""
    import flatbuffers

    model = need_schema().ModelT.InitFromPackedBuf(data, 0)
    (graph,) = model.subgraphs
    own = [int(index) for index in graph.outputs]
    graph.outputs = np.array([*own, *sorted(set(tensors) - set(own))], np.int32)
    builder = flatbuffers.Builder(len(data))
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _run_sample(interpreter: Any, types: list[NumType], sample: tuple[np.ndarray, ...]) -> None:
    for port, kind, values in zip(interpreter.get_input_details(), types, sample, strict=True):
        stored = kind.dequantize(values) if port["dtype"] == np.float32 else _as_int8(values, kind)
        stored = stored[None]
        interpreter.set_tensor(port["index"], stored.transpose(0, 2, 3, 1) if stored.ndim == 4 else stored)
    interpreter.invoke()


def real_numbers(values: np.ndarray, grid: tuple[float, int]) -> np.ndarray:
    """Return the dequantized values of int8 with (scale, zero point)."""
    return (values.astype(np.float32) - grid[1]) * np.float32(grid[0])


def _as_int8(values: np.ndarray, kind: NumType) -> np.ndarray:
    return (values.astype(np.int16) - (0 if kind.signed else 128)).astype(np.int8)


def _stored(values: np.ndarray, kind: NumType, grid: tuple[float, int]) -> np.ndarray:
    """Return the stored values (N, C, H, W) of floats, or of int8 with (scale, zero point), channels last."""
    values = values.transpose(0, 3, 1, 2) if values.ndim == 4 else values
    if kind.is_float and values.dtype.kind != "f":
        values = real_numbers(values, grid)
    if values.dtype.kind == "f":
        return kind.quantize(values)
    return np.clip(values.astype(np.int16) + (0 if kind.signed else 128), kind.qmin, kind.qmax).astype(kind.dtype)
