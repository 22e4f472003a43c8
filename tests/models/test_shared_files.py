"""Every ONNX file of the data folder: float ones compiled like ONNX Runtime, quantized ones compiled bit for bit like Python."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from support.programs import need

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))


from support.onnx_models import original_engine

from n2d2py import load_export, load_simulator
from n2d2py.cli import main

MODELS = Path(os.environ.get("N2D2_MODELS", Path(__file__).parents[3] / "shared" / "data" / "models"))
FILES = sorted(path.name for path in MODELS.glob("*.onnx"))
SAME_AS_REFERENCE = {
    "kws_dscnn_qdq": 0.99,
    "resnet8_qdq": 0.97,
    "vww_96_qdq": 0.6,
    "mobilenet_v1_0.5_160_qdq_u8": 0.7,
    "mobilenet_v2_1.0_224_qdq": 0.35,
}
"""The least share of outputs that are the reference's integers, of 4 stimuli (docs/lab/quantized_models.md says why); vww_96 has 8."""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not FILES, reason="../shared/data/models is not here")]


def exported(file: str, folder: Path, monkeypatch, *options: str) -> Path:
    need("make", "g++")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("OPT", "-O1")
    assert main([str(MODELS / file), "-export", "CPP", "-fuse", "-quiet", "-db-export", "0", *options]) == 0
    return next(folder.glob("export_CPP_*"))


@pytest.mark.parametrize("file", [file for file in FILES if "qdq" not in file])
def test_float_files(file, tmp_path, monkeypatch):
    compiled = load_export(exported(file, tmp_path, monkeypatch, "-nbbits", "-32"))
    (port,) = compiled.info.inputs
    x = np.random.default_rng(1).normal(size=(1, *port.shape[1:])).astype(np.float32)
    (want,) = original_engine(MODELS / file).run(x).values()
    found = compiled(x).reshape(want.shape)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4 * float(np.abs(want).max()))


@pytest.mark.parametrize("file", [file for file in FILES if "qdq" in file])
def test_quantized_files(file, tmp_path, monkeypatch):
    import quantized  # benchmarks/quantized.py

    folder = exported(file, tmp_path, monkeypatch, "-nbbits", "8")
    compiled, simulated = load_export(folder), load_simulator(folder)
    path = MODELS / file
    x = quantized.stimuli(path, tuple(simulated.info.inputs[0].shape[1:]), 4)
    found, wanted = compiled.layers(x), simulated.layers(x)
    assert found.keys() == wanted.keys()
    for name, values in found.items():
        np.testing.assert_array_equal(values, wanted[name], err_msg=name)
    reference = quantized.Reference(path, False)
    (want,) = (reference.run(x)[name] for name in reference.outputs)
    step = simulated.info.outputs[0].scale
    same = np.rint(compiled(x) / step) == np.rint(want / step).reshape(len(x), -1)
    assert same.mean() >= SAME_AS_REFERENCE[path.stem], same.mean()
