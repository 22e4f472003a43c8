"""RuntimeDispatch=1: one binary for several instruction sets, the same bits from each, no symbol compiled twice."""
from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from export_build import make, need, run_export
from export_networks import chain, request, write_export
from n2d2py.quant.simulator import simulate

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="not an x86-64 machine")
VARIANTS = ("portable", "sse4", "avx2", "avx512vnni")


def dispatching(folder: Path, graph):
    made = request(graph, count=3, parameters={"RuntimeDispatch": True})
    return made, write_export(folder, made)


def test_layers_and_constants_are_in_the_namespaces_of_variants(tmp_path):
    _, out = dispatching(tmp_path / "out", chain(True))
    layer = (out / "dnn" / "src" / "fc.cpp").read_text()
    assert "namespace N2D2_VARIANT {" in layer and (out / "dnn" / "src" / "variant.cpp").is_file()
    constants = (out / "dnn" / "parameters" / "fc.cpp").read_text()
    assert "#if" not in constants.split("namespace", 1)[1] and constants.count("fc_weights[") >= 2
    plain = write_export(tmp_path / "plain", request(chain(True)))
    assert not (plain / "dnn" / "src" / "variant.cpp").exists()
    assert "N2D2_VARIANT" not in (plain / "dnn" / "src" / "fc.cpp").read_text()


@x86
@pytest.mark.slow
def test_every_level_gives_the_same_bits(tmp_path, monkeypatch):
    need("g++", "nm")
    graph = chain(True)
    made, out = dispatching(tmp_path / "out", graph)
    make(out, "OPT=-O2", "all", "lib")
    flags = Path("/proc/cpuinfo").read_text().split()
    values = simulate(graph, made.stimuli.inputs)
    expected = b"".join(np.moveaxis(values[name][i], 0, -1).tobytes() for i in range(3) for name in graph.outputs)
    known = {"portable": "lm", "sse4": "sse4_1", "avx2": "avx2", "avx512vnni": "avx512_vnni"}
    for variant in VARIANTS:
        monkeypatch.setenv("N2D2_ISA", variant)
        done = run_export(out, "-outputs", "all.bin")
        if known[variant] in flags:
            assert done.returncode == 0 and (out / "all.bin").read_bytes() == expected, variant
        else:
            assert done.returncode == 2 and f"N2D2_ISA={variant}" in done.stderr
    monkeypatch.delenv("N2D2_ISA")
    assert run_export(out, "-outputs", "all.bin").returncode == 0 and (out / "all.bin").read_bytes() == expected
    symbols = []
    for variant in VARIANTS:
        listed = subprocess.run(["nm", "-g", "--defined-only", *(out / "build" / variant).rglob("*.o")], text=True,
                                capture_output=True, check=True).stdout
        symbols.append({words[2] for words in map(str.split, listed.splitlines()) if len(words) == 3})
    assert all(symbols) and not any(a & b for i, a in enumerate(symbols) for b in symbols[:i])


@pytest.mark.slow
def test_threads_and_instruction_set_of_the_interface(tmp_path):
    need("g++")
    out = write_export(tmp_path / "out", request(chain(True)))
    make(out, "OPT=-O1", "lib", "ARCH=", "CXXFLAGS=-DN2D2_ISA_PORTABLE")
    library = ctypes.CDLL(str(next((out / "lib").glob("*.so"))))
    prefix = next((out / "lib").glob("*.so")).stem[3:]
    threads, set_threads, isa = (getattr(library, f"{prefix}_{name}") for name in ("threads", "set_threads", "isa"))
    isa.restype = ctypes.c_char_p
    set_threads(1)
    assert threads() == 1 and isa() == b"portable"
    set_threads(2)
    assert threads() in (1, 2)
