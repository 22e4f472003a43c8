"""Random networks through the whole chain; `run.py` runs any number of others, `.ci/run` 80 of them."""

import logging
from collections import Counter

import network_chain
import numpy as np
import pytest
from network_chain import Failure, report, run_batch
from network_generator import Layer, Spec, generate
from support.onnx_blocks import model_text, text_block
from support.programs import needs

from n2d2py.errors import N2D2Error

needs_compiler = needs("g++")
BATCH = 25


@pytest.fixture(autouse=True)
def _logging():
    """The chain silences all logging; others want it back."""
    yield
    logging.disable(logging.NOTSET)


def assert_all_correct(seeds: range, folder) -> Counter:
    specs = [generate(seed) for seed in seeds]
    outcomes = run_batch(specs, folder / "batch")
    for spec, outcome in zip(specs, outcomes, strict=True):
        if isinstance(outcome, Failure):
            pytest.fail(report(spec, outcome), pytrace=False)
    return Counter("correct" if outcome is None else outcome.code for outcome in outcomes)


@needs_compiler
def test_a_few(tmp_path):
    """The first of the networks of which tests/random_networks/run.py draws any number."""
    assert assert_all_correct(range(6), tmp_path)["correct"] >= 5


def _block(name: str, node: str, *parents: str, shape: tuple[int, int, int] = (2, 5, 4), **constants) -> Layer:
    return Layer(name, "ONNX", parents, {}, model_text(name, text_block(f"z = {node}", [shape] * len(parents), constants)))


def _summed(name: str, parent: str) -> Layer:
    return _block(name, "CumSum (x, axis)", parent, shape=(2, 3, 2), axis=np.array(2))


_SAME = """<ir_version: 9, opset_import: ["" : 18]> same_model (float[N, 1, 12, 1] x) => (float[N, 1, 12, 1] same)
<int64[1] starts = {-1}, int64[1] ends = {-1000000}, int64[1] axes = {1}, int64[1] steps = {-1}>
{ z = Slice(x, starts, ends, axes, steps) same = Identity(z) }
"""


def _network(size: tuple[int, int, int], layers: str, *options: str, **parameters: str) -> Spec:
    """A network of layers, each by its name, type, parents and keys, a line for each."""
    made = []
    for line in layers.splitlines():
        name, kind, parents, *keys = line.split()
        made.append(Layer(name, kind, tuple(parents.split(",")), dict(key.replace("_", " ").split("=") for key in keys)))
    return Spec(1, size, tuple(made), options, parameters)


FOUND = (  # networks that failed once
    # a Softmax of rows in front of an output
    _network((9, 8, 3), "softmax Softmax sp NbOutputs=3\nshape Reshape softmax NbOutputs=3 Dims=72_1_-1"),
    # an output that is the input, both of the caller
    Spec(1, (12, 1, 1), (Layer("same", "ONNX", ("sp",), {}, _SAME),), ("-nbbits", "8"), {"IncludeInputInBuffer": "0"}),
    _network((9, 1, 1), "same Dropout sp NbOutputs=1\nc Conv sp NbOutputs=2 KernelSize=1"),
    _network((1, 1, 1), "turned Transpose sp NbOutputs=1 Perm=1_2_0_3\nbn BatchNorm sp NbOutputs=1", IncludeInputInBuffer="0"),
    _network(
        (1, 4, 5),
        "turned Transpose sp NbOutputs=5 Perm=1_0_2_3\nconv Conv turned NbOutputs=3 KernelSize=1\nfc Fc sp NbOutputs=3",
        *("-nbbits", "-32"),
        IncludeInputInBuffer="0",
    ),
    # a layer between two ONNX sections with the same helpers
    Spec(
        1,
        (2, 3, 2),
        (
            _summed("first", "sp"),
            Layer("conv", "Conv", ("first",), {"NbOutputs": "2", "KernelSize": "1"}),
            _summed("second", "conv"),
        ),
    ),
    # Softmax layers at outputs, one behind another, one of one channel
    _network(
        (2, 1, 4),
        "first Softmax sp NbOutputs=4\nsecond Softmax first NbOutputs=4\nconv Conv first NbOutputs=1 KernelSize=1\n"
        "one Softmax conv NbOutputs=1",
    ),
    # rows of one element, of an image of one pixel
    Spec(1, (1, 1, 3), (_block("product", "MatMul (x, w)", "sp", shape=(1, 1, 3), w=np.array([[-0.8850, 0.1988, -0.6046]])),)),
    # a Concat of real numbers that were moved in integers
    _network(
        (5, 4, 2),
        "real Conv sp NbOutputs=4 KernelSize=1 Quantize=0\n"
        "padded Padding real NbOutputs=4 TopPadding=2 LeftPadding=-1 BottomPadding=0 RightPadding=0\n"
        "bn BatchNorm padded NbOutputs=4\njoined Conv padded,bn NbOutputs=1 KernelSize=1",
    ),
    # a difference of nearly equal numbers
    Spec(
        1,
        (2, 5, 4),
        (
            _block("norm", "LRN <size = 3, alpha = 0.01, beta = 0.75, bias = 1.0> (x)", "sp"),
            _block("less", "Sub(x, y)", "norm", "sp"),
        ),
    ),
)


@needs_compiler
def test_networks_that_failed_once(tmp_path):
    assert run_batch(list(FOUND), tmp_path / "found") == [None] * len(FOUND)


@needs_compiler
def test_functions_of_16_bits_beside_islands(tmp_path):
    """A function of 16-bit integers, and a floating-point layer behind it."""
    layers = (
        Layer("bn", "BatchNorm", ("sp",), {"NbOutputs": "1", "ActivationFunction": "Swish", "QuantBits": "16"}),
        Layer("norm", "Normalize", ("sp",), {"NbOutputs": "1", "Norm": "L2", "Quantize": "0"}),
    )
    assert run_batch([Spec(3, (1, 1, 1), layers)], tmp_path / "wide") == [None]


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1300, BATCH))
def test_three_hundred(first, tmp_path):
    counts = assert_all_correct(range(first, first + BATCH), tmp_path)
    assert counts["correct"] >= 0.9 * BATCH, counts


@needs_compiler
def test_a_wrong_layer_is_found(tmp_path, monkeypatch):
    """The chain sees a difference of one step in one element."""
    spec = Spec(1, (5, 4, 2), (Layer("conv", "Conv", ("sp",), {"NbOutputs": "3", "KernelSize": "3"}),))
    true = network_chain.simulate

    def simulate(*arguments, **keywords):
        values = true(*arguments, **keywords)
        values["conv"].flat[-1] += 1 if values["conv"].flat[-1] < 100 else -1
        return values

    assert run_batch([spec], tmp_path / "right") == [None]
    monkeypatch.setattr(network_chain, "simulate", simulate)
    (outcome,) = run_batch([spec], tmp_path / "wrong")
    assert isinstance(outcome, Failure) and outcome.kind == "compiled Conv"


def test_a_refused_network_is_no_failure(tmp_path):
    spec = Spec(1, (2, 2, 1), (Layer("conv", "Conv", ("sp",), {"NbOutputs": "3", "KernelSize": "9"}),))
    (outcome,) = run_batch([spec], tmp_path / "refused")
    assert isinstance(outcome, N2D2Error)
