"""Real networks with real data (../shared/data): exported, built, equal layer by layer, and as good as in float."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.e2e_run import HERE, ROOT, assert_compiled_is_simulated, assert_layers_equal, needs_compiler, run, summary
from support.onnx_models import runtime_outputs, runtime_session
from support.programs import run_command

import n2d2py

DATA = ROOT.parent / "shared" / "data"
INIS = HERE.parent / "networks"

pytestmark = [needs_compiler, pytest.mark.slow, pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is not here")]

NETWORKS = {"resnet8": (200, 32), "vww_96": (72, 32), "kws_dscnn": (200, 100), "mobilenet_v1": (50, 8), "mobilenet_v2": (50, 8)}
"""Network -> stimuli that are scored, stimuli that are exported."""


@pytest.fixture(autouse=True)
def places(monkeypatch):
    monkeypatch.setenv("N2D2_DATA", str(DATA))
    monkeypatch.setenv("N2D2_MODELS", str(DATA / "models"))
    monkeypatch.setenv("OPT", "-O3")


@pytest.mark.parametrize("network", sorted(NETWORKS))
def test_classifiers(network, tmp_path):
    scored, exported = NETWORKS[network]
    folder = run(
        str(INIS / f"{network}.ini"),
        *"-seed 1 -w /dev/null -export CPP -fuse -calib 100 -nb-test".split(),
        str(scored),
        "-db-export",
        str(exported),
        *"-test -compare 2 -quiet -o".split(),
        str(tmp_path),
        out=tmp_path,
    )
    found = summary(folder)
    assert all(layer["identical"] is True for layer in found["compare"].values())
    assert found["scores"]["float"] > 50
    lost = 1.0 if scored >= 100 else 200.0 / scored  # one point, or two stimuli of a small set
    assert found["scores"]["simulated"] >= found["scores"]["float"] - lost
    assert_compiled_is_simulated(folder, count=1)


def test_the_bytes_of_the_preset_small(tmp_path, monkeypatch):
    """Code and constants of ResNet-8: text and data of all objects of the network, for AVX2."""
    words = f"-w /dev/null -export CPP -calib 20 -db-export 0 -export-parameters small -quiet -o {tmp_path}"
    folder = run(str(INIS / "resnet8.ini"), *words.split(), out=tmp_path)
    monkeypatch.delenv("OPT")  # that of the preset
    make = subprocess.run(["make", "-s", "ARCH=-march=x86-64-v3", "bin/run_export"], cwd=folder, check=False)
    objects = [str(path) for path in folder.glob("build/dnn/**/*.o")]
    rows = run_command("size", *objects).splitlines()[1:]
    assert make.returncode == 0 and sum(sum(map(int, row.split()[:2])) for row in rows) <= 110_000


def test_the_auto_encoder(tmp_path):
    folder = run(
        str(INIS / "ad_autoencoder.ini"),
        *"-seed 1 -w /dev/null -export CPP -calib 64 -db-export 8 -compare 4 -quiet -o".split(),
        str(tmp_path),
        out=tmp_path,
    )
    compared = summary(folder)["compare"]
    assert all(layer["identical"] is True for layer in compared.values())
    assert min(layer["cosine"] for layer in compared.values()) > 0.99
    assert_compiled_is_simulated(folder)


@pytest.mark.parametrize("file,low,high", [("resnet8_tf2onnx.onnx", 0, 255), ("mnist8_onnxzoo_opset8.onnx", 0, 255)])
def test_plain_onnx_files(file, low, high, tmp_path):
    import gzip

    if file.startswith("mnist8"):
        (path,) = (DATA / "mnist").glob("t10k-images*")
        data = gzip.decompress(path.read_bytes())
        x = np.frombuffer(data, np.uint8, 64 * 784, 16).reshape(64, 1, 28, 28)
        np.save(tmp_path / "calib.npy", x)
        source = tmp_path / "calib.npy"
    else:
        source = DATA / "cifar10" / "train"
    folder = run(
        str(DATA / "models" / file),
        *"-export CPP -calib 64 -calib-data".split(),
        str(source),
        "-input-range",
        f"{low}:{high}",
        *"-db-export 0 -quiet -o".split(),
        str(tmp_path),
        out=tmp_path,
    )
    compiled, simulated = n2d2py.load_export(folder), n2d2py.load_simulator(folder)
    assert simulated.info.inputs[0].scale == pytest.approx(1.0)
    inputs = real_inputs(source)
    assert_layers_equal(compiled.layers(inputs), simulated.layers(inputs))
    expected = float_outputs(DATA / "models" / file, inputs)
    found = compiled(inputs)
    agree = (found.argmax(axis=1) == expected.argmax(axis=1)).mean()
    assert agree >= 0.95, agree


def real_inputs(source: Path) -> np.ndarray:
    """24 stimuli of an array or of a folder of pictures, as the networks take them: bytes as float32."""
    if source.suffix == ".npy":
        return np.load(source)[:24].astype(np.float32)
    from PIL import Image

    files = sorted(source.rglob("*.png"))[::20][:24]
    return np.stack([np.asarray(Image.open(file).convert("RGB"), np.float32).transpose(2, 0, 1) for file in files])


def float_outputs(path: Path, inputs: np.ndarray) -> np.ndarray:
    """What ONNX Runtime computes, one stimulus at a time."""
    channels_last = runtime_session(path).get_inputs()[0].shape[-1] == 3
    return runtime_outputs(path, inputs.transpose(0, 2, 3, 1) if channels_last else inputs, batch=1)[0]
