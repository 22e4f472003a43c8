"""Winograd convolutions of packed weights with AVX2 and SSE4.1, in bytes (inputs of 4 bits) and in tiles of four by four outputs: bit for bit,
where they are used, the proof."""

import re
from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_cases import S8, S16, U8
from support.kernel_overlaps import over
from support.kernel_packed import FEWER, U4, WEIGHTS, winograd_case
from support.kernel_simd import each_build, need_emulated_avxvnni, need_isa
from support.tables import few_fast

from n2d2py.arithmetic import NumType
from n2d2py.contracts.cpp.identifiers import Identifiers
from n2d2py.contracts.cpp.layer import ExportChoices, Layer, layer_code
from n2d2py.contracts.cpp.packing import Storage, storage_of
from n2d2py.contracts.cpp.winograd import WinogradFacts, byte_fours, byte_positions, byte_sums, packed_fours

LAYOUTS = ("apart", "strided", "wrapped", "over", "strided wrapped")
PLAIN = WinogradFacts((1, 1), (1, 1), 1, 8, (16, 16), False, False)


@pytest.fixture(autouse=True)
def in_bytes(monkeypatch):
    """The inputs of all cases count as those that another layer makes, within the limits of their type."""
    monkeypatch.setattr(Layer, "computed", True)


def byte_cases(seed: int) -> list[harness.Case]:
    """Channels around vectors of 32, outputs of half a panel and more, odd sizes, pads, every layout, one run and several."""
    sweep, made = cases.Sweep(seed), []
    outputs, kinds = cycle((8, 16, 24, 40)), cycle(WEIGHTS)
    sizes, pads = (
        cycle(((6, 8), (7, 7), (5, 13), (12, 3), (8, 5))),
        cycle(((1, 1, 1, 1), (1, 0, 0, 1), (2, 2, 2, 2), (0, 1, 1, 0))),
    )
    types, layouts = cycle((U8, S8, S16, NumType(32))), cycle(LAYOUTS)
    for channels in (4, 8, 12, 16, 28, 32, 36, 48, 64, 80, 96, 128, 260):
        made.append(
            winograd_case(sweep, channels, next(outputs), next(sizes), next(pads), next(types), next(layouts), next(kinds), 5)
        )
    made.append(winograd_case(sweep, 16, 24, (22, 30), (1, 1, 1, 1), U8, "apart", "random", 0))
    apart = [winograd_case(sweep, channels, 16, (11, 14), (1, 1, 1, 1), U8, "apart", "random", 0) for channels in (16, 40)]
    return made + [over(case, backwards) for case in apart for backwards in (False, True)]


def fours_cases(seed: int) -> list[harness.Case]:
    """Channels around vectors of 16, panels and rests of 8, sizes that are no multiples of four, one block and several, every layout."""
    sweep, made = cases.Sweep(seed), []
    outputs, kinds = cycle((16, 24, 32, 40)), cycle((*WEIGHTS, *FEWER))
    sizes, pads = (
        cycle(((8, 8), (7, 11), (13, 10), (16, 9), (7, 8))),
        cycle(((1, 1, 1, 1), (1, 0, 0, 1), (2, 2, 2, 2), (1, 1, 1, 1))),
    )
    types, inputs, layouts = cycle((U8, S8, S16, NumType(32))), cycle((U8, S8, U8)), cycle(LAYOUTS)
    for channels in (8, 12, 16, 20, 32, 44, 48, 64, 84, 128):
        made.append(
            winograd_case(
                sweep,
                channels,
                next(outputs),
                next(sizes),
                next(pads),
                next(types),
                next(layouts),
                next(kinds),
                5,
                next(inputs),
            )
        )
    made.append(winograd_case(sweep, 64, 24, (31, 34), (1, 1, 1, 1), U8, "apart", "random", 0, U8))
    apart = [winograd_case(sweep, channels, 16, (15, 14), (1, 1, 1, 1), U8, "apart", "odd", 0, U8) for channels in (16, 64)]
    return made + [over(case, backwards) for case in apart for backwards in (False, True)]


def kept_cases(seed: int) -> list[harness.Case]:
    """Those in bytes that transform their weights once: whole panels of outputs and halves, alone and behind others, every layout."""
    return [
        replace(case, prepacks=True) for case in byte_cases(seed) if words(replace(case, prepacks=True), "PrepackedWinograd")
    ]


