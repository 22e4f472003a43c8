"""The C++ project: built by both compilers with warnings as errors, run, compared with the Python integers."""

import re
import subprocess
from itertools import product

import numpy as np
import pytest
from support.export_build import compare_outputs, make, run_export
from support.export_networks import S8, U8, Builder, chain, random_inputs, request, residual, separate_plan, write_export
from support.ops import Conv, ElemWise, Fc
from support.programs import needs, run_command
from support.tables import few_fast

from n2d2py.arithmetic import FloatRescale
from n2d2py.contracts.cpp.identifiers import namespace_name
from n2d2py.exports import StoredStimuli
from n2d2py.graph import Aligned, QuantGraph, QuantNode, QuantTensor
from n2d2py.memory.from_graph import memory_problem
from n2d2py.memory.settings import Settings
from n2d2py.memory.strategies import plan_memory
from n2d2py.quant.simulator import simulate

SANITIZED = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
pytestmark = needs("make")


@pytest.mark.parametrize(
    "network, compiler, integer",
    few_fast([(chain, "g++", True), (residual, "clang++", True), *product((chain, residual), ("g++", "clang++"), (False,))]),
)
def test_it_gives_the_simulated_integers(network, integer, compiler, tmp_path):
    graph = network(integer)
    made = request(graph, count=5)
    write_export(tmp_path / "out", made)
    make(tmp_path / "out", f"CXX={compiler}", "OPT=-O0", "all")
    compare_outputs(tmp_path / "out", graph, list(made.stimuli.inputs))
    answer = run_export(tmp_path / "out")
    assert answer.returncode == 0 and answer.stderr == ""
    assert answer.stdout.splitlines()[0] == "0/1 (0.00%)"
    assert answer.stdout.splitlines()[-1] == "Score: 80.00%"


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("network", [chain, residual])
@pytest.mark.parametrize("flags", ["-O3", SANITIZED])
def test_it_does_so_optimised_and_sanitized(network, flags, compiler, tmp_path):
    graph = network(True)
    made = request(graph, count=5)
    write_export(tmp_path / "out", made)
    make(tmp_path / "out", f"CXX={compiler}", f"OPT={flags}", "all", "lib")
    compare_outputs(tmp_path / "out", graph, list(made.stimuli.inputs))


@pytest.mark.parametrize(
    "external",
    [pytest.param(("env",), marks=pytest.mark.slow), pytest.param(("fc", "add"), marks=pytest.mark.slow), ("env", "fc", "add")],
)
def test_tensors_may_stay_with_the_caller(external, tmp_path):
    graph = residual(True)
    made = request(graph, external=external)
    write_export(tmp_path / "out", made)
    make(tmp_path / "out", "OPT=-O0")
    compare_outputs(tmp_path / "out", graph, list(made.stimuli.inputs))


@pytest.mark.parametrize(
    "alignment, flags",
    [(1, "-O0"), pytest.param(1, SANITIZED, marks=pytest.mark.slow), pytest.param(16, SANITIZED, marks=pytest.mark.slow)],
)
def test_a_planned_arena_gives_the_same(alignment, flags, tmp_path):
    graph = residual(True)
    problem = memory_problem(graph)
    plan = plan_memory(problem, Settings(alignment=alignment))
    made = request(graph, plan=plan, problem=problem)
    if alignment == 1:
        assert plan.arena_bytes < separate_plan(graph).arena_bytes
    write_export(tmp_path / "out", made)
    make(tmp_path / "out", f"OPT={flags}")
    compare_outputs(tmp_path / "out", graph, list(made.stimuli.inputs))


