"""Convolutions and fully connected layers whose products of bytes are summed in 16 bits, bit for bit, at the limits of exactness; the proof."""

import re
from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_builds import LEVELS, check_build, need_isa, on_builds
from support.kernel_cases import K1, K3, S8, S16, U8
from support.kernel_simd import dense_cases, full_cases
from support.tables import few_fast

from n2d2py.arithmetic import FLOAT32, PLACE_LIMIT, NumType, largest_place
from n2d2py.contracts.cpp.forms.panels import byte_sums
from n2d2py.contracts.cpp.identifiers import Identifiers
from n2d2py.contracts.cpp.layer import Layer, layer_code


def at_the_limit(rows: np.ndarray, words: int, rng: np.random.Generator) -> np.ndarray:
    """Weights (O, K) of the kernel's order cut so that sums over `words` words just stay exact; some at the limit, some random."""
    outputs, inputs = rows.shape
    padded = np.zeros((outputs, -(-inputs // 8) * 8), np.int64)
    padded[:, :inputs] = rows
    places = padded.reshape(outputs, -1, 2, 2, 2)  # pairs of words, words, places, inputs
    groups = places.transpose(0, 1, 3, 2, 4).reshape(-1, 4) if words == 2 else places.reshape(-1, 2)
    for sign in (1, -1):
        part = np.maximum(sign * groups, 0)
        before = np.concatenate([np.zeros((len(part), 1), np.int64), part.cumsum(axis=1)[:, :-1]], axis=1)
        cut = np.clip(
            PLACE_LIMIT - before, 0, part
        )  # the first ones keep their values: many places add up to the limit exactly
        groups = np.where(sign * groups > 0, sign * cut, groups)
    groups = np.take_along_axis(groups, rng.permuted(np.tile(np.arange(groups.shape[1]), (len(groups), 1)), axis=1), 1)
    if words == 2:
        groups = groups.reshape(outputs, -1, 2, 2, 2).transpose(0, 1, 3, 2, 4)
    # What was permuted behind the last input is dropped, which takes weights away only.
    return groups.reshape(outputs, -1)[:, :inputs].clip(-128, 127)


def narrowed(case: harness.Case, words: int, rng: np.random.Generator) -> harness.Case:
    """The case with weights at the limit for `words` words; 8-bit inputs only."""
    channels, *size = case.graph.shape(case.node.inputs[0])[1:]
    weights = case.node.form.weights
    if case.node.op.kind == "Fc":
        cube = weights.reshape(-1, channels, *size, *[1] * (2 - len(size))).transpose(0, 2, 3, 1)
        rows = at_the_limit(cube.reshape(len(weights), -1), words, rng).reshape(cube.shape).transpose(0, 3, 1, 2)
    else:
        order = weights.transpose(0, 2, 3, 1)
        rows = at_the_limit(order.reshape(len(weights), -1), words, rng).reshape(order.shape).transpose(0, 3, 1, 2)
    narrow = np.ascontiguousarray(rows).reshape(weights.shape).astype(weights.dtype)
    case.node.form = replace(case.node.form, weights=narrow)
    return case


def byte_cases(seed: int) -> list[harness.Case]:
    """Dense, grouped, strided and fully connected layers of bytes, with one and with two words that fit 16 bits; inputs all at an end too."""
    sweep = cases.Sweep(seed)
    made = [case for case in (*dense_cases(sweep), *full_cases(sweep)) if case.graph.type(case.node.inputs[0]).bits == 8]
    return [narrowed(case, words, sweep.rng) for case, words in zip(made, cycle((2, 1)))]


def few_bits(seed: int, stored: str) -> list[harness.Case]:
    """Layers with weights of 4 bits, some outputs of one sign alone, and inputs of 8 bits or (`stored`) within the limits of 4; from runs
    of eight words, of all, and of what lies between."""
    sweep, made = cases.Sweep(seed), []
    shapes = [(1, channels, *size) for channels, size in ((80, (3, 5)), (16, (4, 3)), (33, (3, 3)), (8, (5, 4)), (130, (2, 2)))]
    for shape, outputs, layout in zip(shapes * 2, cycle((16, 7, 24, 33)), cycle(("apart", "strided", "wrapped"))):
        window, kinds = (K3, K1)[len(made) % 2], ((U8, U8), (S8, S8), (U8, S8))[len(made) % 3]
        made.append(sweep.conv(shape, outputs, window, kinds, layout))
    made += [sweep.fc((1, channels, 2, 1), 24, (U8, U8), "apart") for channels in (5, 40, 700)]
    made += [
        sweep.fc((1, *shape), outputs, kinds, layout)
        for shape, outputs, kinds, layout in (
            ((8, 3, 2), 10, (S8, S8), "strided"),
            ((16, 2, 2), 40, (U8, U8), "wrapped"),
            ((3, 4, 1), 33, (S8, U8), "strided"),
            ((6, 2, 3), 17, (U8, S8), "apart"),
            ((64, 1, 1), 100, (U8, NumType(32)), "apart"),
        )
    ]
    for case in made:
        weights = sweep.rng.integers(-8, 8, case.node.form.weights.shape)
        weights[::3], weights[1::3] = 7, -8
        case.node.form = replace(case.node.form, weights=weights.astype(np.int8))
        if stored != "computed":
            continue
        tensor = case.graph.tensors["x"]
        least, most = (-8, 7) if tensor.type.signed else (0, 15)
        case.graph.tensors["x"] = replace(tensor, type=replace(tensor.type, least=least, most=most))
        case.inputs["x"] = np.clip(case.inputs["x"], least, most)
    return made


def config(case: harness.Case) -> str:
    return layer_code(case.node, case.graph, case.plan, Identifiers(case.graph)).config


def test_cases_sum_bytes():
    made = byte_cases(1)
    sums = [next(words for words in (0, 1, 2) if f"ByteSums = {words}" in config(case)) for case in made]
    assert len(made) > 40 and sums.count(0) < 6 and sums.count(1) > 15 and sums.count(2) > 15
    places = [
        largest_place(case.node.params["weights"].transpose(0, 2, 3, 1).reshape(len(case.node.params["weights"]), -1), words)
        for case, words in zip(made, sums, strict=True)
        if words and case.node.op.kind == "Conv"
    ]
    assert sum(place.max() == PLACE_LIMIT for place in places) > 15


@on_builds({"-O0 avx2": 12}, f"g++|clang++ {LEVELS} avx2|sse4")
def test_byte_sums(tmp_path, build, every):
    check_build([*byte_cases(2)[::every], *few_bits(4, "given")[::every]], tmp_path, build)


@pytest.mark.parametrize("stored", few_fast(["computed", "given"]))
def test_runs_of_words(tmp_path, monkeypatch, stored):
    """Sums of 16 bits that are kept from word to word; those of inputs of 4 bits only where a layer makes these."""
    complete = Layer.__post_init__

    def with_source(layer: Layer) -> None:
        complete(layer)
        layer.computed = stored == "computed"

    monkeypatch.setattr(Layer, "__post_init__", with_source)
    made = few_bits(3, stored)
    runs = {int(re.search(r"ByteSums = (\d+)", config(case))[1]) for case in made}
    assert runs == ({2, 3, 4, 8} if stored == "given" else {2, 3, 4, 9, 12, 16, 18, 20, 33, 36, 75, 128})
    harness.check_all(made, tmp_path, "g++", ("-O0", *need_isa("avx2")))


@pytest.mark.parametrize(
    "row, sums",
    [
        ([64, 64, 0, 0, 0, 0, 0, 0], 2),
        ([64, 64, 0, 0, 1, 0, 0, 0], 1),
        ([64, 65, 0, 0, 0, 0, 0, 0], 0),
        ([-64, -64, 1, 127, 0, 0, 0, 0], 2),
        ([-128, 0, 0, 0, -1, 0, 0, 0], 1),
        ([-128, -1, 0, 0, 0, 0, 0, 0], 0),
        ([-128, 127, 0, 0, 0, 1, 0, 0], 2),
        ([0, 0, 127, 1, 64], 2),
        ([0, 0, 127, 1, 0, 0, 1], 1),
    ],
)
def test_the_proof(row, sums):
    """The smallest and the largest sums are those of inputs 0 and 255."""
    assert byte_sums(np.array([[0] * len(row), row]), U8) == byte_sums(np.array([row]), S8) == sums


def test_the_proof_is_tight():
    """What the proof lets through never leaves 16 bits, what it refuses does, by inputs of 0 and 255."""
    rng = np.random.default_rng(3)
    for words in (1, 2):
        for _ in range(300):
            rows = rng.integers(-40, 41, (1, 4 * words)) * rng.integers(1, 4)
            places = rows.reshape(words, 2, 2).transpose(1, 0, 2).reshape(2, -1)
            sums = [
                255 * sum(value for value in place if (value > 0) == positive)
                for place in places.tolist()
                for positive in (True, False)
            ]
            fits = min(sums) >= -(2**15) and max(sums) < 2**15
            assert (byte_sums(rows.clip(-128, 127), U8) >= words) == fits


@pytest.mark.parametrize("kind", [S16, FLOAT32])
def test_only_bytes(kind):
    assert byte_sums(np.ones((2, 8), np.int64), kind) == 0


def test_weights_that_may_saturate_keep_words():
    case = list(dense_cases(cases.Sweep(1)))[1]
    case.node.params["weights"][:] = 127
    assert "ByteSums = 0" in config(case)
