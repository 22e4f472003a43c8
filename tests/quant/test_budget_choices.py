"""The best choices of widths where there are more than are kept: thinned by bytes, the best of each part; and exchanges between layers."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import n2d2py
from n2d2py.cli import main
from n2d2py.quant import bit_search
from n2d2py.quant.bit_search import WidthChoice, front, improved

KEPT = 7


def thinned(choices: dict[str, list[WidthChoice]]) -> list[tuple[int, float]]:
    """(bytes, error) of what is left: no other is smaller and as good; of each part of the range of bytes the best, and the smallest."""
    states = [(5, 0.0)]
    for options in choices.values():
        every = sorted((size + one.bytes, error + one.error) for size, error in states for one in options)
        states = [each for at, each in enumerate(every) if all(each[1] < other[1] for other in every[:at])]
        if len(states) > KEPT:
            low, high = states[0][0], states[-1][0]
            part = {(size - low) * KEPT // (high - low + 1): (size, error) for size, error in states}
            states = list(dict.fromkeys([states[0], *part.values()]))
    return states


@pytest.mark.parametrize("seed", range(12))
def test_of_many_choices_the_best_of_each_part_are_kept(seed, monkeypatch):
    monkeypatch.setattr(bit_search, "_STATES", KEPT)
    rng = np.random.default_rng(seed)
    choices = {
        name: [WidthChoice(bits, bits * int(size), float(error) / 4**bits) for bits in (8, 4, 2, 1)]
        for name, size, error in zip("abcdefg", rng.integers(1, 60, 7), rng.integers(1, 9, 7), strict=True)
    }
    found, wanted = front(choices, 5), thinned(choices)
    assert list(zip(found.bytes.tolist(), found.errors.tolist(), strict=True)) == wanted and len(wanted) > 4
    for place, (size, error) in enumerate(wanted):
        chosen = [next(one for one in choices[name] if one.bits == bits) for name, bits in found.widths(place).items()]
        assert 5 + sum(one.bytes for one in chosen) == size and sum(one.error for one in chosen) == pytest.approx(error)
        assert found.within(size) == place and found.within(size - 1) == (place - 1 if place else None)


ALONE = {
    "a": [WidthChoice(8, 80, 1.0), WidthChoice(4, 40, 6.0), WidthChoice(2, 20, 30.0)],
    "b": [WidthChoice(8, 40, 2.0), WidthChoice(4, 20, 9.0), WidthChoice(2, 10, 50.0)],
    "c": [WidthChoice(8, 160, 0.5), WidthChoice(4, 80, 2.0), WidthChoice(2, 40, 7.0)],
    "d": [WidthChoice(8, 20, 3.0), WidthChoice(4, 10, 20.0), WidthChoice(2, 5, 90.0)],
}


def predicted(widths: dict[str, int]) -> tuple[int, float]:
    """Bytes, and the error that single layers predict."""
    taken = [one for name, each in ALONE.items() for one in each if one.bits == widths[name]]
    return sum(one.bytes for one in taken), sum(one.error for one in taken)


def together(widths: dict[str, int]) -> float:
    """An error of all roundings in which those of b and c make up for each other where their widths are the same."""
    return predicted(widths)[1] - 20.0 * (widths["b"] == widths["c"] == 2) - 5.0 * (widths["a"] == widths["d"])


def exchanges(widths: dict[str, int], room: int) -> list[dict[str, int]]:
    """All that fit and differ in one layer, or in two of which one becomes wider and the other narrower."""
    found = []
    for every in product((8, 4, 2), repeat=4):
        other = dict(zip(ALONE, every, strict=True))
        wider = sum(other[name] > widths[name] for name in ALONE)
        narrower = sum(other[name] < widths[name] for name in ALONE)
        if wider + narrower == 1 or (wider, narrower) == (1, 1):
            if predicted(other)[0] <= room:
                found.append(other)
    return found


@pytest.mark.parametrize("room", [80, 100, 140, 155, 200, 260])
def test_no_exchange_of_bits_is_left_that_is_better(room):
    asked: list[dict[str, int]] = []

    def error(widths) -> float:
        asked.append(dict(widths))
        return together(asked[-1])

    start = dict.fromkeys(ALONE, 2)
    found = improved(ALONE, start, room, error, 10_000)[0]
    assert predicted(found)[0] <= room and together(found) <= together(start)
    assert all(together(other) >= 0.99 * together(found) for other in exchanges(found, room))
    assert len(asked) == len({tuple(each.values()) for each in asked}), "nothing is asked twice"
    assert all(predicted(each)[0] <= room for each in asked)
    first = exchanges(start, room)
    assert predicted(asked[1])[1] == min(predicted(each)[1] for each in first), "what promises most comes first"


@pytest.mark.parametrize("tries", [0, 1, 5])
def test_exchanges_end_after_so_many_tries(tries):
    asked = []

    def error(widths) -> float:
        asked.append(widths)
        return 1.0

    start = dict.fromkeys(ALONE, 4)
    found = improved(ALONE, start, 200, error, tries)
    assert found[0] == start and len(asked) == len(found) == 1 + tries


def test_those_tried_come_behind_by_their_error():
    found = improved(ALONE, dict.fromkeys(ALONE, 2), 140, together, 20)
    errors = [together(each) for each in found]
    assert errors[1:] == sorted(errors[1:]) and len({tuple(each.values()) for each in found}) == len(found) > 4


def test_a_gain_of_less_than_a_hundredth_changes_nothing():
    start = {"a": 4, "b": 4, "c": 4, "d": 4}
    wanted = {**start, "d": 8}
    for gain, found in ((0.989, wanted), (0.991, start)):
        assert improved(ALONE, start, 160, lambda widths, gain=gain: gain if widths == wanted else 1.0, 100)[0] == found


def two_chains(path: Path, first: int) -> Path:
    """Two chains of three layers each that share nothing but the input; the outputs of one are a thousand times larger."""
    rng = np.random.default_rng(4)
    nodes, constants, names = [], [], []
    for chain, gain in (("a", 1000.0), ("b", 1.0)):
        source = "x"
        for layer, (given, made) in enumerate([(16, 48), (48, 48), (48, 8)]):
            last, name = layer == 2, f"{chain}{layer}"
            weights = rng.normal(size=(made, given, 1, 1)) * (2 / given) ** 0.5 * (gain if last else 1)
            constants.append(numpy_helper.from_array(weights.astype(np.float32), f"{name}w"))
            nodes.append(helper.make_node("Conv", [source, f"{name}w"], [name if last else f"{name}c"]))
            nodes += [] if last else [helper.make_node("Relu", [f"{name}c"], [name])]
            source = name
        names.append(source)
    sizes = {"x": 16, names[first]: 8, names[1 - first]: 8}
    ends = [helper.make_tensor_value_info(name, 1, [1, size, 4, 4]) for name, size in sizes.items()]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


def test_every_output_counts_whichever_comes_first(tmp_path):
    """Judged by the first output alone, it had 25.5 dB and the other one 10.3 dB in either order. ONNX Runtime is the referee."""
    x = np.random.default_rng(5).normal(size=(64, 16, 4, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", x[:48])
    words = [
        "-export",
        "CPP",
        "-calib",
        "-1",
        "-calib-data",
        str(tmp_path / "x.npy"),
        "-flash-budget",
        "5200",
        "-db-export",
        "0",
    ]
    decibels = []
    for first in (0, 1):
        path = two_chains(tmp_path / f"net{first}.onnx", first)
        assert main([str(path), *words, "-quiet", "-o", str(tmp_path / f"out{first}")]) == 0
        session = onnxruntime.InferenceSession(path)
        real = [np.concatenate(each) for each in zip(*(session.run(None, {"x": one[None]}) for one in x[48:]), strict=True)]
        found = n2d2py.load_simulator(tmp_path / f"out{first}" / "export_CPP_int8")(x[48:])
        errors = [np.square(a - b.reshape(a.shape)).mean() / a.var() for a, b in zip(real, found, strict=True)]
        decibels.append(-10 * np.log10(errors))
    assert decibels[0] == pytest.approx(decibels[1][::-1], abs=0.5) and np.min(decibels) > 11, decibels
