"""bin/run_export and the build files."""

import json
import os
import subprocess

import numpy as np
import pytest
from support.export_build import make, run_export
from support.export_networks import S8, Builder, chain, random_inputs, request, write_export
from support.ops import Conv
from support.programs import needs

from n2d2py.contracts.cpp.arrays import FILES
from n2d2py.exports import ScoredOutput, StoredStimuli
from n2d2py.quant.simulator import simulate

pytestmark = needs("make")


def saved_as_text(out, graph, x):
    """The outputs of all layers, which `make save_outputs` writes for the second stimulus, are those of the simulator."""
    make(out, "OPT=-O0", "save_outputs", "STIMULUS=stimuli/env001.ppm")
    values = simulate(graph, [x], keep=True)
    for file, name in (("env", "env"), ("conv_1", "conv/1"), ("forward", "forward")):
        matrices = (out / "outputs" / f"{file}_output.txt").read_text().split("\n\n")
        np.testing.assert_array_equal([np.loadtxt(m.splitlines(), ndmin=2) for m in matrices], values[name][0])
    np.testing.assert_array_equal(np.loadtxt(out / "outputs" / "fc_output.txt"), values["fc"][0])
    assert int((out / "outputs" / "max_output.txt").read_text()) == values["fc"][0].argmax()


def test_the_program_says_what_it_is_asked(tmp_path):
    graph = chain(True)
    made = request(graph, count=3)
    out = write_export(tmp_path / "out", made)
    make(out, "OPT=-O0")
    found = json.loads(run_export(out, "-bench", "3").stdout)
    assert set(found) == {"min_us", "median_us", "threads"} and 0 < found["min_us"] <= found["median_us"]
    table = run_export(out, "-profile", "2").stdout.splitlines()
    assert [line.split()[:2] for line in table[1:4]] == [["conv/1", "Conv"], ["forward", "Pool"], ["fc", "Fc"]]
    label = int(made.stimuli.labels[0][1])
    assert run_export(out, "-stimulus", "stimuli/env001.ppm").stdout == f"fc: estimated {label}, expected {label}\n"
    assert run_export(out, cwd=tmp_path).stdout.endswith("Score: 66.67%\n")  # from another folder
    assert "-stimulus FILE" in run_export(out, "-h").stdout
    saved_as_text(out, graph, made.stimuli.inputs[0][1:2])
    for arguments, message in (
        (["-bogus"], "-bogus: unknown"),
        (["-bench"], "-bench: "),
        (["-bench", "0"], "0: is not a number"),
        (["-stimulus", "none"], "cannot be opened"),
        (["-stimulus", "README.md"], "is not a stimulus"),
        (["-outputs", "no/where"], "cannot be written"),
        (["-outputs", "all.bin", "-stimulus", "stimuli/env001.ppm"], "needs all stimuli"),
        (["-profile", "2", "-bench", "2"], "-bench: cannot be combined"),
    ):
        failed = run_export(out, *arguments)
        assert failed.returncode != 0 and message in failed.stderr, arguments
    (out / "stimuli" / "env002.ppm").write_bytes((out / "stimuli" / "env002.ppm").read_bytes()[:-1])
    assert run_export(out).returncode == 1


@pytest.mark.slow
def test_make_builds_again_when_the_compiler_or_a_header_changes(tmp_path):
    out = write_export(tmp_path / "out", request(chain(True)))
    make(out, "OPT=-O0")
    assert "-c -o" not in make(out, "OPT=-O0")
    assert "dnn/src/layers_1.cpp" in make(out, "OPT=-O0 -DANOTHER_BUILD")
    os.utime(out / "kernels" / "n2d2" / "fullyconnected.hpp", (2**32, 2**32))
    again = make(out, "OPT=-O0 -DANOTHER_BUILD")
    assert "dnn/src/layers_1.cpp" in again and "dnn/src/forward.cpp" not in again
    assert "make lib" in make(out, "help")
    make(out, "clean")
    assert not (out / "build").exists() and not (out / "bin").exists()


