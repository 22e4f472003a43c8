"""Validation of bias corrections on samples that neither corrections nor weight rounding have seen.

Held-out samples run through the integer layers twice: with the original biases, and with corrected ones. A layer keeps its bias
unless the correction lowers its squared error there. All corrections are dropped if the outputs of the network are not closer
to the float outputs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from n2d2py.graph import Graph, Node, QuantGraph, QuantNode
from n2d2py.quant.observe.layerwise import SAMPLE_BATCH, LayerwiseRun

_EVERY = 3
"""One of so many samples is held out."""
_MOST = 32
"""Largest number of held-out samples."""


def split(samples: Sequence[np.ndarray]) -> tuple[Sequence[np.ndarray], Sequence[np.ndarray]]:
    """Return batches for the corrections, and batches held out: the last of each three samples, at most `_MOST` in total.

    Fewer than three samples are all used for the corrections.
    """
    count = sum(len(batch) for batch in samples)
    held_out = min(count // _EVERY, _MOST)
    if not held_out:
        return samples, []
    stimuli = np.concatenate(samples)
    chosen = np.zeros(count, bool)
    chosen[[(k + 1) * count // held_out - 1 for k in range(held_out)]] = True
    parts = stimuli[~chosen], stimuli[chosen]
    first, second = ([part[k : k + SAMPLE_BATCH] for k in range(0, len(part), SAMPLE_BATCH)] for part in parts)
    return first, second


class Holdout:
    """The two runs of the held-out samples, layer by layer."""

    def __init__(self, graph: Graph, quantized: QuantGraph, batches: Sequence[np.ndarray]):
        """Take the arguments of LayerwiseRun."""
        self._graph, self._quantized = graph, quantized
        self._corrected = LayerwiseRun(graph, quantized, batches)
        self._plain = self._corrected.beside()
        self.stimuli = sum(len(batch) for batch in batches)
        self._lost: list[np.ndarray] = []

    def advance_real(self, node: Node) -> None:
        """Run the next layer in floating point."""
        self._corrected.advance_real(node)

    def advance(self, node: Node, typed: QuantNode) -> list[tuple[np.ndarray, np.ndarray]] | None:
        """Run the same layer without correction in both runs; return the errors of the corrected run as
        LayerwiseRun.advance_with_errors does."""
        pairs = self._corrected.advance_with_errors(node, typed)
        self._plain.advance(typed)
        return pairs

    def correct(self, typed: QuantNode) -> None:
        """Run the same layer with a corrected bias in the corrected run."""
        self._corrected.advance(typed)

    def finish(self, node: Node) -> None:
        """Record the error of a network output, and free the tensors that no later layer reads."""
        for name in node.outputs:
            if name in self._graph.outputs and not self._graph.kind(name):
                self._lost.append(np.array([*self._plain.squares(name), self._corrected.squares(name)[0]]))
        self._plain.forget()
        self._corrected.forget()

    def errors(self) -> tuple[float, float]:
        """Return the errors at the outputs with and without corrections: root mean square over outputs of error power / signal
        power."""
        shares = np.array([(corrected, plain) / power for plain, power, corrected in self._lost if power])
        with_them, without = np.sqrt(shares.mean(axis=0)) if len(shares) else (0.0, 0.0)
        return float(with_them), float(without)


def gain(error: np.ndarray, runs: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    """Return the decrease of a layer's squared error if `error` (C) is added to its bias; `runs` as from
    LayerwiseRun.advance_with_errors."""
    return float(sum((2 * error * sums - np.square(error) * counts).sum() for sums, counts in runs))
