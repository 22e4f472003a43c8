"""Layers of any names: exported, drawn, read back; compiled, they compute Python's integers."""

import xml.dom.minidom
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from PIL import Image
from support.errors import refused
from support.onnx_models import ModelBuilder
from support.programs import needs

from n2d2py import log
from n2d2py.cli import main
from n2d2py.contracts.ini.weights import WeightStore
from n2d2py.options import read_command
from n2d2py.pipeline import load_network

NAMES = (
    *(" a", "$$(id)", "$x^{2$", "..", "a/b", "a_b", "con", "a\nb", 'quote"', "it's", "back\\slash", "100%s%n", "#:$"),
    *("<b>&amp;</b>", "]]>", "*/", "????", "\x01\x7f", "é", "e\u0301", "日本", "\U0001f600", "int", "n2d2", "0", "A", "a"),
    *("x" * 300, "x" * 299 + "y", "é" * 200, "y" * 1000),
)


@pytest.fixture
def network(tmp_path):
    build, first = ModelBuilder(1, opset=18), 'in"put\n$x$/..'
    last = first
    for name in NAMES:
        last = build.add("Gemm", last, build.rng.normal(size=(4, 4)), name=name)
    build.save(tmp_path / "net.onnx", {first: [1, 4]}, last)
    return tmp_path


def test_export(network, monkeypatch):
    monkeypatch.chdir(network)
    assert main(["net.onnx", "-export", "CPP", "-calib", "2", "-quiet", "-o", "o"]) == 0
    pictures = list((network / "o").rglob("*.svg"))
    assert len(pictures) > len(NAMES)
    for picture in pictures:
        xml.dom.minidom.parse(str(picture))
    folder = network / "o" / "export_CPP_int8" / "weights_export"
    assert len(list(folder.glob("*_weights.syntxt"))) == len(NAMES)
    store = WeightStore(folder)
    found = {store._find(name, "weights")[1] for name in NAMES}
    assert len(found) == len(NAMES)


@pytest.mark.slow
@needs("g++")
def test_compiled(network, monkeypatch, capsys):
    monkeypatch.chdir(network)
    words = ["-export", "CPP", "-calib", "2", "-test", "-compare", "1", "-log-outputs", "1", "-quiet", "-o", "o"]
    assert main(["net.onnx", *words]) == 0
    assert f"{len(NAMES)} layers: compiled values identical" in capsys.readouterr().out
    assert len(list((network / "o").rglob("outputs_export_1/*.dat"))) == len(NAMES) + 1


@pytest.mark.slow
@needs("g++")
@pytest.mark.parametrize("name", ["div", "y1", "index", "size_t", "log2f", "net_t", "features"])
def test_networks_called_like_the_library(network, monkeypatch, capsys, name):
    monkeypatch.chdir(network)
    (network / "net.onnx").rename(network / f"{name}.onnx")
    assert main([f"{name}.onnx", "-export", "CPP", "-calib", "2", "-compare", "1", "-quiet", "-o", "o"]) == 0
    assert f"{len(NAMES)} layers: compiled values identical" in capsys.readouterr().out


def test_whole_numbers_divided_by_zero(tmp_path, monkeypatch):
    """Calibrated on whatever the stimuli are."""
    monkeypatch.chdir(tmp_path)
    for operator in ("Div", "Mod"):
        text = (
            f'<ir_version: 8, opset_import: ["" : 18]> g (int16[3] x, int16[3] y) => (int16[3] z) {{ z = {operator} (x, y) }}'
        )
        onnx.save(onnx.parser.parse_model(text), tmp_path / "net.onnx")
        assert main(["net.onnx", "-export", "CPP", "-calib", "2", "-quiet", "-o", operator]) == 0


LAYERS = "[fc]\nInput=sp\nType=Fc\nNbOutputs=3\n"
HALVES = "[sp.Transformation]\nType=RangeAffineTransformation\nFirstOperator=Divides\nFirstValue=127.5\nSecondOperator=Minus\nSecondValue=1\n"
OWN = "[database]\nType=Numpy_Database\nDataPath=own.npz\nRandomPartitioning=0\n"


