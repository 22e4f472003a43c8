"""The tutorials of the documentation, run as they stand there: the commands are those of the pages."""

import shutil

import numpy as np
import pytest
from support.e2e_run import needs_compiler
from support.pages import ROOT, commands, run_block, run_page, texts, write_files
from support.programs import need, needs, run_command

from n2d2py import load_simulator

needs_bash = needs("bash")
pytestmark = [needs_compiler, needs_bash]


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """The folder of the first tutorial, with what each of its blocks printed."""
    folder = tmp_path_factory.mktemp("tutorial")
    return folder, run_page("tutorials/onnx_to_cpp.md", folder)


def test_from_onnx_and_pictures(digits):
    folder, printed = digits
    _, exported, tested, camera, linked = printed
    table, line, score = texts("tutorials/onnx_to_cpp.md")
    assert table in exported and line in exported
    assert score in tested
    scores = [float(row.split()[1]) for row in camera.splitlines() if row[:1].isdigit()]
    assert len(scores) == 10 and scores.index(max(scores)) == 7
    assert linked.splitlines()[-1].startswith("class ") and linked.endswith("9152 bytes of working memory\n")
    assert (folder / "export_CPP_int8" / "statistics" / "report.html").is_file()


@pytest.mark.slow
def test_on_a_processor_with_linux(digits):
    need("aarch64-linux-gnu-g++", "qemu-aarch64")
    assert "Score: 100.00%" in run_block(commands("tutorials/first_board.md")[0], digits[0])


@pytest.mark.slow
def test_from_an_n2d2_ini(tmp_path):
    memory, exported, built, small = run_page("tutorials/n2d2_ini.md", tmp_path)
    assert "OptimizeReorder" in memory and "warning" not in memory
    assert texts("tutorials/n2d2_ini.md")[0] in exported
    assert "Score: 95.00%" in built
    assert "compiled values identical to Python's" in small


@pytest.mark.slow
def test_two_networks_in_a_cmake_project(tmp_path):
    need("cmake", "pkg-config")
    _, run, installed = run_page("tutorials/cmake_project.md", tmp_path)
    assert run.splitlines()[-1] == "LeNet 2512 bytes, MobileNet 9152 bytes"
    flags = installed.splitlines()[-1].split()
    assert "-lLeNet" in flags
    (tmp_path / "one.cpp").write_text("#include <LeNet.hpp>\nint main() { return LeNet::ArenaBytes == 2512 ? 0 : 1; }\n")
    run_command("g++", "one.cpp", *flags, "-o", "one", cwd=tmp_path)
    run_command("./one", cwd=tmp_path)


def test_a_network_that_streams(tmp_path):
    exported, streamed = run_page("how-to/streaming.md", tmp_path)
    assert texts("how-to/streaming.md")[0] in exported and "compiled values identical to Python's" in exported
    lines = [[int(value) for value in line.split()] for line in streamed.splitlines()[-2:]]
    assert lines[0] == lines[1] and len(set(lines[0])) == 3
    frames = np.full((3, 1, 6), 20, np.int8) * np.arange(1, 7, dtype=np.int8)
    simulator = load_simulator(tmp_path / "export_CPP_int8")
    assert simulator.run_raw(frames).ravel().tolist() == lines[0]


@pytest.mark.slow
def test_coming_from_other_tools(digits, tmp_path):
    """The network and the pictures of the first tutorial stand for the reader's; the commands are those of the tutorials."""
    models = ROOT / "models"
    shutil.copytree(digits[0] / "digits", tmp_path / "IMAGES")
    for name, source in (("NET.onnx", "MobileNet.onnx"), ("NET.npz", "LeNet.npz")):
        shutil.copy(models / source, tmp_path / name)
    text = (models / "LeNet.ini").read_text().replace("DataPath=data/digits", f"DataPath={models / 'data' / 'digits'}")
    assert str(models) in text
    (tmp_path / "NET.ini").write_text(text)
    n2d2, micro, edge, aidge = run_page("how-to/coming_from.md", tmp_path)
    assert "98.43%" in n2d2
    assert "strategy" in micro and "8,448" in micro
    assert "compiled values identical to Python's" in edge and "arena" in edge
    assert "15 layers" in aidge and "int8" in aidge


def test_a_command_that_fails_fails_the_page(tmp_path):
    with pytest.raises(AssertionError, match="net.onnx"):
        run_block("n2d2py net.onnx -test\necho went on\n", tmp_path)
    write_files("tutorials/onnx_to_cpp.md", tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {".tools", "pictures.py", "app.cpp"}
