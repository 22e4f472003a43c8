"""Export target `-export TFLite`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from n2d2py.exports.base import ExportRequest, Prepared, QuantDefaults, Target, graph_ports
from n2d2py.exports.model_file import computed_tensors, hex_rows, model_file, precision_problem, type_fields, write_rendered
from n2d2py.exports.registry import register
from n2d2py.exports.stimuli import write_arrays
from n2d2py.exports.tflite.file import camel_case, int8_grid
from n2d2py.exports.tflite.layers import TfliteModel, write_model
from n2d2py.exports.tflite.runner import LiteRtRunner
from n2d2py.exports.tflite.writer import channels_last
from n2d2py.exports.tflite.xnnpack import with_reference, with_xnnpack
from n2d2py.graph import QuantGraph
from n2d2py.ini import ExportParameters, Kind, parameter

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
        """IntegerIO has no effect in floating point."""
        return {"IntegerIO": "a network in floating point has no integers"} if graph.bits < 0 else {}

    def as_computed(self, graph: QuantGraph, parameters: Mapping[str, Any]) -> QuantGraph:
        return with_reference(graph) if TfliteParameters.of(parameters).kernels == "Reference" else with_xnnpack(graph)

    def prepare(self, request: ExportRequest) -> Prepared[TfliteModel]:
        """Raise E704 without layers, E705 unless int8 or float32, E701 for unsupported layers, E721 without schema."""
        supported, remedy = "TFLite supports 8-bit integers and float32", "use -nbbits 8 or -nbbits -32"
        if problem := precision_problem(request, supported, (8, -32), remedy):
            return Prepared(request, [problem])
        integer_io = TfliteParameters.of(request.parameters).integer_io
        return Prepared.of(request, partial(write_model, request.graph, integer_io))

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
    """Write the contents of the model, how to run it, and where its results may differ."""
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
