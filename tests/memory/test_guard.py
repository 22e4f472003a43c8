"""`make DEBUG_MEMORY=1` and `make size` of an export."""
from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from test_compiled import arena_symbol, assert_exact, export, memory_map, needs_tools

pytestmark = [needs_tools, pytest.mark.slow]


def build_and_run(folder: Path) -> subprocess.CompletedProcess:
    subprocess.run(["make", "-s", "-j2", "DEBUG_MEMORY=1", "OPT=-O0", "OPENMP=0"], cwd=folder, check=True, capture_output=True)
    return subprocess.run(["bin/run_export", "-bench", "1"], cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("mode", ["Balanced", "Small"])
def test_the_guarded_build_is_exact_and_names_a_store_outside(mode, tmp_path, monkeypatch):
    folder = export("branches", tmp_path, f"MemoryMode={mode}\n")
    done = build_and_run(folder)
    assert done.returncode == 0, done.stderr
    # a plane moved to the top of the arena, which is long out of use
    planned = memory_map(folder)
    header = folder / "dnn" / "include" / "mem_info.hpp"
    text = header.read_text()
    old = f"Offset = {planned['tensors']['fc1']['offset']},"
    at = text.index(old, text.index("struct fc1_plane"))
    top = planned["arena_size"] - planned["tensors"]["fc1"]["size"]
    header.write_text(f"{text[:at]}Offset = {top},{text[at + len(old):]}")
    done = build_and_run(folder)
    assert done.returncode != 0 and "is in no buffer in use, was overwritten" in done.stderr
    header.write_text(text)
    monkeypatch.setenv("CXXFLAGS", "-DN2D2_DEBUG_MEMORY")
    assert_exact(folder)


def test_sizes_of_arena_constants_code_and_stack(tmp_path):
    folder = export("branches", tmp_path, "MemoryMode=Small\n")
    environment = {**os.environ, "OPT": "-O1", "OPENMP": "0"}
    text = subprocess.run(["make", "-s", "size"], cwd=folder, check=True, capture_output=True, text=True,
                          env=environment).stdout
    sizes = {name.strip(): int(size) for name, size in re.findall(r"^(.{24}) +(\d+)", text, re.MULTILINE)}
    assert sizes["arena"] == memory_map(folder)["arena_size"] == arena_symbol(folder)
    assert sizes["constants"] > 1000 and sizes["code, text"] > 1000 and 0 < sizes["stack"] < 100_000
