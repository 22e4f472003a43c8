"""Calibration: reloaded, alone, and from the data of a plain ONNX file."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.e2e_run import MODELS, assert_same_tree, command, export, run, tree

import n2d2py
from n2d2py.cli import main

ONNX = MODELS / "MobileNet.onnx"
DIGITS = MODELS / "data" / "digits"
LISTS_OPTIONS = ("README.md", "manifest.json", "statistics/report.html")


def digits(count: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Test images of the repository, enlarged to 32x32 by repetition: bytes (N, 1, 32, 32) and labels."""
    import gzip

    def idx(name: str, head: int) -> bytes:
        (path,) = DIGITS.glob(f"t10k-{name}*")
        data = path.read_bytes()
        return (gzip.decompress(data) if path.suffix == ".gz" else data)[head:]

    images = np.frombuffer(idx("images", 16), np.uint8).reshape(-1, 1, 8, 8)[:count]
    return images.repeat(4, axis=2).repeat(4, axis=3), np.frombuffer(idx("labels", 8), np.uint8)[:count]


def plain(out: Path, *options: str) -> Path:
    """The export of the plain ONNX file."""
    return run(str(ONNX), "-export", "CPP", "-nbbits", "8", "-calib", "-1", "-quiet", "-o", str(out), *options, out=out)


def input_scale(folder: Path) -> float:
    return n2d2py.load_simulator(folder).info.inputs[0].scale


def test_a_reloaded_calibration_gives_the_identical_export(tmp_path):
    options = ("-calib", "40", "-db-export", "3")
    before = tree(export("LeNet", tmp_path, *options))
    again = tree(export("LeNet", tmp_path, *options, "-calib-reload"))  # manifest and report name the command line
    assert_same_tree(before, again, ignore=LISTS_OPTIONS)
    only = tree(export("LeNet", tmp_path, "-db-export", "3", "-calib-reload"))
    assert_same_tree(before, only, ignore=LISTS_OPTIONS)


def test_reloaded_statistics_serve_other_options(tmp_path):
    first = n2d2py.load_simulator(export("LeNet", tmp_path, "-calib", "40", "-db-export", "0"))
    again = n2d2py.load_simulator(export("LeNet", tmp_path, "-calib-reload", "-db-export", "0", "-act-clipping-mode", "None"))
    fresh = n2d2py.load_simulator(
        export("LeNet", tmp_path / "fresh", "-calib", "40", "-db-export", "0", "-act-clipping-mode", "None")
    )
    scales = [[info.scale for info in net.info.layers] for net in (first, again, fresh)]
    assert scales[1] == scales[2] != scales[0]


def test_calibration_alone_then_export(tmp_path):
    assert main(command("LeNet", tmp_path, "-calibOnly", "-calib", "40")) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["calib_LeNet_int8"]
    calibrated = export("LeNet", tmp_path, "-calib-reload", "-db-export", "2")
    direct = export("LeNet", tmp_path / "direct", "-calib", "40", "-db-export", "2")
    assert_same_tree(tree(calibrated), tree(direct), ignore=LISTS_OPTIONS)


def test_statistics_of_another_network_are_refused(tmp_path, capsys):
    options = ["-export", "CPP", "-db-export", "0", "-quiet", "-o", str(tmp_path)]
    assert main([str(MODELS / "LeNet.ini"), "-w", "/dev/null", "-calib", "8", *options]) == 0
    before = tree(tmp_path)
    assert main([str(MODELS / "LeNet.ini"), "-w", str(MODELS / "LeNet.npz"), "-calib-reload", *options]) == 1
    assert "error N2D2-E5" in capsys.readouterr().err
    assert_same_tree(before, tree(tmp_path))


def test_a_synthetic_calibration_is_reloaded(tmp_path, capsys):
    options = ["-export", "CPP", "-db-export", "0", "-quiet", "-o", str(tmp_path)]
    assert main([str(ONNX), "-calib", "9", *options]) == 0
    before = tree(tmp_path / "export_CPP_int8")
    assert main([str(ONNX), "-calib-reload", *options]) == 0
    assert_same_tree(before, tree(tmp_path / "export_CPP_int8"), ignore=LISTS_OPTIONS)
    warned = capsys.readouterr().err
    assert "W402" in warned and " 9 " in warned
    assert main([str(ONNX), "-calib-reload", "-seed", "7", *options]) == 1
    assert "error N2D2-E503" in capsys.readouterr().err


def test_statistics_of_other_data_of_the_same_name_are_refused(tmp_path, capsys):
    x, _ = digits(12)
    options = [*"-export CPP -db-export 0 -quiet -calib-data".split(), str(tmp_path / "x.npy"), "-o", str(tmp_path / "out")]
    np.save(tmp_path / "x.npy", x)
    assert main([str(ONNX), "-calib", "-1", *options]) == 0
    assert main([str(ONNX), "-calib-reload", *options]) == 0
    x[-1, 0, 16, 16] ^= 1
    np.save(tmp_path / "x.npy", x)
    assert main([str(ONNX), "-calib-reload", *options]) == 1
    assert "error N2D2-E503" in capsys.readouterr().err


