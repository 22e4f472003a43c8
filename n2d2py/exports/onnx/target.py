"""Export target `-export ONNX`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import NumType
from n2d2py.errors import require
from n2d2py.exports.base import ExportRequest, Prepared, QuantDefaults, Target, graph_ports
from n2d2py.exports.model_file import computed_tensors, model_file, type_fields, write_rendered
from n2d2py.exports.onnx.parameters import OnnxParameters
from n2d2py.exports.registry import register
from n2d2py.exports.stimuli import read_arrays, write_arrays
from n2d2py.graph import QuantGraph
from n2d2py.reference.engine import open_session
from n2d2py.runtime.runner import PackageRunner

if TYPE_CHECKING:
    from n2d2py.exports.onnx.model import QdqWriter


_BATCH = 25


class OnnxRunner(PackageRunner):
    """Runner of the model in ONNX Runtime with default optimizations."""

    label = "ONNX Runtime"
    remedy = "pip install 'n2d2py[onnx]'"
    module = "onnxruntime"

    def outputs(self, graph: QuantGraph, count: int) -> dict[str, np.ndarray]:
        inputs = read_arrays(self._folder, len(graph.inputs), count)
        path = self._folder / self._details["file"]
        session = open_session(str(path), path)
        batches: list[list[np.ndarray]] = []
        starts = range(0, count, _BATCH)
        for start in log.progress(starts, "running the model", total=len(starts), unit="batch"):
            batch = [x[start : start + _BATCH] for x in inputs]
            batches.append(session.run(list(graph.outputs), _model_inputs(self._details, batch)))
        outputs = [np.concatenate(parts) for parts in zip(*batches, strict=True)]
        return {
            name: _stored(values, graph.type(name)).reshape(count, *graph.shape(name)[1:])
            for name, values in zip(graph.outputs, outputs, strict=True)
        }

    @cached_property
    def _taps(self) -> tuple[Any, dict[str, str]]:
        """A session of the model whose every tensor is an output, and the tensor of the model by that of the network."""
        import onnx

        model = onnx.load(self._folder / self._details["file"])
        known, inputs = ({value.name for value in ports} for ports in (model.graph.output, model.graph.input))
        taps = {tensor: stored for tensor, stored in self._details["tensors"].items() if stored not in inputs}
        names = [name for name in dict.fromkeys(taps.values()) if name not in known]
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
        return open_session(model.SerializeToString(), self._folder / self._details["file"]), taps

    def stored_layers(self, inputs: list[np.ndarray]) -> dict[str, np.ndarray]:
        session, taps = self._taps
        types = {name: NumType(**kind) for name, kind in self._details["types"].items()}
        names = list(dict.fromkeys(taps.values()))
        results = dict(zip(names, session.run(names, _model_inputs(self._details, inputs)), strict=True))
        return {
            tensor: types[tensor].dequantize(values) if (values := results[stored]).dtype.kind in "iu" else values
            for tensor, stored in taps.items()
        }


def _model_inputs(details: Mapping[str, Any], inputs: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    return {
        name: x if details["integer_io"] else NumType(**details["types"][name]).dequantize(x)
        for name, x in zip(details["inputs"], inputs, strict=True)
    }


def _stored(values: np.ndarray, kind: NumType) -> np.ndarray:
    return kind.quantize(values) if values.dtype.kind == "f" else np.clip(values, kind.qmin, kind.qmax).astype(kind.dtype)


_MAX_INLINE_BYTES = 1 << 30
"""Model size in bytes above which constants are stored in a separate file; protobuf ends at 2 GiB."""


class OnnxTarget(Target["QdqWriter"]):
    """ONNX target: a QDQ model with the tool's integers, or a float model with `-nbbits -32`."""

    name = "ONNX"
    parameter_type = OnnxParameters
    quantization = QuantDefaults(softmax_rows=False, full_range=True)
    needs_plan = False
    runner = OnnxRunner

    def overruled(self, parameters: Mapping[str, Any], graph: QuantGraph) -> dict[str, str]:
        kinds = [tensor.type for tensor in graph.tensors.values()]
        has_signed = any(kind.signed and not (kind.is_float or kind.plain) for kind in kinds)
        weights = [node.params["weights"] for node in graph.nodes if "weights" in node.params]
        has_low_bits = any(one.dtype == np.int8 and -8 <= one.min(initial=0) <= one.max(initial=0) <= 7 for one in weights)
        reasons = (
            (has_signed, "ExactRange", "no tensor has signed integers"),
            (has_low_bits, "Int4Weights", "no weights have at most 4 bits"),
            (graph.bits > 0, "IntegerIO", "a network in floating point has no integers"),
        )
        return {name: reason for has_effect, name, reason in reasons if not has_effect}

    def quantization_with(self, parameters: Mapping[str, Any]) -> QuantDefaults:
        """Return the defaults: signed bytes start at -128; with `ExactRange`, a Clip limits them to -127."""
        return replace(self.quantization, full_range=not OnnxParameters.of(parameters).exact_range)

    def make(self, request: ExportRequest) -> QdqWriter:
        """Raise E701 for layers without ONNX form, E705 for parameters, E721 without the package onnx."""
        require("onnx", "the export ONNX", "onnx")
        from n2d2py.exports.onnx.model import write_model  # late: other exports do not need onnx

        return write_model(request.graph, request.parameters, _metadata(request))

    def details(self, prepared: Prepared[QdqWriter]) -> dict[str, Any]:
        graph, model = prepared.request.graph, prepared.result
        return {
            "file": model_file(graph.name, "onnx"),
            "integers": graph.bits > 0,
            "integer_io": OnnxParameters.of(prepared.request.parameters).integer_io,
            "inputs": list(graph.inputs),
            "tensors": {name: model.stored.get(name, name) for name in computed_tensors(graph)},
            "types": type_fields(graph),
        }

    def write(self, prepared: Prepared[QdqWriter], folder: Path) -> None:
        request, written = prepared.request, prepared.result
        path = folder / model_file(request.graph.name, "onnx")
        if written.model.ByteSize() > _MAX_INLINE_BYTES:
            import onnx

            onnx.save_model(written.model, path, save_as_external_data=True, location=f"{path.name}.data")
        else:
            path.write_bytes(written.model.SerializeToString(deterministic=True))
        write_arrays(request.stimuli, folder)
        _write_readme(folder, request, written, path.name)


