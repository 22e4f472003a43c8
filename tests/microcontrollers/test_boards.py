"""CPP_MCU on boards in QEMU: every layer as Python computes it, and what the library needs."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser
from support.board_export import CORE_NAMES, compiled, export_for_boards, library, make, need_core, tool
from support.programs import run_command
from support.streaming_networks import NETWORKS, stimuli
from support.tables import few_fast

from n2d2py.cli import main
from n2d2py.runtime.graph_file import GRAPH_FILE, read_graph

ROOT = Path(__file__).resolve().parents[2]
SMALL = Path(__file__).parent / "small.ini"
FAST = ("cortex-m4", "rv32imc")
CORES = [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in CORE_NAMES]


def failed(folder: Path, name: str) -> str:
    done = compiled(folder, name, "test")
    assert done.returncode != 0
    return done.stdout


@pytest.mark.parametrize("name", CORES)
@pytest.mark.parametrize("optimise", ["-O2", pytest.param("-Os", marks=pytest.mark.slow)])
def test_every_layer_is_identical(small, name, optimise):
    said = make(small, name, "test", f"OPT={optimise}")
    layers = len(read_graph(small / GRAPH_FILE).nodes)
    assert f"3 vectors, {layers} layers: identical" in said
    assert "warning" not in said


def test_a_wrong_integer_is_found_where_it_is(small, tmp_path):
    folder = tmp_path / "export"
    shutil.copytree(small, folder)
    graph = read_graph(folder / GRAPH_FILE)
    vector = folder / "test" / "vectors" / "001.bin"
    data = bytearray(vector.read_bytes())
    inputs = sum(graph.type(name).bytes * _elements(graph.shape(name)) for name in graph.inputs)
    data[inputs + 5] ^= 1  # pixel 0 of the first layer, channel 5
    vector.write_bytes(data)
    assert re.search(rf"layer {graph.nodes[0].name}, line 0, element 5: \d+ instead of \d+", failed(folder, "cortex-m4"))
    vector.write_bytes(data[:100])
    assert "test/vectors/001.bin cannot be read" in failed(folder, "cortex-m4")


def _elements(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape[1:]:
        count *= size
    return count


def test_tensors_lie_in_the_memories_of_the_board(tmp_path):
    """QEMU's board has RAM from 0x20000000 and PSRAM from 0x21000000 on."""
    folder = export_for_boards(SMALL, tmp_path, parameters="Memories=FAST:3k:1, AXI:3k:4, LAST:1M:9\nMemoryMode=Balanced\n")
    layers = len(read_graph(folder / GRAPH_FILE).nodes)
    assert f"{layers} layers: identical" in make(folder, "cortex-m4", "test")
    table = tool("cortex-m4", "nm", "-C", folder / "build" / "cortex-m4" / "test.elf")
    places = {line.split()[-1]: int(line.split()[0], 16) for line in table.splitlines() if "small::memory_" in line}
    used = [name for name, size in json.loads((folder / "statistics/summary.json").read_text())["memories"].items() if size]
    assert set(places) == {f"small::memory_{name.lower()}" for name in used[1:]} and len(used) > 1
    assert all(0x21000000 <= at < 0x22000000 and at % 64 == 0 for at in places.values())


PLACES = {"small_INT": 0x00000000, "small_EXT": 0x21800000, "small_FAST_data": 0x20000000, "small_AXI": 0x21000000}
"""Where the linker script of the M4's board has the sections of memories."""
LATE = """#include <stddef.h>
static unsigned char* late_to[4];
static const unsigned char* late_from[4];
static unsigned late_bytes[4], late_count;
static inline void late_copy(void* to, const void* from, unsigned bytes) {
    late_to[late_count] = (unsigned char*)to;
    late_from[late_count] = (const unsigned char*)from;
    late_bytes[late_count++] = bytes;
}
static inline void late_wait() {
    while (late_count)
        for (unsigned i = late_bytes[--late_count]; i-- > 0;)
            late_to[late_count][i] = late_from[late_count][i];
}
#define small_COPY(to, from, bytes) late_copy(to, from, bytes)
#define small_COPY_WAIT() late_wait()
"""
"""DMA that copies as late as it may."""


