"""Winograd convolutions, bit for bit: sizes around tiles, groups and blocks, extreme values, overlap, all builds; their weights and the choice."""

from collections.abc import Iterator
from itertools import cycle
from types import SimpleNamespace

import numpy as np
import pytest
from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_builds import check_build, on_builds
from support.kernel_cases import S8, S16, U8, U16
from support.kernel_overlaps import over
from support.kernel_winograd import forced, having_form

from n2d2py.arithmetic import NumType
from n2d2py.contracts.cpp import Layer
from n2d2py.contracts.cpp.forms import winograd as winograd_forms
from n2d2py.contracts.cpp.forms.contract import KernelFacts
from n2d2py.contracts.cpp.forms.winograd import impossible, unprofitable, winograd_scratch
from n2d2py.contracts.cpp.identifiers import Identifiers
from n2d2py.graph import QuantGraph
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.scratch import ScratchNeed

KINDS = ((U8, U8), (S8, U8), (U8, S8), (S8, S8), (U8, S16), (S8, U16), (U8, NumType(32)))


def facts_of(weights: np.ndarray, size=(32, 32), op: dict | None = None, **layer) -> KernelFacts:
    """The facts of a convolution with an output of `size`."""
    known = SimpleNamespace(**{"stride": (1, 1), "dilation": (1, 1), "groups": 1} | (op or {}))
    facts = {"output_shape": (1, len(weights), *size), "inputs": (U8,), "integer": True, "streamed": False, "serial": False}
    return KernelFacts(SimpleNamespace(op=known, **facts | layer), "convolution", weights)  # type: ignore[arg-type]


def needed(graph: QuantGraph, plan: MemoryPlan) -> dict[str, ScratchNeed]:
    """The scratch of the Winograd form."""
    layer = Layer.of(graph.nodes[0], graph, plan, Identifiers(graph))
    wanted = winograd_scratch(KernelFacts(layer, "convolution", layer.values("weights").transpose(0, 2, 3, 1)))
    return {layer.name: ScratchNeed(1, 1, wanted, wanted)}


def conv(sweep: cases.Sweep, channels: int, outputs: int, size, pads, kinds, layout: str, zero: int = 0) -> harness.Case:
    return sweep.conv((1, channels, *size), outputs, cases.K3._replace(pads=pads), kinds, layout, zero=zero)


def winograd_cases(seed: int) -> list[harness.Case]:
    """Channels around 2, 8 and 16, outputs around 8 and 16, lines and columns odd and even, pads, several blocks, every layout."""
    sweep, made = cases.Sweep(seed), []
    kinds, placed = cycle(KINDS), cycle(("apart", "strided", "wrapped", "over", "strided wrapped"))
    sizes = cycle(((6, 8), (7, 7), (5, 13), (3, 3), (1, 1), (8, 5), (2, 17), (1, 6), (9, 1)))
    pads = cycle(((1, 1, 1, 1), (0, 0, 0, 0), (1, 0, 0, 1), (2, 2, 2, 2), (0, 1, 1, 0), (1, 1, 1, 1), (1, 3, 1, 0)))
    counts = (2, 3, 5, 7, 8, 9, 15, 16, 17, 20, 31, 32, 33, 40, 48)
    outputs = cycle((1, 4, 5, 8, 9, 12, 15, 16, 17, 24, 31, 33, 48, 50))
    for i, channels in enumerate(counts + counts[::2]):
        size, pad = next(sizes), next(pads)
        if any(size[k] + pad[k] + pad[k + 2] < 3 for k in (0, 1)):
            pad = (1, 1, 1, 1)
        made.append(conv(sweep, channels, next(outputs), size, pad, next(kinds), next(placed), 9 * (i % 2)))
    # Blocks: several of a layer on its own, of whole lines where the output lies over the input, less than a line.
    for channels, count, size, layout in (
        (16, 16, (22, 30), "apart"),
        (48, 20, (15, 21), "over"),
        (260, 8, (6, 16), "apart"),
        (64, 16, (13, 19), "over"),
        (130, 40, (9, 10), "wrapped"),
    ):
        made.append(conv(sweep, channels, count, size, (1, 1, 1, 1), next(kinds), layout, 3))
    apart = [
        conv(sweep, c, o, (11, 14), (1, 1, 1, 1), kind, "apart")
        for c, o, kind in ((20, 40, (S8, U8)), (64, 16, (U8, S8)), (33, 33, (S8, S8)))
    ]
    return made + [over(case, backwards) for case in apart for backwards in (False, True)]


def stack_cases(seed: int) -> list[harness.Case]:
    """Weights that are transformed on the stack: whole words of channels, in one part and in several, vectors of 16 filled or not, panels of 16 and
    of 8 outputs, one block and several, every layout.
    """
    sweep, made = cases.Sweep(seed), []
    kinds, placed = cycle(KINDS), cycle(("apart", "strided", "wrapped", "over", "strided wrapped"))
    sizes = cycle(((6, 8), (7, 7), (5, 13), (3, 3), (1, 1), (8, 5), (2, 17), (9, 12)))
    pads, outputs = cycle(((1, 1, 1, 1), (2, 2, 2, 2), (1, 1, 1, 1), (1, 1, 2, 1))), cycle((8, 16, 24, 40))
    for i, channels in enumerate((4, 8, 12, 16, 20, 32, 44, 64, 96, 128, 132, 192, 256, 260)):
        made.append(conv(sweep, channels, next(outputs), next(sizes), next(pads), next(kinds), next(placed), 9 * (i % 2)))
    for channels, count, size, layout in (
        (16, 16, (22, 30), "apart"),
        (192, 24, (15, 21), "over"),
        (256, 16, (14, 14), "apart"),
        (64, 16, (13, 19), "over"),
    ):
        made.append(conv(sweep, channels, count, size, (1, 1, 1, 1), next(kinds), layout, 3))
    apart = [conv(sweep, c, 16, (11, 14), (1, 1, 1, 1), kind, "apart") for c, kind in ((32, (S8, U8)), (160, (U8, S8)))]
    return made + [over(case, backwards) for case in apart for backwards in (False, True)]


