"""Export target `-export NCNN`, and the runner of its network in ncnn."""

from __future__ import annotations

import re
from collections.abc import Mapping
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
from n2d2py.exports.stimuli import read_arrays, write_arrays
from n2d2py.files import write_text
from n2d2py.graph import QuantGraph
from n2d2py.ini import ExportParameters, Kind, parameter
from n2d2py.runtime.runner import STEP_SLACK, PackageRunner, stack_samples
from n2d2py_ncnn.arithmetic import is_integer_layer, with_ncnn
from n2d2py_ncnn.codes import CODES
from n2d2py_ncnn.file import identifier
from n2d2py_ncnn.layers import NcnnLayers, write_model

_UNROUNDED_SLACK = 8.5 / 255
"""Tolerance without RoundBlobs: float layers read unrounded values, half a step off, and may magnify this."""
_WINOGRAD_SLACK = 1e-3
"""Relative tolerance of Winograd convolutions, of the largest magnitude."""


class NcnnRunner(PackageRunner):
    """Runner of the network in ncnn, one sample at a time.

    Attributes:
        settings: of `net.opt`: float32 and int8 on one core, without packed channels if these are not exact.
    """

    label = "ncnn"
    remedy = "pip install n2d2py[ncnn]"
    module = "ncnn"
    settings: Mapping[str, Any] = {
        "num_threads": 1,
        "use_vulkan_compute": False,
        **{f"use_{name}": False for name in ("fp16_packed", "fp16_storage", "fp16_arithmetic", "bf16_storage", "bf16_packed")},
    }

    def __init__(self, folder: Path, details: Mapping[str, Any]):
        super().__init__(folder, details)
        self.slack = _WINOGRAD_SLACK if details["simulated"] else STEP_SLACK if details["rounded"] else _UNROUNDED_SLACK
        if details["unpacked"]:
            self.settings = {**self.settings, "use_packing_layout": False}

    def outputs(self, graph: QuantGraph, count: int) -> dict[str, np.ndarray]:
        inputs = read_arrays(self._folder, len(graph.inputs), count)
        net, wanted = open_network(self._folder, self._details, self.settings), list(graph.outputs)
        samples = log.progress(zip(*inputs, strict=True), "running the network", total=count, unit="stimulus")
        results = stack_samples(_run_sample(net, self._details, sample, wanted) for sample in samples)
        return {
            name: graph.type(name).quantize(values.reshape(count, *graph.shape(name)[1:])) for name, values in results.items()
        }

    @cached_property
    def _tapped(self) -> Any:
        return open_network(self._folder, self._details, {**self.settings, "lightmode": False})

    def stored_layers(self, inputs: list[np.ndarray]) -> dict[str, np.ndarray]:
        details, blobs = self._details, list(self._details["blobs"])
        samples = zip(*inputs, strict=True)
        return stack_samples(_run_sample(self._tapped, details, sample, blobs, keep=True) for sample in samples)

    def sizes(self) -> dict[str, int]:
        return {name: (self._folder / self._details[name]).stat().st_size for name in ("param", "bin")}


def open_network(folder: Path, details: Mapping[str, Any], settings: Mapping[str, Any]) -> Any:
    """Return the network loaded by ncnn."""
    net = import_module("ncnn").Net()
    for name, value in settings.items():
        setattr(net.opt, name, value)
    for load, name in ((net.load_param, "param"), (net.load_model, "bin")):
        if load(str(folder / details[name])) != 0:
            raise RuntimeError(f"ncnn does not read {details[name]}")
    return net


def _run_sample(
    net: Any, details: Mapping[str, Any], sample: tuple[np.ndarray, ...], wanted: list[str], keep: bool = False
) -> dict[str, np.ndarray]:
    """Return the real values of tensors (C, H, W) or (C), for the stored inputs of one sample."""
    library = import_module("ncnn")
    extractor = net.create_extractor()
    extractor.set_light_mode(not keep)
    for name, stored in zip(details["inputs"], sample, strict=True):
        real = NumType(**details["types"][name]).dequantize(stored)
        extractor.input(details["blobs"][name], library.Mat(np.ascontiguousarray(real, np.float32)).clone())
    results = {}
    for name in wanted:
        status, blob = extractor.extract(details["blobs"][name])
        if status != 0:
            raise RuntimeError(f"ncnn does not compute '{name}'")
        values = np.array(blob, np.float32)
        results[name] = values * np.float32(details["types"][name]["scale"]) if name in details["stored"] else values
    return results


_TEXTS = """
Fp16Storage: Store real weights of convolutions and fully connected layers as float16. Always on with -nbbits -16.
RoundBlobs: For pre-quantized models: round the inputs of float layers to the integers of their tensors. Each rounding takes
    three layers.
"""


@dataclass(frozen=True)
class NcnnParameters(ExportParameters, texts=_TEXTS):
    """The export parameters of NCNN."""

    fp16_storage: bool = parameter("Fp16Storage", Kind.BOOL, False)
    round_blobs: bool = parameter("RoundBlobs", Kind.BOOL, False)
    model_array: bool = parameter(
        "ModelArray", Kind.BOOL, True, "Also write the files as C arrays, for ncnn without a file system."
    )