def byte_fours_cases(seed: int) -> list[harness.Case]:
    """Channels around vectors of 32, whole panels and halves, sizes that are no multiples of four, one run and several, every layout."""
    sweep, made = cases.Sweep(seed), []
    outputs, layouts = cycle((16, 24, 32, 40)), cycle(LAYOUTS)
    sizes, pads = (
        cycle(((8, 8), (7, 12), (14, 10), (15, 16), (8, 7), (22, 30), (11, 12))),
        cycle(((1, 1, 1, 1), (1, 0, 0, 1), (2, 2, 2, 2), (1, 1, 1, 1))),
    )
    types, kinds, limits = cycle((U8, S8, S16, NumType(32))), cycle(("small", "ones", "small", "stripes")), cycle((0, 8, 2))
    for channels in (16, 20, 24, 32, 36, 48, 60, 64, 80, 96, 128, 160):
        made.append(
            winograd_case(sweep, channels, next(outputs), next(sizes), next(pads), next(types), next(layouts), next(kinds), 5)
        )
        if channels % 3 == 0:  # the largest sums
            made[-1].inputs["x"] = np.where(made[-1].inputs["x"] < next(limits), 0, 15).astype(np.uint8)
    apart = [winograd_case(sweep, channels, 16, (15, 14), (1, 1, 1, 1), U8, "apart", "small", 0) for channels in (16, 64)]
    made += [over(case, backwards) for case in apart for backwards in (False, True)]
    return [replace(case, prepacks=True) for case in made]


FORMS = {"bytes": byte_cases, "kept": kept_cases, "fours": fours_cases, "byte fours": byte_fours_cases}


def words(case: harness.Case, constant: str = "WinogradSums") -> int:
    """WinogradSums, or another constant, of the layer, 0 without it."""
    code = layer_code(case.node, case.graph, case.plan, Identifiers(case.graph), ExportChoices(prepacks_weights=case.prepacks))
    found = re.search(rf"\b{constant} = (\d+)", code.config)
    return int(found[1]) if found else 0


def test_the_cases_use_it():
    found = [words(case) for case in byte_cases(1)]
    assert sum(one > 0 for one in found) > 0.6 * len(found) and len(set(found)) > 5, found
    assert {case.node.form.weights.shape[0] for case in kept_cases(1)} == {8, 16, 24, 40} and len(kept_cases(1)) > 8
    assert not any(words(case, "PrepackedWinograd") for case in byte_cases(1))
    wide = [(words(case), words(case, "WinogradWide")) for case in byte_fours_cases(1)]
    assert sum(one > 0 for _, one in wide) > 0.7 * len(wide) and sum(0 < one < other for other, one in wide) > 4, wide
    tiles = [words(case, "WinogradTile") for case in fours_cases(1)]
    assert set(tiles) <= {0, 4} and sum(one > 0 for one in tiles) > 0.8 * len(tiles), tiles
    assert not any(words(case) for case in fours_cases(1))


@pytest.mark.parametrize("isa, every", few_fast([("avx2", 2), ("sse4", 5)]))
@pytest.mark.parametrize("form", FORMS)
def test_packed_winograd(tmp_path, form, isa, every):
    harness.check_all(FORMS[form](1)[::every], tmp_path, "g++", ("-O0", *need_isa(isa)))


def test_packed_winograd_avxvnni_emulated(tmp_path):
    """Tiles of four; with inputs of 4 bits too this set has no other than the direct form."""
    made = [*fours_cases(1)[::4], *byte_cases(1)[::8]]
    harness.check_all(made, tmp_path, "g++", ("-O0", *need_emulated_avxvnni()))


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("isa", ["avx2", "sse4"])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@each_build
def test_packed_winograd_builds(tmp_path, compiler, flags, isa, form):
    if compiler == "clang++":
        flags = tuple(flag for flag in flags if flag != "-fopenmp")
    harness.check_all(FORMS[form](2), tmp_path, compiler, (*flags, *need_isa(isa)))


def _full_places(weights: np.ndarray) -> list[np.ndarray]:
    """The 46 products' weights of a window (3, 3), by complex numbers: the points of a line and of a column, one after the other."""
    points = np.array([[1, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 1], [1, 1j, -1]])

    def triple(x: complex) -> list[float]:
        return [x.real, x.imag - x.real, x.real + x.imag]

    found = []
    for u in range(4):
        line = points[u] @ weights
        found += [*(line @ points[v] for v in range(4)), *triple(line @ points[4])]
    for v in range(4):
        found += triple(points[4] @ weights @ points[v])
    return [*found, *triple(points[4] @ weights @ points[4]), *triple(points[4] @ weights @ points[4].conj())]