@pytest.mark.slow
def test_the_network_code_uses_no_memory_exceptions_or_streams(tmp_path):
    write_export(tmp_path / "out", request(residual(True)))
    make(tmp_path / "out", "OPT=-O2", "OPENMP=0", "lib")
    objects = sorted((tmp_path / "out" / "build" / "dnn").rglob("*.o"))
    listed = run_command("nm", "-u", "-j", *objects)
    undefined = {line for line in listed.split() if not line.endswith(":") and "residual" not in line}
    assert undefined <= {"memcpy", "memset", "memmove", "rint", "_GLOBAL_OFFSET_TABLE_", "__stack_chk_fail"}
    for path in (tmp_path / "out").rglob("*.[ch]pp"):
        text = path.read_text()
        assert not re.search(r"#include <.*(stream|exception)>", text)
        assert not re.search(r"#include <(vector|string|memory)>", text) or path.name == "main.cpp" or path.parent.name == "run"


SOURCE_OF_TWO = """
#include "a/include/network.hpp"
#include "b/include/network.hpp"
#include <cstdio>

alignas(64) static unsigned char first[Digits_1::ArenaBytes], second[Digits_1::ArenaBytes];

int main() {
    Digits_1::input_t in[Digits_1::Input::Elements], other[other::Input::Elements];
    Digits_1::output_t out[3][Digits_1::Output::Elements];
    other::output_t last[other::Output::Elements];
    if (std::fread(in, 1, sizeof in, stdin) != sizeof in || std::fread(other, 1, sizeof other, stdin) != sizeof other)
        return 1;
    Digits_1::forward(in, out[0], first);
    Digits_1::input_t* inside = Digits_1::arenaInput(second);
    for (int i = 0; i < Digits_1::Input::Elements; ++i)
        inside[i] = in[i];
    Digits_1::forward(inside, out[1], second);
    other::forward(other, last);
    const void* inputs[] = {in};
    void* outputs[] = {out[2]};
    Digits_1_forward_raw(inputs, outputs, first);
    std::fwrite(out, 1, sizeof out, stdout);
    std::fwrite(last, 1, sizeof last, stdout);
    float real[other::Output::Elements], scaled[other::Input::Elements];
    other::dequantizeOutput(last, real);
    std::fwrite(real, 1, sizeof real, stdout);
    for (int i = 0; i < other::Input::Elements; ++i)
        scaled[i] = static_cast<float>(i) * 0.013f - 0.5f;
    other::quantizeInput(scaled, other);
    std::fwrite(other, 1, sizeof other, stdout);
}
"""


def test_two_exports_live_in_one_program(tmp_path):
    graphs = [chain(True), chain(True, "other", seed=5)]
    for graph, name in zip(graphs, "ab", strict=True):
        write_export(tmp_path / name, request(graph))
        make(tmp_path / name, "OPT=-O0", "lib")
    (tmp_path / "two.cpp").write_text(SOURCE_OF_TWO)
    run_command(
        *"g++ -std=c++11 -Wall -Wextra -Wpedantic -Wconversion -Werror two.cpp a/lib/libDigits_1.a".split(),
        *"b/lib/libother.a -fopenmp -o two".split(),
        cwd=tmp_path,
    )
    inputs = [random_inputs(graph, 1, seed)[0] for graph, seed in zip(graphs, (7, 8), strict=True)]
    stored = b"".join(np.moveaxis(x[0], 0, -1).tobytes() for x in inputs)
    out = subprocess.run([tmp_path / "two"], input=stored, check=True, stdout=subprocess.PIPE).stdout
    first, second = (simulate(graph, [x])["fc"][0] for graph, x in zip(graphs, inputs, strict=True))
    assert out[:15] == first.tobytes() * 3
    assert out[15:20] == second.tobytes() and first.tobytes() != second.tobytes()
    np.testing.assert_array_equal(np.frombuffer(out, np.float32, 5, 20), S8.dequantize(second))
    scaled = np.arange(360, dtype=np.float32) * np.float32(0.013) - np.float32(0.5)
    np.testing.assert_array_equal(np.frombuffer(out, np.uint8, 360, 40), U8.quantize(scaled))
    symbols = run_command("nm", "-C", tmp_path / "two")
    assert "other::(anonymous namespace)::staticArena" in symbols
    assert "Digits_1::(anonymous namespace)::staticArena" not in symbols  # its callers bring their own


