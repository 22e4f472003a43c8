"""Compiled exports under every strategy: the integers of Python bit for bit, in an arena of the planned size."""

import json

import numpy as np
import pytest
from support.e2e_run import assert_compiled_is_simulated, compiled_at_once
from support.memory_compiled import NETWORKS, arena_symbol, export, memory_map, needs_tools
from support.programs import run_command
from support.tables import few_fast

import n2d2py
from n2d2py.memory.strategies import PLANNERS


@needs_tools
@pytest.mark.parametrize("network", few_fast(["branches", "MobileNet", "resampling"]))
def test_overlap_is_exact_and_the_arena_is_the_reported_one(network, tmp_path):
    folder = export(network, tmp_path, "MemoryManagerStrategy=OptimizeOverlap\n")
    planned = memory_map(folder)
    backwards = [step["op"] for step in planned["schedule"] if step.get("loop", "").startswith("-")]
    assert backwards, "the plan must have reversed loops for this test to say something"
    sources = "".join(path.read_text() for path in sorted((folder / "dnn").rglob("*.hpp")))
    assert "Reverse = 1" in sources
    assert arena_symbol(folder) == planned["arena_size"]
    assert_compiled_is_simulated(folder)


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [
        *"IncludeInputInBuffer=0 IncludeOutputInBuffer=0 OptimizeNoBranchConcat=0 OptimizeBufferMemory=0".split(),
        *"MemoryAlignment=8 BufferAlignment=1 BufferAlignment=64".split(),
    ],
)
def test_overlap_is_exact_under_every_parameter(parameters, tmp_path):
    assert_compiled_is_simulated(export("branches", tmp_path, f"MemoryManagerStrategy=OptimizeOverlap\n{parameters}\n"))


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
    assert_compiled_is_simulated(folder)


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize("alignment", [1, 4, 16, 64])
@pytest.mark.parametrize("strategy", list(PLANNERS))
def test_every_strategy_is_exact_at_every_alignment(strategy, alignment, tmp_path):
    if strategy == "OptimizeOptimal":
        pytest.importorskip("ortools")
    folder = export(
        "resampling", tmp_path, f"MemoryManagerStrategy={strategy}\nMemoryAlignment={alignment}\nBufferAlignment={alignment}\n"
    )
    planned = memory_map(folder)
    assert arena_symbol(folder) == planned["arena_size"]
    made = [plane for name, plane in planned["tensors"].items() if name != "sp"]
    assert all(plane["stride"] % alignment == 0 for plane in made)
    assert_compiled_is_simulated(folder, 2)


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize("parameters", ["MemoryMode=Small", "MemoryMode=Small\nStreamInput=1"])
def test_layers_for_several_instruction_sets_run_by_lines(parameters, tmp_path):
    folder = export("branches", tmp_path, f"{parameters}\nRuntimeDispatch=1\n")
    assert any("rows" in step for step in memory_map(folder)["schedule"])
    assert_compiled_is_simulated(folder, compiled=n2d2py.load_export(folder))


@needs_tools
@pytest.mark.parametrize("parameters", few_fast(["MemoryMode=Small\nStreamInput=1\nSIMD=none", "MemoryMode=Small"]))
def test_lines_that_nobody_reads_are_neither_made_nor_compared(parameters, tmp_path):
    folder = export("skipped", tmp_path, f"{parameters}\n")
    made = dict.fromkeys(("wide", "third", "pool"), 0)
    for step in memory_map(folder)["schedule"]:
        if step.get("op") in made:
            made[step["op"]] += step["rows"][1] - step["rows"][0]
    assert made["wide"] < 47 and made["pool"] < 14
    x = n2d2py.load_simulator(folder).info.inputs[0]
    compiled = compiled_at_once(folder)
    layers = compiled.layers(np.ones((2, *x.shape[1:]), x.dtype))
    missing = {name: ~np.ma.getmaskarray(layers[name]).all(axis=(0, 1, 3)) for name in made}
    assert {name: int(lines.sum()) for name, lines in missing.items()} == made
    assert not np.ma.isMaskedArray(layers["fc"])
    assert_compiled_is_simulated(folder, compiled=compiled)
    assert arena_symbol(folder) == memory_map(folder)["arena_size"]


@needs_tools
def test_lines_that_are_not_made_are_nan_in_the_text_of_a_layer(tmp_path):
    folder = export("skipped", tmp_path, "MemoryMode=Small\n")
    stimulus = next(folder.rglob("stimuli/*"), None)
    assert stimulus is None  # the program takes a stimulus of zeros then
    printed = run_command("make", "save_outputs", cwd=folder)
    text = np.loadtxt(folder / "outputs" / "wide_output.txt").reshape(24, 47, 41)
    lines = np.isnan(text).all(axis=(0, 2))
    assert lines.sum() == np.isnan(text).any(axis=(0, 2)).sum() > 0 and "nan" in printed
