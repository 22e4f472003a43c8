"""-export NVDLA from the command line: shipped models, real networks, ONNC's cases."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.nvdla_files import SHARED, needs_shared
from support.onnx_models import text_model

from n2d2py.cli import main
from n2d2py_nvdla import cli as nvdla

ROOT = Path(__file__).resolve().parents[2]
DATA = SHARED.parent

CASES = {
    "Add": 0,
    "AveragePool": 0,
    "BatchNormalization": 1e-3,
    "Concat": 0,
    "Conv": 0,
    "Gemm": 0,
    "GlobalAveragePool": 0,
    "LRN": 1e-3,
    "MaxPool": 0,
    "Mul": 0,
    "Relu": 0,
    "Reshape": 0,
    "Softmax": 1e-3,
    "Transpose": 0,
    "Unsqueeze": 0,
    "tutorial_add": 0,
}
"""ONNC's cases and the relative error that is allowed."""


def export(folder: Path, *words: str, config: str = "nv_full", firmware: str = "0.12") -> Path:
    """Runs the tool; the export's folder."""
    return export_with(folder, f"NVDLAConfig={config}\nNVDLAFirmware={firmware}\n", *words)


def export_with(folder: Path, parameters: str, *words: str) -> Path:
    """Runs the tool with these parameters; the export's folder."""
    (folder / "params.ini").write_text(parameters)
    common = "-seed 1 -quiet -export NVDLA -export-parameters".split()
    assert main([*words, *common, str(folder / "params.ini"), "-o", str(folder)]) == 0
    return next(folder.glob("export_NVDLA_*"))


def summary(folder: Path) -> dict:
    return json.loads((folder / "statistics" / "summary.json").read_text())


