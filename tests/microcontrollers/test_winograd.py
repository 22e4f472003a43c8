"""`SpeedForFlash=1`: a network of convolutions by Winograd on a board, in memory that its layers share; what it says, takes and reports."""

import json
import re
from pathlib import Path
from shutil import copytree
from subprocess import run

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser
from support.board_export import INPUTS, compiled, counted, export_for_boards, make, need_core, tool

NETWORK = """<ir_version: 8, opset_import: ["" : 17]>
chain (float[1,8,11,13] x) => (float[1,20,11,13] y) {
    a = Conv <pads=[1,1,1,1]> (x, w0)  ar = Relu (a)
    b = Conv <pads=[1,1,1,1]> (ar, w1)  s = Add (b, ar)  sr = Relu (s)
    c = Conv <pads=[1,1,1,1]> (sr, w2)  cr = Relu (c)
    d = Conv <pads=[1,1,1,1]> (cr, w3)  y = Conv <pads=[1,1,1,1]> (d, w4)
}"""
SHAPES = {"w0": (16, 8, 3, 3), "w1": (16, 16, 3, 3), "w2": (32, 16, 3, 3), "w3": (12, 32, 3, 3), "w4": (20, 12, 3, 3)}
COUNTED = {"a": 139_127, "b": 221_617, "c": 401_714, "d": 306_851, "y": 219_380}
"""Instructions of the layers on a Cortex-M4."""
FLASH = "SpeedForFlash=1\n"


@pytest.fixture(scope="module")
def network(tmp_path_factory) -> Path:
    """Sums, ReLUs, odd sizes; outputs lie over inputs, in both orders of the lines."""
    generator, model = np.random.default_rng(3), parser.parse_model(NETWORK)
    constants = {name: generator.normal(0, 0.2, shape).astype(np.float32) for name, shape in SHAPES.items()}
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    path = tmp_path_factory.mktemp("winograd") / "chain.onnx"
    onnx.save(model, path)
    return path


@pytest.fixture(scope="module")
def exported(network, tmp_path_factory) -> Path:
    need_core("cortex-m4")
    return export_for_boards(network, tmp_path_factory.mktemp("flash"), "-compare", "1", "-db-export", "3", parameters=FLASH)


def configs(folder: Path) -> list[str]:
    """The configs of the layers by Winograd."""
    return [text for file in (folder / "dnn" / "include").glob("*.hpp") if "Transformed = 1" in (text := file.read_text())]


@pytest.mark.parametrize("option", ["-O2", pytest.param("-Os", marks=pytest.mark.slow)])
def test_layers_over_their_inputs(option, exported):
    """One line of inputs that a pair of lines covers is copied: every layer is Python's."""
    orders = {tuple(re.findall(r"(Serial|Reverse) = (\d)", text)) for text in configs(exported)}
    assert {dict(order)["Reverse"] for order in orders if dict(order)["Serial"] == "1"} == {"0", "1"}
    assert len(configs(exported)) == 5
    assert "3 vectors, 6 layers: identical" in make(exported, "cortex-m4", "test", f"OPT={option}")


@pytest.mark.parametrize("option", ["-O2", "-Os"])
def test_instructions(option, exported):
    """They may not grow by more than a hundredth."""
    if not tool("cortex-m4", "gcc", "-dumpfullversion").startswith("12.2"):
        pytest.skip("the numbers are those of GCC 12.2")
    said = make(exported, "cortex-m4", "-s", "count", f"OPT={option}")
    counts = {name: int(count) for name, count in re.findall(r"^(\S+) +(\d+)$", said, re.MULTILINE)}
    assert {name: counts[name] for name in COUNTED if counts[name] > 1.01 * COUNTED[name]} == {}


def test_clang(exported, tmp_path):
    """clang aligns functions to two bytes: the products are entered where they should."""
    folder = copytree(exported, tmp_path / "export")
    clang = "CXX=clang++ --target=arm-none-eabi -isystem /usr/include/newlib"
    assert "3 vectors, 6 layers: identical" in make(folder, "cortex-m4", "test", clang)


def test_memory_by_lines(network, tmp_path):
    """Layers that run line by line keep their kernels; the others are by Winograd."""
    folder = export_for_boards(network, tmp_path, "-db-export", "3", parameters=f"{FLASH}MemoryMode=Minimum\n")
    assert 0 < len(configs(folder)) < 5 and all("Streamed = 0" in text for text in configs(folder))
    assert "no Winograd by pairs of channels: it computes pairs of rows; the layer runs row by row" in (
        (folder / "statistics" / "layers.csv").read_text()
    )
    assert "3 vectors, 6 layers: identical" in make(folder, "cortex-m4", "test")


def test_every_input_takes_the_same_instructions(exported):
    assert len(set(counted(exported, "cortex-m4", (), INPUTS))) == 1


