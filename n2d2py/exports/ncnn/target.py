"""Export target `-export NCNN`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from n2d2py import log
from n2d2py.errors import ErrorList
from n2d2py.exports.base import ExportRequest, Prepared, QuantDefaults, Target, graph_ports
from n2d2py.exports.model_file import (
    NoForm,
    computed_tensors,
    hex_rows,
    model_file,
    precision_problem,
    type_fields,
    unsupported,
    write_rendered,
)
from n2d2py.exports.ncnn.arithmetic import is_integer_layer, with_ncnn
from n2d2py.exports.ncnn.file import NcnnNetwork, NetworkFile, identifier
from n2d2py.exports.ncnn.layers import NcnnChoices, NcnnLayers
from n2d2py.exports.ncnn.runner import NcnnRunner
from n2d2py.exports.registry import register
from n2d2py.exports.stimuli import write_arrays
from n2d2py.files import write_text
from n2d2py.graph import QuantGraph
from n2d2py.ini import ExportParameters, Kind, parameter


@dataclass(frozen=True)
class NcnnModel:
    """A network and the facts of its layers. `simulated`: True if no quantized tensor of the network is float in ncnn."""

    network: NcnnNetwork
    layers: NcnnLayers
    simulated: bool


def write_model(graph: QuantGraph, choices: NcnnChoices) -> NcnnModel:
    """Return the ncnn network. Raise E701 for every layer without ncnn form."""
    file, problems = NetworkFile(), []
    layers = NcnnLayers(graph, file, choices)
    for name in graph.inputs:
        if graph.type(name).plain:
            remedy = "make it a float input"
            problems.append(unsupported(f"the input '{name}' is {graph.type(name).name}", "ncnn", graph.name, remedy))
            layers.blobs[name] = name
        else:
            layers.input(name)
    for node in graph.nodes:
        try:
            layers.write(node)
        except NoForm as reason:
            where = node.location or graph.name
            problems.append(unsupported(f"layer '{node.name}': {reason}", "ncnn", where, reason.remedy))
            layers.blobs.update({name: name for name in node.outputs})
    ErrorList.raise_if(problems)
    network = file.finish(layers.outputs())
    integers = (node for node in graph.nodes if graph.is_integer(node))
    simulated = all(layers.runs_in_integers(node) or node.op.kind == "Convert" for node in integers)
    return NcnnModel(network, layers, simulated)


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


class NcnnTarget(Target[NcnnModel]):
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
    needs_plan = False
    runner = NcnnRunner

    def overruled(self, parameters: Mapping[str, Any], graph: QuantGraph) -> dict[str, str]:
        """-nbbits -16 always stores half precision; float values are not rounded."""
        reasons = {"Fp16Storage": "-nbbits -16 stores weights in half precision"} if graph.bits == -16 else {}
        return reasons | ({"RoundBlobs": "there are no integers to round to"} if graph.bits < 0 else {})

    def as_computed(self, graph: QuantGraph, parameters: Mapping[str, Any]) -> QuantGraph:
        return with_ncnn(graph)

    def prepare(self, request: ExportRequest) -> Prepared[NcnnModel]:
        """Raise E704 without layers, E705 for types other than int8 and float32, E701 for unsupported layers."""
        supported, remedy = "NCNN supports 8-bit integers and float32", "use -nbbits 8, -32 or -16"
        if problem := precision_problem(request, supported, (8, -32, -16), remedy):
            return Prepared(request, [problem])
        prepared = Prepared.of(request, partial(write_model, request.graph, _choices(request)))
        if prepared.content is not None:
            _warn_without_effect(request, prepared.content.layers)
        return prepared

    def details(self, prepared: Prepared[NcnnModel]) -> dict[str, Any]:
        graph, model = prepared.request.graph, prepared.result
        return {
            "param": model_file(graph.name, "param"),
            "bin": model_file(graph.name, "bin"),
            "integers": graph.bits > 0,
            "rounded": _choices(prepared.request).round_blobs,
            "simulated": model.simulated,
            "unpacked": model.layers.unpacked,
            "inputs": list(graph.inputs),
            "layers": model.network.types,
            "blobs": {name: model.layers.blobs[name] for name in [*graph.inputs, *computed_tensors(graph)]},
            "stored": model.layers.stored,
            "types": type_fields(graph),
        }

    def write(self, prepared: Prepared[NcnnModel], folder: Path) -> None:
        request, network = prepared.request, prepared.result.network
        path = folder / model_file(request.graph.name, "param")
        write_text(path, network.text())
        path.with_suffix(".bin").write_bytes(network.weights())
        if NcnnParameters.of(request.parameters).model_array:
            path.with_suffix(".param.bin").write_bytes(network.binary())
            _write_headers(path, network)
        write_arrays(request.stimuli, folder)
        _write_readme(folder, request, prepared.result, path.stem)


def _warn_without_effect(request: ExportRequest, layers: NcnnLayers) -> None:
    """Warn W703 for parameters that change nothing in this network."""
    own = NcnnParameters.of(request.parameters)
    if own.fp16_storage and not layers.halves:
        log.warning("W703", "Fp16Storage has no effect, as no layer has real weights", remedy="remove it")
    if request.graph.bits > 0 and own.round_blobs and not layers.rounded:
        what = "RoundBlobs has no effect, as no input of a float layer is an integer tensor"
        log.warning("W703", what, remedy="remove it")


def _variable(file: str) -> str:
    """Return the name of a file as a C identifier, as ncnn2mem does."""
    return re.sub(r"[^0-9A-Za-z]", "_", file)


_NAMES = {"variable": _variable, "identifier": identifier}


def _write_headers(path: Path, network: NcnnNetwork) -> None:
    """Write the indexes of layers and blobs, needed without names, and the binary files as arrays."""
    blobs = {name: number for number, name in enumerate(network.blobs)}
    files = [(f"{path.stem}.param.bin", network.binary()), (f"{path.stem}.bin", network.weights())]
    arrays = [(name, hex_rows(data, ",")) for name, data in files]
    write_rendered(path.with_suffix(".id.h"), "ncnn/model.id.h", stem=path.stem, network=network, blobs=blobs, **_NAMES)
    write_rendered(path.with_suffix(".mem.h"), "ncnn/model.mem.h", stem=path.stem, files=arrays, **_NAMES)


def _write_readme(folder: Path, request: ExportRequest, model: NcnnModel, stem: str) -> None:
    """Write the contents of the files, how to run them, and where results may differ."""
    graph = request.graph
    write_rendered(
        folder / "README.md",
        "ncnn/README.md",
        graph=graph,
        network=model.network,
        made=model.layers,
        stem=stem,
        half=_choices(request).half,
        ports=[(way, name, tuple(graph.shape(name)[1:])) for way, name in graph_ports(graph)],
        first=model.layers.blobs[graph.inputs[0]],
        last=model.layers.blobs[graph.outputs[0]],
        arrays=NcnnParameters.of(request.parameters).model_array,
        **_NAMES,
    )


def _choices(request: ExportRequest) -> NcnnChoices:
    own = NcnnParameters.of(request.parameters)
    return NcnnChoices(request.graph.bits == -16 or own.fp16_storage, own.round_blobs)


register(NcnnTarget())
