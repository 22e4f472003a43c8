"""What is known of a network's inputs: one vector for the stimuli of several, and what a byte of a picture means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from n2d2py.graph.shapes import elements

if TYPE_CHECKING:
    from n2d2py.graph.graph import Graph
    from n2d2py.graph.quant import QuantGraph


@dataclass(frozen=True)
class PixelMap:
    """How bytes of a picture become the real values of the network's input, channel by channel: factor * byte + offset.

    Attributes:
        order: for each channel of the input, which one of a red, green, blue picture it is.
    """

    factors: tuple[float, ...]
    offsets: tuple[float, ...]
    order: tuple[int, ...]


def stimulus_shape(graph: Graph | QuantGraph) -> tuple[int, ...]:
    """Shape of one stimulus: (C, H, W) or (F,) of the only input, (total,) of several."""
    if len(graph.inputs) == 1:
        return tuple(graph.shape(graph.inputs[0])[1:])
    return (sum(elements(graph.shape(name)) for name in graph.inputs),)


def split_inputs(graph: Graph | QuantGraph, stimuli: np.ndarray) -> Sequence[np.ndarray]:
    """The array (N, ...) of each input from stimuli (N, *stimulus_shape)."""
    if len(graph.inputs) == 1:
        return [stimuli]
    shapes = [graph.shape(name) for name in graph.inputs]
    ends = np.cumsum([elements(shape) for shape in shapes])[:-1]
    return [part.reshape(len(stimuli), *shape[1:]) for part, shape in zip(np.split(stimuli, ends, axis=1), shapes, strict=True)]