def test_what_is_reported_is_what_a_board_takes(network, exported, tmp_path):
    """Flash of the linker, the stack of the compiler's call graphs with the frames of the assembly, against the painted stack."""
    plain = export_for_boards(network, tmp_path, "-db-export", "3")
    sizes = {}
    for folder in (plain, exported):
        said = make(folder, "cortex-m4", "-s", "size", "OPT=-O2")
        sizes[folder] = {name.strip(): int(size) for name, size in re.findall(r"^(.{24}) +(\d+)", said, re.MULTILINE)}
    painted = re.search(r"stack (\d+) of (\d+) bytes", make(exported, "cortex-m4", "test", "OPT=-O2"))
    assert painted is not None
    measured, bound = int(painted[1]), int(painted[2])
    assert measured <= bound <= 1.1 * measured + 64
    if "at most" not in said:  # by the call graphs, which a compiler cache leaves out
        assert -32 <= sizes[exported]["stack"] - measured < 64
    transformed = sum(32 * channels * -(-outputs // 4) * 4 for outputs, channels, *_ in SHAPES.values())
    direct = sum(9 * channels * outputs for outputs, channels, *_ in SHAPES.values())
    growth = sizes[exported]["constants"] - sizes[plain]["constants"]
    assert abs(growth - (transformed - direct)) < 256
    (written,) = re.findall(
        r"(\d+) with Winograd kernels, on cortex-m4, cortex-m7, cortex-m33", (exported / "README.md").read_text()
    )
    # What a layer has in its weights too, biases and multipliers, is not linked.
    assert int(written) - sizes[exported]["constants"] == 8 * sum(outputs for outputs, *_ in SHAPES.values())
    summary = json.loads((exported / "statistics" / "summary.json").read_text())
    assert summary["memory"]["constants"] == sizes[exported]["constants"]
    assert summary["memory"]["stack_bound"] or -32 <= summary["memory"]["stack"] - measured < 64


@pytest.mark.parametrize("core", ["cortex-m0", "cortex-m3", "cortex-m55", "rv32imc", "rv32imc_zve32x"])
def test_cores_without_it_are_warned_of(core, network, tmp_path, capsys):
    folder = export_for_boards(network, tmp_path, parameters=f"{FLASH}Core={core}\n")
    assert (
        f"params.ini:1: SpeedForFlash has no effect: Core={core} has no kernels by Winograd; these have: cortex-m4, cortex-m7, cortex-m33"
        in capsys.readouterr().err
    )
    assert not configs(folder)


def test_a_build_for_another_core_says_so(exported):
    """The export is for all cores: the others have their own kernels, the same integers and a line of make."""
    done = compiled(exported, "cortex-m3", "test")
    assert done.returncode == 0 and "3 vectors, 6 layers: identical" in done.stdout
    assert "SpeedForFlash=1 has no effect on TARGET=cortex-m3: cortex-m4, cortex-m7, cortex-m33 have" in done.stdout
    assert "SpeedForFlash" not in compiled(exported, "cortex-m4", "help").stdout


def test_cmake_for_another_core_says_so(exported, tmp_path):
    for name, said in (("cortex-m3", True), ("cortex-m4", False)):
        toolchain = f"-DCMAKE_TOOLCHAIN_FILE={exported}/cmake/{name}.cmake"
        done = run(["cmake", "-S", exported, "-B", tmp_path / name, toolchain], capture_output=True, text=True, check=True)
        assert ("SpeedForFlash=1 has no effect on cortex-m3" in " ".join(done.stderr.split())) == said


def test_a_network_without_such_layers_is_warned_of(tmp_path, capsys):
    text = """<ir_version: 8, opset_import: ["" : 17]>
    point (float[1,8,11,13] x) => (float[1,16,11,13] y) { y = Conv (x, w) }"""
    model = parser.parse_model(text)
    model.graph.initializer.append(numpy_helper.from_array(np.ones((16, 8, 1, 1), np.float32), "w"))
    onnx.save(model, tmp_path / "point.onnx")
    export_for_boards(tmp_path / "point.onnx", tmp_path / "out", parameters=FLASH)
    assert "W109: SpeedForFlash " in capsys.readouterr().err
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
    dense (float[1,8] x) => (float[1,16] y) { y = Gemm <transB=1> (x, w) }""")
    model.graph.initializer.append(numpy_helper.from_array(np.ones((16, 8), np.float32), "w"))
    onnx.save(model, tmp_path / "dense.onnx")
    export_for_boards(tmp_path / "dense.onnx", tmp_path / "dense", parameters=FLASH)
    assert "W109: SpeedForFlash has no effect: there is no dense convolution; remove it" in capsys.readouterr().err
    export_for_boards(tmp_path / "point.onnx", tmp_path / "none", parameters=f"{FLASH}SIMD=none\n")
    assert "params.ini:1: SpeedForFlash has no effect: SIMD=none leaves the portable kernels" in capsys.readouterr().err
