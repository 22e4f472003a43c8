"""A typed network as a network of ncnn.

Weights of convolutions and fully connected layers are int8 with a scale for each output, and the scale of what they multiply stands
after them, as ncnn2int8 writes them: such a layer quantizes its input itself and gives real numbers, or int8 where only convolutions read
it. All other layers compute in real numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from n2d2py.errors import ErrorList, Location, N2D2Error
from n2d2py.exports.ncnn.file import NcnnNetwork, NetworkFile
from n2d2py.exports.ncnn.layers import NcnnChoices, NcnnLayers, NoNcnnForm
from n2d2py.graph import QuantGraph


@dataclass(frozen=True)
class NcnnModel:
    """A network and where its tensors are.

    Attributes:
        blobs: by tensor, the name of its blob.
        stored: tensors whose blob has integers.
        integer, real: weighted layers of an integer network, by what they compute in.
        halves: layers whose weights can be stored in half precision.
        rounded: blobs that are rounded to the integers of their tensor.
        unpacked: whether some layer is exact only where channels are not packed.
        simulated: whether no tensor of integers of the network is one of real numbers in ncnn.
    """

    network: NcnnNetwork
    blobs: Mapping[str, str]
    stored: tuple[str, ...]
    integer: tuple[str, ...]
    real: tuple[str, ...]
    halves: int
    rounded: int
    unpacked: bool
    simulated: bool


def write_model(graph: QuantGraph, choices: NcnnChoices) -> NcnnModel:
    """The network of ncnn.

    Raises:
        ErrorList: E701 for every layer that ncnn cannot express.
    """
    file, problems = NetworkFile(), []
    layers = NcnnLayers(graph, file, choices)
    for name in graph.inputs:
        if graph.type(name).plain:
            remedy = "make it a float input"
            problems.append(_refused(f"the input '{name}' is {graph.type(name).name}", graph.name, remedy))
            layers.blobs[name] = name
        else:
            layers.input(name)
    for node in graph.nodes:
        try:
            layers.write(node)
        except NoNcnnForm as reason:
            problems.append(_refused(f"layer '{node.name}': {reason}", node.location or graph.name, reason.remedy))
            layers.blobs.update({name: name for name in node.outputs})
    ErrorList.raise_if(problems)
    network = file.finished(layers.outputs())
    names = (tuple(layers.stored), tuple(layers.integer), tuple(layers.real))
    simulated = all(
        layers.runs_in_integers(node) or node.op.kind == "Convert" for node in graph.nodes if graph.is_integer(node)
    )
    return NcnnModel(network, layers.blobs, *names, layers.halves, layers.rounded, layers.unpacked, simulated)


def _refused(what: str, where: Location | str, remedy: str) -> N2D2Error:
    return N2D2Error("E701", f"{what}, which ncnn does not support", where=where, remedy=remedy)