@pytest.mark.parametrize("copies", few_fast(["double", "single"]))
def test_constants_lie_in_the_memories_of_the_board(tmp_path, copies):
    """Those that start-up copies have another address in the flash."""
    given = f"Memories=FAST:6k:1, AXI:3k:3, INT:6k:4:rom, EXT:1M:9:rom\nCopyWeights={copies}\nSingleFile=1\n"
    folder = export_for_boards(SMALL, tmp_path, parameters=given)
    table = tmp_path / "table.map"
    (tmp_path / "late.h").write_text(LATE)
    for flags in ("-Werror", f"-Wno-unused -include {tmp_path}/late.h"):
        said = make(folder, "cortex-m4", "test", f"LDFLAGS=-Wl,-Map={table}", f"CXXFLAGS={flags}")
        assert "layers: identical" in said
    sections = re.findall(r"^\.(small_\w+)\s+0x(\w+)\s+0x(\w+)", table.read_text(), re.MULTILINE)
    places = {name: int(at, 16) for name, at, size in sections if int(size, 16)}
    assert set(places) == set(PLACES) and all(0 <= places[name] - at < 0x100000 for name, at in PLACES.items())
    plan = json.loads((folder / "statistics" / "memory" / "memory_map.json").read_text())
    copied = [each["name"] for each in plan["constants"] if "copy" in each]
    forward = (folder / "dnn" / "include" / "forward.hpp").read_text()
    assert copied and re.findall(r"small_COPY\(arena \+ \d+, (\w+), ", forward) == copied
    for script in ("sections.ld", "mps2-an386/board.ld"):
        assert all(f".{name} " in (folder / "boards" / script).read_text() for name in PLACES)


def test_states_lie_in_a_memory_of_their_own(tmp_path, capsys):
    """Else at the end of the arena."""
    network, values = NETWORKS["lstm"][0](tmp_path / "net.onnx"), tmp_path / "parameters.ini"
    np.savez(tmp_path / "data.npz", x=stimuli("lstm"))
    values.write_text("Memories=RAM:64k:1, BKP:64:2:states\n")
    words = ["-calib-data", str(tmp_path / "data.npz"), "-export", "CPP_MCU", "-export-parameters", str(values)]
    assert main([str(network), *words, "-o", str(tmp_path), "-quiet"]) == 0
    folder = tmp_path / "export_CPP_MCU_int8"
    table = tmp_path / "table.map"
    assert "layers: identical" in make(folder, "cortex-m4", "test", f"LDFLAGS=-Wl,-Map={table}")
    assert re.search(r"^\.net_BKP\s+0x21000000\s+0x[1-9a-f]", table.read_text(), re.MULTILINE)
    values.write_text("")
    assert main([str(network), *words, "-o", str(tmp_path / "arena"), "-quiet"]) == 0
    assert "layers: identical" in make(tmp_path / "arena" / folder.name, "cortex-m4", "test")
    values.write_text("Memories=BKP:20:2:states\n")
    assert main([str(network), *words, "-o", str(tmp_path / "small"), "-quiet"]) == 1
    assert "E607" in capsys.readouterr().err and not list(tmp_path.glob("small/export*"))


@pytest.mark.parametrize("name", CORES)
def test_what_the_library_needs(small, name):
    """memcpy and memset alone; no memory of its own but the arena, nothing that runs before main, no double arithmetic."""
    make(small, name, "lib")
    archive = library(small, name)
    symbols = tool(name, "nm", "-A", archive).splitlines()
    own = {line.split()[-1] for line in symbols if line.split()[-2] not in ("U", "u")}
    inference = [line for line in symbols if not re.search(r":(quantize|trace)\.o:", line)]
    needed = {line.split()[-1] for line in inference if line.split()[-2] == "U"} - own
    allowed = {"memcpy", "memset", "__aeabi_memcpy", "__aeabi_memset"}
    if name == "cortex-m0":  # quotients, which the core has no instruction for
        allowed |= {"__aeabi_idiv", "__aeabi_idivmod", "__aeabi_uidiv", "__aeabi_uidivmod"}
    assert {one for one in needed if not one.startswith("__gnu_thumb")} <= allowed
    sections = re.findall(r"^(\.\S+) +(\d+)", tool(name, "size", "-A", archive), re.MULTILINE)
    used = {section for section, size in sections if int(size)}
    assert not [one for one in used if re.match(r"\.(data|sdata|got|init_array|ctors|fini_array)", one)]
    assert [one for one in used if re.match(r"\.s?bss", one)] != []  # the arena, which a program without its own links


