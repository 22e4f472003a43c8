"""The models, data and parameter files of the repository: what they hold and what they reach."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from PIL import Image

from n2d2py import log
from n2d2py.exports import load_params
from n2d2py.exports.parameters import known_parameters
from n2d2py.ini import load_document

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "models"


def training_module(name: str):
    """A module of models/training, which is no package."""
    spec = importlib.util.spec_from_file_location(name, MODELS / "training" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def digits():
    return training_module("digits")


@pytest.fixture
def no_warnings():
    log.setup(quiet=True)
    yield
    assert not log.warnings_seen()


@pytest.mark.parametrize("part, count", [("train", 1287), ("t10k", 510)])
def test_the_digits(digits, part, count):
    images = digits.read_idx(digits.DATA / f"{part}-images-idx3-ubyte")
    labels = digits.read_idx(digits.DATA / f"{part}-labels-idx1-ubyte")
    assert images.shape == (count, 8, 8) and labels.shape == (count,)
    assert labels[:20].tolist() == [*range(10), *range(10)]
    assert set(labels.tolist()) == set(range(10))
    assert set(np.unique(images).tolist()) <= {int(v * 255 / 16 + 0.5) for v in range(17)}
    assert np.bincount(labels).min() > count // 10 * 0.9


def test_the_digits_are_those_of_scikit_learn(digits):
    datasets = pytest.importorskip("sklearn.datasets")
    source = datasets.load_digits()
    images = np.concatenate([digits.read_idx(digits.DATA / f"{part}-images-idx3-ubyte") for part in ("train", "t10k")])
    labels = np.concatenate([digits.read_idx(digits.DATA / f"{part}-labels-idx1-ubyte") for part in ("train", "t10k")])
    assert (labels == source.target).all()
    assert (np.round(images.astype(float) * 16 / 255) == source.images).all()


def test_idx_bytes_are_read_back(digits, tmp_path):
    make = training_module("make_digits")
    values = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    (tmp_path / "x").write_bytes(make.idx_bytes(values))
    assert (tmp_path / "x").read_bytes()[:8] == b"\0\0\x08\x03\0\0\0\x02"
    assert (digits.read_idx(tmp_path / "x") == values).all()


def test_the_training_sees_what_bilinear_enlargement_gives(digits):
    images = digits.read_idx(digits.DATA / "t10k-images-idx3-ubyte")[:20]
    enlarged = digits.enlarge(images).astype(int)
    for image, ours in zip(images, enlarged, strict=True):
        theirs = Image.fromarray(image).resize((32, 32), Image.Resampling.BILINEAR)
        assert abs(ours - np.asarray(theirs, int)).max() <= 1


def test_mobilenet_reaches_its_score(digits):
    path = MODELS / "MobileNet.onnx"
    assert path.stat().st_size < 1_000_000
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    ops = [node.op_type for node in model.graph.node]
    assert ops.count("BatchNormalization") == ops.count("Conv") == ops.count("Clip") == 13
    assert [node.attribute for node in model.graph.node if node.op_type == "Softmax"] == []
    images, labels = digits.load("t10k")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    logits = session.run(["logits"], {"image": images})[0]
    assert 100 * np.mean(logits.argmax(1) == labels) == pytest.approx(99.02, abs=0.005)


def convolve(x: np.ndarray, weights: np.ndarray, biases: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(x, weights.shape[2:], axis=(2, 3))
    return np.tensordot(windows, weights, axes=([1, 4, 5], [1, 2, 3])).transpose(0, 3, 1, 2) + biases[:, None, None]


def pool(x: np.ndarray) -> np.ndarray:
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).max(axis=(3, 5))


def test_lenet_reaches_its_score(digits):
    with np.load(MODELS / "LeNet.npz") as stored:
        values = dict(stored)
    assert all(array.dtype == np.float32 for array in values.values())
    x, labels = digits.load("t10k")
    for name in ("conv1", "conv2", "conv3"):
        x = np.maximum(convolve(x, values.pop(f"{name}_weights"), values.pop(f"{name}_biases")), 0)
        x = pool(x) if name != "conv3" else x.reshape(len(x), -1)
    x = np.maximum(x @ values.pop("fc1_weights").T + values.pop("fc1_biases"), 0)
    x = x @ values.pop("fc2_weights").T + values.pop("fc2_biases")
    assert not values
    assert 100 * np.mean(x.argmax(1) == labels) == pytest.approx(98.43, abs=0.005)


def test_the_scores_are_those_that_the_texts_name():
    for name, score in (("LeNet", "98.43"), ("MobileNet", "99.02")):
        assert f"{score}%" in (MODELS / f"{name}.ini").read_text()
        assert f"{score} %" in (MODELS / "training" / "README.md").read_text()


@pytest.mark.parametrize("path", sorted(MODELS.glob("*.ini")), ids=lambda path: path.stem)
def test_the_ini_files_read_without_warning(path, monkeypatch, no_warnings):
    monkeypatch.setenv("N2D2_DATA", "/data")
    document = load_document(path)
    names = {section.name for section in document.sections}
    several_inputs = any(section.has("Type") and section.raw("Type") == "Input" for section in document.sections)
    assert ({"sp"} if several_inputs else {"database", "sp"}) <= names
    assert any(".Target" in name for name in names)


def test_default_parameters_are_the_defaults(no_warnings):
    given = load_params(ROOT / "params" / "default.ini")
    assert given.as_dict() == load_params(None).as_dict()
    assert [key.name for key in known_parameters().keys if not given.given(key.name)] == []


@pytest.mark.parametrize(
    "name, changed",
    [
        ("low_memory", {"MemoryManagerStrategy": "OptimizeReorder", "BufferAlignment": 4, "OpenMP": False}),
        (
            "no_reuse",
            {
                "OptimizeBufferMemory": False,
                "OptimizeNoBranchConcat": False,
                "FuseResidualAdd": False,
                "WeightsFormat": "text",
                "OpenMP": False,
            },
        ),
        ("align16", {"MemoryAlignment": 16, "BufferAlignment": 16}),
        ("align64", {"MemoryAlignment": 64, "BufferAlignment": 64}),
        ("min_ram", {"MemoryMode": "Minimum", "MaxExtraMacs": 5.0, "BufferAlignment": 4, "OpenMP": False}),
        ("small", {"SmallCode": True, "OpenMP": False}),
        ("balanced", {"MemoryMode": "Balanced"}),
        ("fast_x86", {"MemoryMode": "Speed", "BufferAlignment": 64}),
        ("cortex_m", {"MemoryMode": "Balanced", "BufferAlignment": 4, "OpenMP": False, "SIMD": "none"}),
    ],
)
def test_parameter_files_change_what_they_say(name, changed, no_warnings):
    given = load_params(ROOT / "params" / f"{name}.ini").as_dict()
    assert given == {**load_params(None).as_dict(), **changed}
