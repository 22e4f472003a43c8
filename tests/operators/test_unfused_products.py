"""Layers in floating point within a network of integers: a product that is added is rounded first, in Python and by every compiler."""

from pathlib import Path

import numpy as np
import pytest
from support.e2e_run import compiled_at_once, random_inputs, run
from support.onnx_models import ModelBuilder

import n2d2py

CHANNELS, SIZE = 12, 24
RNG = np.random.default_rng(3)
CONSTANTS = {
    "kernel": RNG.normal(size=(CHANNELS, 3, 3, 3)),
    "twelfth": np.array(1 / 12),
    "eps": np.array(1e-4),
    "gain": RNG.normal(size=(1, CHANNELS, 1, 1)),
    "shift": RNG.normal(size=(1, CHANNELS, 1, 1)),
    "slope": RNG.normal(size=(CHANNELS, 1, 1)),
    "a": np.array(0.3),
    "b": np.array(-0.7),
    "axis": np.array([1], np.int64),
    "scales": np.array([1.0, 1, 2, 2]),
    **{name: RNG.uniform(0.5, 2, CHANNELS) for name in ("scale", "offset", "average", "variance")},
}
INTEGERS = {"c": "Conv x kernel"}
REALS = {
    "sum": "ReduceSum c axis",
    "mean": "Mul sum twelfth",
    "guarded": "Add mean eps",
    "scaled": "Mul c gain",
    "affine": "Add scaled shift",
    "norm": "BatchNormalization c scale offset average variance",
    "left": "Mul norm a",
    "right": "Mul affine b",
    "weighted": "Add left right",
    "one": "Mul left left",
    "two": "Mul right right",
    "squares": "Add one two",
    "root": "Sqrt squares",
    "globe": "GlobalAveragePool weighted",
    "leaky": "LeakyRelu weighted",
    "prelu": "PRelu weighted slope",
    "hard": "HardSigmoid weighted",
    "swish": "HardSwish weighted",
    "resized": "Resize weighted  scales",
}
BUILDS = {
    "g++ native": ("g++", "-O3", "-march=native"),
    "clang++ native": ("clang++", "-O2", "-march=native"),
    "portable kernels": ("g++", "-O3", "-march=native", "-DN2D2_ISA_PORTABLE"),
}


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> Path:
    """All layers of REALS with Quantize=0, each an output of its own."""
    folder = tmp_path_factory.mktemp("reals")
    build = ModelBuilder()
    for name, text in {**INTEGERS, **REALS}.items():
        kind, *inputs = text.split(" ")
        attributes = {"mode": "linear"} if kind == "Resize" else {"pads": [1] * 4} if kind == "Conv" else {}
        build.add(kind, *(CONSTANTS.get(one, one) for one in inputs), name=name, **attributes)
    path = build.save(folder / "net.onnx", {"x": [1, 3, SIZE, SIZE]}, *REALS)
    (folder / "real.ini").write_text("".join(f"[{name}]\nQuantize=0\n" for name in REALS))
    words = ["-export", "CPP", "-export-parameters", str(folder / "real.ini"), "-calib", "8", "-o", str(folder), "-quiet"]
    return run(str(path), *words, out=folder)


@pytest.mark.compiles
@pytest.mark.parametrize("name", ["g++ native", *(pytest.param(one, marks=pytest.mark.slow) for one in list(BUILDS)[1:])])
def test_every_compiler_gives_the_bits_of_python(exported, name):
    compiler, *flags = BUILDS[name]
    simulated, compiled = n2d2py.load_simulator(exported), compiled_at_once(exported, compiler, flags)
    inputs = random_inputs(simulated, 2)
    wanted = simulated.layers(*inputs)
    for name, found in compiled.layers(*inputs).items():
        np.testing.assert_array_equal(found, wanted[name], err_msg=name, strict=True)
    assert {"affine", "globe"} <= {name for name, one in wanted.items() if one.dtype == np.float32}
