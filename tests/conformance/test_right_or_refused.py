"""What other tools export silently wrong: here it is right, float and int8, in compiled C++, or refused by name."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from support.onnx_models import text_model
from support.programs import need

from n2d2py import load_export
from n2d2py.cli import main
from n2d2py.reference.engine import original_engine


def _f(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


ZERO, SIX = _f(0).reshape(()), _f(6).reshape(())
NORM = {
    "s": np.linspace(0.5, 1.5, 27, dtype=np.float32),
    "o": np.linspace(-1, 1, 27, dtype=np.float32),
    "m": np.linspace(-0.3, 0.3, 27, dtype=np.float32),
    "v": np.linspace(0.5, 2, 27, dtype=np.float32),
}

NETWORKS = {
    "clip that no calibration sees": (
        "float[1,3,8,8] x => float[1,24,8,8] y",
        "c = Conv(x, w)\n y = Clip(c, zero, six)",
        {"w": (24, 3, 1, 1), "zero": ZERO, "six": SIX},
    ),
    "concatenation of 24, 27 and 3 channels": (
        "float[1,3,8,8] x => float[1,54,8,8] y",
        "a = Conv(x, w1)\n b = Conv<pads=[1,1,1,1]>(x, w2)\n br = Relu(b)\n y = Concat<axis=1>(a, br, x)",
        {"w1": (24, 3, 1, 1), "w2": (27, 3, 3, 3)},
    ),
    "reshape before a matrix": (
        "float[1,3,6,5] x => float[1,7] y",
        "c = Conv<pads=[1,1,1,1]>(x, w1)\n r = Reshape(c, flat)\n y = Gemm<transB=1>(r, w2, b2)",
        {"w1": (27, 3, 3, 3), "flat": np.array([1, -1]), "w2": (7, 27 * 30), "b2": (7,)},
    ),
    "LeakyRelu of 27 channels": (
        "float[1,3,8,8] x => float[1,27,8,8] y",
        "c = Conv(x, w)\n y = LeakyRelu<alpha=0.2>(c)",
        {"w": (27, 3, 1, 1)},
    ),
    "BatchNormalization that nothing takes": (
        "float[1,27,8,8] x => float[1,27,4,4] y",
        "p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x)\n y = BatchNormalization(p, s, o, m, v)",
        NORM,
    ),
    "residual Add of 27 channels, then ReLU6": (
        "float[1,27,6,6] x => float[1,27,6,6] y",
        "c = Conv<pads=[1,1,1,1]>(x, w)\n a = Add(c, x)\n y = Clip(a, zero, six)",
        {"w": (27, 27, 3, 3), "zero": ZERO, "six": SIX},
    ),
    "ReduceMean that drops its axes": (
        "float[1,3,8,8] x => float[1,5] y",
        "c = Conv(x, w1)\n m = ReduceMean<axes=[2,3], keepdims=0>(c)\n y = MatMul(m, w2)",
        {"w1": (24, 3, 1, 1), "w2": (24, 5)},
    ),
    "an operator without integers in the middle": (
        "float[1,3,8,8] x => float[1,6,8,8] y",
        "c = Conv(x, w1)\n n = InstanceNormalization(c, g, h)\n r = Relu(n)\n y = Conv(r, w2)",
        {"w1": (8, 3, 1, 1), "g": np.linspace(0.5, 1.5, 8, dtype=np.float32), "h": np.zeros(8, np.float32), "w2": (6, 8, 1, 1)},
    ),
    "grouped convolution": (
        "float[1,12,7,7] x => float[1,24,7,7] y",
        "y = Conv<group=3, pads=[1,1,1,1]>(x, w)",
        {"w": (24, 4, 3, 3)},
    ),
    "MatMul behind Flatten": (
        "float[1,3,4,4] x => float[1,5] y",
        "c = Conv(x, w1)\n f = Flatten(c)\n y = MatMul(f, w2)",
        {"w1": (27, 3, 1, 1), "w2": (27 * 16, 5)},
    ),
    "padding of one side with stride 2": (
        "float[1,3,9,8] x => float[1,8,4,4] y",
        "y = Conv<strides=[2,2], pads=[0,1,1,0]>(x, w)",
        {"w": (8, 3, 3, 3)},
    ),
    "average pool with padding": (
        "float[1,27,7,7] x => float[1,27,4,4] y",
        "y = AveragePool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(x)",
        {},
    ),
    "MaxPool of negative values with padding": (
        "float[1,3,7,7] x => float[1,24,4,4] y",
        "c = Conv(x, w, b)\n y = MaxPool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(c)",
        {"w": (24, 3, 1, 1), "b": np.full(24, -9, np.float32)},
    ),
    "a tensor that is output and read": (
        "float[1,3,8,8] x => float[1,24,8,8] c, float[1,5,8,8] y",
        "c = Conv(x, w1)\n r = Relu(c)\n y = Conv(r, w2)",
        {"w1": (24, 3, 1, 1), "w2": (5, 24, 1, 1)},
    ),
    "one initializer of two layers": (
        "float[1,8,6,6] x => float[1,8,6,6] y",
        "a = Conv<pads=[1,1,1,1]>(x, w)\n r = Relu(a)\n y = Conv<pads=[1,1,1,1]>(r, w)",
        {"w": (8, 8, 3, 3)},
    ),
    "one tensor twice in an Add": (
        "float[1,3,8,8] x => float[1,24,8,8] y",
        "c = Conv(x, w)\n y = Add(c, c)",
        {"w": (24, 3, 1, 1)},
    ),
}


def build(name: str) -> onnx.ModelProto:
    signature, body, constants = NETWORKS[name]
    model = text_model(signature, body, constants, seed=len(name), fan_in=True)
    onnx.checker.check_model(model)
    return model


def exported(name: str, folder: Path, monkeypatch, *options: str) -> list[np.ndarray]:
    """The reference results of a network that was exported into `folder`."""
    need("make", "g++")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("OPT", "-O1")
    onnx.save(build(name), folder / "net.onnx")
    assert main(["net.onnx", "-seed", "1", "-export", "CPP", "-fuse", *options]) == 0
    return list(original_engine(folder / "net.onnx").run(inputs_of(name)).values())


def inputs_of(name: str, high: float = 2.0) -> np.ndarray:
    shape = [d.dim_value for d in build(name).graph.input[0].type.tensor_type.shape.dim]
    return np.random.default_rng(3).uniform(-high, high, shape).astype(np.float32)


def as_tuple(results: np.ndarray | tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_float(name, tmp_path, monkeypatch):
    want = exported(name, tmp_path, monkeypatch, "-nbbits", "-32", "-db-export", "0")
    got = as_tuple(load_export(tmp_path / "export_CPP_float32")(inputs_of(name)))
    for expected, found in zip(want, got, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * float(np.abs(expected).max()))


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_integers(name, tmp_path, monkeypatch, capsys):
    """Bit for bit what Python computes, and near what the file gives."""
    want = exported(
        name, tmp_path, monkeypatch, "-nbbits", "8", "-calib", "16", "-db-export", "2", "-compare", "4", "-input-range", "-2:2"
    )
    assert "compiled values identical to Python's" in capsys.readouterr().out
    got = as_tuple(load_export(tmp_path / "export_CPP_int8")(inputs_of(name)))
    for expected, found in zip(want, got, strict=True):
        assert np.abs(found - expected).mean() <= 0.03 * np.abs(expected).max() + 1e-6


@pytest.mark.slow
def test_inputs_of_0_to_255(tmp_path, monkeypatch, capsys):
    name = "grouped convolution"
    exported(
        name, tmp_path, monkeypatch, "-nbbits", "8", "-calib", "16", "-db-export", "2", "-compare", "4", "-input-range", "0:255"
    )
    assert "compiled values identical to Python's" in capsys.readouterr().out
    x = np.random.default_rng(5).integers(0, 256, inputs_of(name).shape).astype(np.float32)
    want = original_engine(tmp_path / "net.onnx").run(x)["y"]
    found = load_export(tmp_path / "export_CPP_int8")(x)
    assert np.abs(found - want).mean() <= 0.03 * np.abs(want).max()


BODY = """c1 = Conv<pads = [1,1,1,1]>(x, w1)
h = HardSwish(c1)
p = GlobalAveragePool(h)
s = Conv(p, w2)
g = HardSigmoid(s)
m = Mul(h, g)
a, b = Split<axis = 1>(m, parts)
e = Elu(a)
q = Min(e, b)
d = Concat<axis = 1>(q, b)
r = Pad<mode = "reflect">(d, pads)
u = DepthToSpace<blocksize = 2>(r)
t = ConvTranspose<strides = [2,2]>(u, w3)
v = Gelu(t)
f = GlobalAveragePool(v)
y = Flatten(f)"""
NETWORK = """
[database]
Type=Random_Database
[sp]
SizeX=8
SizeY=8
NbChannels=3
[onnx]
Input=sp
Type=ONNX
File=net.onnx
"""


@pytest.mark.slow
def test_every_layer_is_identical(tmp_path, monkeypatch, capsys):
    need("make", "g++")
    monkeypatch.chdir(tmp_path)
    weights = {"w1": (8, 3, 3, 3), "w2": (8, 8, 1, 1), "w3": (2, 10, 2, 2)}
    constants = {**weights, "parts": np.array([4, 4]), "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1])}
    model = text_model("float[N,3,8,8] x => float[N,10] y", BODY, constants, opset=20, fan_in=True)
    onnx.save(model, tmp_path / "net.onnx")
    (tmp_path / "net.ini").write_text(NETWORK)
    assert main([*"net.ini -seed 1 -export CPP -fuse -nbbits 8 -calib 8 -db-export 2 -compare 4".split()]) == 0
    assert "17 layers: compiled values identical to Python's" in capsys.readouterr().out
