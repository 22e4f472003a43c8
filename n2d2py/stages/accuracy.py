"""Accuracy check of every integer network against its float network: W508 with the cause and a remedy that was tried."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import NumType
from n2d2py.concurrency import ordered_map
from n2d2py.errors import N2D2Error
from n2d2py.graph import Precision, QuantGraph, named_inputs
from n2d2py.quant.calibration import Observed
from n2d2py.quant.observe.judged import OutputFigure, in_rows, relative_errors, worst_output
from n2d2py.quant.search.sensitivity import LayerLoss, layer_losses
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.reference.engine import FloatEngine
from n2d2py.stages.options import CalibrationOptions, QuantizationOptions

_STIMULI = 8  # number of samples for the analysis of single layers
_BETTER = 0.5  # a remedy that is not sufficient is still proposed if it leaves at most this share of the error
_WORSE_DB = 0.2  # decibels that one output may lose to a change that improves the network
_NOTHING = 1e-9  # squared error relative to the variance that counts as none: 90 dB
_SIXTEEN_BITS = (1 << 15) - 1
_OUTLIER = 10.0  # standard deviations from which the largest weight of an output is an outlier


@dataclass(frozen=True)
class Variant:
    """Options of an integer network, with precisions of layers in addition to the given ones; `text` is what the user types for
    the change."""

    calibration: CalibrationOptions
    quantization: QuantizationOptions
    precisions: Mapping[str, Precision] = field(default_factory=dict)
    text: str = ""


class CheckedOutputs:
    """The network outputs over the samples of the check, in floating point and in integers; each is computed once."""

    def __init__(self, observed: Observed):
        self.observed = observed
        self._restored: list[tuple[QuantGraph, dict[str, np.ndarray]]] = []

    @cached_property
    def real(self) -> Mapping[str, np.ndarray]:
        """The float outputs."""
        engine, several = FloatEngine.for_batches(self.observed.graph, ())
        return _outputs(self.observed.checked, engine.run, several)

    def figure(self, graph: QuantGraph, unseen: bool) -> OutputFigure | None:
        """Return the figure of the worst integer output; `unseen`: the samples were not used for calibration."""
        return worst_output(self.real, self.restored(graph), unseen, self.observed.noise, graph.state_outputs)

    def restored(self, graph: QuantGraph) -> dict[str, np.ndarray]:
        """Return the integer outputs as real numbers."""
        for known, values in self._restored:
            if known is graph:
                return values
        stored = _outputs(self.observed.checked, lambda x: simulate(graph, quantize_inputs(graph, [x])))
        kinds = {name: graph.type(name) for name in graph.outputs}
        values = {name: kind.dequantize(stored[name]) for name, kind in kinds.items() if not kind.plain}
        self._restored.append((graph, values))
        return values


def worse_outputs(graph: QuantGraph, plain: QuantGraph, checked: CheckedOutputs) -> dict[str, float]:
    """Return the outputs of `graph` with more than 0.2 dB larger errors than those of `plain`, and these decibels."""
    errors, expected = (relative_errors(checked.real, checked.restored(each)) for each in (graph, plain))
    pairs = {name: zip(errors[name], expected[name], strict=True) for name in errors}
    lost = {name: max(10 * np.log10((a + _NOTHING) / (b + _NOTHING)) for a, b in rows) for name, rows in pairs.items()}
    return {name: float(decibels) for name, decibels in lost.items() if decibels > _WORSE_DB}


Form = Callable[[Variant], tuple[QuantGraph, bool]]
"""Function that builds the network of a variant, and tells whether it did not use the samples of the check."""


def check_accuracy(
    graph: QuantGraph, checked: CheckedOutputs, shifts: Mapping[str, np.ndarray], way: Variant, form: Form
) -> None:
    """Print W508 if an output is too far from floating point. `shifts` are the bias corrections, `way` the options of the
    network. `form` builds another variant, and tells whether it did not use the samples of the check."""
    observed = checked.observed
    if not observed.checked:
        log.notice("the accuracy of the integers is not checked, as there are no samples")
        return
    judged, figure = observed.checked, checked.figure(graph, observed.fresh)
    if figure is not None and figure.shortfall > 1:  # these may be the hard ones
        judged = observed.doubted() or judged
        figure = CheckedOutputs(replace(observed, checked=judged)).figure(graph, observed.fresh)
    if figure is None:
        return
    log.detail("accuracy of the integers: output '%s' has %s", figure.output, figure)
    if figure.shortfall <= 1:
        return
    log.notice("output '%s' deviates strongly from floating point: searching for the cause and a remedy", figure.output)
    layer, cause = _find_cause(graph, observed, figure, shifts)
    row = f", row {figure.row}," if figure.alone else ""
    samples = f"{sum(map(len, judged))} {'held back' if observed.fresh else 'of the calibration'} samples"
    what = f"output '{figure.output}'{row} deviates strongly from floating point: {figure} on {samples}"
    remedy = _constant_rows_remedy(np.asarray(checked.real[figure.output], np.float64))
    if remedy is None:
        remedy = _find_remedy(checked, form, figure, partial(_variants, graph, way, layer))
    weakest = f"layer '{layer}'" if layer else "no layer"
    log.warning("W508", f"{what}; {weakest} costs most: {cause}", remedy=remedy)


def _outputs(
    batches: Sequence[np.ndarray], run: Callable[[np.ndarray], Mapping[str, np.ndarray]], threads: bool = True
) -> dict[str, np.ndarray]:
    parts = list(ordered_map(run, batches, threads))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _find_cause(
    graph: QuantGraph, observed: Observed, figure: OutputFigure, shifts: Mapping[str, np.ndarray]
) -> tuple[str, str]:
    """Return the layer that costs most, and an explanation; a network input or output whose quantization alone costs too much
    comes first."""
    real_graph, output, batch = observed.graph, figure.output, np.concatenate(observed.checked)
    engine, inputs = FloatEngine(real_graph), named_inputs(real_graph, batch)
    real = engine.run(batch)

    def is_enough(values: np.ndarray) -> bool:
        """True if these values of the output alone explain the error."""
        alone = worst_output(real, {output: values}, True, observed.noise, graph.state_outputs)
        return alone is not None and alone.shortfall > 1

    for name, values in inputs.items():
        kind = graph.type(name)
        results = engine.run({**inputs, name: kind.dequantize(kind.quantize(values)).astype(values.dtype)})
        if is_enough(results[output]):
            reader = next((node for node in real_graph.consumers(name) if not node.helper), None)
            return reader.name if reader else "", _shared_step(f"its input '{name}'", kind, values)
    kind, producer = graph.type(output), real_graph.producer(output)
    if is_enough(kind.dequantize(kind.quantize(real[output]))) and producer is not None:
        return producer.name, _shared_step(f"its output '{output}'", kind, real[output])
    losses = layer_losses(real_graph, graph, batch[:_STIMULI], shifts, {output: figure.weights})
    return (losses[0].layer, _explain_loss(losses[0], graph)) if losses else ("", "many small roundings")


def _shared_step(what: str, kind: NumType, values: np.ndarray) -> str:
    rows = in_rows(np.asarray(values, np.float64))
    spread = rows.std(axis=(1, 2))
    lost = int(np.count_nonzero(spread < 2 * kind.scale))
    if len(rows) == 1 or lost in (0, len(rows)):
        around = f"varies by {spread.max():.3g} around {rows.mean():.4g}" if len(rows) == 1 else f"has {len(rows)} rows"
        return f"{what} {around}, in steps of {kind.scale:.3g}"
    vary = f"{lost} of them vary by less than two steps (from {spread.min():.3g} to {spread.max():.3g}: different units?)"
    return f"the {len(rows)} rows of {what} share one step of {kind.scale:.3g}, and {vary}"


def _explain_loss(loss: LayerLoss, graph: QuantGraph) -> str:
    weights = next(node for node in graph.nodes if node.name == loss.layer).params.get("weights")
    if loss.cause == "clipping":
        return f"{100 * loss.saturated:.2g} % of its output is clipped"
    if loss.cause != "weights" or weights is None:
        causes = {"inputs": "its inputs are rounded", "output": "its output is rounded"}
        causes["bias correction"] = "its bias is corrected"
        return f"{causes.get(loss.cause, loss.cause)} to {loss.bits} bits"
    rows = np.abs(weights.reshape(len(weights), -1).astype(np.float64))
    outlier = float((rows.max(axis=1) / np.maximum(rows.std(axis=1), 1e-30)).max())
    far = f", of which the largest is {outlier:.0f} deviations" if outlier > _OUTLIER and rows.shape[1] > _OUTLIER else ""
    return f"its weights have {loss.weight_bits} bits{far}"


def _constant_rows_remedy(real: np.ndarray) -> str | None:
    """Return the remedy for an output of which no row varies by two 16-bit steps; None for other outputs."""
    spread, largest = in_rows(real).std(axis=(1, 2)).max(), np.abs(real).max()
    if not 0 < spread < 2 * largest / _SIXTEEN_BITS:
        return None
    remedy = "subtract the constant part, or export in floating point with -nbbits -32"
    return f"it varies by {spread:.3g} around values of up to {largest:.4g}, less than two 16-bit steps: {remedy}"


def _variants(graph: QuantGraph, way: Variant, layer: str, enough: Callable[[Variant], bool]) -> Iterator[Variant]:
    """Yield alternatives that may be more accurate, the cheapest for the export first. `-quality best`, the slowest, is yielded
    only if 16 bits everywhere are `enough`."""
    calibration, chosen = way.calibration, way.quantization
    is_narrow, parameters = chosen.bits == 8, f"in [{layer}] of -export-parameters FILE"

    def changed(text: str, **changes: object) -> Variant:
        return replace(way, quantization=replace(chosen, **changes), text=text)

    def calibrated(text: str, base: Variant = way, **changes: object) -> Variant:
        return replace(base, calibration=replace(calibration, **changes), text=text)

    place = " instead of -flash-budget" if chosen.flash_budget else ""
    free = changed("", input_bits=0)
    narrow_inputs, narrow_outputs = (
        any(graph.type(name).bits == 8 for name in names) for names in (graph.user_inputs, graph.outputs)
    )
    cheap = (
        (calibration.quality == "fast", calibrated("-quality default", quality="default")),
        (not chosen.correct_bias, changed("leave out -no-bias-correction", correct_bias=True)),
        (not calibration.equalize and is_narrow, calibrated("leave out -no-cle", equalize=True)),
        (chosen.narrow, changed(f"-wt-bits 8{place}", weight_bits=8, flash_budget=0)),
        (chosen.input_bits, calibrated("leave out -input-bits", free, float_inputs=True)),
        (narrow_inputs, changed("-input-bits 16", input_bits=16)),
        (narrow_outputs, changed("-output-bits 16", output_bits=16)),
        (is_narrow, replace(way, precisions={layer: Precision(bits=16)}, text=f"QuantBits=16 {parameters}")),
    )
    yield from (variant for is_possible, variant in cheap if is_possible)
    wide = [changed("-nbbits 16", bits=16)] if is_narrow and not chosen.narrow else []
    if calibration.quality != "best" and all(map(enough, wide)):
        yield calibrated("-quality best", quality="best")
    yield from wide
    yield replace(way, precisions={layer: Precision(quantize=False)}, text=f"Quantize=0 {parameters}")


def _find_remedy(
    checked: CheckedOutputs, form: Form, figure: OutputFigure, ways: Callable[[Callable[[Variant], bool]], Iterator[Variant]]
) -> str:
    """Return the first alternative that is accurate enough on the same samples, else the one that helps most, with its
    figure."""
    tried: dict[str, tuple[Variant, OutputFigure]] = {}

    def is_enough(way: Variant) -> bool:
        if way.text not in tried:
            try:
                with log.muted():
                    found = checked.figure(*form(way))
            except N2D2Error as error:
                log.detail("%s: %s", way.text, error)
                return False
            if found is None:
                return False
            log.detail("tried %s: %s", way.text, found)
            tried[way.text] = way, found
        return tried[way.text][1].shortfall <= 1

    for way in ways(is_enough):
        if is_enough(way):
            count = sum(map(len, checked.observed.checked))
            return f"{way.text} gives {tried[way.text][1]}, as tried on {count} of them"
    way, least = min(tried.values(), key=lambda one: one[1].shortfall, default=(None, figure))
    if way is not None and least.shortfall < _BETTER * figure.shortfall:
        return f"{way.text} helps most of what was tried, but is not enough: {least}"
    failed = f"none of what was tried helps ({', '.join(tried)}): " if tried else ""
    return f"{failed}scale the data or the outputs, or export in floating point with -nbbits -32"
