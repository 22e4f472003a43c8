"""ONNX files that leave the sizes of their inputs open, as most detectors are exported: chosen on the command line or by the data."""

import numpy as np
import onnx
import onnx.parser
import pytest
from support.onnx_models import text_model

import n2d2py
from n2d2py.cli import main


@pytest.fixture
def network(tmp_path, monkeypatch):
    """net.onnx: a convolution and a sum with y, x (N, 3, H, W) and y (N, 4, H, W) of open sizes, or of x alone."""
    monkeypatch.chdir(tmp_path)

    def write(inputs: int = 1, turned: bool = False) -> None:
        weights = np.random.default_rng(0).normal(0, 0.2, (4, 3, 3, 3)).astype(np.float32)
        given = ["float[N,H,W,3] x" if turned else "float[N,3,H,W] x", "float[N,4,H,W] y"][:inputs]
        body = "t = Transpose <perm = [0, 3, 1, 2]> (x) " * turned + f"c = Conv <pads = [1, 1, 1, 1]> ({'xt'[turned]}, w) "
        body += "r = Add (c, y)" if inputs > 1 else "r = Relu (c)"
        onnx.save(text_model(f"{', '.join(given)} => float r", body, {"w": weights}), tmp_path / "net.onnx")

    return write


def test_on_the_command_line(network, capsys):
    network()
    assert main(["net.onnx", "-describe", "-input-shape", "3x10x12"]) == 0
    assert "12x10x3" in capsys.readouterr().out


@pytest.mark.parametrize("shape", ["3x10x12", (3, 10, 12), [3, 10, 12]], ids=str)
def test_in_python(network, shape):
    network()
    net = n2d2py.load("net.onnx", options=n2d2py.LoadOptions(input_shape=shape))
    assert [one.shape for one in net.info.inputs] == [(1, 3, 10, 12)]


def test_of_several_inputs(network, capsys):
    network(2)
    assert main(["net.onnx", "-describe", "-input-shape", "y=4x10x12,x=3x10x12"]) == 0
    assert "12x10x4" in capsys.readouterr().out
    assert main(["net.onnx", "-describe", "-input-shape", "3x10x12"]) != 0
    assert "E003" in capsys.readouterr().err


@pytest.mark.parametrize("axes, layout", [((0, 1, 2, 3), "nchw"), ((0, 2, 3, 1), "nhwc")])
def test_of_the_data(network, tmp_path, capsys, axes, layout):
    network()
    x = np.random.default_rng(1).normal(size=(8, 3, 10, 12)).astype(np.float32)
    np.save(tmp_path / "x.npy", x.transpose(axes))
    command = ["net.onnx", "-export", "CPP", "-calib-data", "x.npy", "-layout", layout]
    assert main(command) == 0
    assert "the input 'x' is 3x10x12, as x.npy" in capsys.readouterr().err
    assert (tmp_path / "export_CPP_int8" / "manifest.json").is_file()


@pytest.mark.parametrize("axes, layout", [((0, 1, 2, 3), "nchw"), ((0, 2, 3, 1), "nhwc")])
def test_of_the_data_of_a_file_with_channels_last(network, tmp_path, capsys, axes, layout):
    network(turned=True)
    x = np.random.default_rng(1).normal(size=(8, 3, 10, 12)).astype(np.float32)
    np.save(tmp_path / "x.npy", x.transpose(axes))
    assert main(["net.onnx", "-export", "CPP", "-calib-data", "x.npy", "-layout", layout]) == 0
    assert "the input 'x' is 10x12x3, as x.npy" in capsys.readouterr().err


@pytest.mark.parametrize("folder", [False, True])
def test_of_the_data_of_several_inputs(network, tmp_path, capsys, folder):
    network(2)
    rng = np.random.default_rng(1)
    arrays = {name: rng.normal(size=(8, count, 10, 12)).astype(np.float32) for name, count in (("x", 3), ("y", 4))}
    np.savez(tmp_path / "data.npz", **arrays)
    (tmp_path / "data").mkdir()
    for name, values in arrays.items():
        np.save(tmp_path / "data" / f"{name}.npy", values)
    data = "data" if folder else "data.npz"
    assert main(["net.onnx", "-export", "CPP", "-calib-data", data]) == 0
    said = capsys.readouterr().err
    assert f"the input 'x' is 3x10x12, as {data}" in said
    assert f"the input 'y' is 4x10x12, as {data}" in said


