"""Stimuli on their way through a network, layer by layer, in floating point and in integers side by side."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from tempfile import TemporaryFile

import numpy as np

from n2d2py.arithmetic.exact import BLOCK
from n2d2py.concurrency import ordered_map
from n2d2py.contracts.functions import Clip
from n2d2py.graph import Graph, Node, QuantGraph, QuantNode, each_sample, elements, named_inputs
from n2d2py.quant.observe.moments import Moments, observe
from n2d2py.quant.simulator import quantize_inputs, run_node

SAMPLE_BATCH = 4
"""Stimuli that one thread works on at a time."""

_SAMPLE_ELEMENTS = 40_000_000
"""Elements that may be alive at once, of 4 bytes in floating point and 1 in integers."""

_LARGE = 100_000
"""Elements of a tensor from which on each stimulus is worked on alone, so that few stimuli occupy all cores too."""

_FEW = 16
"""A mean of fewer values corrects nothing."""

_SPILLED = 1 << 23
"""Bytes from which on a tensor is written to a file."""


class SpilledTensors(UserDict[str, np.ndarray]):
    """Tensors by name. One of at least `_SPILLED` bytes is in a file, which goes with its last owner."""

    def __setitem__(self, name: str, tensor: np.ndarray) -> None:
        self.data[name] = tensor
        if tensor.nbytes >= _SPILLED and not isinstance(tensor, np.memmap):
            with suppress(OSError), TemporaryFile(prefix="n2d2py-") as file:  # there may be no room for it
                np.ascontiguousarray(tensor).tofile(file)
                self.data[name] = np.memmap(file, tensor.dtype, "r", shape=tensor.shape)


@dataclass
class _Part:
    """A batch: values of the live tensors."""

    real: SpilledTensors
    stored: SpilledTensors


def sample_count(graph: Graph) -> int:
    """Return the number of stimuli that can run together within the memory set for them; at least 8."""
    last = _last_readers(graph)
    alive, most = sum(elements(graph.shape(name)) for name in graph.inputs), 1
    for index, node in enumerate(graph.nodes):
        alive += sum(elements(graph.shape(name)) for name in node.outputs)
        most = max(most, alive)
        alive -= sum(elements(graph.shape(name)) for name in {*node.inputs, *node.outputs} if last.get(name, -1) <= index)
    return max(8, _SAMPLE_ELEMENTS // most)


def _last_readers(graph: Graph) -> dict[str, int]:
    return {name: index for index, node in enumerate(graph.nodes) for name in node.inputs}


class LayerwiseRun:
    """The values of the live tensors of all samples, after the layers advanced over so far. All cores work on batches; nothing
    depends on their number. `large`: a tensor is so large that each sample is worked on alone."""

    def __init__(self, graph: Graph, quantized: QuantGraph, batches: Sequence[np.ndarray], real: bool = True):
        """`quantized` has the types of all tensors; its layers may still be missing. Samples come with their states. Without
        `real` only the integers are computed: nothing may ask for results in floating point, or for errors."""
        self._graph, self._quantized, self._real = graph, quantized, real
        self._last = _last_readers(graph)
        self._index = 0
        self.large = any(elements(tensor.shape) >= _LARGE for tensor in graph.tensors.values())
        self._parts = [self._part(x) for x in (each_sample(batches) if self.large else batches)]
        self._count = sum(len(x) for x in batches)

    def _part(self, x: np.ndarray) -> _Part:
        graph, stored = self._graph, quantize_inputs(self._quantized, [x])
        real = {name: x.astype(graph.kind(name)) if graph.kind(name) else x for name, x in named_inputs(graph, x).items()}
        return _Part(SpilledTensors(real), SpilledTensors(dict(zip(graph.inputs, stored, strict=True))))

    def beside(self) -> LayerwiseRun:
        """Return another run of the same samples through the integers, before the first layer, that shares the real values of
        this one. `advance` and `forget` of it come after those of this one."""
        other = LayerwiseRun(self._graph, self._quantized, [])
        other._parts = [_Part(part.real, part.stored.copy()) for part in self._parts]
        other._count = self._count
        return other

    def moments(self, node: Node, thorough: bool = False) -> Moments:
        """Return the moments of the inputs of the next layer; `thorough`: of more positions, and next to the float network."""
        kinds = [self._quantized.type(name) for name in node.inputs]

        def observed(part: _Part) -> Moments:
            real = [part.real[name] for name in node.inputs] if thorough else None
            return observe(node, [part.stored[name] for name in node.inputs], kinds, self._count, real)

        parts = ordered_map(observed, self._parts)
        result = next(parts)
        for moments in parts:
            result.merge(moments)
        return result

    def reached(self, node: Node) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return, by batch, the outputs (n, ...) of the next layer in floating point, and on the integers of its inputs."""

        def run(part: _Part) -> tuple[np.ndarray, np.ndarray]:
            kinds = [self._quantized.type(name) for name in node.inputs]
            real = [part.real[name] for name in node.inputs]
            stored = [kind.dequantize(part.stored[name]) for kind, name in zip(kinds, node.inputs, strict=True)]
            return node.compute(real)[0], node.compute(stored)[0]

        return list(ordered_map(run, self._parts))

    def advance_real(self, node: Node) -> None:
        """Compute the outputs of the next layer in floating point, where they are asked for, and free inputs that no later
        layer reads. `moments` with `thorough` and `reached` of this layer come before."""
        done = self._read_last(node.inputs)

        def run(part: _Part) -> None:
            results = node.compute([part.real[name] for name in node.inputs])
            part.real.update(zip(node.outputs, results, strict=True))
            for name in done:
                del part.real[name]

        if self._real:
            list(ordered_map(run, self._parts))

    def advance(self, typed: QuantNode) -> None:
        """Compute the integers of the next layer, or once more from another form of it."""
        list(ordered_map(lambda part: self._run_integers(part, typed), self._parts))

    def advance_with_errors(self, node: Node, typed: QuantNode) -> list[tuple[np.ndarray, np.ndarray]] | None:
        """Compute the integers of the next layer, whose real outputs are known. Return, by batch, the sums of its errors and
        their numbers, each (n, C), over values that neither activation nor integers clip (`expected_error`); None for a layer
        without bias."""
        if "bias" not in node.params or (typed.clamp is None and not self._quantized.sums_integers(typed)):
            self.advance(typed)
            return None

        def run(part: _Part) -> tuple[np.ndarray, np.ndarray]:
            self._run_integers(part, typed)
            return self._errors(part, node, typed)

        return list(ordered_map(run, self._parts))

    def squares(self, name: str) -> tuple[float, float]:
        """Return the sum of the squared errors of a live tensor, and that of its squared real values."""
        kind, sums = self._quantized.type(name), np.zeros(2)
        for part in self._parts:
            real = part.real[name].astype(np.float64)
            sums += np.square(kind.dequantize(part.stored[name]) - real).sum(), np.square(real).sum()
        return float(sums[0]), float(sums[1])

    def forget(self) -> None:
        """Free the tensors that no layer after the current one reads, and go on to the next layer."""
        node = self._graph.nodes[self._index]
        for name in self._read_last([*node.inputs, *node.outputs]):
            for part in self._parts:
                part.real.pop(name, None)
                part.stored.pop(name, None)
        self._index += 1

    def _read_last(self, names: Iterable[str]) -> set[str]:
        return {name for name in names if self._last.get(name, -1) <= self._index}

    def _run_integers(self, part: _Part, typed: QuantNode) -> None:
        results = run_node(self._quantized, typed, [part.stored[name] for name in typed.inputs])
        part.stored.update(zip(typed.outputs, results, strict=True))

    def _errors(self, part: _Part, node: Node, typed: QuantNode) -> tuple[np.ndarray, np.ndarray]:
        """Return (sum of real minus restored, number of values), each (n, C), over values that are not clipped."""
        real, stored = part.real[node.output], part.stored[node.output]
        real, stored = (x.reshape(*x.shape[:2], -1) for x in (real, stored))
        kind = self._quantized.type(node.output)
        clip = typed.activation if isinstance(typed.activation, Clip) else Clip()
        low, high = (clip.low, clip.high) if kind.is_float else typed.limits
        sums, counts = np.empty(real.shape[:2]), np.empty(real.shape[:2], np.int64)
        step = max(1, BLOCK * real.shape[1] // max(real.size, 1))
        for at in (np.s_[:, first : first + step] for first in range(0, real.shape[1], step)):
            inside = (stored[at] > low) & (stored[at] < high)
            error = np.where(inside, real[at] - kind.dequantize(stored[at]), 0)
            sums[at], counts[at] = error.sum(axis=2, dtype=np.float64), inside.sum(axis=2)
        return sums, counts


def expected_error(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the mean error of each channel (C), drawn towards 0 as far as the stimuli leave it uncertain.

    `sums` and `counts` (n, C): of the errors of each stimulus, and of how many values they are. A channel of few values, and
    every channel of a single stimulus, gets 0. The factor is that of a shrinkage estimator (W. James and C. Stein, 1961).
    """
    stimuli, total, count = len(sums), sums.sum(axis=0), counts.sum(axis=0)
    mean = np.divide(total, count, out=np.zeros_like(total), where=count > _FEW)
    if stimuli < 2:
        return np.zeros_like(mean)
    spread = np.square(sums - mean * counts).sum(axis=0) * stimuli / (stimuli - 1)
    variance = np.divide(spread, np.square(count, dtype=np.float64), out=np.zeros_like(total), where=count > _FEW)
    share = np.divide(variance, np.square(mean), out=np.ones_like(mean), where=mean != 0)
    return mean * np.maximum(0.0, 1.0 - share)
