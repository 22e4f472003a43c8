"""The command n2d2py-nvdla: what it writes, wrong inputs, the self-test for a board."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.nvdla_networks import samples, typed
from support.small_graphs import RELU, Net

from n2d2py_nvdla import Program, read_loadable, write_loadable
from n2d2py_nvdla.__main__ import main
from n2d2py_nvdla.check import violations
from n2d2py_nvdla.config import CONFIGS
from n2d2py_nvdla.export.emit import emit
from n2d2py_nvdla.export.lower import lower
from n2d2py_nvdla.firmware import FP16, INT8

SHAPE = (3, 9, 8)


def loadable(path: Path, config: str = "nv_small", precision: int = INT8, shape=SHAPE) -> Path:
    net = Net(shape)
    graph = net.done(net.conv("b", net.conv("a", "x", 8, activation=RELU), 4))
    lowered, _ = lower(typed(graph, precision, samples(shape)), CONFIGS[config], precision)
    path.write_bytes(write_loadable(emit(lowered, "v12").loadable))
    return path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loadable(tmp_path / "net.nvdla")
    np.save("x.npy", np.ones(SHAPE, np.int8))
    return tmp_path


def test_raw_output_writes_no_other_file(folder):
    before = set(os.listdir())
    assert main(["run", "net.nvdla", "--input", "x.npy", "--raw-output", "raw.bin"]) == 0
    assert set(os.listdir()) - before == {"raw.bin"}
    assert main(["run", "net.nvdla", "--input", "x.npy", "--raw-output", "raw2.bin", "--output", "o.txt", "--rawdump"]) == 0
    assert set(os.listdir()) - before == {"raw.bin", "raw2.bin", "o.txt"}
    assert Path("raw.bin").read_bytes() == Path("raw2.bin").read_bytes() and len(Path("o.txt").read_text().split()) == 4 * 5 * 4


def test_rawdump_wants_a_file_beside_raw_output(folder, capsys):
    assert main(["run", "net.nvdla", "--raw-output", "raw.bin", "--rawdump"]) == 1
    assert "E905" in capsys.readouterr().err and not Path("raw.bin").exists()


HEADER = b"\x93NUMPY\x01\x00v\x00"
INPUTS = {
    "none.npy": (b"", "E905"),
    "magic.npy": (b"\x93NUMPY", "E905"),
    "huge.npy": (HEADER + b"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 9, 8), }".ljust(118), "E905"),
    "negative.npy": (HEADER + b"{'descr': '<f4', 'fortran_order': False, 'shape': (-3, 9, 8), }".ljust(118), "E905"),
    "cut.npy": (HEADER + b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 9, 8), }".ljust(118), "E905"),
    "odd.npy": (HEADER + b"{'descr': 3, 'fortran_order': 7, 'shape': 'a'}".ljust(118), "E905"),
    "empty.bin": (b"", "E905"),
    "short.bin": (b"12", "E905"),
    "long.bin": (bytes(10000), "E905"),
    "empty.pgm": (b"", "E905"),
    "short.pgm": (b"P5 8 9 255\n12", "E905"),
    "wide.pgm": (b"P5 99999999 99999999 255\n", "E905"),
    "junk.png": (b"junk", "E905"),
    "missing.npy": (None, "E902"),
}


@pytest.mark.parametrize("fast", [[], ["--fast"]])
@pytest.mark.parametrize("name", INPUTS)
def test_wrong_inputs_get_one_line(name, fast, folder, capsys):
    data, code = INPUTS[name]
    if data is not None:
        Path(name).write_bytes(data)
    assert main(["run", "net.nvdla", "--input", name, *fast]) == 1
    text = capsys.readouterr().err
    assert code in text and len(text.splitlines()) == 1 and not Path("output.dimg").exists()


@pytest.mark.parametrize(
    "values",
    [
        np.full(SHAPE, 1j),
        np.full(SHAPE, "a"),
        np.zeros(SHAPE, "datetime64[s]"),
        np.zeros(SHAPE, [("a", "i4")]),
        np.full(SHAPE, np.nan),
        np.full(SHAPE, 200),
        np.zeros((3, 9, 80)),
        np.zeros(0),
    ],
)
def test_arrays_of_other_kinds(values, folder, capsys):
    np.save("y.npy", values)
    assert main(["run", "net.nvdla", "--input", "y.npy"]) == 1
    assert "E905" in capsys.readouterr().err


def test_a_pipe_and_a_picture_of_another_size(folder, capsys):
    os.mkfifo("pipe.npy")
    assert main(["run", "net.nvdla", "--input", "pipe.npy"]) == 1 and main(["check", "pipe.npy"]) == 1
    from PIL import Image

    Image.new("RGB", (9, 9)).save("picture.png")
    assert main(["run", "net.nvdla", "--image", "picture.png"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3 and all("regular file" in line for line in lines[:2]) and "9x9 pixels" in lines[2]


@pytest.mark.parametrize(
    "words", [["--mean", "nan"], ["--normalize", "0"], ["--fast", "--exact"], ["--output", "a\0b"]], ids=lambda words: words[0]
)
def test_wrong_options_are_wrong_command_lines(words, folder):
    assert main(["run", "net.nvdla", *words]) == 2


def test_a_configuration_without_the_precision(folder, capsys):
    loadable(folder / "half.nvdla", "nv_full", FP16)
    assert main(["run", "half.nvdla", "--config", "nv_small"]) == 1 and "E907" in capsys.readouterr().err


def test_grey_pictures_are_read_as_pixels(folder):
    """One byte per pixel in place of an atom; a picture becomes the same stored values as everywhere."""
    path = loadable(folder / "grey.nvdla", shape=(1, 32, 32))
    program = Program.of(read_loadable(path))
    assert program.inputs[0][1].size == 1024 and program.inputs[0][1].pixel_format == 0
    pixels = np.arange(1024).astype(np.uint8).reshape(32, 32)
    Path("p.pgm").write_bytes(b"P5 32 32 255\n" + pixels.tobytes())
    np.save("p.npy", np.floor(pixels * (127 / 255) + 0.5)[None])
    for name, option in (("p.pgm", "--image"), ("p.npy", "--input")):
        assert main(["run", "grey.nvdla", option, name, "--raw-output", name + ".raw"]) == 0
    assert Path("p.pgm.raw").read_bytes() == Path("p.npy.raw").read_bytes()


@pytest.mark.parametrize(
    "config, firmware, precision",
    [("nv_small", "0.12", "int8"), ("nv_large", "0.11", "int8"), ("nv_full", "0.12", "int8"), ("nv_full", "0.11", "fp16")],
)
def test_self_test(config, firmware, precision, tmp_path):
    words = ["self-test", str(tmp_path / "a"), "--config", config, "--firmware", firmware, "--precision", precision]
    assert main(words) == 0
    made = tmp_path / "a"
    names = sorted(path.stem for path in made.glob("*.nvdla"))
    assert len(names) == (13 if config == "nv_full" else 12)
    readme = (made / "README.md").read_text()
    for name in names:
        program = Program.of(read_loadable(made / f"{name}.nvdla"))
        assert violations(program, CONFIGS[config]) == [] and name in readme
        assert program.abi.name == ("v12" if firmware == "0.12" else "v10")
        given = ["--input", str(made / f"{name}.input.bin")] if name != "06_network" else ["--image", str(made / "input.pgm")]
        for option, suffix in (("--output", "dimg"), ("--raw-output", "bin")):
            assert main(["run", str(made / f"{name}.nvdla"), *given, "--config", config, option, str(tmp_path / "o")]) == 0
            assert (tmp_path / "o").read_bytes() == (made / f"{name}.expected.{suffix}").read_bytes()
        assert len(set((made / f"{name}.expected.txt").read_text().split())) > 3, "an output that says nothing"
    assert main([*words[:1], str(tmp_path / "b"), *words[2:]]) == 0
    assert all((tmp_path / "b" / path.name).read_bytes() == path.read_bytes() for path in made.iterdir())


def test_the_script_of_the_self_test_tells_what_differs(tmp_path):
    """With the functional model in the place of NVIDIA's runtime."""
    assert main(["self-test", str(tmp_path / "a"), "--config", "nv_small"]) == 0
    runtime = tmp_path / "runtime"
    runtime.write_text(
        '#!/bin/sh\n[ "$2" = 03_pool.nvdla ] && exit 1\n'
        '[ "$2" = 02_relu.nvdla ] && { printf "%0300d" 1 > output.dimg; exit 0; }\n'
        'cp "${2%.nvdla}.expected.dimg" output.dimg\n'
    )
    runtime.chmod(0o755)
    done = subprocess.run(["sh", str(tmp_path / "a" / "run.sh"), str(runtime)], capture_output=True, text=True)
    wrong = [line for line in done.stdout.splitlines() if "DIFFERS" in line]
    assert done.returncode == 1 and [line[:7] for line in wrong] == ["02_relu", "03_pool"]


@pytest.mark.parametrize(
    "words, code", [(["--config", "nv_tiny"], "E907"), (["--config", "nv_small", "--precision", "fp16"], "E705")]
)
def test_a_self_test_that_does_not_exist(words, code, tmp_path, capsys):
    assert main(["self-test", str(tmp_path / "a"), *words]) == 1
    assert code in capsys.readouterr().err and not (tmp_path / "a").exists()


def test_a_self_test_replaces_nothing(tmp_path, capsys):
    (tmp_path / "mine").write_text("x")
    assert main(["self-test", str(tmp_path)]) == 1
    assert "E711" in capsys.readouterr().err and os.listdir(tmp_path) == ["mine"]
