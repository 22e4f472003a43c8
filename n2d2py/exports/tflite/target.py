"""Export target `-export TFLite`, and the runner of its model in LiteRT."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import NumType
from n2d2py.exports.base import ExportRequest, Prepared, QuantDefaults, Target, graph_ports
from n2d2py.exports.model_file import computed_tensors, hex_rows, model_file, require_precision, type_fields, write_rendered
from n2d2py.exports.registry import register
from n2d2py.exports.stimuli import read_arrays, write_arrays
from n2d2py.exports.tflite.file import as_int8, camel_case, int8_grid, need_schema, packed
from n2d2py.exports.tflite.layers import TfliteModel, write_model
from n2d2py.exports.tflite.writer import channels_last
from n2d2py.exports.tflite.xnnpack import with_reference, with_xnnpack
from n2d2py.graph import QuantGraph
from n2d2py.ini import ExportParameters, Kind, parameter
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

    @cached_property
    def _tapped(self) -> Any:
        details = self._details
        return open_model(self._folder / details["file"], details["kernels"], details["tensors"].values())

    def stored_layers(self, inputs: list[np.ndarray]) -> dict[str, np.ndarray]:
        types = [NumType(**self._details["types"][name]) for name in self._details["inputs"]]
        grids = {one["index"]: one["quantization"] for one in self._tapped.get_tensor_details()}

        def real(index: int) -> np.ndarray:
            values = self._tapped.get_tensor(index)[0]
            values = real_numbers(values, grids[index]) if values.dtype == np.int8 else values.copy()
            return values.transpose(2, 0, 1) if values.ndim == 3 else values

        def run(sample: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
            _run_sample(self._tapped, types, sample)
            return {name: real(index) for name, index in self._details["tensors"].items()}

        return stack_samples(map(run, zip(*inputs, strict=True)))


def open_model(path: Path, kernels: str, tensors: Collection[int] = ()) -> Any:
    """Return the model in LiteRT's interpreter with XNNPACK, the default delegate, or the reference kernels.

    `tensors` are read after a run. They become outputs, since the delegate keeps no others.
    """
    litert = import_module("ai_edge_litert.interpreter")
    kinds, data = litert.OpResolverType, path.read_bytes()
    interpreter = litert.Interpreter(
        model_content=_with_outputs(data, tensors) if tensors else data,
        num_threads=1,
        experimental_op_resolver_type={"XNNPACK": kinds.AUTO, "Reference": kinds.BUILTIN_REF}[kernels],
    )
    interpreter.allocate_tensors()
    return interpreter


def _with_outputs(data: bytes, tensors: Collection[int]) -> bytes:
    """Return the model with more outputs, after its own."""
    model = need_schema().ModelT.InitFromPackedBuf(data, 0)
    (graph,) = model.subgraphs
    own = [int(index) for index in graph.outputs]
    graph.outputs = np.array([*own, *sorted(set(tensors) - set(own))], np.int32)
    return packed(model)


def _run_sample(interpreter: Any, types: list[NumType], sample: tuple[np.ndarray, ...]) -> None:
    for port, kind, values in zip(interpreter.get_input_details(), types, sample, strict=True):
        stored = kind.dequantize(values) if port["dtype"] == np.float32 else as_int8(values, kind)
        stored = stored[None]
        interpreter.set_tensor(port["index"], stored.transpose(0, 2, 3, 1) if stored.ndim == 4 else stored)
    interpreter.invoke()


def real_numbers(values: np.ndarray, grid: tuple[float, int]) -> np.ndarray:
    """Return the dequantized values of int8 with (scale, zero point)."""
    return (values.astype(np.float32) - grid[1]) * np.float32(grid[0])


def _stored(values: np.ndarray, kind: NumType, grid: tuple[float, int]) -> np.ndarray:
    """Return the stored values (N, C, H, W) of floats, or of int8 with (scale, zero point), channels last."""
    values = values.transpose(0, 3, 1, 2) if values.ndim == 4 else values
    if kind.is_float and values.dtype.kind != "f":
        values = real_numbers(values, grid)
    if values.dtype.kind == "f":
        return kind.quantize(values)
    return np.clip(values.astype(np.int16) + (0 if kind.signed else 128), kind.qmin, kind.qmax).astype(kind.dtype)


_TEXTS = """
IntegerIO: 1: inputs and outputs are the quantized integers. 0: they are float and quantized in the model.
Kernels: LiteRT kernels whose arithmetic is simulated, and that -test and -compare run. Reference: the reference kernels,
    which TFLite Micro also uses.