def test_instructions_are_counted_by_layer(small):
    said = make(small, "cortex-m4", "-s", "count")
    counts = {name: int(count) for name, count in re.findall(r"^(\S+) +(\d+)$", said, re.MULTILINE)}
    layers = [node.name for node in read_graph(small / GRAPH_FILE).nodes]
    assert set(layers) <= set(counts)
    assert sum(counts[name] for name in layers) == pytest.approx(counts["inference"], rel=0.02)
    assert make(small, "cortex-m4", "-s", "count") == said


LISTING = """00000000 <first(int)>:
   0:\tldr\tr0, [r1]
   2:\tldr\tr2, [r1, #4]
   4:\tldrd\tr4, r5, [r1]
   8:\tpush\t{r4, r5, r6, r7, lr}
   a:\tbeq.n\t0 <first(int)>
0000000c <second>:
   c:\tsmlad\tr0, r1, r2, r0
  10:\tpop\t{r4-r7, pc}
"""
"""Cycles by hand: 2, then 1 + 3 + 6 + 2 = 12 as QEMU ended a block between two loads; 1 + (1 + 5 + 2) = 9."""
VECTORS = """00000000 <dot>:
   0:\tvldrb.u8\tq0, [r0], #16
   4:\tvldrb.u8\tq1, [r1], #16
   8:\tvmladava.s8\tr2, q0, q1
   c:\tvstrb.16\tq1, [r9, q7]
  10:\tle\tlr, 0 <dot>
"""
"""Begin in cycles 0, 2, 3 and 4; eight elements are stored until cycle 12, the last of which overlaps what follows."""


@pytest.mark.parametrize(
    "core, listing, blocks, expected",
    [
        ("cortex-m4", LISTING, "1 1 10 3\n3 4 10 0\nc 2 4 0\n", ["155 50 first", "36 8 second", "191 58 inference"]),
        ("cortex-m55", VECTORS, "1 5 10 0\n", ["110 50 dot", "110 50 inference"]),
    ],
)
def test_cycles_of_a_listing(core, listing, blocks, expected, small, tmp_path):
    """Executions times cycles, and wait states of loads that miss the buffer."""
    (tmp_path / "listing").write_text(listing)
    (tmp_path / "blocks").write_text(blocks)
    (tmp_path / "objdump").write_text(f"#!/bin/sh\ncat {tmp_path}/listing\n")
    (tmp_path / "objdump").chmod(0o755)
    words = [sys.executable, small / "boards/cycles.py", core, tmp_path / "blocks", "-", tmp_path / "objdump", "5"]
    lines = run_command(*words).splitlines()[1:]
    assert [" ".join(line.split()) for line in lines] == expected
    words[2] = "cortex-m7"
    refused = subprocess.run(words, stderr=subprocess.PIPE, text=True)
    assert refused.returncode == 1 and refused.stderr.startswith("cycles: no model of cortex-m7; there are models of")


@pytest.mark.parametrize("name", ["cortex-m4", pytest.param("cortex-m55", marks=pytest.mark.slow)])
def test_cycles_are_estimated(name, small):
    """Covers every instruction of an inference, and a few of the blocks around it; wait states of flash make it slower."""
    counted = int(re.findall(r"^inference +(\d+)$", make(small, name, "-s", "count"), re.MULTILINE)[0])
    cycles, instructions = (
        int(number) for number in re.findall(r"^ +(\d+) +(\d+)  inference$", make(small, name, "-s", "cycles"), re.M)[0]
    )
    assert abs(instructions - counted) < 20 and 1 < cycles / instructions < 2
    slow = re.findall(r"^ +(\d+) +(\d+)  inference$", make(small, name, "-s", "cycles", "WAIT=4"), re.M)[0]
    assert int(slow[0]) > cycles and int(slow[1]) == instructions


@pytest.mark.parametrize("name", ["cortex-m4", pytest.param("cortex-m55", marks=pytest.mark.slow)])
def test_sizes_are_printed(small, name):
    said = make(small, name, "-s", "size")
    sizes = {name.strip(): int(size) for name, size in re.findall(r"^(.{24}) +(\d+)", said, re.MULTILINE)}
    assert all(sizes[name] > 0 for name in ("arena", "constants", "code, text", "stack"))
    # Linked: as much as a program takes that has the inference and the test, and no kernel twice.
    make(small, name, "-s", "all")
    linked = int(tool(name, "size", small / "build" / name / "test.elf").splitlines()[1].split()[0])
    flash = sizes["constants"] + sizes["code, text"] + sizes["code, rodata"]
    assert linked - 8192 < flash < linked
    objects = tool(name, "size", "-t", library(small, name)).splitlines()[-1]
    assert flash < int(objects.split()[0])
    found = re.search(r"stack (\d+) of", make(small, name, "-s", "test"))
    if "at most" not in said:  # by the call graphs, which a compiler cache leaves out
        assert found and -32 <= sizes["stack"] - int(found[1]) < 64