def test_transformed_weights_are_those_of_complex_points():
    weights = np.random.default_rng(3).integers(-8, 8, (2, 3, 3, 3))
    found = byte_positions(weights)
    assert len(found) == 46 and sum(most == 240 for _, most in found) == 10
    assert {most for _, most in found} == {60, 120, 240}
    for output, channel in np.ndindex(2, 3):
        wanted = np.real(_full_places(weights[output, :, :, channel]))
        assert [rows[output, channel] for rows, _ in found] == pytest.approx(wanted)


@pytest.mark.parametrize(
    "size, outputs, channels, wanted",
    [
        ((16, 16), 16, 16, True),
        ((32, 32), 16, 16, True),
        ((32, 36), 16, 16, False),  # more than 64 tiles
        ((9, 9), 16, 16, False),  # tiles that are mostly outside
        ((16, 16), 8, 16, False),
        ((16, 16), 16, 12, False),
        ((16, 16), 208, 212, True),
        ((16, 16), 216, 216, False),  # more than 2 MB
    ],
)
def test_tiles_of_four_in_bytes(size, outputs, channels, wanted):
    weights = np.clip(np.rint(2 * np.random.default_rng(5).normal(size=(outputs, 3, 3, channels))), -8, 7).astype(np.int64)
    facts, storage = WinogradFacts((1, 1), (1, 1), 1, 8, size, False, False), Storage(4, 1, 0, 0)
    assert (byte_fours(weights, facts, U4, storage) != (0, 0)) == wanted
    assert byte_fours(weights, facts, U8, storage) == (0, 0)
    assert byte_fours(weights, replace(facts, streamed=True), U4, storage) == (0, 0)
    assert byte_fours(weights, replace(facts, stride=(2, 2)), U4, storage) == (0, 0)


def test_sums_of_tiles_of_four_fit():
    """Weights of one sign: 240 times 9 twice for each word where all add up; of 3 two words fit alone, which are left to tiles of two."""
    facts, storage = WinogradFacts((1, 1), (1, 1), 1, 8, (16, 16), False, False), Storage(4, 1, 0, 0)
    assert byte_fours(np.full((16, 3, 3, 64), 1), facts, U4, storage) == (16, 6)
    assert byte_fours(np.full((16, 3, 3, 64), 2), facts, U4, storage) == (16, 3)
    assert byte_fours(np.full((16, 3, 3, 64), 3), facts, U4, storage) == (0, 0)


def sums(weights: np.ndarray, kind: NumType = U4, facts: WinogradFacts = PLAIN) -> int:
    storage = storage_of(weights)
    assert storage is not None
    return byte_sums(weights, facts, kind, storage)


def test_the_proof():
    """No place of 16 bits overflows, by what inputs can be at most; with the next longer run one can."""
    rng = np.random.default_rng(2)
    matrix = np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]])
    for spread in (2, 5, 8):
        weights = rng.integers(-spread, spread, (16, 3, 3, 256))
        weights[0, 0, 0, :2] = -8, 7
        run = sums(weights)
        positions = np.einsum("iu,ouvc,jv->ijoc", matrix, weights, matrix).reshape(16, 16, 256)
        most = np.where(np.arange(16) == 5, 90, 60)[:, None, None, None]
        for sign in (1, -1):
            one_sign = np.maximum(sign * positions, 0)
            padded = np.concatenate([one_sign, np.zeros((16, 16, -256 % (4 * run)), int)], axis=2)
            places = padded.reshape(16, 16, -1, run, 2, 2).sum(axis=(3, 5))
            assert run >= 8 and (most * places).max() < 2**15


@pytest.mark.parametrize("kind", [U8, S8, NumType(8, True, least=-8, most=7)])
def test_only_small_inputs(kind):
    assert sums(np.random.default_rng(1).integers(-8, 8, (16, 3, 3, 16))) > 0
    assert sums(np.random.default_rng(1).integers(-8, 8, (16, 3, 3, 16)), kind) == 0


def test_given_inputs_are_not_trusted(monkeypatch):
    case = byte_cases(1)[-1]
    assert words(case)
    monkeypatch.setattr(Layer, "computed", False)
    assert not words(case)


def fours(weights: np.ndarray, facts: WinogradFacts = PLAIN) -> bool:
    storage = storage_of(weights)
    assert storage is not None
    return packed_fours(weights, facts, storage)