ModelArray: Also write the file as a C array, with the list of operators for the TFLite Micro resolver.
"""


@dataclass(frozen=True)
class TfliteParameters(ExportParameters, texts=_TEXTS):
    """The export parameters of TFLite."""

    integer_io: bool = parameter("IntegerIO", Kind.BOOL, False)
    kernels: str = parameter("Kernels", Kind.ENUM, "XNNPACK", choices=("XNNPACK", "Reference"))
    model_array: bool = parameter("ModelArray", Kind.BOOL, True)


class TfliteTarget(Target[TfliteModel]):
    """TFLite target: int8, or float32 with `-nbbits -32`."""

    name = "TFLite"
    parameter_type = TfliteParameters
    quantization = QuantDefaults(
        own_rescaling=True, input_bits=8, output_bits=8, mixed=False, wide_concats=False, unit_ranges=True, softmax_rows=False
    )
    needs_plan = False
    runner = LiteRtRunner

    def overruled(self, parameters: Mapping[str, Any], graph: QuantGraph) -> dict[str, str]:
        return {"IntegerIO": "a network in floating point has no integers"} if graph.bits < 0 else {}

    def as_computed(self, graph: QuantGraph, parameters: Mapping[str, Any]) -> QuantGraph:
        return with_reference(graph) if TfliteParameters.of(parameters).kernels == "Reference" else with_xnnpack(graph)

    def make(self, request: ExportRequest) -> TfliteModel:
        """Raise E705 unless int8 or float32, E701 for unsupported layers, E721 without schema."""
        require_precision(request.graph, "TFLite supports 8-bit integers and float32", (8, -32), "use -nbbits 8 or -nbbits -32")
        return write_model(request.graph, TfliteParameters.of(request.parameters).integer_io)

    def details(self, prepared: Prepared[TfliteModel]) -> dict[str, Any]:
        graph, model = prepared.request.graph, prepared.result
        return {
            "file": model_file(graph.name, "tflite"),
            "inputs": list(graph.inputs),
            "integers": graph.bits > 0,
            "kernels": TfliteParameters.of(prepared.request.parameters).kernels,
            "operators": list(model.codes),
            "tensors": {name: model.index[name] for name in computed_tensors(graph)},
            "types": type_fields(graph),
        }

    def write(self, prepared: Prepared[TfliteModel], folder: Path) -> None:
        request, model = prepared.request, prepared.result
        path = self.write_model(prepared, folder)
        if TfliteParameters.of(request.parameters).model_array:
            write_c_arrays(folder, model.data, model.codes)
        _write_readme(folder, request, model, path.name)

    def write_model(self, prepared: Prepared[TfliteModel], folder: Path) -> Path:
        """Write the model and the samples; return the path of the model."""
        request = prepared.request
        path = folder / model_file(request.graph.name, "tflite")
        path.write_bytes(prepared.result.data)
        write_arrays(request.stimuli, folder)
        return path


def write_c_arrays(folder: Path, data: bytes, codes: Collection[str]) -> None:
    """Write a file as a C array with TFLite Micro's alignment, and a header that registers operators of these kinds."""
    functions = list(map(camel_case, codes))
    write_rendered(folder / "model_data.h", "tflite/model_data.h")
    write_rendered(folder / "model_data.c", "tflite/model_data.c", rows=hex_rows(data, ", "), size=len(data))
    write_rendered(folder / "model_operators.h", "tflite/model_operators.h", functions=functions)


def _write_readme(folder: Path, request: ExportRequest, model: TfliteModel, file: str) -> None:
    graph, own = request.graph, TfliteParameters.of(request.parameters)
    integer_io = graph.bits > 0 and own.integer_io

    def numbers(name: str) -> str:
        scale, zero = int8_grid(graph.type(name))
        return f"int8, real = {scale:.9g} (q - {zero})" if integer_io else "float32"

    write_rendered(
        folder / "README.md",
        "tflite/README.md",
        graph=graph,
        made=model,
        file=file,
        kernels=own.kernels,
        ports=[(way, name, channels_last(graph.shape(name)), numbers(name)) for way, name in graph_ports(graph)],
        arrays=own.model_array,
    )


register(TfliteTarget())