def test_the_command_line_goes_before_the_data(network, tmp_path, capsys):
    network()
    np.save(tmp_path / "x.npy", np.zeros((8, 3, 10, 12), np.float32))
    assert main(["net.onnx", "-export", "CPP", "-calib-data", "x.npy", "-input-shape", "3x10x10"]) != 0
    assert "E414" in capsys.readouterr().err


def test_an_ini_says_it_itself(network, tmp_path, capsys):
    (tmp_path / "net.ini").write_text("[sp]\nSize=8 8\n")
    assert main(["net.ini", "-describe", "-input-shape", "3x8x8"]) != 0
    assert "E007" in capsys.readouterr().err


def test_a_batch_of_one(tmp_path, monkeypatch, capsys):
    """A file that takes the largest value of all it gets is a network for one stimulus, with a warning until the batch is said to be 1."""
    monkeypatch.chdir(tmp_path)
    onnx.save(onnx.parser.parse_model(_LARGEST), "net.onnx")
    np.save("x.npy", np.random.default_rng(1).normal(size=(8, 5)).astype(np.float32))
    command = ["net.onnx", "-export", "CPP", "-calib-data", "x.npy", "-calib", "-1"]
    for option, warned in ((["-input-shape", "5"], True), (["-input-shape", "1x5"], False)):
        assert main([*command, *option, "-nbbits", "-32", "-compare", "4"]) == 0
        texts = capsys.readouterr()
        assert "equal to Python's" in texts.out and ("W307" in texts.err) == warned
    assert main([*command, "-input-shape", "2x5"]) != 0  # two rows are one sample
    assert "E414" in capsys.readouterr().err


_LARGEST = """
<ir_version: 8, opset_import: ["": 17]>
g (float[N, S] x) => (float[N, S] y) {
    top = ReduceMax <keepdims = 0> (x)
    y = Sub (x, top)
}
"""

_RATES = """
<ir_version: 8, opset_import: ["": 17]>
g (float[N, S] x, int64 sr) => (float[N, S] y)
<int64 fast = {16000}> {
    is_fast = Equal (sr, fast)
    y = If (is_fast) <
        then_branch = a () => (float[N, S] p) { p = Relu (x) },
        else_branch = b () => (float[N, S] q) { q = Neg (x) }
    >
}
"""
_BRANCH = """
<ir_version: 8, opset_import: ["": 17]>
g (float[N, 4] x) => (int64[2, M] y) {
    r = Relu (x)
    s = Sigmoid (r)
    y = NonZero (s)
}
"""
_GAINS = """
<ir_version: 8, opset_import: ["": 17]>
g (float[N, S, 4] x, float[N] gain) => (float[N, S, 4] y)
<int64[2] axes = {1, 2}> {
    factors = Unsqueeze (gain, axes)
    scaled = Mul (x, factors)
    y = Relu (scaled)
}
"""
_STEPS = """
<ir_version: 8, opset_import: ["": 17]>
g (float[T, S] x) => (float[1, 1, 1] y)
<int64[1] one = {1}, float[1, 1, 3] w = {0.1, 0.2, 0.3}, float[1, 1, 1] r = {0.5}> {
    steps = Unsqueeze (x, one)
    every, last = RNN <hidden_size = 1> (steps, w, r)
    y = Relu (last)
}
"""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (_STEPS, ["-input-shape", "64x3"]),
        (_RATES, ["-input-shape", "x=64", "-constants", "sr:16000"]),
        (_GAINS, ["-input-shape", "x=64x4,gain=1"]),
        (_BRANCH, ["-outputs", "s"]),
    ],
)
def test_a_message_proposes_options_that_work(text, wanted, tmp_path, monkeypatch, capsys):
    """Every open size and the constant of a condition in one message, else the end of the network before what is refused."""
    monkeypatch.chdir(tmp_path)
    onnx.save(onnx.parser.parse_model(text), "net.onnx")
    assert main(["net.onnx", "-describe"]) != 0
    assert " ".join(wanted) in capsys.readouterr().err
    assert main(["net.onnx", "-describe", *wanted]) == 0
