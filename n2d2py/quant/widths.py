"""How many bits a tensor gets: what its layers ask for, what inputs and outputs need."""

from __future__ import annotations

from collections.abc import Sequence

from n2d2py.graph import Graph
from n2d2py.graph.shapes import elements
from n2d2py.operators.conv import Conv
from n2d2py.operators.fc import Fc
from n2d2py.quant.histogram import Histogram
from n2d2py.quant.options import QuantOptions

__all__ = ["asked_bits", "width"]

_INPUT_SQNR = 35.0
"""Decibels that the 8-bit integers of an input must keep; images do not come here, their bytes are exact."""


def width(
    graph: Graph,
    name: str,
    source: dict[str, str],
    final: set[str],
    histograms: dict[str, Histogram],
    known: tuple[float, float] | None,
    options: QuantOptions,
) -> int:
    """Bits of a tensor: what its layers ask for, else those of the network, for inputs and outputs what options say.

    16 bits at an edge are taken only where weighted layers alone read the values.
    """
    holders = [tensor for tensor, origin in source.items() if origin == name]
    asked = asked_bits(graph, holders)
    if asked is not None:
        return asked
    if name in options.wide:
        return 16
    readers = [node for tensor in holders for node in graph.consumers(tensor) if not node.op.moves_values]
    if options.bits == 8 and name in graph.inputs and readers and all(isinstance(n.op, (Conv, Fc)) for n in readers):
        if options.input_bits == 16 or (options.input_bits == 0 and known is None and _is_spoiled(histograms[name])):
            return 16
    if options.bits == 8 and name in final and name not in graph.inputs and not readers:
        return options.output_bits or (16 if _is_scores(graph, name) else 8)
    return options.bits


def _is_scores(graph: Graph, name: str) -> bool:
    """Whether the tensor is a vector of weighted sums, which cost nothing to keep in 16 bits."""
    producer, shape = graph.producer(name), graph.shape(name)
    return producer is not None and isinstance(producer.op, (Conv, Fc)) and elements(shape) == shape[1]


def asked_bits(graph: Graph, names: Sequence[str]) -> int | None:
    """The widest `QuantBits` of the layers that write or read any of these tensors; None when none has it."""
    layers = [node for name in names for node in (graph.producer(name), *graph.consumers(name)) if node is not None]
    return max((bits for node in layers if (bits := graph.precision(node).bits) is not None), default=None)


def _is_spoiled(histogram: Histogram) -> bool:
    """Whether rounding to 127 steps leaves less than 35 dB between the signal and the error."""
    step = histogram.largest / 127
    return step * step / 12 > 10 ** (-_INPUT_SQNR / 10) * histogram.deviation**2
