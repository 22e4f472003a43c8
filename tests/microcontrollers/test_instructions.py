"""Instructions of one inference on a Cortex-M4, a Cortex-M55, an RV32 and one with vectors against numbers that were measured: they may not grow by more than a hundredth."""

import re
import sys
from pathlib import Path

import pytest
from support import memory_networks
from support.board_export import SHARED, export_for_boards, make, need_core, tool

ROOT = Path(__file__).resolve().parents[2]
COMPILER = "12.2"
MEASURED = {
    ("cortex-m4", "resnet8", "-O2"): 12_554_428,
    ("cortex-m4", "resnet8", "-Os"): 12_576_873,
    ("cortex-m4", "vww_96", "-O2"): 9_247_097,
    ("cortex-m4", "vww_96", "-Os"): 9_257_917,
    ("cortex-m4", "kws_dscnn", "-O2"): 3_304_937,
    ("cortex-m4", "kws_dscnn", "-Os"): 3_311_273,
    ("cortex-m4", "ad_autoencoder", "-O2"): 254_530,
    ("cortex-m55", "resnet8", "-O2"): 2_212_140,
    ("cortex-m55", "resnet8", "-Os"): 2_219_749,
    ("cortex-m55", "vww_96", "-O2"): 2_469_285,
    ("cortex-m55", "vww_96", "-Os"): 2_472_308,
    ("cortex-m55", "kws_dscnn", "-O2"): 816_067,
    ("cortex-m55", "kws_dscnn", "-Os"): 817_176,
    ("cortex-m55", "ad_autoencoder", "-O2"): 50_020,
    ("rv32imc", "resnet8", "-O2"): 28_427_207,
    ("rv32imc", "resnet8", "-Os"): 28_480_008,
    ("rv32imc", "vww_96", "-O2"): 19_620_869,
    ("rv32imc", "vww_96", "-Os"): 19_740_061,
    ("rv32imc", "kws_dscnn", "-O2"): 7_117_102,
    ("rv32imc", "kws_dscnn", "-Os"): 7_159_417,
    ("rv32imc", "ad_autoencoder", "-O2"): 929_695,
    ("rv32imc", "ad_autoencoder", "-Os"): 969_067,
    ("rv32imc_zve32x", "resnet8", "-O2"): 3_965_703,
    ("rv32imc_zve32x", "resnet8", "-Os"): 3_955_937,
    ("rv32imc_zve32x", "vww_96", "-O2"): 4_061_451,
    ("rv32imc_zve32x", "vww_96", "-Os"): 4_021_358,
    ("rv32imc_zve32x", "kws_dscnn", "-O2"): 1_087_729,
    ("rv32imc_zve32x", "kws_dscnn", "-Os"): 1_082_071,
    ("rv32imc_zve32x", "ad_autoencoder", "-O2"): 72_150,
}
"""By GCC 12.2, with vectors of RISC-V by clang 14. The networks are MLPerf Tiny's, quantized already but for ad_autoencoder,
which the default `-quality` gives outputs of 16 bits."""
SPEED_FOR_FLASH = {
    ("cortex-m4", "-O2"): 7_526_000,
    ("cortex-m4", "-Os"): 7_549_778,
    ("cortex-m7", "-O2"): 7_531_065,
    ("cortex-m33", "-O2"): 7_526_606,
}
"""resnet8 with `SpeedForFlash=1`."""
MOBILENET_V2 = {"cortex-m7": 17_861_683, "cortex-m55": 5_272_803}
"""MobileNetV2 0.35 on pictures of 96 x 96, with random weights, `-O2`."""
CODE = {"resnet8": 12 * 1024 + 512, "vww_96": 14 * 1024, "kws_dscnn": 12 * 1024, "ad_autoencoder": 6 * 1024}
"""Bytes of flash beside the constants that no core with kernels of its own may exceed."""


