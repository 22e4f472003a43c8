"""The export EthosU: Vela, Arm's compiler, takes every layer; the program in C gives the driver what Vela made."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.errors import error_line
from support.model_run import LENET
from support.onnx_models import node_model
from support.programs import run_command

import n2d2py
from n2d2py.cli import main

pytest.importorskip("ethosu.vela")
pytest.importorskip("ai_edge_litert")

MODELS = Path(__file__).parents[3] / "shared" / "data" / "models"
DRIVER = """
#include <stddef.h>
#include <stdint.h>
struct ethosu_driver { int unused; };
int ethosu_invoke(struct ethosu_driver*, const void*, int, uint64_t*, const size_t*, int);
"""
"""The part of Arm's driver that the program calls."""
CHECKED = """
#include <stdio.h>
#include <string.h>
#include "ethosu_driver.h"
#include "lenet_npu.h"

static uint8_t arena[LENET_NPU_ARENA_BYTES] __attribute__((aligned(16)));

int ethosu_invoke(struct ethosu_driver* driver, const void* data, int size, uint64_t* bases, const size_t* sizes, int count) {
    if (driver == NULL || size < 16 || memcmp(data, "COP1", 4) != 0 || (uintptr_t)data % 16 || bases[0] % 16)
        return 1;
    if (count != 2 || bases[1] != (uint64_t)(uintptr_t)arena || sizes[1] != sizeof arena || sizes[0] == 0)
        return 2;
    return 0;
}

int main(void) {
    struct ethosu_driver driver = {0};
    if (LENET_NPU_INPUT_OFFSET + LENET_NPU_INPUT_BYTES > sizeof arena || LENET_NPU_INPUT_BYTES != 32 * 32)
        return 3;
    if (LENET_NPU_OUTPUT_OFFSET + LENET_NPU_OUTPUT_BYTES > sizeof arena || LENET_NPU_OUTPUT_BYTES != 10)
        return 4;
    return lenet_npu_run(&driver, arena);
}
"""


@pytest.fixture(scope="module")
def lenet(tmp_path_factory) -> Path:
    """LeNet without its Softmax, by the command line, on a system of Vela's configuration file."""
    folder = tmp_path_factory.mktemp("lenet")
    (folder / "npu.ini").write_text("VelaSystemConfig=Ethos_U55_High_End_Embedded\nVelaMemoryMode=Shared_Sram\n")
    words = [*LENET, "-export", "EthosU", "-nbbits", "8", "-export-parameters", str(folder / "npu.ini")]
    assert main([*words, "-calib", "50", "-db-export", "60", "-test", "-o", str(folder)]) == 0
    return folder / "export_EthosU_int8"


def test_no_layer_is_left_to_the_cpu(lenet):
    assert (lenet / "LeNet_vela.tflite").read_bytes()[4:8] == b"TFL3"
    assert "MicroMutableOpResolver<1>" in (text := (lenet / "model_operators.h").read_text()) and "AddEthosU()" in text
    figures = (lenet / "statistics" / "vela.csv").read_text().splitlines()
    cycles = round(float(dict(zip(*(line.split(",") for line in figures), strict=True))["cycles_total"]))
    report = (lenet / "statistics" / "report.html").read_text()
    assert cycles > 0 and f"{cycles:,}" in report and "estimated by Vela" in report


@pytest.mark.compiles
@pytest.mark.parametrize("compiler", [["gcc", "-std=c99"], ["g++", "-x", "c++"]], ids=["C", "C++"])
def test_the_driver_is_given_the_commands_and_aligned_memory(lenet, tmp_path, compiler):
    (tmp_path / "ethosu_driver.h").write_text(
        '#pragma once\n#ifdef __cplusplus\nextern "C" {\n#endif\n' + DRIVER + "#ifdef __cplusplus\n}\n#endif\n"
    )
    (tmp_path / "main.c").write_text(CHECKED)
    flags = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", f"-I{tmp_path}", f"-I{lenet / 'src'}"]
    sources = [str(tmp_path / "main.c"), str(lenet / "src" / "lenet_npu.c")]
    run_command(*compiler, *flags, *sources, "-o", str(tmp_path / "main"))
    assert subprocess.run([str(tmp_path / "main")]).returncode == 0


