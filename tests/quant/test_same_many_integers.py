"""Checksums of the integers of many drawn networks, with unusual weights, stimuli, options and widths.

`tests/support/quant_draws.py` draws them. Besides integers, types and rescales there are the losses of layers, comparisons, costs of roundings and
the widths of weights, numbers with few digits. Reached are `n2d2py.quant.bit_search`, `n2d2py.quant.calibration`, `n2d2py.quant.channels`,
`n2d2py.quant.compare`, `n2d2py.quant.contract`, `n2d2py.quant.correct`, `n2d2py.quant.corrections`, `n2d2py.quant.covariance`,
`n2d2py.quant.equalize`, `n2d2py.quant.float_fallback`, `n2d2py.quant.forming`, `n2d2py.quant.held_back`, `n2d2py.quant.histogram`,
`n2d2py.quant.insert_requantize`, `n2d2py.quant.isolation`, `n2d2py.quant.joins`, `n2d2py.quant.layerwise`, `n2d2py.quant.level_counts`,
`n2d2py.quant.mixed`, `n2d2py.quant.moments`, `n2d2py.quant.narrow`, `n2d2py.quant.quantize`, `n2d2py.quant.ranges`, `n2d2py.quant.rounding`,
`n2d2py.quant.sensitivity`, `n2d2py.quant.sequential`, `n2d2py.quant.statistics`, `n2d2py.quant.thresholds`, `n2d2py.quant.types`,
`n2d2py.quant.weighted`, `n2d2py.quant.weights`, `n2d2py.quant.wide_weights`, `n2d2py.quant.widths`, `n2d2py.quant.worst`. Whoever changes the
quantization on purpose writes the checksums again, once test_same_integers.py shows what changed:

    PYTHONPATH=tests python tests/quant/test_same_many_integers.py
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from support.outcomes import write_lines
from support.quant_draws import drawn_network, drawn_options

from n2d2py import log
from n2d2py.arithmetic import Rescale
from n2d2py.errors import N2D2Error
from n2d2py.graph import QuantGraph
from n2d2py.quant.bit_search import WidthChoice, front, width_errors
from n2d2py.quant.calibration import Observed, choose, observe, prepare, quantize_observed, settle
from n2d2py.quant.compare import Accumulator
from n2d2py.quant.correct import alternatives
from n2d2py.quant.mixed import rounding_costs
from n2d2py.quant.narrow import narrowed, weight_counts
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.quantize import typed_graph
from n2d2py.quant.sensitivity import layer_losses
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.quant.types import TensorTypes
from n2d2py.quant.worst import WorstStimuli
from n2d2py.reference.engine import FloatEngine

pytestmark = pytest.mark.slow
KEPT = Path(__file__).resolve().parent / "same_many_integers.json"
BLOCK = 4
"""Networks in a case."""
CASES = {"integers": 100, "losses": 40, "widths": 40}
"""Cases of each kind, which have networks of their own."""


def digits(value: object) -> str:
    """A number with four digits: sums of real numbers depend on the machine beyond those."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def rescale_text(rescale: Rescale | None) -> str:
    values = [] if rescale is None else [value for _, value in sorted(vars(rescale).items()) if value is not None]
    return f"{type(rescale).__name__} {' '.join(f'{float(number):.5g}' for value in values for number in np.ravel(value))}"


def observed(seed: int, **changes: object) -> tuple[Observed, QuantOptions, np.ndarray]:
    """A prepared network with its statistics, and its stimuli."""
    graph, x = drawn_network(seed)
    options = replace(drawn_options(seed), **changes)
    samples = [x[:3], x[3:]] if len(x) > 1 else [x]
    ranges = {"x": (-4.0, 8.0)} if seed % 9 == 4 else {}
    prepared = prepare(graph, options.per_output, options.equalize)
    return (
        observe(
            prepared, [x[:2], x[2:]] if len(x) > 1 else [x], samples, ranges, options.equalize and options.per_output, "key"
        ),
        options,
        x,
    )


def lines_of(graph: QuantGraph, types: TensorTypes, x: np.ndarray) -> list[str]:
    """All tensors: types, integers and how they are made."""
    values = simulate(graph, quantize_inputs(graph, [x]), keep=True)
    nodes = {output: node for node in graph.nodes for output in node.outputs}
    found = [f"{graph.name} {graph.bits} {graph.inputs} {graph.outputs} {types.coarse}"]
    for tensor in graph.tensors:
        kind, node = graph.type(tensor), nodes.get(tensor)
        made = "" if node is None else f"{node.op} {node.bound} {node.clamp} {rescale_text(node.rescale)} {sorted(node.params)}"
        held = "" if tensor not in values or kind.is_float else str(zlib.crc32(values[tensor].astype("<i8").tobytes()))
        found.append(f"{tensor} {kind.bits} {kind.signed} {kind.scale:.5g} {kind.zero_point} {made} {held}")
    found += [f"{name} {reach:.5g}" for name, reach in types.thresholds.items()]
    if types.biases is not None:
        found.append(f"{types.biases.stimuli} {types.biases.kept} {types.biases.dropped} {types.biases.used}")
    return found


