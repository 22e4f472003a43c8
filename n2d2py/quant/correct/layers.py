"""Corrections of the integers, layer after layer, on samples that pass through the layers already formed.

Calibration chooses each range as if all layers before were exact. With `sequential`, the range of a tensor is chosen again once
all layers before it are quantized: of a few candidates around the first range, the one closest to the float network.

Bias corrections are validated on held-out samples, which neither they nor weight rounding have seen. These run through the
integer layers twice: with the original biases, and with corrected ones. A layer keeps its bias unless the correction lowers its
squared error there. All corrections are dropped if the outputs of the network are not closer to the float outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import NumType
from n2d2py.concurrency import run_both
from n2d2py.contracts.functions import ChannelClip
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.contracts.quant.quantizer import LayerTypes, quantize_layer
from n2d2py.errors import N2D2Error
from n2d2py.graph import Graph, Node, QuantGraph, QuantNode
from n2d2py.operators import Pool, is_real_concat
from n2d2py.quant.observe.corrections import BiasCorrections
from n2d2py.quant.observe.layerwise import SAMPLE_BATCH, LayerwiseRun, expected_error
from n2d2py.quant.observe.moments import has_moments
from n2d2py.quant.quantize import form_layer, layer_types, typed_graph
from n2d2py.quant.types.choose import TensorTypes, shared_tensors
from n2d2py.quant.types.dynamic_range import coarse_tensors
from n2d2py.quant.weights.narrow import has_narrow
from n2d2py.quant.weights.rounding import CompensatedRounding

_EVERY = 3
"""One of so many samples is held out."""
_MOST = 32
"""Largest number of held-out samples."""
_ENOUGH = 64
"""With fewer samples, the held-out ones are used for the corrections too, once it is known which to keep."""
_FACTORS = np.geomspace(0.6, 1.25, 24)
"""Candidate ranges, relative to the first one."""
_MOST_VALUES = 400_000
_GAIN = 0.99
"""A range changes only if the squared error falls below this share."""


Layers = Mapping[str, QuantNode]
"""Layers by name, whose integers were formed for the least error of their outputs."""


def correct(
    graph: Graph, types: TensorTypes, samples: Sequence[np.ndarray], options: QuantOptions
) -> tuple[TensorTypes, Layers]:
    """Round the weights of each layer, correct its bias and choose its range again, as the options request; return the types of
    all tensors, and the layers.

    Without samples nothing is corrected. The same applies after a layer without integers, which `form_integers` refuses.
    """
    if not samples or not options.needs_samples:
        return types, {}

    typed = typed_graph(graph, types, options)
    if not options.correct_bias:
        return _pass(graph, types, samples, options, _Biases(graph, typed, [], frozenset()))
    fitted, holdout = split(samples)
    biases = _Biases(graph, typed, holdout, None)
    chosen, layers = _pass(graph, types, fitted, options, biases)
    corrected = biases.result()
    if holdout and sum(len(batch) for batch in fitted) < _ENOUGH:
        log.detail("corrected again on all %d stimuli", sum(len(batch) for batch in samples))
        biases = _Biases(graph, typed, [], frozenset(corrected.shifts))
        chosen, layers = _pass(graph, types, samples, options, biases)
        corrected = replace(corrected, shifts=biases.shifts)
    elif not corrected.used:
        layers = {**layers, **biases.plain}
    log.notice("%s", corrected.line())
    log.detail("biases corrected: %s; not: %s", ", ".join(corrected.kept), ", ".join(corrected.dropped))
    return replace(chosen, biases=corrected), layers


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


def _pass(
    graph: Graph, types: TensorTypes, samples: Sequence[np.ndarray], options: QuantOptions, biases: _Biases
) -> tuple[TensorTypes, Layers]:
    types = replace(types, types=dict(types.types), thresholds=dict(types.thresholds), biases=None)
    typed = typed_graph(graph, types, options)
    refinable = refinable_tensors(graph, types) if options.sequential else {}
    layers: dict[str, QuantNode] = {}
    narrow = has_narrow(graph)
    run = LayerwiseRun(graph, typed, samples, real=narrow or bool(refinable) or biases.only != frozenset())
    for node in graph.nodes:
        if not set(node.outputs).isdisjoint(refinable):
            kind = refined_type(node, types.types[node.output], run.reached(node))
            for name in refinable[node.output]:
                types.types[name] = kind
                typed.tensors[name] = replace(typed.tensors[name], type=kind)
            types.thresholds[node.output] = kind.max_abs
        try:
            layers[node.name] = _corrected(node, layer_types(graph, node, types, options), run, biases, narrow)
        except N2D2Error:
            break
        run.forget()
        biases.finish(node)
    return types, layers


class _Biases:
    """The corrections of biases so far, the layers unchanged without, and two runs of the held-out samples: `held` with the
    corrections, and one without."""

    def __init__(self, graph: Graph, quantized: QuantGraph, holdout: Sequence[np.ndarray], only: frozenset[str] | None):
        """`only`: the layers that may be corrected, if that is known; then no sample is held out.

        Tensors of divisors and guarded logarithms are never shifted: compared with values near 0, a mean error is large.
        """
        self.only, self._graph, self._fixed = only, graph, coarse_tensors(graph)
        self.held = LayerwiseRun(graph, quantized, holdout)
        self._unchanged = self.held.beside()
        self._stimuli = sum(len(batch) for batch in holdout)
        self._lost: list[np.ndarray] = []
        self.plain: dict[str, QuantNode] = {}
        self.shifts: dict[str, np.ndarray] = {}
        self._dropped: list[str] = []

    def may_correct(self, node: Node) -> bool:
        return node.output not in self._fixed and (self.only is None or node.name in self.only)

    def advance(self, node: Node, typed: QuantNode) -> list[tuple[np.ndarray, np.ndarray]] | None:
        """Run the next layer, uncorrected, in both runs; return the errors as LayerwiseRun.advance_with_errors."""
        pairs = self.held.advance_with_errors(node, typed)
        self._unchanged.advance(typed)
        return pairs

    def add(self, node: Node, plain: QuantNode, shift: np.ndarray, better: bool) -> None:
        self.plain[node.name] = plain
        if better and shift.any():
            self.shifts[node.name] = shift
        else:
            self._dropped.append(node.name)

    def finish(self, node: Node) -> None:
        """Record the error of a network output, and free the tensors that no later layer reads."""
        for name in node.outputs:
            if name in self._graph.outputs and not self._graph.kind(name):
                self._lost.append(np.array([*self._unchanged.squares(name), self.held.squares(name)[0]]))
        self._unchanged.forget()
        self.held.forget()

    def result(self) -> BiasCorrections:
        shares = np.array([(corrected, plain) / power for plain, power, corrected in self._lost if power])
        corrected, plain = map(float, np.sqrt(shares.mean(axis=0))) if len(shares) else (0.0, 0.0)
        shifts = {} if self._stimuli > 0 and corrected >= plain else self.shifts
        return BiasCorrections(self._stimuli, tuple(self.shifts), tuple(self._dropped), corrected, plain, shifts)


def alternatives(
    graph: Graph, types: TensorTypes, samples: Sequence[np.ndarray], options: QuantOptions, widths: Mapping[str, Sequence[int]]
) -> dict[str, dict[int, QuantNode]]:
    """Return the forms of layers by name and by the bits of their weights, those of `widths`, the largest first. Each is formed
    on the inputs that layers of the largest width before it give."""
    narrow = any(bits < 8 for each in widths.values() for bits in each)
    run = LayerwiseRun(graph, typed_graph(graph, types, options), samples, real=narrow)
    forms: dict[str, dict[int, QuantNode]] = {}
    for node in graph.nodes:
        layer = layer_types(graph, node, types, options)
        if layer is not None and node.name in widths:
            layer = _with_rounding(node, layer, run, narrow)
            forms[node.name] = {bits: quantize_layer(node, replace(layer, weight_bits=bits)) for bits in widths[node.name]}
            run.advance(next(iter(forms[node.name].values())))
        else:
            run.advance(form_layer(node, layer))
        run.advance_real(node)
        run.forget()
    return forms


def _with_rounding(node: Node, layer: LayerTypes, run: LayerwiseRun, narrow: bool) -> LayerTypes:
    """Return the types of the next layer of a run, with rounding and ranges of least output error if the options request them;
    `narrow`: the network has low-bit weights."""
    if not (layer.options.adaptive_rounding and has_moments(node)):
        return layer
    rounding = CompensatedRounding(run.moments(node, narrow))
    return replace(layer, rounding=rounding, ranging=rounding.magnitudes)


def _corrected(node: Node, layer: LayerTypes | None, run: LayerwiseRun, biases: _Biases, narrow: bool) -> QuantNode:
    """Return the form of the next layer of the run, with the corrections that the options request; without `layer`, its float
    form. The float network runs at the same time."""

    def form() -> tuple[LayerTypes | None, QuantNode]:
        rounded = layer and _with_rounding(node, layer, run, narrow)
        return rounded, form_layer(node, rounded)

    def real() -> None:
        run.advance_real(node)
        biases.held.advance_real(node)

    (rounded, typed), _ = run_both(form, real, run.large and not narrow)
    if rounded is None or not biases.may_correct(node):
        run.advance(typed)
        biases.advance(node, typed)
        return typed
    errors, judged = run_both(lambda: run.advance_with_errors(node, typed), lambda: biases.advance(node, typed), run.large)
    if errors is None or judged is None:
        return typed
    error = expected_error(*(np.concatenate(values) for values in zip(*errors, strict=True)))
    better = not judged or gain(error, judged) > 0
    biases.add(node, typed, error, better)
    if not better or not error.any():
        return typed
    corrected = quantize_layer(replace(node, params={**node.params, "bias": node.params["bias"] + error}), rounded)
    run_both(lambda: run.advance(corrected), lambda: biases.held.advance(corrected), run.large)
    return corrected


def gain(error: np.ndarray, runs: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    """Return the decrease of the squared error if `error` (C) is added to a bias; `runs` as from `advance_with_errors`."""
    return float(sum((2 * error * sums - np.square(error) * counts).sum() for sums, counts in runs))


# ---- sequential ranges --------------------------------------------------------------------------


def refinable_tensors(graph: Graph, types: TensorTypes) -> dict[str, list[str]]:
    """Return the tensors whose range may change, each with all tensors that share its integers.

    Not included: inputs and outputs of the network, which are never clipped; inputs of a concatenation; tensors that only a max
    pool consumes, whose range comes from the pool's output; tensors without a clipping threshold.
    """
    refinable = {}
    for name, sharing in shared_tensors(graph).items():
        kind, producer = types.types[name], graph.producer(name)
        readers = [node for tensor in sharing for node in graph.consumers(tensor)]
        fixed = (
            kind.is_float
            or kind.plain
            or name not in types.thresholds
            or producer is None
            or any(tensor in graph.outputs for tensor in sharing)
            or isinstance(producer.activation, ChannelClip)
            or any(is_real_concat(node) or (isinstance(node.op, Pool) and node.op.mode == "Max") for node in readers)
        )
        if not fixed:
            refinable[name] = sharing
    return refinable


def refined_type(node: Node, kind: NumType, pairs: list[tuple[np.ndarray, np.ndarray]]) -> NumType:
    """Return the type of an output with the best range, from batches of (float values, unrounded results on integer inputs)."""
    exact, computed = (np.concatenate([part[index].reshape(-1) for part in pairs]) for index in range(2))
    stride = -(-exact.size // _MOST_VALUES)
    exact, computed = exact[::stride].astype(np.float64), computed[::stride].astype(np.float64)

    def error(candidate: NumType) -> float:
        low, high = candidate.qmin - candidate.zero_point, candidate.qmax - candidate.zero_point
        steps = np.clip(np.rint(computed / candidate.scale), low, high)
        return float(np.mean((steps * candidate.scale - exact) ** 2))

    candidates = [kind.with_scale(kind.scale * factor) for factor in _FACTORS]
    errors = [error(candidate) for candidate in candidates]
    best = int(np.argmin(errors))
    if errors[best] >= _GAIN * error(kind):
        return kind
    log.detail("range of %s: %.3g of what the statistics gave", node.name, _FACTORS[best])
    return candidates[best]