class NcnnTarget(Target[NcnnLayers]):
    """ncnn target: int8 with scales in the file, or float with `-nbbits -32` and `-16`."""

    name = "NCNN"
    parameter_type = NcnnParameters
    quantization = QuantDefaults(
        unsigned=False,
        own_rescaling=True,
        input_bits=8,
        mixed=False,
        wide_concats=False,
        softmax_rows=False,
        integer_layers=is_integer_layer,
    )
    codes = CODES
    needs_plan = False
    runner = NcnnRunner

    def overruled(self, parameters: Mapping[str, Any], graph: QuantGraph) -> dict[str, str]:
        reasons = {"Fp16Storage": "-nbbits -16 stores weights in half precision"} if graph.bits == -16 else {}
        return reasons | ({"RoundBlobs": "there are no integers to round to"} if graph.bits < 0 else {})

    def as_computed(self, graph: QuantGraph, parameters: Mapping[str, Any]) -> QuantGraph:
        return with_ncnn(graph)

    def make(self, request: ExportRequest) -> NcnnLayers:
        """Raise E705 for types other than int8 and float32, E701 for unsupported layers."""
        supported, remedy = "NCNN supports 8-bit integers and float32", "use -nbbits 8, -32 or -16"
        require_precision(request.graph, supported, (8, -32, -16), remedy)
        own = NcnnParameters.of(request.parameters)
        model = write_model(request.graph, request.graph.bits == -16 or own.fp16_storage, own.round_blobs)
        _warn_without_effect(request, model)
        return model

    def details(self, prepared: Prepared[NcnnLayers]) -> dict[str, Any]:
        graph, model = prepared.request.graph, prepared.result
        integers = (node for node in graph.nodes if graph.is_integer(node))
        return {
            "param": model_file(graph.name, "param"),
            "bin": model_file(graph.name, "bin"),
            "integers": graph.bits > 0,
            "rounded": model.round_blobs,
            "simulated": all(model.runs_in_integers(node) or node.op.kind == "Convert" for node in integers),
            "unpacked": model.unpacked,
            "inputs": list(graph.inputs),
            "layers": model.network.types,
            "blobs": {name: model.blobs[name] for name in [*graph.inputs, *computed_tensors(graph)]},
            "stored": model.stored,
            "types": type_fields(graph),
        }

    def write(self, prepared: Prepared[NcnnLayers], folder: Path) -> None:
        request, network = prepared.request, prepared.result.network
        path, arrays = folder / model_file(request.graph.name, "param"), NcnnParameters.of(request.parameters).model_array
        write_text(path, network.text())
        path.with_suffix(".bin").write_bytes(network.weights())
        if arrays:
            path.with_suffix(".param.bin").write_bytes(network.binary())
        write_arrays(request.stimuli, folder)
        _write_texts(prepared, path, arrays)


def _warn_without_effect(request: ExportRequest, layers: NcnnLayers) -> None:
    own = NcnnParameters.of(request.parameters)
    if own.fp16_storage and not layers.halves:
        log.warning("W703", "Fp16Storage has no effect, as no layer has real weights", remedy="remove it")
    if request.graph.bits > 0 and own.round_blobs and not layers.rounded:
        what = "RoundBlobs has no effect, as no input of a float layer is an integer tensor"
        log.warning("W703", what, remedy="remove it")


def _variable(file: str) -> str:
    """Return the name of a file as a C identifier, as ncnn2mem does."""
    return re.sub(r"[^0-9A-Za-z]", "_", file)


def _write_texts(prepared: Prepared[NcnnLayers], path: Path, arrays: bool) -> None:
    """Write the README and, with `arrays`, the C headers for the file `path`."""
    graph, model, stem = prepared.request.graph, prepared.result, path.stem
    network = model.network
    values: dict[str, Any] = {"stem": stem, "network": network, "variable": _variable, "identifier": identifier}

    def write(file: Path, template: str, **more: Any) -> None:
        write_rendered(file, Path(__file__).parent / "templates" / template, **values, **more)

    if arrays:
        blobs = {name: number for number, name in enumerate(network.blobs)}
        files = [(f"{stem}.param.bin", network.binary()), (f"{stem}.bin", network.weights())]
        write(path.with_suffix(".id.h"), "model.id.h", blobs=blobs)
        write(path.with_suffix(".mem.h"), "model.mem.h", files=[(name, hex_rows(data, ",")) for name, data in files])
    ports = [(way, name, tuple(graph.shape(name)[1:])) for way, name in graph_ports(graph)]
    first, last = model.blobs[graph.inputs[0]], model.blobs[graph.outputs[0]]
    own = {"graph": graph, "made": model, "half": model.half, "ports": ports, "first": first, "last": last, "arrays": arrays}
    write(path.with_name("README.md"), "README.md", **own)
