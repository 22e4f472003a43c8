"""Quantized network as the bytes of a .tflite file, channels last: int8 with a weight scale per output, or float."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.exports.tflite.file import ModelFile, int8_grid, need_schema
from n2d2py.exports.tflite.layers import write_layer
from n2d2py.exports.tflite.writer import Layers, NoTfliteForm, channels_last
from n2d2py.graph import QuantGraph


@dataclass(frozen=True)
class TfliteModel:
    """The file, and the indexes of the network's tensors in it.

    Attributes:
        codes: its operators, in the order of first use.
        index: tensor of the file for each tensor of the network.
    """

    data: bytes
    codes: tuple[str, ...]
    index: Mapping[str, int]


def write_model(graph: QuantGraph, integer_io: bool = False) -> TfliteModel:
    """Return the model of a quantized network; inputs and outputs are float32, or int8 with `integer_io`.

    Raises:
        ErrorList: E701 for every layer without TFLite form.
        N2D2Error: E721 the package with the schema is missing.
    """
    file = ModelFile(need_schema())
    layers, problems = Layers(graph, file), []
    inputs: dict[str, int] = {}
    for name in graph.inputs:
        kind, shape = graph.type(name), channels_last(graph.shape(name))
        if name in layers.real or (integer_io and layers.is_int8(name)):
            inputs[name] = layers.declare(name)
        elif layers.is_int8(name):
            inputs[name] = file.tensor(name, shape, np.float32)
            layers.index[name] = file.tensor(f"{name}/quantized", shape, np.int8, int8_grid(kind))
            file.operator("QUANTIZE", [inputs[name]], layers.index[name])
        else:
            problems.append(_form_error(f"the input '{name}' is {kind.name}", graph.name))
            layers.index[name] = -1
    for node in graph.nodes:
        try:
            write_layer(layers, node)
        except NoTfliteForm as reason:
            problems.append(_form_error(f"layer '{node.name}': {reason}", node.location or graph.name))
            layers.index.update(dict.fromkeys(node.outputs, -1))
    ErrorList.raise_if(problems)
    outputs = {name: layers.index[name] for name in graph.outputs}
    for name, index in outputs.items():
        if not integer_io and name not in layers.real:
            outputs[name] = file.tensor(f"{name}/real", channels_last(graph.shape(name)), np.float32)
            file.operator("DEQUANTIZE", [index], outputs[name])
    return TfliteModel(file.to_bytes(graph.name, inputs, outputs), tuple(file.codes), dict(layers.index))


def _form_error(what: str, where) -> N2D2Error:
    remedy = "use -export CPP, or replace the layer"
    return N2D2Error("E701", f"{what}, which TFLite does not support", where=where, remedy=remedy)
