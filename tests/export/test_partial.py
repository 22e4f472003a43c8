"""Inference of some of the outputs: the values of the whole one, by no layer, input or buffer that they do not need."""

import ctypes
import re
import subprocess
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from support.board_export import export_for_boards
from support.errors import error_line
from support.export_build import make
from support.export_networks import S8, U8, Builder, chain, request, residual, write_export
from support.ops import Conv, ElemWise, Fc
from support.programs import need, run_command
from support.tables import few_fast

import n2d2py
from n2d2py.arithmetic import FloatRescale
from n2d2py.cli import main
from n2d2py.graph import Aligned, QuantGraph, QuantNode, nodes_for, outputs_from
from n2d2py.runtime.simulator import Simulator

HERE = Path(__file__).parent
LINES = {
    "by_tensors": "MemoryMode=Balanced\n",
    "by_lines": "MemoryMode=Minimum\n",
    "in_strips": "MemoryMode=Small\nMaxExtraMacs=0.5\n",
}
PROGRAM = r"""
#include "towers.hpp"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
extern "C" void __cyg_profile_func_enter(void*, void*) __attribute__((no_instrument_function));
extern "C" void __cyg_profile_func_exit(void*, void*) __attribute__((no_instrument_function));
extern "C" void __cyg_profile_func_enter(void* function, void*) { std::fprintf(stderr, "%p\n", function); }
extern "C" void __cyg_profile_func_exit(void*, void*) {}

// wanted -> the code, then the bytes of all outputs; nothing that is not needed has memory.
int main(int, char** words) {
    const std::uint64_t wanted = std::strtoull(words[1], nullptr, 0);
    std::vector<unsigned char> memory(towers_ARENA_BYTES + towers_ARENA_ALIGNMENT, 0xA5);
    unsigned char* arena = memory.data();
    arena += towers_ARENA_ALIGNMENT - reinterpret_cast<std::uintptr_t>(arena) % towers_ARENA_ALIGNMENT;
    std::vector<std::vector<unsigned char>> given, made;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (int i = 0; i < towers_input_count(); ++i) {
        const towers_tensor* in = towers_input(i);
        given.emplace_back(static_cast<std::size_t>(in->height * in->width * in->channels));
        if (std::fread(given[static_cast<std::size_t>(i)].data(), 1, given.back().size(), stdin) != given.back().size())
            return 3;
        inputs.push_back(towers_inputs_to(wanted) >> i & 1 ? given.back().data() : nullptr);
    }
    for (int i = 0; i < towers_output_count(); ++i) {
        const towers_tensor* out = towers_output(i);
        made.emplace_back(static_cast<std::size_t>(out->height * out->width * out->channels), static_cast<unsigned char>(0x5A));
        outputs.push_back(towers_outputs_to(wanted) >> i & 1 ? made.back().data() : nullptr);
    }
    const int code = towers_forward_to(wanted, inputs.data(), outputs.data(), arena);
    std::putchar(code);
    std::putchar(towers_layers_to(wanted));
    for (const std::vector<unsigned char>& each : made)
        std::fwrite(each.data(), 1, each.size(), stdout);
    if (!code) {
        for (const void*& each : inputs)
            if (each) {
                each = nullptr;
                std::putchar(towers_forward_to(wanted, inputs.data(), outputs.data(), arena));
                break;
            }
        std::putchar(towers_forward_to(wanted, inputs.data(), outputs.data(), nullptr));
    }
}
"""


def towers() -> QuantGraph:
    """Two inputs, each with a branch to an output of its own, and a third output of their sum."""
    build = Builder("towers", (1, 3, 6, 5), True, 3)
    build.graph.inputs.append("env2")
    build.tensor("env2", (1, 4, 6, 5), U8)
    first = build.weighted("first", Conv(pads=(1, 1, 1, 1)), "env", (6, 3, 3, 3), U8)
    second = build.weighted("second", Conv(pads=(1, 1, 1, 1)), "env2", (6, 4, 3, 3), U8)
    left = build.weighted("left", Fc(), first, (4, 180), S8)
    right = build.weighted("right", Conv(), second, (3, 6, 1, 1), U8)
    both = QuantNode("both", ElemWise("Sum"), [first, second], ["both"], Aligned(np.array([3, 5]), np.array([0])))
    both.rescale, both.clamp, both.bound = FloatRescale(np.array([1 / 8])), (0, 255), 8 * 255
    build.add(both, U8)
    last = build.weighted("last", Fc(), "both", (2, 180), S8)
    return build.finish(left, right, last)


