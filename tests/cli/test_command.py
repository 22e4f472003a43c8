"""The command as a program: what goes to stdout, what to stderr, twice the same, and its exit status."""

import json
import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from generate import main as docs_main
from generate import pages
from support.programs import run_command
from support.quantized_models import Model
from support.tables import every, few_fast

import n2d2py
from n2d2py.cli import main

ROOT = Path(n2d2py.__file__).resolve().parents[1]
MODELS = ROOT / "models"
LENET = [str(MODELS / "LeNet.ini"), "-w", str(MODELS / "LeNet.npz")]


def run(*words: str, folder: Path, **changes: str) -> subprocess.CompletedProcess:
    """n2d2py as a process of its own, with no data and no terminal."""
    environment = {k: v for k, v in os.environ.items() if k not in ("N2D2_DATA", "N2D2_MODELS")}
    return subprocess.run(
        [sys.executable, "-m", "n2d2py", *words],
        cwd=folder,
        text=True,
        capture_output=True,
        env={**environment, "PYTHONPATH": str(ROOT), **changes},
        timeout=120,
    )


def described(capsys, path: Path) -> dict:
    assert main([str(path), "-describe", "json"]) == 0
    return json.loads(capsys.readouterr().out)


@every("name", sorted(pages()))
def test_documentation_pages_are_up_to_date(name):
    path = ROOT / "docs" / name
    if not (ROOT / "docs").is_dir():
        pytest.skip("an installed package has no docs folder")
    assert {f"sections/{one.name}" for one in (ROOT / "docs" / "sections").iterdir()} <= set(pages()), "a page of no section"
    assert path.read_text(encoding="utf-8") == pages()[name], "run python docs/site/generate.py"


def test_writing_the_pages_takes_a_folder_or_says_so(tmp_path, capsys):
    docs_main([str(tmp_path)])
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.relative_to(tmp_path).as_posix(): path.read_text(encoding="utf-8") for path in written} == pages()
    for words, status in ((["--help"], 0), ([str(tmp_path / "none")], 2), (["-x"], 2)):
        with pytest.raises(SystemExit) as end:
            docs_main(words)
        assert end.value.code == status
    assert not (tmp_path / "none").exists() and "folder" in capsys.readouterr().err


def test_describe_lenet(capsys):
    found = described(capsys, MODELS / "LeNet.ini")
    assert found["name"] == "LeNet"
    assert found["inputs"] == {"sp": [32, 32, 1]} and found["outputs"] == ["softmax"]
    layers = {layer["name"]: layer for layer in found["layers"]}
    assert {name: (layer["type"], layer["output_dims"]) for name, layer in layers.items()} == {
        "conv1": ("Conv", [28, 28, 6]),
        "pool1": ("Pool", [14, 14, 6]),
        "conv2": ("Conv", [10, 10, 16]),
        "pool2": ("Pool", [5, 5, 16]),
        "conv3": ("Conv", [1, 1, 120]),
        "fc1": ("Fc", [1, 1, 84]),
        "drop1": ("Dropout", [1, 1, 84]),
        "fc2": ("Fc", [1, 1, 10]),
        "softmax": ("Softmax", [1, 1, 10]),
    }
    assert layers["conv2"]["parents"] == ["pool1"] and layers["conv2"]["input_dims"] == [14, 14, 6]
    assert layers["conv1"]["macs"] == 28 * 28 * 6 * 25
    assert layers["conv2"]["params"] == 16 * (6 * 25 + 1) and layers["fc1"]["params"] == 84 * 121
    assert found["params"] == sum(layer["params"] for layer in found["layers"]) == 61706


def test_describe_mobilenet(capsys):
    found = described(capsys, MODELS / "MobileNet.ini")
    (first,) = [layer for layer in found["layers"] if layer["parents"] == list(found["inputs"])]
    assert first["type"] == "Conv" and first["input_dims"] == next(iter(found["inputs"].values()))
    assert [layer["output_dims"] for layer in found["layers"] if layer["name"] == found["outputs"][0]] == [[1, 1, 10]]
    names = {layer["name"] for layer in found["layers"]} | set(found["inputs"])
    assert all(parent in names for layer in found["layers"] for parent in layer["parents"])
    assert found["macs"] == sum(layer["macs"] for layer in found["layers"]) > 0


@pytest.mark.compiles
@pytest.mark.parametrize("bits", few_fast(["8", "-32"]))
def test_layers_of_a_model_file_are_compared_without_data(bits, tmp_path, capsys):
    model = Model((6,))
    y = model.add("MatMul", model.rounded("x", 0.02, 3), model.weights((6, 4), 0.003, axis=1))
    model.outputs.append(model.rounded(y, 0.02, 0))
    onnx.save(model.built(), tmp_path / "net.onnx")
    words = [str(tmp_path / "net.onnx"), "-export", "CPP", "-nbbits", bits, "-o", str(tmp_path)]
    assert main([*words, "-compare", "1"]) == 0 and "W402" in capsys.readouterr().err
    assert main([*words, "-test"]) == 1 and "E509" in capsys.readouterr().err


