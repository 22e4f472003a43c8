"""Corrections of biases verified on stimuli that neither they nor the rounding of weights have seen, while the layers are corrected.

The stimuli held back take two ways through the integers next to those that correct: with the biases unchanged, and with corrected ones.
A layer whose squared error its correction does not lower on them stays unchanged. At the outputs of the network the second way is held
against the first, and the corrections are left out together where it is not nearer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from n2d2py.graph import Graph, Node, QuantGraph, QuantNode
from n2d2py.quant.observe.layerwise import SAMPLE_BATCH, LayerwiseRun

_EVERY = 3
"""One stimulus of so many is held back."""
_MOST = 32
"""Stimuli held back at most."""


def split(samples: Sequence[np.ndarray]) -> tuple[Sequence[np.ndarray], Sequence[np.ndarray]]:
    """Batches to correct on and batches held back: the last of each three stimuli, or of more where that is enough.

    None is held back of fewer than three.
    """
    count = sum(len(batch) for batch in samples)
    held = min(count // _EVERY, _MOST)
    if not held:
        return samples, []
    stimuli = np.concatenate(samples)
    chosen = np.zeros(count, bool)
    chosen[[(k + 1) * count // held - 1 for k in range(held)]] = True
    parts = stimuli[~chosen], stimuli[chosen]
    first, second = ([part[k : k + SAMPLE_BATCH] for k in range(0, len(part), SAMPLE_BATCH)] for part in parts)
    return first, second


class Holdout:
    """The two ways of the stimuli held back, layer by layer."""

    def __init__(self, graph: Graph, quantized: QuantGraph, batches: Sequence[np.ndarray]):
        """As LayerwiseRun."""
        self._graph, self._quantized = graph, quantized
        self._corrected = LayerwiseRun(graph, quantized, batches)
        self._plain = self._corrected.beside()
        self.stimuli = sum(len(batch) for batch in batches)
        self._lost: list[np.ndarray] = []

    def advance_real(self, node: Node) -> None:
        """The next layer in floating point."""
        self._corrected.advance_real(node)

    def advance(self, node: Node, typed: QuantNode) -> list[tuple[np.ndarray, np.ndarray]] | None:
        """The same layer without correction on both ways; the errors of the second as LayerwiseRun.advance_with_errors gives them."""
        found = self._corrected.advance_with_errors(node, typed)
        self._plain.advance(typed)
        return found

    def correct(self, typed: QuantNode) -> None:
        """The same layer with a corrected bias, on the second way."""
        self._corrected.advance(typed)

    def finish(self, node: Node) -> None:
        """Note what the layer gave, if it is an output of the network, and frees what no later layer reads."""
        for name in node.outputs:
            if name in self._graph.outputs and not self._graph.kind(name):
                self._lost.append(np.array([*self._plain.squares(name), self._corrected.squares(name)[0]]))
        self._plain.forget()
        self._corrected.forget()

    def errors(self) -> tuple[float, float]:
        """Errors at the outputs (with corrections, without): root of the squared error by the power of the output, mean of the
        squares over outputs."""
        shares = np.array([(corrected, plain) / power for plain, power, corrected in self._lost if power])
        with_them, without = np.sqrt(shares.mean(axis=0)) if len(shares) else (0.0, 0.0)
        return float(with_them), float(without)


def gain(error: np.ndarray, found: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    """Decrease by adding `error` (C) to a layer's bias of the sum of its squared errors; `found` as LayerwiseRun.advance_with_errors gives it."""
    return float(sum((2 * error * sums - np.square(error) * counts).sum() for sums, counts in found))
