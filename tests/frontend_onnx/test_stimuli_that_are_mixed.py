"""When a file is run on two stimuli, on which, and which results say that it mixes them.

The rules stand in `n2d2py.frontend.onnx.stimuli_apart`; `test_products_of_stimuli` imports such networks.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx import stimuli_apart
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.frontend.onnx.model import load_onnx
from n2d2py.frontend.onnx.stimuli_apart import refuse_mixed_stimuli

MESSAGE = "E310.*the network mixes the stimuli of a batch: for two together its output '{}' is another one than for each alone"
TURN = "t = Transpose <perm = [1,0]> (x)\n s = Softmax <axis = 1> (t)\n y = Transpose <perm = [1,0]> (s)"
"""Each element by the power of all stimuli."""


def run(built: onnx.ModelProto, output: str = "", **options) -> None:
    """Whether the file is refused because of this output; an empty name: it is not."""
    if output:
        with pytest.raises(N2D2Error, match=MESSAGE.format(output)):
            refuse_mixed_stimuli(load_onnx(built, **options))
    else:
        refuse_mixed_stimuli(load_onnx(built, **options))


class Session:
    """In the place of ONNX Runtime: gives what it is told to for two stimuli, and for each."""

    def __init__(self, together, *alone):
        self.results = {"together": together, "alone": list(alone)}
        self.fed: list[dict[str, np.ndarray]] = []

    def run(self, outputs, feeds):
        self.fed.append(feeds)
        if len(next(iter(feeds.values()))) == 2:
            return [np.asarray(self.results["together"])] * len(outputs)
        return [np.asarray(self.results["alone"].pop(0))] * len(outputs)


@pytest.fixture
def said(model, monkeypatch):
    """Whether a file is refused whose results are these."""

    def compare(together, *alone, body: str = TURN, **options) -> bool:
        session = Session(together, *alone)
        monkeypatch.setattr(stimuli_apart, "_session", lambda _: session)
        loaded = load_onnx(model("float[N,4] x => float[N,4] y", body, c=np.ones((4, 4), np.float32)), **options)
        try:
            refuse_mixed_stimuli(loaded)
        except N2D2Error as error:
            assert error.code == "E310"
            return True
        return False

    return compare


# ---- which files are run ------------------------------------------------------------------------
@pytest.mark.parametrize(
    "signature, body, output",
    [
        ("float[N,4] x => float[N,4] y", TURN, "y"),
        ("float[N,4] x => float[N,4] y", TURN.replace(" <perm = [1,0]>", ""), "y"),
        ("float[1,4] x => float[1,4] y", TURN, ""),
        ("float[2,4] x => float[2,4] y", TURN, ""),
        ("float[N,M] x => float[N,M] y", TURN, ""),
        ("float[N,4] x, float[3] z => float[N,4] y", TURN, ""),
        ("float[N,4] x, float[N,M] z => float[N,4] y", TURN, ""),
        ("float[N,4] x, float[N,3] z => float[N,4] y", TURN, "y"),
        ("float[N,4] x => float[N,4] y", "y = Softmax <axis = 0> (x)", ""),
        ("float[N,4] x => float[N,4] z, float[N,4] y", f"{TURN}\n z = Relu (x)", "y"),
        ("float[N,4] x => float[N,4] y, float[N,4] z", f"{TURN}\n z = Relu (x)", "y"),
        ("float16[N,4] x => float16[N,4] y", TURN, "y"),
        ("double[N,4] x => double[N,4] y", TURN, "y"),
    ],
)
def test_files_with_a_batch_of_free_size_are_run(model, signature, body, output):
    run(model(signature, body), output)


@pytest.mark.parametrize(
    "body, is_run",
    [
        ("y = Transpose <perm = [1,0]> (x)", True),
        ("y = Transpose (x)", True),
        ("y = Transpose <perm = [0,1]> (x)", False),
        ("t = Relu (x)\n y = Transpose <perm = [1,0]> (t)", True),
        ("t = Transpose <perm = [1,0]> (c)\n y = MatMul (x, t)", False),
        ("t = Transpose (c)\n u = Transpose (x)\n y = MatMul (u, t)", True),
        ("t = Transpose <perm = [0,1]> (x)\n y = Transpose <perm = [1,0]> (t)", True),
        ("y = MatMul (x, c)", False),
        ("y = own.Turn <perm = [1,0]> (x)", False),
    ],
)
def test_a_file_is_run_where_a_transposition_moves_the_batch(said, body, is_run):
    """Where it is, the results say that it mixes."""
    assert said(np.ones((2, 4)), np.zeros((1, 4)), np.zeros((1, 4)), body=body) == is_run


def test_an_attribute_beside_the_order_says_nothing(model, monkeypatch):
    session = Session(np.ones((2, 4)), np.zeros((1, 4)), np.zeros((1, 4)))
    monkeypatch.setattr(stimuli_apart, "_session", lambda _: session)
    loaded = load_onnx(model("float[N,4] x => float[N,4] y", "y = Transpose <perm = [0,1]> (x)"))
    loaded.proto.graph.node[0].attribute.insert(0, onnx.helper.make_attribute("order", [1, 0]))
    refuse_mixed_stimuli(loaded)


def test_a_file_whose_weights_are_not_loaded_is_not_run(model):
    run(model("float[N,4] x => float[N,4] y", TURN), ignore_init=True)


def test_a_file_that_does_not_run_is_taken(model):
    """Nothing is said of one that ONNX Runtime does not know."""
    run(model("float[N,4] x => float[N,4] y", f"{TURN.replace('y =', 'z =')}\n y = own.Nothing (z)"))


def test_a_file_that_runs_with_one_stimulus_only_is_taken(model, capfd):
    """ONNX Runtime does not say it on the screen."""
    body = "t = Transpose <perm = [1,0]> (x)\n y = Reshape (t, s)"
    run(model("float[N,4] x => float[1,4] y", body, s=np.array([1, 4])))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("spare, output", [(0, "y"), (1, "y"), (-1, "")])
def test_a_file_is_run_up_to_a_size(model, monkeypatch, spare, output):
    assert stimuli_apart._MOST_BYTES == 1 << 30
    built = model("float[N,4] x => float[N,4] y", TURN)
    monkeypatch.setattr(stimuli_apart, "_MOST_BYTES", load_onnx(built).proto.ByteSize() + spare)
    run(built, output)


# ---- with which stimuli -------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["int64", "int32", "uint8", "int8", "uint32", "bool"])
def test_numbers_of_things_are_0_and_1(model, kind):
    """Which each table has; others would not run."""
    cast = "" if kind.endswith(("32", "64")) and kind[0] == "i" else "k = Cast <to = 7> (i)\n "
    body = f"{cast}x = Gather (c, {'k' if cast else 'i'})\n {TURN}"
    table = np.array([-1.0, 1.0], np.float32)
    run(model(f"{kind}[N,40] i => float[N,40] y", body, c=table), "y")


@pytest.mark.parametrize(
    "kind, dtype", [("float", np.float32), ("double", np.float64), ("int64", np.int64), ("uint8", np.uint8)]
)
def test_two_stimuli_and_each_of_them(model, monkeypatch, kind, dtype):
    session = Session(np.ones((2, 4)), np.ones((1, 4)), np.ones((1, 4)))
    monkeypatch.setattr(stimuli_apart, "_session", lambda _: session)
    cast = "x = Cast <to = 1> (i)\n "
    refuse_mixed_stimuli(load_onnx(model(f"{kind}[N,4] i, float[N,3,5] z => float[N,4] y", cast + TURN)))
    both, first, second = session.fed
    assert {name: x.shape for name, x in both.items()} == {"i": (2, 4), "z": (2, 3, 5)}
    assert both["i"].dtype == dtype and both["z"].dtype == np.float32 and np.unique(both["z"]).size == 30
    for name, x in both.items():
        np.testing.assert_array_equal(first[name], x[:1])
        np.testing.assert_array_equal(second[name], x[1:])


# ---- what results say ---------------------------------------------------------------------------
FIRST, SECOND = np.full((1, 3), 50.0), np.full((1, 3), -50.0)
JOINED = np.concatenate([FIRST, SECOND])


@pytest.mark.parametrize(
    "off, refused",
    [(0, False), (0.5, False), (1, False), (1.01, True), (1.5, True), (5, True), (-1, False), (-1.5, True), (-100, True)],
)
def test_a_result_may_be_off_by_two_hundredths(said, off, refused):
    """Of its power: 1 of 50."""
    assert said(JOINED + off, FIRST, SECOND) == refused
    assert said((JOINED + off).astype(np.float32), FIRST.astype(np.float32), SECOND.astype(np.float32)) == refused


def test_a_result_of_zeros_is_that_of_each(said):
    assert not said(np.zeros((2, 3)), np.zeros((1, 3)), np.zeros((1, 3)))
    assert said(np.ones((2, 3)), np.zeros((1, 3)), np.zeros((1, 3)))


def test_a_result_in_the_other_order_is_another_one(said):
    assert said(JOINED[::-1], FIRST, SECOND)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_results_are_joined_along_any_axis(said, axis):
    parts = [np.random.default_rng(at).normal(size=np.where(np.arange(3) == axis, 1, 3)) for at in range(2)]
    together = np.concatenate(parts, axis)
    assert not said(together, *parts)
    assert said(together + 1, *parts)


@pytest.mark.parametrize("sizes", [(1, 2), (2, 1), (1, 4), (4, 1)])
def test_results_of_other_lengths_are_joined(said, sizes):
    first, second = (np.full((size, 7), size) * 1.0 for size in sizes)
    together = np.concatenate([first, second])
    assert not said(together, first, second)
    assert said(together + 1, first, second)


@pytest.mark.parametrize(
    "together, first, second",
    [
        (np.ones((1, 3)), np.zeros((1, 3)), np.zeros((1, 3))),
        (np.ones((2, 2)), np.zeros((1, 1)), np.zeros((1, 1))),
        (np.ones((3, 3)), np.zeros((1, 3)), np.zeros((1, 3))),
        (np.ones((2, 3)), np.zeros(3), np.zeros(3)),
        (np.ones(2), np.zeros((1, 3)), np.zeros((1, 3))),
        (np.ones(()), np.zeros(()), np.zeros(())),
        (np.ones((2, 3), np.int64), np.zeros((1, 3), np.int64), np.zeros((1, 3), np.int64)),
        (np.ones((2, 3), bool), np.zeros((1, 3), bool), np.zeros((1, 3), bool)),
        (np.full((2, 3), np.nan), np.zeros((1, 3)), np.zeros((1, 3))),
        (np.ones((2, 3)), np.full((1, 3), np.inf), np.zeros((1, 3))),
        (np.ones((2, 3)), np.zeros((1, 3)), np.full((1, 3), np.nan)),
        (np.array([[1, 1, np.nan], [1, 1, 1]]), np.zeros((1, 3)), np.zeros((1, 3))),
    ],
)
def test_results_that_say_nothing(said, together, first, second):
    """Of other shapes, of integers, not finite."""
    assert not said(together, first, second)


def test_a_result_that_loses_an_axis_for_one_stimulus(model):
    """Of a Squeeze that names no axes."""
    built = model("float[N,4] x => float[?] y", "t = Transpose (x)\n y = Squeeze (t)")
    run(built)
    assert import_onnx(built).outputs