def test_the_command_runs_the_board(tmp_path):
    need_core("cortex-m4")
    folder = export_for_boards(SMALL, tmp_path, "-test", "-compare", "2", "-db-export", "4")
    summary = json.loads((folder / "statistics" / "summary.json").read_text())
    layers = [node.name for node in read_graph(folder / GRAPH_FILE).nodes]
    assert all(summary["compare"][name]["identical"] is True for name in layers)
    assert summary["scores"]["compiled"] is not None


def test_without_qemu_it_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    arguments = ["-seed", "1", "-w", "/dev/null", "-calib", "2", "-quality", "fast", "-export", "CPP_MCU", "-nbbits", "8"]
    network = str(SMALL)
    assert main([network, *arguments, "-test", "-o", str(tmp_path / "a")]) == 0
    assert "warning N2D2-W801: no make: the compiled export is not tested" in capsys.readouterr().err
    assert main([network, *arguments, "-test", "-o", str(tmp_path / "b"), "-strict"]) == 1
    assert not (tmp_path / "b" / "export_CPP_MCU_int8").exists()


def test_floating_point_is_refused(tmp_path, capsys):
    arguments = ["-seed", "1", "-w", "/dev/null", "-export", "CPP_MCU", "-nbbits", "-32", "-o", str(tmp_path)]
    assert main([str(SMALL), *arguments]) == 1
    assert "'small' computes in floating point" in capsys.readouterr().err


def test_constants_and_code_are_placed_elsewhere(small, tmp_path):
    """By the macro and by a linker script, as docs/reference/targets/cpp_mcu.md says, into the second RAM of the M4's board."""
    folder = tmp_path / "export"
    shutil.copytree(small, folder, ignore=shutil.ignore_patterns("build", "lib"))
    script = folder / "boards" / "mps2-an386" / "board.ld"
    text = script.read_text().replace("MEMORY {", "MEMORY {\n    FAST (rwx) : ORIGIN = 0x21000000, LENGTH = 16M", 1)
    placed = "    .fast : { *libsmall.a:layers_*.o(.text .text.*) } > FAST\n    .qspi : { *(.qspi.*) } > FAST\n"
    script.write_text(text.replace("SECTIONS {\n", "SECTIONS {\n" + placed, 1))
    assert "layers: identical" in make(folder, "cortex-m4", "test", "CXXFLAGS=-Werror -Dsmall_CONSTANTS_SECTION=.qspi")
    symbols = tool("cortex-m4", "nm", folder / "build" / "cortex-m4" / "test.elf").splitlines()
    moved = {line.split()[2]: int(line.split()[0], 16) for line in symbols if len(line.split()) == 3}
    names = [name for name in moved if "_weights" in name or ("layer_" in name and "veneer" not in name and moved[name])]
    assert len([name for name in names if "_weights" in name]) >= 6 and len(names) >= 14
    assert all(0x21000000 <= moved[name] < 0x22000000 for name in names)


@pytest.mark.slow
@pytest.mark.parametrize("name", CORE_NAMES)
@pytest.mark.parametrize("network", ["LeNet", "MobileNet", "Autoencoder"])
def test_networks_of_the_repository(network, name, tmp_path):
    """Those that have data to calibrate on: all but MaxPoolAdd."""
    folder = export_for_boards(ROOT / "models" / f"{network}.ini", tmp_path, "-db-export", "3")
    assert "layers: identical" in make(folder, name, "test")


@pytest.mark.parametrize("name", ["cortex-m4", pytest.param("cortex-m55", marks=pytest.mark.slow)])
def test_lines_that_arrive_one_by_one(name, tmp_path):
    folder = export_for_boards(SMALL, tmp_path, parameters="StreamInput=1\n")
    assert "layers: identical" in make(folder, name, "test")


