"""The text of the C++ project and its stimuli: arrays, names, file lists, what is written, and what is refused before."""

import json
import subprocess

import numpy as np
import pytest
from support.errors import error_line, error_of
from support.export_networks import chain, request, separate_plan, write_export
from support.programs import need, run_command

from n2d2py.arithmetic import FLOAT32, NumType
from n2d2py.contracts.cpp.arrays import initializer
from n2d2py.contracts.operator import Op
from n2d2py.exports import ExportRequest, StoredStimuli, find_target, write_stimuli
from n2d2py.graph import QuantGraph, QuantTensor
from n2d2py.memory.problem import MemoryProblem


def test_nothing_is_left_out_of_the_manifest_and_nothing_outside_is_needed(tmp_path):
    write_export(tmp_path / "out", request(chain(True)))
    files = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert set(manifest["files"]) == files - {"manifest.json"}
    assert {
        *"Makefile CMakeLists.txt README.md main.cpp include/network.hpp include/Digits_1.h run/score.hpp".split(),
        *"dnn/include/env.hpp dnn/include/mem_info.hpp dnn/include/forward.hpp dnn/src/forward.cpp".split(),
        *"dnn/parameters/fc.cpp stimuli.list stimuli.link simulator/network.npz".split(),
        *"kernels/n2d2/convolution.hpp".split(),
    } <= files
    assert "kernels/n2d2/softmax.hpp" not in files and "kernels/n2d2/depthwise.hpp" not in files
    for path in files:
        data = (tmp_path / "out" / path).read_bytes()
        assert str(tmp_path).encode() not in data
        assert b"\r\n" not in data or path.startswith(("stimuli/", "simulator/"))


def request_of(graph: QuantGraph, **fields) -> ExportRequest:
    return ExportRequest(graph, **{"plan": separate_plan(graph), "problem": MemoryProblem({}, (), (), ()), **fields})


def test_every_layer_that_cannot_be_exported_is_listed():
    class Unknown(Op):
        kind = "Unknown"

    graph = chain(True)
    graph.nodes[0].op = Unknown()
    graph.nodes[2].op = Unknown()
    found = error_of(lambda: find_target("CPP").prepare(request_of(graph)).check())
    assert [error.code for error in found.errors] == ["E701", "E701"]
    assert "conv/1" in str(found.errors[0]) and "fc" in str(found.errors[1])


def test_a_network_without_layers_is_refused():
    assert "E704" in error_line(lambda: find_target("CPP").prepare(request_of(QuantGraph("empty", 8))).check())


def compiled_bytes(arrays: list[tuple[str, np.ndarray, bool]], folder, compiler: str) -> bytes:
    """The arrays as a C++11 program has them in memory, one after the other."""
    need(compiler)
    lines = ["#include <cstdint>", "#include <cstdio>", "#include <limits>"]
    for index, (ctype, values, as_string) in enumerate(arrays):
        lines.append(f"const {ctype} a{index}[{values.size + as_string}] = {initializer(values, as_string)};")
    lines.append("int main() {")
    for index, (_, values, _) in enumerate(arrays):
        lines.append(f"std::fwrite(a{index}, 1, {values.nbytes}, stdout);")
    lines.append("}")
    (folder / "a.cpp").write_text("\n".join(lines))
    run_command(
        compiler,
        *"-std=c++11 -Wall -Wextra -Wpedantic -Wconversion -Werror -Wno-overlength-strings -o".split(),
        folder / "a",
        folder / "a.cpp",
    )
    return subprocess.run([folder / "a"], check=True, stdout=subprocess.PIPE).stdout


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_arrays_are_compiled_to_their_values(compiler, tmp_path):
    rng = np.random.default_rng(0)
    pairs = np.array(np.meshgrid(range(256), list(b'01789?"\\ax\n\0'))).reshape(2, -1).T.ravel().astype(np.uint8)
    limits = [np.iinfo(name) for name in ("i1", "i2", "i4", "i8")]
    arrays = [
        ("std::uint8_t", pairs, True),
        ("std::int8_t", pairs.view(np.int8), True),
        ("std::uint8_t", np.frombuffer(b"??=??/??'", np.uint8), True),
        ("std::int8_t", rng.integers(-128, 128, 70000).astype(np.int8), True),
        *((f"std::int{info.bits}_t", np.array([info.min, -1, 0, info.max], info.dtype), False) for info in limits),
        ("float", np.array([0, -0.0, 1, 0.1, 3e38, 1e-45, np.inf, 16777216], np.float32), False),
        ("float", rng.standard_normal(500).astype(np.float32), False),
        ("double", rng.standard_normal(500), False),
    ]
    assert compiled_bytes(arrays, tmp_path, compiler) == b"".join(values.tobytes() for _, values, _ in arrays)


