"""Checksums of what becomes of drawn graphs with spectra, arrays and networks that are quantized already, and of thresholds.

`tests/support/quant_forms.py` draws them. Reached are `n2d2py.quant.contract`, `n2d2py.quant.float_fallback`, `n2d2py.quant.forming`,
`n2d2py.quant.histogram`, `n2d2py.quant.insert_requantize`, `n2d2py.quant.joins`, `n2d2py.quant.prequantized`, `n2d2py.quant.quantize`,
`n2d2py.quant.ranges`, `n2d2py.quant.real_between`, `n2d2py.quant.spectra`, `n2d2py.quant.thresholds`, `n2d2py.quant.trained`, `n2d2py.quant.types`,
`n2d2py.quant.weighted`, `n2d2py.quant.weights`, `n2d2py.quant.widths`. Whoever changes that on purpose writes the checksums again:

    PYTHONPATH=tests python tests/quant/test_same_many_forms.py
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.outcomes import write_lines
from support.quant_draws import drawn_options
from support.quant_forms import array_network, quantized_network, spectral_graph

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.graph import Graph
from n2d2py.operators.conv import Conv
from n2d2py.operators.fc import Fc
from n2d2py.quant.calibration import observe, prepare, quantize_observed
from n2d2py.quant.float_fallback import float_layers, float_tensors, insert_conversions
from n2d2py.quant.histogram import Histogram
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.prequantized import quantize_prequantized, without_rounding
from n2d2py.quant.ranges import Counts, least_error_interval, least_error_reach
from n2d2py.quant.real_between import with_target_forms
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.quant.spectra import power_layers, wide_tensors
from n2d2py.quant.thresholds import activation_threshold
from n2d2py.quant.trained import complete_trained, unmeasured_inputs
from n2d2py.quant.types import calibrated_tensors, nonnegative_tensors, shared_tensors
from n2d2py.quant.weights import quantize_weights

pytestmark = pytest.mark.slow
KEPT = Path(__file__).resolve().parent / "same_many_forms.json"


def nodes_of(graph: Graph) -> list[str]:
    return [f"{node.name} {node.op.kind} {node.inputs} {node.outputs}" for node in graph.nodes]


def spectra(seed: int) -> list[str]:
    """What stays in floating point, what is converted, what has 16 bits; also of a target with real numbers between the layers."""
    graph = spectral_graph(seed)
    found = [str(sorted(power_layers(graph))), str(sorted(float_layers(graph)))]
    for each in (graph, with_target_forms(graph, lambda node: isinstance(node.op, (Conv, Fc)))):
        try:
            converted = insert_conversions(each)
        except N2D2Error as error:
            found.append(error.line())
            continue
        found += nodes_of(converted)
        found += [
            str(sorted(wide_tensors(converted))),
            str(sorted(float_tensors(converted))),
            str(calibrated_tensors(converted)),
        ]
        found += [
            str(sorted(nonnegative_tensors(converted, set(converted.inputs) if seed % 2 else set()))),
            str(shared_tensors(converted)),
        ]
    return found


def arrays(seed: int) -> list[str]:
    """Types of tensors; integers are left out, as exponentials depend on the machine."""
    graph, x = array_network(seed)
    options = QuantOptions(
        bits=16 if seed % 5 == 4 else 8,
        output_bits=(8, 0, 16)[seed % 3],
        input_bits=(8, 0)[seed % 2],
        unit_ranges=seed % 4 == 1,
    )
    seen = observe(prepare(graph, True, True), [x], [x[:3], x[3:]], {}, seed % 2 == 0, "")
    result, types = quantize_observed(seen, options)
    kinds = {name: result.type(name) for name in result.tensors}
    found = nodes_of(result)
    return found + [
        f"{name} {kind.bits} {kind.signed} {kind.scale:.3g} {kind.zero_point} {name in types.thresholds}"
        for name, kind in kinds.items()
    ]


def quantized(seed: int) -> list[str]:
    """Integers of a network whose scales are those of its file, and of its real numbers over measured ranges."""
    graph = quantized_network(seed)
    x = (np.random.default_rng(seed).integers(-40, 41, (3, 4, 8, 8)) / 16).astype(np.float32)
    ranges = dict.fromkeys(graph.inputs, (-2.0, 3.0)) if seed % 3 == 0 else {}
    measured = dict.fromkeys(calibrated_tensors(graph)[:: 1 + seed % 2], (-1.0, 4.0))
    found = [str(unmeasured_inputs(graph, ranges)), *nodes_of(without_rounding(graph))]
    for each in (graph, complete_trained(graph, ranges, measured)):
        try:
            result, float_graph = quantize_prequantized(each, QuantOptions())
        except N2D2Error as error:
            found.append(error.line())
            continue
        values = simulate(result, quantize_inputs(result, [x]), keep=True)
        found += [*nodes_of(result), *nodes_of(float_graph), str(result.aliases)]
        found += [f"{node.bound} {node.clamp} {type(node.rescale).__name__}" for node in result.nodes]
        for name in result.tensors:
            kind = result.type(name)
            held = "" if kind.is_float or name not in values else str(zlib.crc32(values[name].astype("<i8").tobytes()))
            found.append(f"{name} {kind.bits} {kind.signed} {kind.scale:.6g} {kind.zero_point} {held}")
    return found


def thresholds(seed: int) -> list[str]:
    """Where values of unlike distributions are clipped, and the weights of a layer that are of them."""
    rng = np.random.default_rng(seed)
    values = rng.choice([1, 1, 2, 5, 40], 3000) * rng.integers(-64, 65, 3000) / 64
    if seed % 3 == 0:
        values[rng.integers(3000)] = 2.0 ** rng.integers(5, 14)
    if seed % 4 == 1:
        values = np.abs(values)
    if seed % 5 == 2:
        values = values * (rng.random(3000) < 0.05)
    if seed % 7 == 3:
        values = values[: 1 + seed % 4]
    histogram, found = Histogram(), []
    for part in np.array_split(values.astype(np.float32), 1 + seed % 3):
        histogram.add(part)
    for levels in (1, 7, 127, 255, 32767)[seed % 2 :: 2]:
        for mode in ("MSE", "Quantile", *(["KL-Divergence"] if levels in (127, 255, 7) else [])):
            found.append(f"{levels} {mode} {activation_threshold(histogram, mode, levels, (0.5, 0.99, 1.0)[seed % 3]):.6g}")
    if histogram.largest:
        counts = Counts.of(histogram)
        signed = drawn_options(seed).bits
        interval = least_error_interval(counts, signed)
        found.append(
            f"{counts.x.size} {interval.scale:.6g} {interval.zero_point} {least_error_reach(counts, interval.with_scale(1.0)):.6g}"
        )
    rows = rng.integers(-64, 65, (4, 6)) / 64 * rng.choice([0, 0.125, 1, 16], (4, 1))
    for bits in (2, 3, 4, 7, 8, 16)[seed % 3 :: 3]:
        order = rng.permutation(6) if bits == 8 and seed % 2 else None
        for clipping in ("None", "MSE", "KL-Divergence"):
            made = quantize_weights(
                rows,
                rng.integers(-64, 65, 4) / 4,
                2.0**-5,
                255,
                bits=bits,
                per_output=seed % 2 == 0,
                clipping=clipping,
                limit=(2**31 - 1, 20_000, 900)[seed // 2 % 3],
                reduced_order=order,
            )
            scales = " ".join(f"{scale:.6g}" for scale in made.scales)
            found.append(
                f"{made.weights.tolist()} {made.bias.tolist()} {scales} {made.bound} {made.widened} {made.reduced:.6g}"
            )
    return found


KINDS: dict[str, tuple[Callable[[int], list[str]], int, int]] = {
    "spectra": (spectra, 40, 25),
    "arrays": (arrays, 3, 30),
    "quantized": (quantized, 6, 40),
    "thresholds": (thresholds, 4, 30),
}
"""What is made of a seed, seeds in a case, cases."""


def checksum(kind: str, case: int) -> str:
    """Of a block of seeds; what is refused counts with its words."""
    made, block, _ = KINDS[kind]
    found: list[str] = []
    for seed in range(case * block, case * block + block):
        log.setup(quiet=True)
        try:
            found += made(seed)
        except N2D2Error as error:
            found.append(error.line())
        found += [error.code for error in log.warnings_seen()]
    return f"{zlib.crc32(chr(10).join(found).encode()):08x}"


@pytest.fixture(scope="module")
def kept() -> dict[str, list[str]]:
    return json.loads(KEPT.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", range(KINDS["spectra"][2]))
def test_spectra_change_on_purpose_only(kept, case):
    assert checksum("spectra", case) == kept["spectra"][case]


@pytest.mark.parametrize("case", range(KINDS["arrays"][2]))
def test_arrays_change_on_purpose_only(kept, case):
    assert checksum("arrays", case) == kept["arrays"][case]


@pytest.mark.parametrize("case", range(KINDS["quantized"][2]))
def test_quantized_networks_change_on_purpose_only(kept, case):
    assert checksum("quantized", case) == kept["quantized"][case]


@pytest.mark.parametrize("case", range(KINDS["thresholds"][2]))
def test_thresholds_change_on_purpose_only(kept, case):
    assert checksum("thresholds", case) == kept["thresholds"][case]


def main() -> None:
    """Writes what the tests compare with."""
    sums = {kind: [checksum(kind, case) for case in range(count)] for kind, (_, _, count) in KINDS.items()}
    write_lines(KEPT, sums)


if __name__ == "__main__":
    main()