@pytest.mark.slow
def test_cmake_builds_and_tests(small, tmp_path):
    need_core("cortex-m4")
    build = tmp_path / "build"
    toolchain = f"-DCMAKE_TOOLCHAIN_FILE={small}/cmake/cortex-m4.cmake"
    for command in (["cmake", "-S", str(small), "-B", str(build), toolchain], ["cmake", "--build", str(build)]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, done.stdout[-2000:]
    done = subprocess.run(["ctest", "--test-dir", str(build), "-V"], stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0 and "layers: identical" in done.stdout


UNALIGNED = """<ir_version: 8, opset_import: ["" : 17]>
    unaligned (float[1,3,11,11] x) => (float[1,8,11,11] y, float[1,8] z) {
        a = Conv <pads = [1,1,1,1]> (x, w0)  b = Conv <pads = [1,1,1,1]> (x, w1)
        c = Conv <pads = [1,1,1,1]> (b, w2)  d = Conv <pads = [1,1,1,1], group = 8> (b, w3)
        e = Concat <axis = 1> (a, b)         f = Conv <pads = [1,1,1,1]> (e, w4)
        g = Add (c, d)                       y = Add (g, f)
        h = GlobalAveragePool (b)            i = Flatten (h)  z = Gemm <transB = 1> (i, w5)
    }"""


@pytest.mark.parametrize("name", ["cortex-m4", pytest.param("cortex-m55", marks=pytest.mark.slow)])
def test_pixels_within_words(name, tmp_path):
    """Tensors of 4 n channels at any address: the kernels that read words may not fault. Boards trap unaligned accesses."""
    generator = np.random.default_rng(4)
    shapes = [(15, 3, 3, 3), (8, 3, 3, 3), (8, 8, 3, 3), (8, 1, 3, 3), (8, 23, 3, 3), (8, 8)]
    model = parser.parse_model(UNALIGNED)
    for index, shape in enumerate(shapes):
        values = generator.normal(0, 0.5, shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(values, f"w{index}"))
    onnx.save(model, tmp_path / "unaligned.onnx")
    folder = export_for_boards(tmp_path / "unaligned.onnx", tmp_path / "out", parameters="BufferAlignment=1\n")
    planes = (folder / "dnn" / "include" / "mem_info.hpp").read_text()
    found = re.search(r"struct b_plane {\n.*\n.* Channels = 8, .*\n.* Offset = (\d+)", planes)
    assert found and int(found[1]) % 4
    assert "layers: identical" in make(folder, name, "test")
    if name == "cortex-m4":  # the trap is on
        test = folder / "boards" / "test.c"
        access = "int main(void) {\n    static uint32_t pair[2];\n"
        access += "    uint32_t* volatile at = (uint32_t*)(void*)((char*)pair + 1);\n    *at = 1;\n    {\n"
        test.write_text(test.read_text().replace("int main(void) {\n", access) + "}\n")
        assert re.search(r"fault at 0x\w+, called from 0x\w+, CFSR 0x01000000", failed(folder, name))


@pytest.mark.parametrize("mode", ["Fixed-point-p32", pytest.param("Floating-point", marks=pytest.mark.slow)])
def test_activations_with_zero_points(mode, tmp_path):
    """SiLU behind a dense and a depthwise convolution: the kernels of lanes read, pad with and write zero points."""
    need_core("cortex-m4")
    generator = np.random.default_rng(3)
    shapes = {"w0": (8, 3, 3, 3), "w1": (8, 1, 3, 3), "w2": (12, 8, 1, 1)}
    weights = [
        numpy_helper.from_array(generator.normal(0, 0.6, shape).astype(np.float32), name) for name, shape in shapes.items()
    ]
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        silu (float[1,3,12,12] x) => (float[1,12,12,12] y) {
            a = Conv <pads = [1,1,1,1]> (x, w0)  s = Sigmoid (a)  b = Mul (a, s)
            c = Conv <pads = [1,1,1,1], group = 8> (b, w1)  t = Sigmoid (c)  d = Mul (c, t)
            y = Conv (d, w2)
        }""")
    model.graph.initializer.extend(weights)
    onnx.save(model, tmp_path / "silu.onnx")
    words = ("-compare", "2", "-db-export", "2", "-act-rescaling-mode", mode)
    folder = export_for_boards(tmp_path / "silu.onnx", tmp_path / "out", *words)
    graph = read_graph(folder / GRAPH_FILE)
    assert sum(bool(tensor.type.zero_point) for tensor in graph.tensors.values()) >= 2
    assert any(node.zero_in_bias for node in graph.nodes) == (mode == "Floating-point")
    compared = json.loads((folder / "statistics" / "summary.json").read_text())["compare"]
    assert compared and all(one["identical"] for one in compared.values())