def test_outputs_of_a_stimulus_are_written_as_text(tmp_path):
    folder = export("LeNet", tmp_path, "-calib", "40", "-db-export", "-1", "-log-outputs", "3")
    logged = folder / "statistics" / "outputs_export_3"
    net = n2d2py.load_simulator(folder)
    names = [info.name for info in net.info.layers]
    assert {path.name for path in logged.iterdir()} == {f"{name}.dat" for name in ["env", *names]}

    def read(name: str, shape: tuple[int, ...]) -> np.ndarray:
        return np.array((logged / f"{name}.dat").read_text().split(), int)[: np.prod(shape)].reshape(shape)

    from support.e2e_run import stored_stimuli

    x, _ = stored_stimuli(folder)
    np.testing.assert_array_equal(read("env", x[2].shape), x[2])
    for name, values in net.layers(x[2:3]).items():
        np.testing.assert_array_equal(read(name, values[0].shape), values[0])


def test_float_outputs_are_logged_without_an_export(tmp_path):
    assert (
        main([str(MODELS / "LeNet.ini"), "-w", str(MODELS / "LeNet.npz"), "-log-outputs", "1", "-quiet", "-o", str(tmp_path)])
        == 0
    )
    (logged,) = tmp_path.glob("outputs_test_1")
    values = np.array((logged / "softmax.dat").read_text().split(), float)
    assert values.sum() == pytest.approx(1.0, abs=1e-5)
    assert (np.array((logged / "conv1.dat").read_text().split(), float) >= 0).all()


def test_an_onnx_file_is_calibrated_on_arrays(tmp_path):
    images, labels = digits()
    np.save(tmp_path / "bytes.npy", images)
    np.save(tmp_path / "reals.npy", (images / 255.0).astype(np.float32))
    np.savez(tmp_path / "labelled.npz", x=images, y=labels.astype(np.int64))
    made = {
        name: plain(tmp_path / f"of_{name}", "-calib-data", str(tmp_path / name), "-db-export", "0")
        for name in ("bytes.npy", "reals.npy", "labelled.npz")
    }
    scales = {name: [info.scale for info in n2d2py.load_simulator(folder).info.layers] for name, folder in made.items()}
    assert scales["bytes.npy"] == scales["labelled.npz"] == pytest.approx(scales["reals.npy"], rel=1e-5)


def test_labelled_arrays_are_scored(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CXX", "no-compiler")
    images, labels = digits()
    np.savez(tmp_path / "labelled.npz", x=images, y=labels.astype(np.int64))
    folder = plain(tmp_path / "out", "-calib-data", str(tmp_path / "labelled.npz"), "-test", "-db-export", "5")
    scores = json.loads((folder / "statistics" / "summary.json").read_text())["scores"]
    assert "warning N2D2-W801" in capsys.readouterr().err and scores["compiled"] is None
    assert scores["float"] > 50 and abs(scores["float"] - scores["simulated"]) <= 2.5


def test_an_onnx_file_is_calibrated_on_pictures(tmp_path):
    from PIL import Image

    images, _ = digits(12)
    pictures = tmp_path / "pictures"
    for index, image in enumerate(images[:, 0]):
        (pictures / f"part{index % 2}").mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(pictures / f"part{index % 2}" / f"{index:02d}.png")
    np.save(tmp_path / "same.npy", np.concatenate([images[0::2], images[1::2]]))
    folder = plain(tmp_path / "a", "-calib-data", str(pictures), "-db-export", "0")
    same = plain(tmp_path / "b", "-calib-data", str(tmp_path / "same.npy"), "-db-export", "0")
    one, other = (n2d2py.load_simulator(path).info.layers for path in (folder, same))
    assert one == other


def test_the_input_range_decides_what_bytes_mean(tmp_path):
    images, _ = digits(12)
    np.save(tmp_path / "bytes.npy", images)
    data = ("-calib-data", str(tmp_path / "bytes.npy"), "-db-export", "0")
    assert input_scale(plain(tmp_path / "unit", *data)) == pytest.approx(1 / 255)
    byte = plain(tmp_path / "byte", *data, "-input-range", "0:255")
    assert input_scale(byte) == pytest.approx(1.0)
    signed = plain(tmp_path / "signed", *data, "-input-range", "-1:1")
    assert input_scale(signed) == pytest.approx(1 / 127)
    assert n2d2py.load_simulator(signed).info.inputs[0].type.signed


def test_synthetic_calibration_warns_and_is_repeatable(tmp_path, capsys):
    first = plain(tmp_path / "a", "-db-export", "0")
    assert "warning N2D2-W402" in capsys.readouterr().err
    assert_same_tree(tree(first), tree(plain(tmp_path / "b", "-db-export", "0")))
    other = plain(tmp_path / "c", "-db-export", "0", "-seed", "2")
    assert tree(other)["statistics/layers.csv"] != tree(first)["statistics/layers.csv"]
    assert main([str(ONNX), "-export", "CPP", "-calib", "-1", "-strict", "-o", str(tmp_path / "d")]) == 1
    assert not list((tmp_path / "d").glob("export*")) if (tmp_path / "d").exists() else True