@pytest.mark.parametrize("model", ["LeNet.ini", "MobileNet.ini", "MobileNet.onnx"])
def test_describe_prints_json_only_and_needs_no_data(model, tmp_path):
    """The INI lies without its data in a folder of its own."""
    (tmp_path / model).write_bytes((MODELS / model).read_bytes())
    if model == "MobileNet.ini":
        (tmp_path / "MobileNet.onnx").write_bytes((MODELS / "MobileNet.onnx").read_bytes())
    before = sorted(tmp_path.iterdir())
    done = run(model, "-describe", "json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)) == {"name", "inputs", "outputs", "layers", "macs", "params"}
    assert done.stdout.startswith("{") and done.stdout.endswith("}\n")
    assert "error" not in done.stderr and sorted(tmp_path.iterdir()) == before


def test_quiet_prints_results_only(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([*LENET, "-test", "-nb-test", "20", "-quiet"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "float" in printed.out
    assert main([*LENET, "-test", "-nb-test", "20"]) == 0
    louder = capsys.readouterr()
    assert louder.out == printed.out and "LeNet: 9 layers" in louder.err


def test_quiet_still_prints_warnings(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([LENET[0], "-test", "-nb-test", "20", "-quiet"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("warning N2D2-W420: ") and "6 layers" not in line and " 5 layers " in line


def test_two_runs_print_and_write_the_same(tmp_path):
    runs = []
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        done = run(*LENET, *"-export CPP -calib 10 -db-export 3 -verbose".split(), folder=folder, PYTHONHASHSEED=str(len(runs)))
        assert done.returncode == 0, done.stderr
        files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
        runs.append((done.stdout, done.stderr, files))
    assert runs[0][:2] == runs[1][:2]
    assert list(runs[0][2]) == list(runs[1][2])
    assert [name for name, data in runs[0][2].items() if data != runs[1][2][name]] == []
    assert "\r" not in runs[0][1] and str(tmp_path) not in runs[0][1]


@every(
    "words, status",
    [
        (["-v"], 0),
        (["-h"], 0),
        ([], 2),
        (["-nope"], 2),
        (["none.ini"], 1),
        (["none.ini", "-test"], 1),
        ([LENET[0], "-calibOnly", "-nbbits", "-32"], 2),
        ([LENET[0], "-export", "CPP"], 1),
        ([LENET[0], "-describe"], 0),
        ([LENET[0], "-test", "-strict", "-nb-test", "1"], 1),
    ],
)
def test_exit_status(words, status, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(words) == status
    assert ("error N2D2-" in capsys.readouterr().err) == (status != 0)
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_do_says_so(capsys):
    assert main(LENET) == 0
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.endswith("nothing to do: add -test, -export TYPE or -describe\n")


def test_the_module_and_the_script_are_the_same_command(tmp_path):
    script = run_command(
        str(ROOT / "bin" / "n2d2py"),
        "-v",
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
    )
    assert script == run("-v", folder=tmp_path).stdout == f"n2d2py {n2d2py.__version__}\n"


def test_describe_counts_no_bias_where_there_is_none(capsys, tmp_path):
    text = (
        "[sp]\nSizeX=4\nSizeY=4\n[conv]\nInput=sp\nType=Conv\nKernelDims=3 3\nNbOutputs=5\nConfigSection=plain\n"
        "[fc]\nInput=conv\nType=Fc\nNbOutputs=2\nConfigSection=plain\n[plain]\nNoBias="
    )
    counts = []
    for without in "01":
        (tmp_path / "net.ini").write_text(text + without + "\n")
        counts.append([layer["params"] for layer in described(capsys, tmp_path / "net.ini")["layers"]])
    assert counts == [[5 * 10, 2 * (2 * 2 * 5 + 1)], [5 * 9, 2 * 2 * 2 * 5]]


@pytest.mark.parametrize("text, warned", [("MemoryMode = Small\n", True), ("States = none\n", False)])
def test_parameters_that_no_export_reads_are_warned_of(text, warned, tmp_path, capsys):
    (tmp_path / "p.ini").write_text(text)
    network = MODELS / "MobileNet.onnx"
    assert main([str(network), "-describe", "-export-parameters", str(tmp_path / "p.ini")]) == 0
    assert ("N2D2-W011: -export-parameters" in capsys.readouterr().err) == warned