def test_the_first_steps(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    export(tmp_path, str(ROOT / "plugins/nvdla/models/Add.ini"), "-nbbits", "-32", "-db-export", "0")
    assert nvdla.main(["check", "export_NVDLA_float32/out.nvdla"]) == 0
    image = str(ROOT / "plugins/nvdla/models/7x5.pgm")
    assert nvdla.main(["run", "export_NVDLA_float32/out.nvdla", "--image", image, "--rawdump"]) == 0
    assert Path("output.dimg").read_text().split() == [str(n) for n in range(2, 37)]


def with_normalization(folder: Path) -> Path:
    """LeNet with a local response normalization behind the first convolution."""
    text = (
        (ROOT / "models" / "LeNet.ini")
        .read_text()
        .replace("DataPath=data/digits", f"DataPath={ROOT / 'models' / 'data' / 'digits'}")
    )
    text = text.replace(
        "[pool1] pool_def",
        "[lrn1]\nInput=conv1\nType=LRN\nNbOutputs=6\nConfigSection=lrn_config\n\n"
        "[lrn_config]\nN=5\nAlpha=0.5\nK=1.0\n\n[pool1] pool_def",
    ).replace("Input=conv1\nNbOutputs=[conv1]", "Input=lrn1\nNbOutputs=[conv1]")
    (folder / "lrn.ini").write_text(text)
    return folder / "lrn.ini"


def shuffled(folder: Path) -> tuple[str, str]:
    """A split, a channel shuffle followed by a slice of lines and columns, as exporters write them; calibration data."""
    random = np.random.default_rng(0)
    shapes = {"w1": (16, 4, 3, 3), "w2": (8, 8, 3, 3), "w3": (5, 16, 3, 3)}
    constants = {
        name: (random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32) for name, shape in shapes.items()
    }
    integers = {"groups": [1, 2, 8, 8, 8], "image": [1, 16, 8, 8], "starts": [1, 0], "ends": [8, 7], "axes": [2, 3]}
    constants |= {name: np.array(values) for name, values in integers.items()}
    body = """a = Conv <pads = [1, 1, 1, 1]> (x, w1) ar = Relu (a) s1, s2 = Split <axis = 1, num_outputs = 2> (ar)
        b = Conv <pads = [1, 1, 1, 1]> (s2, w2) c = Concat <axis = 1> (s1, b)
        d = Reshape (c, groups) e = Transpose <perm = [0, 2, 1, 3, 4]> (d) f = Reshape (e, image)
        g = Slice (f, starts, ends, axes) y = Conv (g, w3)"""
    onnx.save(text_model("float[1,4,8,8] x => float y", body, constants, opset=18), folder / "shuffle.onnx")
    np.save(folder / "x.npy", random.standard_normal((8, 4, 8, 8)).astype(np.float32))
    return str(folder / "shuffle.onnx"), str(folder / "x.npy")


@pytest.mark.parametrize("config", ["nv_small", "nv_large"])
def test_splits_shuffles_and_slices(config, tmp_path):
    network, data = shuffled(tmp_path)
    words = [network, "-nbbits", "8", "-calib", "-1", "-calib-data", data, "-quality", "fast", "-compare", "4"]
    folder = export(tmp_path, *words, config=config)
    compared = summary(folder)["compare"]
    assert compared["y"]["identical"] and compared["g_image"]["identical"]
    assert all(layer["identical"] is not False for layer in compared.values())
    assert nvdla.main(["check", str(folder / "out.nvdla")]) == 0


@pytest.mark.slow
def test_layers_in_floating_point_and_layers_of_the_cpu(tmp_path):
    words = [
        str(with_normalization(tmp_path)),
        "-w",
        str(ROOT / "models" / "LeNet.npz"),
        *"-nbbits 8 -calib 20 -db-export 10 -quality fast -test -compare 2".split(),
    ]
    text = Path(words[0]).read_text().replace("Type=LRN", "Type=Activation\nActivationFunction=Tanh")
    found = summary(export(tmp_path, *words, config="nv_small"))
    assert found["compare"]["lrn1"]["identical"] and found["agreement"]["loadable"] == 100
    folder = tmp_path / "fallback"
    folder.mkdir()
    (folder / "tanh.ini").write_text(text)
    export_with(folder, "NVDLAConfig=nv_small\nNVDLAFallback=1\n", str(folder / "tanh.ini"), *words[1:])
    made = folder / "export_NVDLA_int8"
    found = summary(made)
    assert all(layer["identical"] is not False for layer in found["compare"].values()) and found["agreement"]["loadable"] == 100
    assert "CPU Activation" in (made / "README.md").read_text()
    np.save(folder / "x.npy", np.load(made / "stimuli.npy")[0])
    assert nvdla.main(["run", str(made / "out.nvdla"), "--input", str(folder / "x.npy"), "--output", str(folder / "o")]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("model", ["LeNet", "MobileNet"])
@pytest.mark.parametrize(
    "bits, config, firmware", [("8", "nv_small", "0.12"), ("8", "nv_large", "0.11"), ("-32", "nv_full", "0.11")]
)
def test_digits(model, bits, config, firmware, tmp_path):
    weights = ROOT / "models" / f"{model}.npz"
    words = [str(ROOT / "models" / f"{model}.ini"), "-w", str(weights) if weights.is_file() else "/dev/null", "-nbbits", bits]
    folder = export(
        tmp_path,
        *words,
        *(["-calib", "-1"] if bits == "8" else []),
        *"-db-export -1 -test -compare 4".split(),
        config=config,
        firmware=firmware,
    )
    found = summary(folder)
    assert abs(found["scores"]["loadable"] - found["scores"]["float"]) < 0.5
    assert all(layer["identical"] is not False for layer in found["compare"].values())
    last = list(found["compare"].values())[-1 if bits == "8" or model == "MobileNet" else -2]
    assert last["cosine"] >= 0.99
    assert found["agreement"]["loadable"] >= 99
    facts = json.loads((folder / "layers.json").read_text())
    assert facts["activation_bytes"] <= 1.1 * facts["live_bytes"]


@needs_shared
@pytest.mark.slow
@pytest.mark.parametrize("network, stimuli", [("resnet8", "60"), ("mobilenet_v1", "4")])
@pytest.mark.parametrize("config", ["nv_small", "nv_large", "nv_full"])
def test_real_networks(network, stimuli, config, tmp_path, monkeypatch):
    monkeypatch.setenv("N2D2_DATA", str(DATA))
    monkeypatch.setenv("N2D2_MODELS", str(DATA / "models"))
    folder = export(
        tmp_path,
        str(ROOT / "tests" / "networks" / f"{network}.ini"),
        *"-w /dev/null -fuse -nbbits 8 -calib 20 -nb-test".split(),
        stimuli,
        "-db-export",
        stimuli,
        "-test",
        "-compare",
        "1",
        config=config,
    )
    found = summary(folder)
    assert all(layer["identical"] is not False for layer in found["compare"].values())
    assert min(layer["cosine"] for layer in found["compare"].values()) > 0.98
    assert found["scores"]["loadable"] == found["scores"]["simulated"]
    facts = json.loads((folder / "layers.json").read_text())
    assert facts["activation_bytes"] <= 1.1 * facts["live_bytes"]
    assert nvdla.main(["check", str(folder / "out.nvdla"), "--config", config]) == 0


@needs_shared
@pytest.mark.slow
@pytest.mark.parametrize("case", sorted(CASES))
def test_cases_of_onnc(case, tmp_path):
    given = SHARED / "onnc" / case
    folder = export(tmp_path, str(next(given.glob("*.onnx"))), "-nbbits", "-32", "-db-export", "0", firmware="0.11")
    words = ["run", folder / "out.nvdla", "--image", next(given.glob("*.pgm")), "--rawdump", "--output", tmp_path / "out.txt"]
    assert nvdla.main([*map(str, words)]) == 0
    found, expected = (
        np.array(path.read_text().split(), np.float64) for path in (tmp_path / "out.txt", next(given.glob("*.dimg")))
    )
    assert found.shape == expected.shape
    assert np.all(np.abs(found - expected) <= CASES[case] * np.maximum(np.abs(expected), 1e-3))


@pytest.mark.slow
def test_a_calibration_table_is_written_and_taken(tmp_path):
    lenet = [
        str(ROOT / "models" / "LeNet.ini"),
        "-w",
        str(ROOT / "models" / "LeNet.npz"),
        *"-nbbits 8 -calib 20 -db-export 0 -quality fast".split(),
    ]
    table = json.loads((export(tmp_path, *lenet) / "calibration.json").read_text())
    assert table["conv1"]["max"] == pytest.approx(127 * table["conv1"]["scale"]) and table["conv1"]["offset"] == 0
    (tmp_path / "table.json").write_text(json.dumps({"conv2": {"scale": 2 * table["conv2"]["scale"]}}))
    export_with(tmp_path, f"NVDLACalibration={tmp_path / 'table.json'}\n", *lenet)
    again = json.loads((tmp_path / "export_NVDLA_int8" / "calibration.json").read_text())
    assert again["conv2"]["scale"] == pytest.approx(2 * table["conv2"]["scale"])
    assert again["conv1"] == table["conv1"]
    made = tmp_path / "export_NVDLA_int8"
    for name in ("out.nvdla", "calibration.json"):  # the whole table, as it was written, changes nothing
        (tmp_path / name).write_bytes((made / name).read_bytes())
    export_with(tmp_path, f"NVDLACalibration={tmp_path / 'calibration.json'}\n", *lenet)
    assert (made / "out.nvdla").read_bytes() == (tmp_path / "out.nvdla").read_bytes()


@pytest.mark.slow
def test_two_exports_are_the_same(tmp_path):
    words = [
        str(ROOT / "models" / "LeNet.ini"),
        "-w",
        str(ROOT / "models" / "LeNet.npz"),
        *"-nbbits 8 -calib 20 -db-export 5".split(),
    ]
    one, two = tmp_path / "one", tmp_path / "two"
    for place in (one, two):
        place.mkdir()
        export(place, *words)
    for name in ("out.nvdla", "layers.json", "README.md", "calibration.json", "stimuli.npy"):
        assert (one / "export_NVDLA_int8" / name).read_bytes() == (two / "export_NVDLA_int8" / name).read_bytes(), name


@pytest.mark.slow
@pytest.mark.parametrize("config, bits", [("nv_small", "8"), ("nv_full", "-32")])
def test_two_inputs(config, bits, tmp_path):
    """The sum of two branches with inputs of their own, pooled and flattened."""
    random = np.random.default_rng(1)
    shapes = {"a": (3, 6, 5), "b": (4, 6, 5)}
    weights = {
        name: (random.standard_normal((8, c, k, k)) / 4).astype(np.float32) for name, c, k in (("wa", 3, 3), ("wb", 4, 1))
    }
    body = """ca = Conv <pads = [1, 1, 1, 1]> (a, wa) cb = Conv (b, wb) s = Add (ca, cb) r = Relu (s)
        g = GlobalAveragePool (r) y = Flatten (g)"""
    model = text_model("float[1,3,6,5] a, float[1,4,6,5] b => float[1,8] y", body, weights, opset=13)
    onnx.save(model, tmp_path / "two.onnx")
    np.savez(
        tmp_path / "data.npz",
        y=np.arange(12) % 8,
        **{name: random.standard_normal((12, *shape)).astype(np.float32) for name, shape in shapes.items()},
    )
    folder = export(
        tmp_path,
        str(tmp_path / "two.onnx"),
        "-nbbits",
        bits,
        "-calib-data",
        str(tmp_path / "data.npz"),
        *"-calib 12 -db-export 6 -test -compare 3 -quality fast".split(),
        config=config,
    )
    found = summary(folder)
    assert found["agreement"]["loadable"] == 100
    assert all(layer["identical"] is not False for layer in found["compare"].values())
    assert min(layer["cosine"] for layer in found["compare"].values()) > 0.99
