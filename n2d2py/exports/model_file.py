"""Files, details and errors that the targets share whose export is a model of another runtime."""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py.arithmetic import FractionRescale
from n2d2py.contracts.quant.quantizer import QUANTIZERS, WeightedQuantizer, zero_point_terms
from n2d2py.errors import ErrorList, Location, N2D2Error
from n2d2py.files import file_names, write_text
from n2d2py.graph import QuantGraph, QuantNode, Weighted
from n2d2py.resources import templates

_REPLACE = "use -export CPP, or replace the layer"


class NoForm(Exception):
    """A layer that the runtime cannot express; the message is the reason."""

    def __init__(self, text: str, remedy: str = _REPLACE):
        super().__init__(text)
        self.remedy = remedy


def write_network(
    graph: QuantGraph,
    runtime: str,
    add_input: Callable[[str], None],
    add_layer: Callable[[QuantNode], None],
    tensors: dict[str, Any],
    missing: Any,
) -> None:
    """Add the inputs and the layers of a network to a model. Raise E701 for all that raise NoForm.

    What these would compute is `missing` in `tensors`, the tensors of the model by those of the network.
    """
    problems: list[N2D2Error] = []

    def attempt(title: str, where: Location | str, outputs: Sequence[str], add: Callable[[], None]) -> None:
        try:
            add()
        except NoForm as reason:
            what = f"{title}{reason}, which {runtime} does not support"
            problems.append(N2D2Error("E701", what, where=where, remedy=reason.remedy))
            tensors.update(dict.fromkeys(outputs, missing))

    for name in graph.inputs:
        attempt(f"the input '{name}' is ", graph.name, [name], partial(add_input, name))
    for node in graph.nodes:
        attempt(f"layer '{node.name}': ", node.location or graph.name, node.outputs, partial(add_layer, node))
    ErrorList.raise_if(problems)


def require_precision(graph: QuantGraph, supported: str, bits: Sequence[int], remedy: str) -> None:
    """Raise E705 for a network of another precision (-nbbits) than `bits`; `supported`: the export and what it supports."""
    if graph.bits not in bits:
        raise N2D2Error("E705", f"the export {supported}, not -nbbits {graph.bits}", remedy=remedy)


def computed_tensors(graph: QuantGraph) -> list[str]:
    """Return the tensors that layers compute, in order."""
    return [name for node in graph.nodes for name in node.outputs]


def type_fields(graph: QuantGraph) -> dict[str, Any]:
    """Return the fields of the number types of all inputs and computed tensors, for the manifest."""
    return {name: asdict(graph.type(name)) for name in [*graph.inputs, *computed_tensors(graph)]}


def model_file(network: str, ending: str) -> str:
    """Return the name of the file of a model."""
    name = network or "network"
    return f"{file_names([name])[name]}.{ending}"


def hex_rows(data: bytes, separator: str) -> list[str]:
    """Return the bytes as hexadecimal C constants, sixteen in a row."""
    starts = range(0, len(data), 16)
    return [separator.join(f"0x{byte:02x}" for byte in data[start : start + 16]) for start in starts]


def write_rendered(path: Path, template: str | Path, **values: Any) -> None:
    """Write a template, named `folder/file` as in `resources.templates`, to a file."""
    folder, name = os.path.split(template)
    write_text(path, templates(folder).get_template(f"{name}.j2").render(values))


@dataclass(frozen=True)
class RealWeights:
    """Weights, bias and scales of a weighted layer: real weight = `weights * scales`, real bias = `(bias + fractions) * steps`.

    Attributes:
        weights: integers (O, ...).
        scales, steps: (O) or (1), float64.
        bias: (O), int64, without the zero points that the tool added.
        fractions: (O), fractional parts of the bias; None without.
    """

    weights: np.ndarray
    scales: np.ndarray
    bias: np.ndarray
    fractions: np.ndarray | None
    steps: np.ndarray

    @property
    def whole_bias(self) -> np.ndarray:
        """The bias rounded to whole steps, (O), int64."""
        return self.bias if self.fractions is None else self.bias + np.rint(self.fractions).astype(np.int64)

    @property
    def real_weights(self) -> np.ndarray:
        """Float weights (O, ...), float32."""
        return (self.weights * self.scales.reshape(-1, *(1,) * (self.weights.ndim - 1))).astype(np.float32)

    @property
    def real_bias(self) -> np.ndarray:
        """Float bias (O), float32."""
        return ((self.bias + (0 if self.fractions is None else self.fractions)) * self.steps).astype(np.float32)


def real_weights(graph: QuantGraph, node: QuantNode) -> RealWeights:
    """Return the real values of a layer of the form `Weighted`."""
    form, x, y = node.form_as(Weighted), graph.type(node.inputs[0]), graph.type(node.output)
    quantizer, factors = QUANTIZERS[node.op.kind], node.rescaling.effective()
    bias = form.bias.astype(np.int64)
    if x.zero_point and isinstance(quantizer, WeightedQuantizer) and quantizer.zero_point_in_bias:
        bias = bias + x.zero_point * form.weights.reshape(len(bias), -1).sum(axis=1, dtype=np.int64)
    if node.zero_in_bias:
        bias = bias - zero_point_terms(node.rescaling, y.zero_point, len(bias), 2**31)
    steps, rescale = factors * y.scale, node.rescale
    fractions = rescale.fractions.astype(np.float64) if isinstance(rescale, FractionRescale) else None
    return RealWeights(form.weights, steps / x.scale, bias, fractions, steps)