def counted(folder: Path, core: str, option: str) -> int:
    said = make(folder, core, "-s", "count", f"OPT={option}")
    (found,) = re.findall(r"^inference +(\d+)$", said, re.MULTILINE)
    return int(found)


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="real models and data are not in ../shared/data")
@pytest.mark.parametrize("core, network, option", MEASURED)
def test_networks(core, network, option, exported):
    need_core(core)
    if not tool(core, "gcc", "-dumpfullversion").startswith(COMPILER):
        pytest.skip(f"the numbers are those of GCC {COMPILER}")
    found = counted(exported(network), core, option)
    assert found <= 1.01 * MEASURED[core, network, option], f"{found:,} instructions"


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="real models and data are not in ../shared/data")
@pytest.mark.parametrize("core, option", SPEED_FOR_FLASH)
def test_speed_for_flash(core, option, exported):
    """Every layer is Python's; the code fits what it may take without."""
    folder = exported("resnet8", "SpeedForFlash=1\n")
    assert "14 layers: identical" in make(folder, core, "test", f"OPT={option}")
    said = make(folder, core, "-s", "size", f"OPT={option}")
    assert 0 < sum(int(size) for size in re.findall(r"^code, \w+ +(\d+)$", said, re.MULTILINE)) <= CODE["resnet8"]
    if tool(core, "gcc", "-dumpfullversion").startswith(COMPILER):
        assert counted(folder, core, option) <= 1.01 * SPEED_FOR_FLASH[core, option]


@pytest.fixture(scope="module")
def mobilenet_v2(tmp_path_factory):
    out = tmp_path_factory.mktemp("mobilenet_v2")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
        from random_onnx import write_network  # benchmarks/random_onnx.py
    network = write_network(memory_networks.mobilenet_v2(0.35, 96), out, "mobilenet_v2")
    return export_for_boards(network, out, "-db-export", "2")


@pytest.mark.slow
@pytest.mark.parametrize("core", MOBILENET_V2)
def test_a_network_beyond_the_code_memory(core, mobilenet_v2):
    """1.8 MB of constants, more than the memory for code of the M55's board: every layer is Python's, and the count is held."""
    assert "65 layers: identical" in make(mobilenet_v2, core, "test")
    if tool(core, "gcc", "-dumpfullversion").startswith(COMPILER):
        assert counted(mobilenet_v2, core, "-O2") <= 1.01 * MOBILENET_V2[core]


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="real models and data are not in ../shared/data")
@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m55", "rv32imc_zve32x"])
@pytest.mark.parametrize("network", CODE)
def test_code_beside_the_constants(core, network, exported):
    said = make(exported(network), core, "-s", "size", "OPT=-O2")
    assert 0 < sum(int(size) for size in re.findall(r"^code, \w+ +(\d+)$", said, re.MULTILINE)) <= CODE[network]


@pytest.mark.skipif(not SHARED.is_dir(), reason="real models and data are not in ../shared/data")
@pytest.mark.parametrize("core", ["cortex-m4", pytest.param("cortex-m55", marks=pytest.mark.slow)])
@pytest.mark.parametrize("network, arena", [("kws_dscnn", 6188), pytest.param("resnet8", 15616, marks=pytest.mark.slow)])
def test_memory_by_lines(core, network, arena, exported):
    """The arena of the plan, which a program on a board does not leave, with the same integers."""
    folder = exported(network, "MemoryMode=Minimum\nBufferAlignment=4\n")
    assert f"identical; arena {arena}," in make(folder, core, "test")


@pytest.mark.parametrize("core", ["cortex-m4", pytest.param("cortex-m55", marks=pytest.mark.slow)])
def test_the_size_of_code_matters_little(small, core):
    """-Os costs at most a twentieth in the kernels of DSP and MVE, whatever the portable ones lose."""
    counts = {}
    for option in ("-O2", "-Os"):
        said = make(small, core, "-s", "count", f"OPT={option}")
        counts[option] = {name: int(count) for name, count in re.findall(r"^(\S+) +(\d+)$", said, re.MULTILINE)}
    for layer in ("a", "b", "c", "dw", "left"):
        assert counts["-Os"][layer] <= 1.05 * counts["-O2"][layer], layer