def _network(tmp_path: Path, *last: tuple) -> tuple[str, str]:
    weights = np.random.default_rng(0).normal(0, 0.3, (4, 3, 3, 3)).astype(np.float32)
    file = node_model([("Conv", ["x", "w"], "c"), *last], {"w": weights}, (1, 3, 8, 8))
    (tmp_path / "net.onnx").write_bytes(file)
    np.save(tmp_path / "x.npy", np.random.default_rng(1).normal(size=(8, 3, 8, 8)).astype(np.float32))
    return str(tmp_path / "net.onnx"), str(tmp_path / "x.npy")


def test_layers_that_the_npu_lacks_stay_in_the_file(tmp_path, capsys):
    """TFLite Micro runs them on the CPU; no program without TFLite Micro is written."""
    net, data = _network(tmp_path, ("DepthToSpace", ["c"], "y", {"blocksize": 2}))
    folder = n2d2py.export(net, "EthosU", data=data, folder=str(tmp_path)).folder
    operators = (Path(folder) / "model_operators.h").read_text()
    assert "AddEthosU()" in operators and "AddDepthToSpace()" in operators
    assert not (Path(folder) / "src").exists() and "DEPTH_TO_SPACE" in (Path(folder) / "README.md").read_text()


def test_the_same_export_twice_has_the_same_bytes(tmp_path):
    net, data = _network(tmp_path, ("Relu", ["c"], "y"))
    made = [Path(n2d2py.export(net, "EthosU", data=data, folder=str(tmp_path / name)).folder) for name in "ab"]
    for name in ("net_vela.tflite", "src/net_npu.c", "manifest.json"):
        assert (made[0] / name).read_bytes() == (made[1] / name).read_bytes()


@pytest.mark.parametrize(
    "code, words, text",
    [
        ("E705", ["-nbbits", "16"], ""),
        ("E705", [], "VelaMemoryMode=Shared_Sram\n"),
        ("E802", [], "VelaSystemConfig=None_Such\nVelaMemoryMode=Shared_Sram\n"),
        ("E721", [], ""),
    ],
)
def test_what_cannot_be_compiled_leaves_nothing(tmp_path, capsys, monkeypatch, code, words, text):
    net, data = _network(tmp_path, ("Relu", ["c"], "y"))
    (tmp_path / "npu.ini").write_text(text)
    if code == "E721":
        monkeypatch.setattr("n2d2py_ethosu.target.find_spec", lambda name: None)
    given = ["-calib-data", data, "-export-parameters", str(tmp_path / "npu.ini"), "-o", str(tmp_path / "out")]
    assert main([net, "-export", "EthosU", *given, *words]) == 1
    told = capsys.readouterr().err
    assert code in told and "Traceback" not in told and not list((tmp_path / "out").glob("*"))


@pytest.mark.slow
@pytest.mark.skipif(not MODELS.is_dir(), reason="../shared/data/models is missing")
@pytest.mark.parametrize(
    "name, shape", [("resnet8", (3, 32, 32)), ("vww_96", (3, 96, 96)), ("kws_dscnn", (1, 49, 10)), ("ad_autoencoder", (640,))]
)
def test_the_networks_of_mlperf_tiny_run_on_the_npu_alone(tmp_path, name, shape):
    x = np.random.default_rng(2).random((8, *shape)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    made = n2d2py.export(str(MODELS / f"{name}.onnx"), "EthosU", data=str(tmp_path / "x.npy"), folder=str(tmp_path))
    assert list((Path(made.folder) / "src").glob("*_npu.c"))


def test_other_precisions_are_an_error_of_python_too(tmp_path):
    net, data = _network(tmp_path, ("Relu", ["c"], "y"))
    assert "E705" in error_line(lambda: n2d2py.export(net, "EthosU", data=data, bits=-32, folder=str(tmp_path / "out")))
