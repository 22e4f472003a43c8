"""Corrections of the integers, layer after layer, on stimuli that pass through the layers already formed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from n2d2py import log
from n2d2py.concurrency import run_both
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.contracts.quant.quantizer import LayerTypes, quantize_layer
from n2d2py.errors import N2D2Error
from n2d2py.graph import Graph, Node, QuantNode
from n2d2py.quant.correct.holdout import Holdout, gain, split
from n2d2py.quant.correct.sequential import refinable_tensors, refined_type
from n2d2py.quant.observe.corrections import BiasCorrections
from n2d2py.quant.observe.layerwise import LayerwiseRun, expected_error
from n2d2py.quant.observe.moments import has_moments
from n2d2py.quant.quantize import form_layer, layer_types, typed_graph
from n2d2py.quant.types.choose import TensorTypes
from n2d2py.quant.types.guards import coarse_tensors
from n2d2py.quant.weights.narrow import has_narrow
from n2d2py.quant.weights.rounding import CachedRounding, CompensatedRounding

_ENOUGH = 64
"""Stimuli that correct; with fewer, those that were held back correct too once it is known what to keep."""


@dataclass(frozen=True)
class Corrected:
    """The types of all tensors, and by name the layers whose integers were formed for the least error of their outputs."""

    types: TensorTypes
    layers: Mapping[str, QuantNode] = field(default_factory=dict)


def correct(graph: Graph, types: TensorTypes, samples: Sequence[np.ndarray], options: QuantOptions) -> Corrected:
    """Round the weights of each layer, correct its bias and choose its range again, as the options request.

    Without samples nothing is corrected. The same applies after a layer without integers, which `form_integers` refuses.
    """
    if not samples or not options.needs_samples:
        return Corrected(types)

    def run(
        batches: Sequence[np.ndarray], holdout: Sequence[np.ndarray], only: frozenset[str] | None
    ) -> tuple[Corrected, _Biases]:
        biases = _Biases(Holdout(graph, typed_graph(graph, types, options), holdout), graph, only)
        return _pass(graph, types, batches, options, biases), biases

    if not options.correct_bias:
        return run(samples, [], frozenset())[0]
    fitted, holdout = split(samples)
    result, biases = run(fitted, holdout, None)
    corrected = biases.result()
    if holdout and sum(len(batch) for batch in fitted) < _ENOUGH:
        log.detail("corrected again on all %d stimuli", sum(len(batch) for batch in samples))
        result, second = run(samples, [], frozenset(corrected.shifts))
        corrected = replace(corrected, shifts=second.shifts)
    elif not corrected.used:
        result = Corrected(result.types, {**result.layers, **biases.plain})
    log.notice("%s", corrected.line())
    log.detail("biases corrected: %s; not: %s", ", ".join(corrected.kept), ", ".join(corrected.dropped))
    return Corrected(replace(result.types, biases=corrected), result.layers)


def _pass(graph: Graph, types: TensorTypes, samples: Sequence[np.ndarray], options: QuantOptions, biases: _Biases) -> Corrected:
    """Run the samples through the network once, layer by layer; `biases` records the corrections."""
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
        biases.held.finish(node)
    return Corrected(types, layers)


class _Biases:
    """The corrections of biases so far, and the layers unchanged without."""

    def __init__(self, holdout: Holdout, graph: Graph, only: frozenset[str] | None):
        """`only`: the layers that may be corrected, if that is known; then no sample is held out.

        Tensors of divisors and guarded logarithms are never shifted: compared with values near 0, a mean error is large.
        """
        self.held, self.only, self._fixed = holdout, only, coarse_tensors(graph)
        self.plain: dict[str, QuantNode] = {}
        self.shifts: dict[str, np.ndarray] = {}
        self._dropped: list[str] = []

    def may_correct(self, node: Node) -> bool:
        """True if the bias of a layer may become another."""
        return node.output not in self._fixed and (self.only is None or node.name in self.only)

    def add(self, node: Node, plain: QuantNode, shift: np.ndarray, better: bool) -> None:
        """Record a layer whose bias can be corrected."""
        self.plain[node.name] = plain
        if better and shift.any():
            self.shifts[node.name] = shift
        else:
            self._dropped.append(node.name)

    def result(self) -> BiasCorrections:
        """Return the corrections and their effect at the outputs of the network."""
        corrected, plain = self.held.errors()
        worse = self.held.stimuli > 0 and corrected >= plain
        return BiasCorrections(
            self.held.stimuli, tuple(self.shifts), tuple(self._dropped), corrected, plain, {} if worse else self.shifts
        )


def alternatives(
    graph: Graph, types: TensorTypes, samples: Sequence[np.ndarray], options: QuantOptions, widths: Mapping[str, Sequence[int]]
) -> dict[str, dict[int, QuantNode]]:
    """Return the forms of layers by name and by the bits of their weights, those of `widths`, the largest first.

    Each is formed on the inputs that layers of the largest width before it give.
    """
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
    """Return the types of the next layer of a run, with rounding and ranges of least output error if the options request them.

    `narrow`: the network has low-bit weights.
    """
    if not (layer.options.adaptive_rounding and has_moments(node)):
        return layer
    rounding = CompensatedRounding(run.moments(node, narrow))
    return replace(layer, rounding=CachedRounding(rounding), ranging=rounding.magnitudes)


def _corrected(node: Node, layer: LayerTypes | None, run: LayerwiseRun, biases: _Biases, narrow: bool) -> QuantNode:
    """Return the form of the next layer of the run, with the corrections that the options request; without `layer`, its float
    form. The float network runs at the same time."""
    holdout = biases.held

    def form() -> tuple[LayerTypes | None, QuantNode]:
        rounded = layer and _with_rounding(node, layer, run, narrow)
        return rounded, form_layer(node, rounded)

    def real() -> None:
        run.advance_real(node)
        holdout.advance_real(node)

    (rounded, typed), _ = run_both(form, real, run.large and not narrow)
    if rounded is None or not biases.may_correct(node):
        run.advance(typed)
        holdout.advance(node, typed)
        return typed
    errors, judged = run_both(lambda: run.advance_with_errors(node, typed), lambda: holdout.advance(node, typed), run.large)
    if errors is None or judged is None:
        return typed
    error = expected_error(*(np.concatenate(values) for values in zip(*errors, strict=True)))
    better = not judged or gain(error, judged) > 0
    biases.add(node, typed, error, better)
    if not better or not error.any():
        return typed
    corrected = quantize_layer(replace(node, params={**node.params, "bias": node.params["bias"] + error}), rounded)
    run_both(lambda: run.advance(corrected), lambda: holdout.correct(corrected), run.large)
    return corrected