def test_the_c_interface_is_c(tmp_path):
    write_export(tmp_path / "out", request(chain(True)))
    (tmp_path / "use.c").write_text(
        '#include "out/include/Digits_1.h"\nint use(void) { return Digits_1_layer(0)->rank + Digits_1_input_count(); }\n'
    )
    run_command("gcc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c", "use.c", cwd=tmp_path)


def two_inputs() -> QuantGraph:
    graph = QuantGraph("two", 8, inputs=["a b", "template"], outputs=["sum"])
    for name in ("a b", "template", "sum"):
        graph.tensors[name] = QuantTensor(name, (1, 3, 2, 2), S8)
    graph.nodes.append(
        QuantNode(
            "sum",
            ElemWise("Max"),
            ["a b", "template"],
            ["sum"],
            Aligned(np.array([1, 1]), np.array([0])),
            clamp=(-127, 127),
            bound=127,
            rescale=FloatRescale(np.array([1.0])),
        )
    )
    return graph


def test_several_inputs_are_given_in_order(tmp_path):
    graph = two_inputs()
    inputs = random_inputs(graph, 3)
    out = write_export(tmp_path / "out", request(graph, stimuli=StoredStimuli(tuple(inputs)), targets=()))
    make(out, "OPT=-O0")
    compare_outputs(out, graph, inputs)


@pytest.mark.slow
def test_odd_names_are_no_trouble(tmp_path):
    names = ["env", "ENV", "main", "forward", "1/2:x", "int", "a\\", "*/", "é\n??/", "network", "Input", "x" * 300]
    build = Builder('Network "1" \\ */', (1, 2, 3, 3), True)
    source = "env"
    for name in names:
        node_name = name if name != "env" else "env layer"
        source = build.weighted(node_name, Conv(), source, (2, 2, 1, 1), U8)
    graph = build.finish(source)
    made = request(graph, targets=(), stimuli=StoredStimuli(tuple(random_inputs(graph, 2))))
    out = write_export(tmp_path / "out", made)
    for compiler in ("g++", "clang++"):
        make(out, f"CXX={compiler}", "OPT=-O0")
        compare_outputs(out, graph, list(made.stimuli.inputs))


@pytest.mark.parametrize("name", ["", "1", "int", "7" * 70, "_a__b_" * 20, "x" * 63 + "_y", "div"])
def test_namespaces_are_stable(name):
    """The namespace of a name is valid, and its own namespace."""
    assert namespace_name(namespace_name(name)) == namespace_name(name) and len(namespace_name(name)) <= 64


@pytest.mark.slow
@pytest.mark.parametrize(
    "namespace", ["arena", "layers", "root", "Input", "copies", "bench", "entry", "Bytes", "Network", "forward", "fc"]
)
def test_any_namespace_compiles(namespace, tmp_path):
    out = write_export(tmp_path / "out", request(chain(True), parameters={"Namespace": namespace, "OpenMP": False}))
    make(out, "OPT=-O0", "OPENMP=0")
    assert run_export(out).stdout.endswith("Score: 75.00%\n")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "string", "binary"])
def test_all_forms_of_weights_give_the_same(form, tmp_path):
    build = Builder("wide", (1, 300), True)
    graph = build.finish(build.weighted("fc", Fc(), "env", (301, 300), S8))
    made = request(graph, parameters={"WeightsFormat": form})
    out = write_export(tmp_path / "out", made)
    assert ('"' in (out / "dnn" / "parameters" / "fc.cpp").read_text().split("namespace", 1)[1]) == (form != "text")
    assert bool(list(out.glob("dnn/parameters/*.bin"))) == (form == "binary")
    for compiler in ("g++", "clang++"):
        make(out, f"CXX={compiler}", "OPT=-O0")
        compare_outputs(out, graph, list(made.stimuli.inputs))