def test_a_network_without_labels_runs_and_without_stimuli_is_measured(tmp_path):
    graph = chain(True)
    made = request(graph, stimuli=StoredStimuli(tuple(random_inputs(graph, 2))), targets=())
    out = write_export(tmp_path / "out", made)
    make(out, "OPT=-O0")
    assert run_export(out).stdout.startswith("Ran 2 stimuli; ")
    (out / "stimuli.list").write_text("")
    assert run_export(out).returncode == 1
    assert json.loads(run_export(out, "-bench", "1").stdout)["min_us"] > 0


def test_positions_thresholds_and_missing_labels_are_scored(tmp_path):
    build = Builder("map", (1, 2, 2, 3), True)
    graph = build.finish(build.weighted("one", Conv(), "env", (1, 2, 1, 1), S8))
    inputs = random_inputs(graph, 6, 3)
    above = (S8.dequantize(simulate(graph, inputs)["one"])[:, 0] > 1.0).astype(np.int32)
    assert 0 < above.sum() < above.size
    labels = above.copy()
    labels[0, 0, 0] = 1 - labels[0, 0, 0]
    labels[1] = -1
    made = request(graph, stimuli=StoredStimuli(tuple(inputs), (labels,)), targets=(ScoredOutput("one", threshold=1.0),))
    out = write_export(tmp_path / "out", made)
    make(out, "OPT=-O0")
    assert run_export(out).stdout.splitlines()[-2:] == ["29/30 (96.67%)", "Score: 96.67%"]


@pytest.mark.slow
def test_cmake_builds_it_too(tmp_path):
    out = write_export(tmp_path / "out", request(chain(True)))
    for command in (
        ["cmake", "-S", out, "-B", tmp_path / "build", "-DCMAKE_BUILD_TYPE=Debug"],
        ["cmake", "--build", tmp_path / "build"],
    ):
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0 and "warning" not in done.stdout.lower(), done.stdout
    answer = subprocess.run([tmp_path / "build" / "run_export"], cwd=out, text=True, stdout=subprocess.PIPE)
    assert answer.stdout.endswith("Score: 75.00%\n")


@pytest.fixture
def all_in_files(monkeypatch):
    """WeightsFormat=binary of the smallest arrays too."""
    monkeypatch.setitem(FILES, "binary", 1)


@pytest.mark.parametrize("integers", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_constants_in_files_are_those_in_the_text(integers, all_in_files, tmp_path):
    graph = chain(integers)
    answers = []
    for form in ("text", "binary"):
        out = write_export(tmp_path / form, request(graph, parameters={"WeightsFormat": form, "OpenMP": False}))
        make(out, "OPT=-O0")
        run_export(out, "-outputs", "all.bin")
        answers.append((out / "all.bin").read_bytes())
        assert bool(list(out.glob("dnn/parameters/*.bin"))) == (form == "binary")
    assert answers[0] == answers[1]
    for weights in out.glob("dnn/parameters/fc_weights*.bin"):  # the objects follow the files
        weights.write_bytes(bytes(len(weights.read_bytes())))
    make(out, "OPT=-O0")
    run_export(out, "-outputs", "all.bin")
    assert (out / "all.bin").read_bytes() != answers[0]


@pytest.mark.slow
@pytest.mark.parametrize("dispatch", [False, True])
def test_cmake_finds_constants_in_files(dispatch, all_in_files, tmp_path):
    parameters = {"WeightsFormat": "binary", "RuntimeDispatch": dispatch}
    out = write_export(tmp_path / "a folder", request(chain(True), parameters=parameters))
    for command in (["cmake", "-S", out, "-B", tmp_path / "build"], ["cmake", "--build", tmp_path / "build"]):
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0 and "warning" not in done.stdout.lower(), done.stdout
    answer = subprocess.run([tmp_path / "build" / "run_export"], cwd=out, text=True, stdout=subprocess.PIPE)
    assert answer.stdout.endswith("Score: 75.00%\n")
    assert "form_1" in "".join(path.read_text() for path in out.glob("dnn/parameters/*.cpp")) or not dispatch