def extreme_cases(seed: int, channels: int = 34) -> Iterator[harness.Case]:
    """Inputs and weights at their limits, all alike and in the patterns whose transforms are largest; 32-bit outputs show the sums."""
    sweep = cases.Sweep(seed)
    for kind in (U8, S8):
        low, high = (0, 255) if kind is U8 else (-128, 127)
        for pattern in range(6):
            case = conv(sweep, channels, 16, (6, 7), (1, 1, 1, 1), (kind, NumType(32)), "apart", low if pattern % 2 else high)
            weights, inputs = case.node.params["weights"], case.inputs[case.node.inputs[0]]
            weights[:] = (-128, 127, -128, 127, 127, -128)[pattern]
            inputs[:] = (high, low, high, high, low, high)[pattern]
            if pattern == 2:  # alternating signs of the rows and columns of the transforms
                weights[:, :, ::2, 1::2] = weights[:, :, 1::2, ::2] = 127
                inputs[:, :, ::2, 1::2] = inputs[:, :, 1::2, ::2] = low
            elif pattern == 3:  # neighbours of d that are added high, those that are subtracted low
                inputs[:, :, ::4] = low
                inputs[..., ::4] = low
            elif pattern >= 4:
                inputs[:] = np.random.default_rng(seed).choice([low, high], inputs.shape)
                weights[:] = np.random.default_rng(seed + 1).choice([-128, 127], weights.shape)
            case.node.bound = int(weights[0].size * 128 * 256 + np.abs(case.node.params["bias"]).max())
            yield case


def stored_form(monkeypatch, seed: int) -> list[harness.Case]:
    """The cases, for a harness that uses the Winograd form with stored weights wherever there is one."""
    monkeypatch.setattr(harness, "layer_code", forced)
    monkeypatch.setattr(winograd_forms, "pays_on_stack", lambda *layer: False)
    monkeypatch.setattr(harness, "scratch_needs", needed)
    return having_form([*winograd_cases(seed), *extreme_cases(seed)])


def stack_form(monkeypatch, seed: int) -> list[harness.Case]:
    """The cases, for a harness that transforms the weights on the stack wherever that is possible."""

    def on_stack(facts: KernelFacts, stored: bool) -> bool:
        return not (impossible(facts, facts.layer.scratch.bytes) or facts.weights.shape[-1] % 4 or len(facts.weights) % 8)

    monkeypatch.setattr(harness, "layer_code", forced)
    monkeypatch.setattr(winograd_forms, "pays_on_stack", on_stack)
    return having_form([*stack_cases(seed), *extreme_cases(seed, 36)])


BUILDS = (
    "g++|clang++ -O0|-O3|-Os|sanitizers avx2|sse4",
    "g++ -O3,parallel avx2|sse4",
    "g++ -O0|-O3|sanitizers emulated-avxvnni",
    "aarch64|armv7 -O0|-O3|-Os",
)


@on_builds({"-Os avx2": 12, "-O0 emulated-avxvnni": 12, "-O0 aarch64": 100}, *BUILDS)
def test_stored_weights(tmp_path, monkeypatch, build, every):
    check_build(stored_form(monkeypatch, 2)[::-1][::every], tmp_path, build)


@on_builds({"-Os avx2": 12}, *BUILDS)
def test_weights_on_the_stack(tmp_path, monkeypatch, build, every):
    check_build(stack_form(monkeypatch, 2)[::every], tmp_path, build)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"op": {"stride": (2, 1)}}, "stride 1"),
        ({"op": {"dilation": (1, 2)}}, "dilation 1"),
        ({"op": {"groups": 2}}, "groups"),
        ({"inputs": (U16,)}, "16 bits"),
        ({"streamed": True}, "lines"),
        ({"serial": True, "size": (8, 2000)}, "plan of the memory"),
    ],
)
def test_what_rules_it_out(change, words):
    weights = np.ones((16, 3, 3, 16), np.int64)
    assert impossible(facts_of(weights), 0) == ""
    assert words in impossible(facts_of(weights, **change), 0)


def test_sums_that_may_exceed_32_bits_rule_it_out():
    weights = np.full((8, 3, 3, 120), 127)
    assert "32 bits" in impossible(facts_of(weights), 0)
    weights[:, :, :, ::2] *= -1
    assert impossible(facts_of(weights), 0) == ""  # each side of zero is half as far
    weights[3] = -127
    assert "32 bits" in impossible(facts_of(weights), 0)


@pytest.mark.parametrize("size, pays", [((3, 3), False), ((4, 4), True), ((5, 5), True), ((5, 8), True), ((1, 16), False)])
def test_tiles_that_are_mostly_outside_do_not_pay(size, pays):
    weights = np.ones((16, 3, 3, 16), np.int64)
    assert (unprofitable(facts_of(weights, size)) == "") == pays