@pytest.fixture
def load(tmp_path, monkeypatch):
    """The data of an INI: a batch of each set, by the name of the set; warnings but those on weights are failures."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (6, 4, 5, 3)).astype(np.uint8)
    Path("pictures").mkdir()
    for index, image in enumerate(images):
        Image.fromarray(image).save(f"pictures/{index}.png")
    planes = images.transpose(0, 3, 1, 2)
    np.save("bytes.npy", planes)
    np.savez("labelled.npz", x=planes, y=np.arange(6) % 3)
    np.save("reals.npy", planes.astype(np.float32))
    np.savez("own.npz", x=255 - planes, y=np.arange(6) % 3)

    def run(text: str, data: str, *options: str, size: str = "5 4 3", codes: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
        Path("net.ini").write_text(f"{text}[sp]\nSize={size}\n{LAYERS}")
        log.setup(quiet=True)
        words = ["net.ini", "-w", "/dev/null", "-export", "CPP", "-calib", "-1", "-calib-data", data, *options]
        found = load_network(*read_command(words)).data
        assert tuple(one.code for one in log.warnings_seen()) == codes
        return {name: next(iter(stimuli.batches(99)))[0] for name, stimuli in found.sets.items()}

    run.planes = planes
    return run


def test_pictures_are_blue_green_red_as_those_of_a_database(load):
    """Colours of an INI are in the order blue, green, red."""
    found = load("", "pictures")
    np.testing.assert_allclose(found["Validation"], load.planes[:, ::-1] / 255, atol=1e-6)
    assert set(found) == {"Validation"}


def test_arrays_of_bytes_and_labels(load):
    np.testing.assert_allclose(load("", "bytes.npy")["Validation"], load.planes / 255, atol=1e-6)
    found = load("", "labelled.npz")
    np.testing.assert_allclose(found["Test"], load.planes / 255, atol=1e-6)
    assert set(found) == {"Validation", "Test"}


def test_transformations_apply_to_pictures_and_bytes(load):
    np.testing.assert_allclose(load(HALVES, "bytes.npy")["Validation"], load.planes / 127.5 - 1, atol=1e-6)
    np.testing.assert_allclose(load(HALVES, "pictures")["Validation"], load.planes[:, ::-1] / 127.5 - 1, atol=1e-6)


def test_real_arrays_are_inputs_which_a_warning_says(load):
    np.testing.assert_array_equal(load("", "reals.npy")["Validation"], load.planes.astype(np.float32))
    found = load(HALVES, "reals.npy", codes=("W408",))
    np.testing.assert_array_equal(found["Validation"], load.planes.astype(np.float32))


def test_an_input_range_says_what_bytes_are(load):
    found = load(HALVES, "bytes.npy", "-input-range", "-1:1", codes=("W408",))
    np.testing.assert_allclose(found["Validation"], load.planes / 127.5 - 1, atol=1e-6)


def test_pictures_of_another_size_are_resized_where_the_ini_transforms_nothing(load):
    assert load("", "pictures", size="10 8 3")["Validation"].shape == (6, 3, 8, 10)
    assert load("", "pictures", size="5 4 1")["Validation"].shape == (6, 1, 4, 5)
    assert refused("E407.*RescaleTransformation", load, HALVES, "pictures", size="10 8 3")


def test_beside_a_database_they_calibrate_only(load):
    found = load(OWN + HALVES, "bytes.npy")
    np.testing.assert_allclose(found["Validation"], load.planes / 127.5 - 1, atol=1e-6)
    np.testing.assert_allclose(found["Test"], (255 - load.planes) / 127.5 - 1, atol=1e-6)


def test_without_data_a_warning_remains(load):
    Path("net.ini").write_text(f"[sp]\nSize=5 4 3\n{LAYERS}")
    log.setup(quiet=True)
    load_network(*read_command(["net.ini", "-w", "/dev/null", "-export", "CPP", "-calib", "-1"]))
    assert [one.code for one in log.warnings_seen()] == ["W401"]


def test_a_config_section_below_the_provider_is_no_unknown_section(load):
    """[sp.config] is named by ConfigSection; [sp.Transfromation] by nothing."""
    named = "[sp.config]\nDataSignedMapping=1\n"
    Path("net.ini").write_text(f"{named}[sp]\nSize=5 4 3\nConfigSection=sp.config\n[sp.Transfromation]\nA=1\n{LAYERS}")
    log.setup(quiet=True)
    words = ["net.ini", "-w", "/dev/null", "-export", "CPP", "-calib", "-1", "-calib-data", "bytes.npy"]
    found = load_network(*read_command(words)).data
    (line,) = [one.line() for one in log.warnings_seen()]
    assert line.startswith("N2D2-W403") and "'Transfromation'" in line
    np.testing.assert_allclose(next(iter(found.sets["Validation"].batches(9)))[0], (load.planes / 128.0) - 1, atol=1e-6)