S8 = NumType(8)


def graph_of(*tensors: tuple[str, tuple[int, ...], NumType]) -> QuantGraph:
    graph = QuantGraph("net", 8, inputs=[name for name, _, _ in tensors])
    graph.tensors = {name: QuantTensor(name, shape, kind) for name, shape, kind in tensors}
    return graph


def test_colour_images_are_p6_in_hwc_with_the_label_behind(tmp_path):
    graph = graph_of(("env", (1, 3, 1, 2), S8))
    x = np.array([[[[1, -2]], [[3, 4]], [[5, -127]]]], np.int8)
    write_stimuli(StoredStimuli((x,), (np.array([258], np.int32),), ("a b.png",)), graph, ["env"], tmp_path)
    expected = b"P6\n2 1\n255\n" + bytes([1, 3, 5, 254, 4, 129]) + bytes([2, 1, 0, 0])
    assert (tmp_path / "stimuli" / "env000.ppm").read_bytes() == expected
    assert (tmp_path / "stimuli.list").read_bytes() == b"stimuli/env000.ppm\n"
    assert (tmp_path / "stimuli.link").read_bytes() == b"stimuli/env000.ppm a b.png\n"


def test_grey_images_are_p5_and_wide_integers_little_endian(tmp_path):
    graph = graph_of(("env", (1, 1, 2, 1), NumType(16)))
    x = np.array([[[[1], [-2]]]], np.int16)
    write_stimuli(StoredStimuli((x,)), graph, ["env"], tmp_path)
    assert (tmp_path / "stimuli" / "env000.pgm").read_bytes() == b"P5\n1 2\n65535\n\x01\x00\xfe\xff"


def test_vectors_are_a_line_and_floats_are_stored_as_they_are(tmp_path):
    graph = graph_of(("env", (1, 2), FLOAT32))
    x = np.array([[1.5, -2]], np.float32)
    write_stimuli(StoredStimuli((x,), (np.array([[-1, 7]], np.int32),)), graph, ["env"], tmp_path)
    expected = b"P5\n2 1\n65535\n" + np.array([1.5, -2], "<f4").tobytes() + np.array([-1, 7], "<i4").tobytes()
    assert (tmp_path / "stimuli" / "env000.pgm").read_bytes() == expected


def test_labels_of_all_targets_follow_in_order(tmp_path):
    graph = graph_of(("env", (1, 1), S8))
    labels = (np.array([5], np.int32), np.arange(4, dtype=np.int32).reshape(1, 2, 2))
    write_stimuli(StoredStimuli((np.zeros((1, 1), np.int8),), labels), graph, ["env"], tmp_path)
    data = (tmp_path / "stimuli" / "env000.pgm").read_bytes()
    assert np.frombuffer(data[-20:], "<i4").tolist() == [5, 0, 1, 2, 3]


def test_several_inputs_have_a_file_each(tmp_path):
    graph = graph_of(("a", (1, 1), S8), ("b", (1, 1, 1, 1), S8))
    arrays = (np.array([[1], [2]], np.int8), np.array([[[[3]]], [[[4]]]], np.int8))
    write_stimuli(StoredStimuli(arrays, (np.array([8, 9], np.int32),)), graph, ["a", "b"], tmp_path)
    assert (tmp_path / "stimuli.list").read_text().splitlines() == [
        "stimuli/a000.pgm stimuli/b000.pgm",
        "stimuli/a001.pgm stimuli/b001.pgm",
    ]
    assert (tmp_path / "stimuli" / "a001.pgm").read_bytes().endswith(b"\n\x02\x09\x00\x00\x00")
    assert (tmp_path / "stimuli" / "b001.pgm").read_bytes().endswith(b"\n\x04")


def test_numbers_have_as_many_digits_as_needed(tmp_path):
    graph = graph_of(("env", (1, 1), S8))
    write_stimuli(StoredStimuli((np.zeros((1001, 1), np.int8),)), graph, ["env"], tmp_path)
    lines = (tmp_path / "stimuli.list").read_text().splitlines()
    assert (lines[0], lines[-1]) == ("stimuli/env0000.pgm", "stimuli/env1000.pgm")


def test_no_stimuli_give_an_empty_list(tmp_path):
    write_stimuli(StoredStimuli(), graph_of(("env", (1, 1), S8)), ["env"], tmp_path)
    assert (tmp_path / "stimuli.list").read_bytes() == b""
