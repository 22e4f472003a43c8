"""A whole target of another package, found by its entry point: parameters, integers, refusals, files and runner."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder of installed packages with the target as pip leaves it, a network and its data."""
    import onnx

    folder = tmp_path_factory.mktemp("installed")
    site, metadata = folder / "site", folder / "site" / "toy_target-1.0.dist-info"
    shutil.copytree(HERE / "toy_target", site / "toy_target")
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-target\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[n2d2py.plugins]\nTOY = toy_target.target:ToyTarget\nSICK = toy_target.no:No\n")
    rng = np.random.default_rng(1)
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        net (float[1, 6] x) => (float[1, 3] y) {
            h = Gemm <transB = 1> (x, w1, b1)
            r = Relu (h)
            y = Gemm <transB = 1> (r, w2, b2)
        }""")
    for name, shape in (("w1", (8, 6)), ("b1", (8,)), ("w2", (3, 8)), ("b2", (3,))):
        model.graph.initializer.append(onnx.numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name))
    onnx.save(model, folder / "net.onnx")
    x = rng.standard_normal((40, 6)).astype(np.float32)
    np.savez(folder / "data.npz", x=x, y=rng.integers(0, 3, 40))
    return folder


def command(place: Path, *words: str, parameters: str = "") -> subprocess.CompletedProcess[str]:
    """`n2d2py net.onnx` in a process that finds the installed package."""
    (place / "params.ini").write_text(parameters)
    common = ["net.onnx", "-calib", "-1", "-calib-data", "data.npz", "-export-parameters", "params.ini", "-o", "."]
    path = os.pathsep.join([str(HERE.parents[1]), str(place / "site")])
    return subprocess.run(
        [sys.executable, "-m", "n2d2py", *common, *words],
        cwd=place,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )


def test_the_target_runs_from_end_to_end(place):
    parameters = "ToyOrder=inputs\nToyNote=hello\nInt4Weights=1\n[h]\nUnit=2\n[y]\nUnti=1\n"
    done = command(place, "-export", "TOY", "-test", "-compare", "10", "-quality", "best", parameters=parameters)
    assert done.returncode == 0, done.stderr
    assert "compiled values identical to Python's" in done.stdout and "toy" in done.stdout
    assert "W109: params.ini:3: Int4Weights has no effect: the TOY export does not read it" in done.stderr
    assert "W102: params.ini:6 [y]: " in done.stderr
    assert "did you mean 'Unit'?" in done.stderr and "W801" not in done.stderr
    folder = place / "export_TOY_int8"
    program, manifest = (json.loads((folder / name).read_text()) for name in ("toy.json", "manifest.json"))
    assert program["note"] == "hello" and [layer["unit"] for layer in program["layers"]] == [2, 0]
    assert manifest["export"] == "TOY" and manifest["details"]["order"] == "inputs"
    assert manifest["parameters"]["ToyLanes"] == 16
    # Its integers: signed bytes at both ends, one multiplier of 15 bits for each layer.
    with np.load(folder / "toy.npz") as file:
        assert file["stimuli"].dtype == np.int8 and file["weights0"].shape == (6, 8)
    assert all(0 < layer["multiplier"] < 2**15 and layer["clamp"][1] == 127 for layer in program["layers"])


@pytest.mark.parametrize(
    "parameters, words, said",
    [
        ("ToyLanes=65\n", [], ["E122: params.ini:1: ToyLanes=65 is above 64; give 64 or less"]),
        ("ToyOrder=both\n", [], ["E122: params.ini:1: ToyOrder=both is not one of outputs, inputs"]),
        ("[h]\nUnit=4\n", [], ["E122: params.ini:2 [h]: Unit=4 is above 3"]),
        ("ToyLanes=2\n", [], ["E701: net: layer 'h': it has 8 outputs, ToyLanes=2", "layer 'y': it has 3 outputs"]),
        ("", ["-act-rescaling-mode", "Floating-point"], ["E701: net: layer 'h': TOY multiplies", "layer 'y': TOY multiplies"]),
        ("", ["-nbbits", "-32"], ["E705: TOY computes in bytes; use -nbbits 8"]),
        ("", ["-tune"], ["E808: -tune "]),
    ],
)
def test_what_it_cannot_take_is_refused_and_nothing_written(place, parameters, words, said):
    shutil.rmtree(place / "export_TOY_int8", ignore_errors=True)
    done = command(place, "-export", "TOY", "-quality", "fast", *words, parameters=parameters)
    assert done.returncode == 1 and not list(place.glob("export_TOY*"))
    assert [text for text in said if text not in done.stderr] == []


def test_its_parameters_mean_nothing_to_other_targets(place):
    parameters = "ToyLanes=4\nToyLane=4\n"
    done = command(place, "-export", "ONNX", "-quality", "fast", "-db-export", "0", parameters=parameters)
    assert done.returncode == 0, done.stderr
    assert "W109: params.ini:1: ToyLanes has no effect: the ONNX export does not read it" in done.stderr
    assert "W102: params.ini:2: " in done.stderr
    assert "ToyLanes" not in json.loads((place / "export_ONNX_int8" / "manifest.json").read_text())["parameters"]


def test_a_parameter_that_another_overrules_is_warned_of(place):
    done = command(place, "-export", "TOY", "-quality", "fast", parameters="ToyLanes=1\nToyOrder=inputs\n")
    assert "W109: params.ini:2: ToyOrder has no effect: with one lane there is one order" in done.stderr


def test_help_shows_its_parameters(place):
    done = command(place, "-export", "TOY", "-h")
    assert done.returncode == 0
    assert "  ToyLanes = unsigned integer, at least 1, at most 64 [16]\n        outputs of a layer" in done.stdout
    assert "  ToyOrder = one of outputs, inputs [outputs]" in done.stdout and "  Unit = unsigned integer" in done.stdout


def test_unknown_targets_are_refused_with_the_installed_ones(place):
    done = command(place, "-export", "TOI")
    assert done.returncode == 1 and "did you mean 'TOY'?" in done.stderr