def integers(seed: int) -> list[str]:
    seen, options, x = observed(seed)
    graph, types = quantize_observed(seen, options)
    statistics = [
        f"{name} {h.count} {h.zeros} {h.mean:.5g} {h.deviation:.5g}" for name, h in seen.statistics.histograms.items()
    ]
    warned = [error.line().split(" dB")[0].split(": error")[0] for error in log.warnings_seen()]
    return [
        *lines_of(graph, types, x),
        *statistics,
        *warned,
        *(f"{k} {v.round(4)}" for k, v in seen.statistics.factors.items()),
    ]


def losses(seed: int) -> list[str]:
    """Layers one by one, and all of them together, beside floating point."""
    seen, options, x = observed(seed, mixed=False, correct_bias=seed % 2 == 0)
    graph, types = quantize_observed(seen, options)
    shifts = types.biases.shifts if types.biases is not None else {}
    found = [
        " ".join(digits(getattr(loss, each.name)) for each in fields(loss)) + loss.remedy
        for loss in layer_losses(seen.graph, graph, x, shifts)
    ]
    found += [f"{name} {digits(cost)}" for name, cost in rounding_costs(seen.graph, types, x).items()]
    real = FloatEngine(seen.graph, taps=list(seen.graph.tensors)).run(x)
    worst = WorstStimuli(graph)
    stored = simulate(graph, quantize_inputs(graph, [x]), keep=True)
    worst.add(x, np.arange(len(x)), [f"n{k}" for k in range(len(x))], real, stored)
    found += [" ".join(digits(getattr(one, each.name)) for each in fields(one)[:-1]) for one in worst.result()]
    for name in graph.tensors:
        if name in stored and name in real:
            sums = Accumulator("layer", name, graph.type(name))
            for part in (slice(0, 2), slice(2, None)):
                if len(x[part]):
                    compiled = stored[name][part].astype(np.float32 if graph.type(name).is_float else np.int64)
                    if seed % 3 == 0:
                        compiled.reshape(-1)[-1] += 1
                    sums.add(real[name][part], stored[name][part], compiled, 0.01 * (seed % 2), stored[name][part])
            result = sums.result()
            found.append(" ".join(digits(getattr(result, each.name)) for each in fields(result) if each.name != "levels"))
            if result.levels is not None:
                found.append(
                    f"{result.levels.stored.tolist()} {result.levels.edges[[0, -1]].round(4)} {result.levels.unused:.4g}"
                )
    return found


def widths(seed: int) -> list[str]:
    """Weights of few bits: of all layers that may have them, and the best widths of each for a number of bytes."""
    seen, options, x = observed(seed, mixed=seed % 2 == 0, wide_weights=True, wt_clipping="None", correct_bias=False)
    narrow = replace(seen, graph=narrowed(seen.graph, 2 + seed % 7))
    graph, types = quantize_observed(narrow, replace(options, adaptive_rounding=seed % 3 != 0))
    found = lines_of(graph, types, x)
    settled, chosen = settle(seen, options)
    types, counts = choose(settled, chosen), weight_counts(settled.graph)
    found.append(f"{sorted(chosen.wide)} {counts}")
    bits = {name: (2, 4, 8) for name in counts if name in {node.name for node in settled.graph.nodes}}
    forms = alternatives(settled.graph, types, settled.samples, chosen, bits)
    errors = width_errors(settled.graph, typed_graph(settled.graph, types, chosen), forms, x)
    found += [f"{name} {each} {digits(error)}" for name, by_bits in errors.items() for each, error in by_bits.items()]
    choices = {
        name: [WidthChoice(each, -(-counts[name] * each // 8), error) for each, error in by_bits.items()]
        for name, by_bits in errors.items()
    }
    if choices:
        best = front(choices, 100)
        places = [best.within(int(budget)) for budget in (0, best.bytes[0], best.bytes[-1], int(best.bytes.mean()))]
        found += [f"{best.bytes.tolist()} {places}", *(digits(float(error)) for error in best.errors)]
        found += [str(best.widths(place)) for place in range(len(best.bytes))]
    return found


KINDS: dict[str, Callable[[int], list[str]]] = {"integers": integers, "losses": losses, "widths": widths}


def checksum(kind: str, case: int) -> str:
    """Of a block of networks; what is refused counts with its words."""
    found: list[str] = []
    for seed in range(case * BLOCK, case * BLOCK + BLOCK):
        log.setup(quiet=True)
        try:
            found += KINDS[kind](seed + 1000 * list(KINDS).index(kind))
        except N2D2Error as error:
            found.append(error.line())
    return f"{zlib.crc32(chr(10).join(found).encode()):08x}"


@pytest.fixture(scope="module")
def kept() -> dict[str, list[str]]:
    return json.loads(KEPT.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", range(CASES["integers"]))
def test_integers_change_on_purpose_only(kept, case):
    assert checksum("integers", case) == kept["integers"][case]


@pytest.mark.parametrize("case", range(CASES["losses"]))
def test_losses_change_on_purpose_only(kept, case):
    assert checksum("losses", case) == kept["losses"][case]


@pytest.mark.parametrize("case", range(CASES["widths"]))
def test_widths_change_on_purpose_only(kept, case):
    assert checksum("widths", case) == kept["widths"][case]


def main() -> None:
    """Writes what the tests compare with."""
    sums = {kind: [checksum(kind, case) for case in range(count)] for kind, count in CASES.items()}
    write_lines(KEPT, sums)


if __name__ == "__main__":
    main()
