"""Compiled exports under every strategy: the integers of Python bit for bit, in an arena of the planned size."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import n2d2py
from n2d2py.cli import main
from n2d2py.memory.strategies import strategies

ROOT = Path(__file__).resolve().parents[2]
NETWORKS = {
    "MobileNet": ROOT / "models" / "MobileNet.ini",
    "branches": ROOT / "tests" / "e2e" / "branches.ini",
    "resampling": ROOT / "tests" / "memory" / "resampling.ini",
    "skipped": ROOT / "tests" / "memory" / "skipped.ini",
}

needs_tools = pytest.mark.skipif(
    not all(map(shutil.which, ("g++", "make", "nm"))), reason="g++, make and nm are not all installed"
)


def export(network: str, out: Path, parameters: str) -> Path:
    """The folder of an int8 export with these export parameters."""
    (out / "params.ini").write_text(parameters)
    words = ["-seed", "1", "-w", "/dev/null", "-export", "CPP", "-calib", "20", "-db-export", "0", "-quiet"]
    assert main([str(NETWORKS[network]), *words, "-export-parameters", str(out / "params.ini"), "-o", str(out)]) == 0
    return out / "export_CPP_int8"


def assert_exact(folder: Path, count: int = 3) -> None:
    """Every layer of the compiled export equals the simulation on random stimuli."""
    os.environ.setdefault("OPT", "-O1")
    compiled, simulated = n2d2py.load_export(folder), n2d2py.load_simulator(folder)
    info = simulated.info.inputs[0]
    shape = (count, *info.shape[1:])
    x = np.random.default_rng(0).integers(info.type.qmin, info.type.qmax + 1, shape).astype(info.dtype)
    found, expected = compiled.layers(x), simulated.layers(x)
    sums = (
        (folder / "statistics/memory/memory_graph.json").read_text().count('"residual"')
    )  # convolutions without a result of their own
    assert set(found) <= set(expected) and len(found) == len(expected) - sums
    for name, values in found.items():
        np.testing.assert_array_equal(values, expected[name], err_msg=name)
    assert any(values.std() > 0 for values in expected.values())


def arena_symbol(folder: Path) -> int:
    """Bytes of the largest object in the bss sections of the compiled arena, by the linker's table."""
    source = next(folder.glob("dnn/src/arena*.cpp"))
    target = folder / "arena_check.o"
    subprocess.run(
        ["g++", "-std=c++11", "-Iinclude", "-Idnn/include", "-Ikernels", "-c", source, "-o", target], cwd=folder, check=True
    )
    table = subprocess.run(["nm", "-S", str(target)], capture_output=True, text=True, check=True).stdout
    sizes = [int(line.split()[1], 16) for line in table.splitlines() if line.split()[-2] in "bB"]
    return max(sizes)


def memory_map(folder: Path) -> dict:
    return json.loads((folder / "statistics" / "memory" / "memory_map.json").read_text())