def _write_readme(folder: Path, request: ExportRequest, model: QdqWriter, file: str) -> None:
    graph, integer_io = request.graph, OnnxParameters.of(request.parameters).integer_io

    def numbers(kind: NumType) -> str:
        if kind.plain or kind.is_float:
            return kind.name
        return f"{kind.name}, real = {kind.scale:.9g} (q - {kind.zero_point})" if integer_io else "float32"

    write_rendered(
        folder / "README.md",
        "onnx/README.md",
        graph=graph,
        made=model,
        file=file,
        opset=next(entry.version for entry in model.model.opset_import if not entry.domain),
        ports=[(way, name, ("N", *graph.shape(name)[1:]), numbers(graph.type(name))) for way, name in graph_ports(graph)],
        full_range=any(tensor.type.full and tensor.type.bits == 8 for tensor in graph.tensors.values()),
    )


def _metadata(request: ExportRequest) -> dict[str, str]:
    """Return class names and preprocessing under the keys of this tool, YOLO's exporters and the ONNX specification."""
    metadata = {}
    contract = request.contract
    if contract.classes:
        metadata["names"] = repr(dict(enumerate(contract.classes)))
    pixels = contract.pixels
    if pixels is not None:
        known = {
            (1.0, 0.0): "NominalRange_0_255",
            (round(1 / 255, 9), 0.0): "Normalized_0_1",
            (round(2 / 255, 9), -1.0): "Normalized_1_1",
        }
        ways = {(round(factor, 9), round(offset, 9)) for factor, offset in zip(pixels.factors, pixels.offsets, strict=True)}
        if len(ways) == 1 and (text := known.get(ways.pop())):
            metadata["Image.NominalPixelRange"] = text
        else:
            metadata["n2d2py.factors"] = repr(list(pixels.factors))
            metadata["n2d2py.offsets"] = repr(list(pixels.offsets))
    if contract.order in ("RGB", "BGR"):
        metadata["Image.BitmapPixelFormat"] = f"{contract.order.capitalize()}8"
    return metadata


register(OnnxTarget())