def stored(infos, count: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = [(info, (count, *info.shape[1:])) for info in infos]
    return [rng.integers(info.type.qmin, info.type.qmax, shape, info.dtype, endpoint=True) for info, shape in shapes]


def subsets(names: list[str]) -> list[list[str]]:
    return [list(some) for count in range(1, len(names) + 1) for some in combinations(names, count)]


def check_all_choices(network, reference) -> None:
    """Each choice of outputs gives what the whole inference of `reference` gives, for stimuli that differ from those before."""
    names = [info.name for info in network.info.outputs]
    for turn, some in enumerate(subsets(names)):
        inputs = stored(network.info.inputs, 2, turn)
        whole = dict(zip(names, reference.run_raw(*inputs), strict=True))
        found = network.run_raw(*inputs, outputs=some)
        assert isinstance(found, tuple) == (len(some) > 1)
        for name, values in zip(some, found if len(some) > 1 else [found], strict=True):
            np.testing.assert_array_equal(values, whole[name], err_msg=f"{name} of {some}")


def test_what_outputs_need():
    graph = towers()
    needs = outputs_from(graph)
    assert (needs["env"], needs["env2"]) == (0b101, 0b110)
    assert (needs["first"], needs["second"], needs["both"], needs["last"]) == (0b101, 0b110, 0b100, 0b100)
    assert [node.name for node in nodes_for(graph, ["right"])] == ["second", "right"]
    assert [node.name for node in nodes_for(residual(True), ["add"])] == ["stem", "deep", "flat", "add"]


@pytest.mark.parametrize("compiler", few_fast(["g++", "clang++"]))
def test_layers_that_nobody_wants_do_not_run(tmp_path, compiler):
    graph = towers()
    folder = write_export(tmp_path / "out", request(graph, external=("env2", "left", "right")))
    make(folder, "lib", f"CXX={compiler}", "OPT=-O0", "OPENMP=0", "CXXFLAGS=-Werror -finstrument-functions")
    (tmp_path / "main.cpp").write_text(PROGRAM)
    program = tmp_path / "main"
    flags = ["-std=c++11", "-no-pie", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
    words = [compiler, *flags, f"-I{folder}/include", tmp_path / "main.cpp", folder / "lib" / "libtowers.a", "-o", program]
    run_command(*words)
    table = run_command("nm", "-C", program)
    layers = {int(at, 16): name for at, name in re.findall(r"^(\w+) \w towers::layer_(\w+)\(", table, re.MULTILINE)}
    simulated = Simulator(graph)
    inputs = stored(simulated.info.inputs, 1)
    whole = simulated.run_raw(*inputs)
    sent = b"".join(np.moveaxis(x[0], 0, -1).tobytes() for x in inputs)
    for wanted in range(1, 8):
        done = subprocess.run([program, str(wanted)], input=sent, capture_output=True)
        needed = {node.name for node in nodes_for(graph, [graph.outputs[i] for i in range(3) if wanted >> i & 1])}
        called = [layers[int(line, 16)] for line in done.stderr.decode().split() if int(line, 16) in layers]
        assert sorted(called) == sorted(needed)
        assert done.returncode == 0 and done.stdout[:2] == bytes([0, len(needed)])
        at = 2
        for index, values in enumerate(whole):
            expected = np.moveaxis(values[0], 0, -1).tobytes() if wanted >> index & 1 else b"\x5a" * values.nbytes
            assert done.stdout[at : at + len(expected)] == expected, (wanted, index)
            at += len(expected)
        assert done.stdout[at:] == b"\2\2", "an input, or the arena, is a null pointer"
    for wanted in (0, 8, 9, 1 << 63):
        done = subprocess.run([program, str(wanted)], input=sent, capture_output=True)
        assert done.stdout[:1] == b"\1" and set(done.stdout[2:]) == {0x5A}


@pytest.mark.parametrize("external", [(), ("add", "fc", "env")])
def test_an_output_on_the_way_to_another(tmp_path, monkeypatch, external):
    """The memory of `add` is written on the way to `fc` where it lies with the caller."""
    need("g++", "make")
    monkeypatch.setenv("OPT", "-O0")
    folder = write_export(tmp_path / "out", request(residual(True), external=external))
    compiled = n2d2py.load_export(folder)
    check_all_choices(compiled, n2d2py.load_simulator(folder))
    check_all_choices(n2d2py.load_simulator(folder), compiled)
    assert [compiled.layers_to(some) for some in ("fc", "add", ["add", "fc"])] == [6, 4, 6]
    assert compiled._library.outputs_to(1) == (0b11 if external else 0b01)


@pytest.fixture(params=[*LINES, "dispatched"])
def planned(request, tmp_path, monkeypatch) -> Path:
    """An export by tensors, line by line, in strips; one with several instruction sets."""
    need("g++", "make")
    monkeypatch.setenv("OPT", "-O0")
    (tmp_path / "params.ini").write_text(LINES.get(request.param, "RuntimeDispatch=1\n"))
    words = ["-seed", "1", "-w", "/dev/null", "-export", "CPP", "-calib", "8", "-db-export", "0", "-quiet"]
    words += ["-export-parameters", str(tmp_path / "params.ini"), "-o", str(tmp_path)]
    assert main([str(HERE / "partial.ini"), *words]) == 0
    return tmp_path / "export_CPP_int8"


@pytest.mark.slow
def test_plans_of_the_whole_network_serve(planned):
    compiled, simulated = n2d2py.load_export(planned), n2d2py.load_simulator(planned)
    check_all_choices(compiled, simulated)
    assert all(0 < compiled.layers_to(info.name) < len(compiled.info.layers) for info in compiled.info.outputs)


def test_in_one_file_for_microcontrollers(tmp_path):
    folder = export_for_boards(HERE / "partial.ini", tmp_path, parameters="SingleFile=1\nMemoryMode=Minimum\n")
    (tmp_path / "one.cpp").write_text(f'#define partial_IMPLEMENTATION\n#include "{folder}/src/partial.hpp"\n')
    flags = ["-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-fno-exceptions", "-O1"]
    run_command("g++", *flags, "-shared", "-fPIC", tmp_path / "one.cpp", "-o", tmp_path / "one.so")
    network, simulated = ctypes.CDLL(str(tmp_path / "one.so")), n2d2py.load_simulator(folder)
    (x,), outputs = stored(simulated.info.inputs, 1), simulated.info.outputs
    source = np.ascontiguousarray(np.moveaxis(x[0], 0, -1))
    for wanted in range(1, 1 << len(outputs)):
        arena = np.full(network.partial_arena_bytes() // 8 + 2, 0xA5A5A5A5, np.uint64)
        made = [np.full((*info.shape[2:], info.shape[1]), 99, info.dtype) for info in outputs]
        pointers = [(ctypes.c_void_p * len(some))(*(one.ctypes.data for one in some)) for some in ([source], made)]
        assert network.partial_forward_to(ctypes.c_uint64(wanted), *pointers, ctypes.c_void_p(arena.ctypes.data)) == 0
        for index, (values, expected) in enumerate(zip(made, simulated.run_raw(x), strict=True)):
            if wanted >> index & 1:
                np.testing.assert_array_equal(values, np.moveaxis(expected[0], 0, -1))


def test_inputs_that_nobody_needs_may_be_none():
    network = Simulator(towers())
    first, second = stored(network.info.inputs, 2)
    left, right, last = network.run_raw(first, second)
    np.testing.assert_array_equal(network.run_raw(first, None, outputs="left"), left)
    np.testing.assert_array_equal(network.run_raw(None, second, outputs=["right"]), right)
    found = network.run_raw(first, second, outputs=["last", "left", "last"])
    for values, expected in zip(found, (last, left, last), strict=True):
        np.testing.assert_array_equal(values, expected)
    real = network(network.info.inputs[0].type.dequantize(first), None, outputs="left")
    np.testing.assert_array_equal(real, network.info.outputs[0].type.dequantize(left))


@pytest.mark.parametrize(
    ("outputs", "text"),
    [
        ("middle", "no output 'middle'"),
        (["left", "middle"], "no output 'middle'"),
        ([], "no output is wanted"),
        ("last", "'env2' is None, and needed for last"),
        (None, "'env2' is None, and needed for left, right, last"),
    ],
)
def test_wrong_choices(outputs, text):
    network = Simulator(towers())
    with pytest.raises(n2d2py.N2D2Error, match=text) as error:
        network.run_raw(stored(network.info.inputs, 1)[0], None, outputs=outputs)
    assert error.value.code == "E804"


def test_one_output_leaves_no_choice(tmp_path):
    """Nor code for one."""
    folder = write_export(tmp_path / "one", request(chain(True)))
    assert not (folder / "dnn" / "src" / "partial.cpp").exists()
    assert "forward_to" not in (folder / "include" / "Digits_1.h").read_text()


@pytest.mark.slow
def test_lines_from_a_function_leave_no_choice(tmp_path, monkeypatch):
    need("g++", "make")
    monkeypatch.setenv("OPT", "-O0")
    (tmp_path / "params.ini").write_text("StreamInput=1\n")
    words = ["-seed", "1", "-w", "/dev/null", "-export", "CPP", "-calib", "8", "-db-export", "0", "-quiet"]
    words += ["-export-parameters", str(tmp_path / "params.ini"), "-o", str(tmp_path)]
    assert main([str(HERE / "partial.ini"), *words]) == 0
    network = n2d2py.load_export(tmp_path / "export_CPP_int8")
    x = stored(network.info.inputs, 1)[0]
    assert len(network.run_raw(x)) == 4
    assert "all of its outputs at once" in error_line(network.run_raw, x, outputs="left")
