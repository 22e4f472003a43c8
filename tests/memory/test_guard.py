"""`make DEBUG_MEMORY=1` and `make size` of an export."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from support.e2e_run import assert_compiled_is_simulated
from support.memory_compiled import arena_symbol, export, memory_map, needs_tools
from support.programs import run_command

PAINTED = r"""
#include "network.hpp"
#include <cstdio>
#include <cstring>
#include <pthread.h>
#include <vector>
enum : unsigned { SIZE = 1 << 20 };
static std::vector<unsigned char> x, y;
static void* run(void* inference) {
    const void* const inputs[] = {x.data()};
    void* const outputs[] = {y.data()};
    if (inference) branches_forward_raw(inputs, outputs, branches_static_arena());
    return nullptr;
}
// Bytes of a painted stack that a thread has written on.
static unsigned long used(bool inference) {
    std::vector<unsigned char> stack(SIZE, 0xA5);
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack.data(), SIZE);
    pthread_create(&thread, &attributes, run, inference ? &stack : nullptr);
    pthread_join(thread, nullptr);
    unsigned long low = 0;
    while (low < SIZE && stack[low] == 0xA5) ++low;
    return SIZE - low;
}
int main() {
    const branches_tensor *in = branches_input(0), *out = branches_output(0);
    x.resize(static_cast<std::size_t>(in->height * in->width * in->channels * in->element_bytes));
    y.resize(static_cast<std::size_t>(out->height * out->width * out->channels * out->element_bytes));
    const unsigned long nothing = used(false);
    std::printf("%lu\n", used(true) - nothing);
}
"""

pytestmark = [needs_tools, pytest.mark.slow]


def build_and_run(folder: Path) -> subprocess.CompletedProcess:
    run_command("make", "-s", "-j2", "DEBUG_MEMORY=1", "OPT=-O0", "OPENMP=0", cwd=folder)
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
    header.write_text(f"{text[:at]}Offset = {top},{text[at + len(old) :]}")
    done = build_and_run(folder)
    assert done.returncode != 0 and "outside its buffers" in done.stderr
    header.write_text(text)
    monkeypatch.setenv("CXXFLAGS", "-DN2D2_DEBUG_MEMORY")
    assert_compiled_is_simulated(folder)


def test_sizes_of_arena_constants_code_and_stack(tmp_path):
    """`make size`: exact by the call graph, no less by the frames alone; a thread of that stack runs an inference."""
    folder = export("branches", tmp_path, "MemoryMode=Small\nOpenMP=0\n")
    environment = {**os.environ, "OPT": "-O1", "CCACHE_DISABLE": "1"}

    def sizes() -> dict[str, int]:
        text = run_command("make", "-s", "size", cwd=folder, env=environment)
        return {name.strip(): int(size) for name, size in re.findall(r"^(.{24}) +(\d+)", text, re.MULTILINE)}

    found = sizes()
    assert found["arena"] == memory_map(folder)["arena_size"] == arena_symbol(folder)
    assert found["constants"] > 1000 and found["code, text"] > 1000 and 0 < found["stack"] < 100_000
    (folder / "painted.cpp").write_text(PAINTED)
    run_command(
        "g++", "-std=c++11", "-O1", "-pthread", "-Iinclude", "painted.cpp", "lib/libbranches.a", "-o", "painted", cwd=folder
    )
    used = int(run_command(folder / "painted"))
    assert abs(used - found["stack"]) < 512  # the frame of the thread's own function and what ending it takes
    graphs = list(folder.glob("build/**/*.ci"))
    if graphs:
        graphs[0].unlink()  # as a compiler cache loses them: a part of the calls is no call graph
        assert sizes()["stack"] >= found["stack"]
        for graph in graphs[1:]:
            graph.unlink()
        assert sizes()["stack"] >= found["stack"]
