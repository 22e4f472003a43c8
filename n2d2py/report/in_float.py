"""Layers of an integer network that compute in floating point: which, why, and their share of the work and bytes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from n2d2py.contracts.quant.quantizer import refused
from n2d2py.graph import Graph, Node, QuantGraph, TargetForm
from n2d2py.operators.quantize import Convert, is_quantized
from n2d2py.operators.softmax import Softmax
from n2d2py.quant.types.dynamic_range import divisor_layers, power_layers
from n2d2py.quant.types.float_inputs import input_layers
from n2d2py.report.layers import layer_rows, totals
from n2d2py.report.text import Figures, column_csv, column_text

_NONE = np.zeros(())


@dataclass(frozen=True)
class FloatLayer:
    """A layer in floating point inside of an integer network.

    `reason`: why it has no integers. `asked`: whether the user asked for it (`Quantize=0`), or it is a Softmax at an output,
    which the target has no integers for, or a layer without weight matrix that the file does not quantize. `macs`: share of
    the multiply-accumulates of the network, 0..1. `bytes`: share of the bytes of all constants and layer outputs, 0..1.
    """

    layer: str
    operator: str
    reason: str
    asked: bool
    macs: float
    bytes: float


def float_layers_in(graph: QuantGraph, real: Graph) -> list[FloatLayer]:
    """Return the layers of an integer network that read or write floating point, without conversions, in order of execution.

    None in a float network. `real` is the float network of the same layers.
    """
    if not graph.is_mixed:
        return []
    sources = {node.name: node for node in real.nodes}
    rows = layer_rows(graph)
    work = max(totals(rows).macs, 1)
    size = max(sum(row.parameter_bytes + row.activation_bytes for row in rows), 1)
    power, divisors, inputs, quantized = power_layers(real), divisor_layers(real), input_layers(real), is_quantized(real)
    layers: list[FloatLayer] = []
    for node, row in zip(graph.nodes, rows, strict=True):
        if graph.is_integer(node) or isinstance(node.op, Convert) or graph.sums_integers(node):
            continue
        source = sources.get(node.name)
        if node.op.moves_values and (source is None or source.helper):
            continue
        precision = None if source is None else real.precision(source)
        asked = precision is not None and precision.quantize is False
        reason = None if source is None or asked else refused(source)
        first = quantized and (source is None or source.params.get("weights", _NONE).ndim < 2)
        first = first or (not quantized and source is not None and source.name in inputs)
        reasons = {
            "the file does not quantize it": quantized,
            "it makes of an input what has integers of one scale": first,
            "Quantize=0": asked,
            "the target has no integers for it": precision is not None and precision.target is TargetForm.REAL,
            "no integer form": reason == row.type,
            f"{reason}: no integer form": bool(reason),
            "the power of a spectrum, of which a logarithm or root is made": node.name in power,
            "a division or logarithm uses it: integer steps are too coarse near zero": node.name in divisors,
            "its neighbours are in floating point": True,
        }
        why = next(text for text, holds in reasons.items() if holds)
        share = (row.parameter_bytes + row.activation_bytes) / size
        last = source is not None and _is_last_softmax(real, source)
        layers.append(FloatLayer(node.name, row.type, why, asked or last or first, row.macs / work, share))
    return layers


def _is_last_softmax(graph: Graph, node: Node) -> bool:
    """True if a layer is a Softmax at an output, or moves the values of one."""
    source = graph.producer(node.inputs[0]) if node.op.moves_values else None
    if source is not None:
        return _is_last_softmax(graph, source)
    return isinstance(node.op, Softmax) and not node.op.log and graph.is_last(node.output)


def float_shares(layers: Sequence[FloatLayer]) -> tuple[float, float]:
    """Return the shares of the multiply-accumulates and of the bytes, 0..1."""
    return sum(one.macs for one in layers), sum(one.bytes for one in layers)


_COLUMNS: tuple[Figures[FloatLayer], ...] = (
    Figures(lambda one: one.layer, "layer", "layer in floating point"),
    Figures(lambda one: one.operator, "operator", "operator"),
    Figures(lambda one: one.reason, "reason", "reason"),
    Figures(lambda one: int(one.asked), "asked"),
    Figures(lambda one: 100 * one.macs, "macs_percent", "MACs %", ".6g", ".2f"),
    Figures(lambda one: 100 * one.bytes, "bytes_percent", "bytes %", ".6g", ".2f"),
)


def float_layers_text(layers: Sequence[FloatLayer], most: int | None = None) -> str:
    """Return a line for each, then the sums; with `most`, only so many, those of the most work and bytes."""
    shown = list(layers)
    if most is not None and len(layers) > most:
        first = sorted(range(len(layers)), key=lambda k: (-layers[k].macs - layers[k].bytes, k))[:most]
        shown = [layers[k] for k in sorted(first)]
    rows, shares = list(shown), float_shares(layers)
    if len(shown) < len(layers):
        macs, size = (a - b for a, b in zip(shares, float_shares(shown), strict=True))
        rows.append(FloatLayer(f"{len(layers) - len(shown)} more", "", "", False, macs, size))
    rows.append(FloatLayer("all", f"{len(layers)} layers", "", False, *shares))
    return column_text(_COLUMNS, rows, left=3)


def float_layers_csv(layers: Sequence[FloatLayer]) -> str:
    """One line for each, without sums."""
    return column_csv(_COLUMNS, layers)