@needs_tools
@pytest.mark.parametrize("network", ["MobileNet", "branches", pytest.param("resampling", marks=pytest.mark.slow)])
def test_overlap_is_exact_and_the_arena_is_the_reported_one(network, tmp_path):
    folder = export(network, tmp_path, "MemoryManagerStrategy=OptimizeOverlap\n")
    planned = memory_map(folder)
    backwards = [step["op"] for step in planned["schedule"] if step.get("loop", "").startswith("-")]
    assert backwards, "the plan must have reversed loops for this test to say something"
    sources = "".join(path.read_text() for path in sorted((folder / "dnn").rglob("*.hpp")))
    assert "Reverse = 1" in sources
    assert arena_symbol(folder) == planned["arena_size"]
    assert_exact(folder)


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("strategy", [name for name in strategies() if name != "OptimizeOverlap"])
def test_every_strategy_is_exact(network, strategy, tmp_path):
    if strategy == "OptimizeOptimal":
        pytest.importorskip("ortools")
    folder = export(network, tmp_path, f"MemoryManagerStrategy={strategy}\n")
    assert arena_symbol(folder) == memory_map(folder)["arena_size"]
    assert_exact(folder)


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [
        "IncludeInputInBuffer=0",
        "IncludeOutputInBuffer=0",
        "OptimizeNoBranchConcat=0",
        "OptimizeBufferMemory=0",
        "MemoryAlignment=8",
        "BufferAlignment=1",
        "BufferAlignment=64",
    ],
)
def test_overlap_is_exact_under_every_parameter(parameters, tmp_path):
    assert_exact(export("branches", tmp_path, f"MemoryManagerStrategy=OptimizeOverlap\n{parameters}\n"))


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize(
    "parameters",
    ["MemoryManagerStrategy=None", "MemoryMode=Small", "MemoryMode=Small\nStreamInput=1", "IncludeInputInBuffer=0"],
)
def test_outputs_are_written_to_the_caller(network, parameters, tmp_path):
    folder = export(network, tmp_path, f"{parameters}\nIncludeOutputInBuffer=0\n")
    made = json.loads((folder / "statistics" / "memory" / "memory_graph.json").read_text())
    assert any(memory_map(folder)["tensors"][name].get("external") for name in made["outputs"])
    assert arena_symbol(folder) == memory_map(folder)["arena_size"]
    assert_exact(folder)


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize("alignment", [1, 4, 16, 64])
@pytest.mark.parametrize("strategy", strategies())
def test_every_strategy_is_exact_at_every_alignment(strategy, alignment, tmp_path, monkeypatch):
    if strategy == "OptimizeOptimal":
        pytest.importorskip("ortools")
    monkeypatch.setenv("OPT", "-O0")
    folder = export(
        "resampling", tmp_path, f"MemoryManagerStrategy={strategy}\nMemoryAlignment={alignment}\nBufferAlignment={alignment}\n"
    )
    planned = memory_map(folder)
    assert arena_symbol(folder) == planned["arena_size"]
    made = [plane for name, plane in planned["tensors"].items() if name != "sp"]
    assert all(plane["stride"] % alignment == 0 for plane in made)
    assert_exact(folder, 2)


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize("mode", ["", "MemoryMode=Small", "MemoryManagerStrategy=None"])
@pytest.mark.parametrize("file, alignment", [("align16", 16), ("align64", 64)])
def test_shipped_alignments_on_branches(file, alignment, mode, tmp_path):
    folder = export("branches", tmp_path, f"{(ROOT / 'params' / file).with_suffix('.ini').read_text()}{mode}\n")
    made = json.loads((folder / "statistics" / "memory" / "memory_graph.json").read_text())
    planes = memory_map(folder)["tensors"]
    written = {op["output"] for op in made["ops"] if op["type"] != "reshape"}
    assert any(planes[name]["stride"] > planes[name]["size"] for name in written)
    assert all(planes[name]["stride"] % alignment == 0 for name in written)
    assert arena_symbol(folder) == memory_map(folder)["arena_size"]
    assert_exact(folder)


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize("parameters", ["MemoryMode=Small", "MemoryMode=Small\nStreamInput=1"])
def test_layers_for_several_instruction_sets_run_by_lines(parameters, tmp_path):
    folder = export("branches", tmp_path, f"{parameters}\nRuntimeDispatch=1\n")
    assert any("rows" in step for step in memory_map(folder)["schedule"])
    assert_exact(folder)


@needs_tools
@pytest.mark.parametrize("parameters", ["MemoryMode=Small", "MemoryMode=Small\nStreamInput=1\nSIMD=none"])
def test_lines_that_nobody_reads_are_neither_made_nor_compared(parameters, tmp_path):
    folder = export("skipped", tmp_path, f"{parameters}\n")
    made = dict.fromkeys(("wide", "third", "pool"), 0)
    for step in memory_map(folder)["schedule"]:
        if step.get("op") in made:
            made[step["op"]] += step["rows"][1] - step["rows"][0]
    assert made["wide"] < 47 and made["pool"] < 14
    x = n2d2py.load_simulator(folder).info.inputs[0]
    layers = n2d2py.load_export(folder).layers(np.ones((2, *x.shape[1:]), x.dtype))
    missing = {name: ~np.ma.getmaskarray(layers[name]).all(axis=(0, 1, 3)) for name in made}
    assert {name: int(lines.sum()) for name, lines in missing.items()} == made
    assert not np.ma.isMaskedArray(layers["fc"])
    assert_exact(folder)
    assert arena_symbol(folder) == memory_map(folder)["arena_size"]


@needs_tools
def test_lines_that_are_not_made_are_nan_in_the_text_of_a_layer(tmp_path):
    folder = export("skipped", tmp_path, "MemoryMode=Small\n")
    stimulus = next(folder.rglob("stimuli/*"), None)
    assert stimulus is None  # the program takes a stimulus of zeros then
    printed = subprocess.run(["make", "save_outputs", "OPT=-O1"], cwd=folder, capture_output=True, text=True, check=True).stdout
    text = np.loadtxt(folder / "outputs" / "wide_output.txt").reshape(24, 47, 41)
    lines = np.isnan(text).all(axis=(0, 2))
    assert lines.sum() == np.isnan(text).any(axis=(0, 2)).sum() > 0 and "lines that no layer reads" in printed
