"""Bits of the weights of each layer: what each width costs at the outputs, and the best choice for every number of bytes.

Each layer has its weights rounded alone, while everything else is floating point; squares of independent errors add up, so the
best choices are the front of a knapsack problem (dynamic programming over the layers). Nearly: a choice becomes better by
exchanging bits between two layers, judged by the error of all roundings together.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from n2d2py.graph import Graph, QuantGraph, QuantNode
from n2d2py.quant.search.isolation import Tail, each_on_batches, output_weights, run_isolated_layer, slices

_STATES = 20_000
"""Choices that are kept while layers are added."""
_GAIN = 0.99
"""An exchange counts where the error becomes smaller than this share of what it was."""


@dataclass(frozen=True)
class WidthChoice:
    """A width of a layer's weights: its bytes, and the mean square of what it changes at the outputs."""

    bits: int
    bytes: int
    error: float


def width_errors(
    graph: Graph, typed: QuantGraph, forms: Mapping[str, Mapping[int, QuantNode]], stimuli: np.ndarray
) -> dict[str, dict[int, float]]:
    """Return the mean square of what each form of a layer, by its name and bits, changes at the outputs, by the variance of
    their rows, when it alone has integers.

    `typed` has the types of the tensors. A constant error of an output channel is left out: the bias takes it up.
    """
    sums = {name: dict.fromkeys(by_bits, 0.0) for name, by_bits in forms.items()}
    batches, count = slices(graph, stimuli), max(len(stimuli), 1)
    power = output_weights(graph, batches)
    for name, real in each_on_batches(graph, batches, list(forms), "widths of layers", "layer"):
        output = graph.node(name).output
        tail = Tail(graph, [output])
        for bits, node in forms[name].items():
            restored = typed.type(output).dequantize(run_isolated_layer(typed, node, real))
            axes = (0, *range(2, restored.ndim))
            restored = restored - (restored - real[output]).mean(axis=axes, keepdims=True, dtype=np.float64)
            outputs = tail.outputs({**real, output: restored.astype(np.float32)}).items()
            errors = (np.square(values - real[each], dtype=np.float64) * power[each] for each, values in outputs)
            sums[name][bits] += sum(float(error.sum()) for error in errors)
    return {name: {bits: total / count for bits, total in by_bits.items()} for name, by_bits in sums.items()}


@dataclass(frozen=True, eq=False)
class Front:
    """The choices that no other beats in bytes and in error: bytes (N) growing, errors (N) falling."""

    bytes: np.ndarray
    errors: np.ndarray
    _choices: tuple[tuple[str, Sequence[WidthChoice]], ...]
    _links: tuple[tuple[np.ndarray, np.ndarray], ...]

    def widths(self, place: int) -> dict[str, int]:
        """Return the bits by layer of the choice at an index."""
        bits = {}
        for (name, choices), (before, chosen) in zip(reversed(self._choices), reversed(self._links), strict=True):
            bits[name] = choices[chosen[place]].bits
            place = int(before[place])
        return {name: bits[name] for name, _ in self._choices}

    def within(self, budget: int) -> int | None:
        """Return the index of the best choice of at most `budget` bytes; None if there is none."""
        place = int(np.searchsorted(self.bytes, budget, side="right")) - 1
        return None if place < 0 else place


def front(choices: Mapping[str, Sequence[WidthChoice]], fixed: int) -> Front:
    """Return all best choices of a width for each layer; `fixed` are the bytes of everything else."""
    sizes, errors = np.array([fixed], np.int64), np.zeros(1)
    links = []
    for options in choices.values():
        some = len(options)
        all_bytes = (sizes[:, None] + np.array([one.bytes for one in options])).reshape(-1)
        lost = (errors[:, None] + np.array([one.error for one in options])).reshape(-1)
        order = np.lexsort((lost, all_bytes))
        least = np.minimum.accumulate(lost[order])
        best = order[np.concatenate([[True], least[1:] < least[:-1]])]
        if len(best) > _STATES:  # of sizes that are nearly the same the best, and the smallest of all
            near = (all_bytes[best] - all_bytes[best[0]]) * _STATES // (all_bytes[best[-1]] - all_bytes[best[0]] + 1)
            last = np.concatenate([near[1:] != near[:-1], [True]])
            last[0] = True
            best = best[last]
        links.append((best // some, best % some))
        sizes, errors = all_bytes[best], lost[best]
    return Front(sizes, errors, tuple(choices.items()), tuple(links))


def improved(
    choices: Mapping[str, Sequence[WidthChoice]],
    start: Mapping[str, int],
    room: int,
    error: Callable[[Mapping[str, int]], float],
    tries: int,
) -> list[dict[str, int]]:
    """Return the bits by layer of a smaller `error` than `start`, of at most `room` bytes, after at most so many `tries`; then
    those tried, by their error.

    Those tried have another width in one layer or in two; those from which single layers predict the least error come first.
    The first that is better takes the place of the start.
    """
    best = dict(start)
    least = error(best)
    tried = {tuple(best.values()): (least, best)}
    while tries > 0:
        others = [each for each in _exchanges(choices, best, room) if tuple(each.values()) not in tried][:tries]
        for each in others:
            tries -= 1
            lost = error(each)
            tried[tuple(each.values())] = lost, each
            if lost < _GAIN * least:
                best, least = each, lost
                break
        else:
            break
    return [widths for _, widths in sorted(tried.values(), key=lambda pair: (pair[1] is not best, pair[0]))]


def _exchanges(choices: Mapping[str, Sequence[WidthChoice]], widths: Mapping[str, int], room: int) -> list[dict[str, int]]:
    """Return the choices that differ in one layer or in two and have at most `room` bytes, by the predicted error."""
    now = {name: next(one for one in each if one.bits == widths[name]) for name, each in choices.items()}
    bytes_left, error = room - sum(one.bytes for one in now.values()), sum(one.error for one in now.values())
    singles = [
        (name, one.bits, one.bytes - now[name].bytes, one.error - now[name].error)
        for name, each in choices.items()
        for one in each
        if one.bits != widths[name]
    ]
    exchanges = [(error + lost, {name: bits}) for name, bits, size, lost in singles if size <= bytes_left]
    for first, second in permutations(singles, 2):
        if first[0] != second[0] and first[1] > widths[first[0]] and second[1] < widths[second[0]]:
            if first[2] + second[2] <= bytes_left:
                exchanges.append((error + first[3] + second[3], {first[0]: first[1], second[0]: second[1]}))
    return [{**widths, **changed} for _, changed in sorted(exchanges, key=lambda pair: pair[0])]
