"""Exports of big networks: each weight once on disk, other orders made by the build, the simulator on the same files."""

import platform
import subprocess

import numpy as np
import pytest
from support.errors import refused
from support.export_build import compare_outputs, make
from support.export_networks import S8, U8, Builder, request, write_export
from support.ops import Conv, Fc
from support.programs import need, run_command

from n2d2py.contracts.cpp import arrays as array_module
from n2d2py.contracts.cpp.arrays import FILES, file_bytes
from n2d2py.contracts.cpp.forms.panels import packed_floats, packed_matrix
from n2d2py.exports.weights import BIG
from n2d2py.quant.simulator import simulate
from n2d2py.runtime.graph_file import GRAPH_FILE, StoredRows, read_graph, rows_of_panels

x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="not an x86-64 machine")


@pytest.fixture
def all_big(monkeypatch):
    """The smallest networks and arrays are big ones."""
    monkeypatch.setattr("n2d2py.exports.weights.BIG", 1)
    monkeypatch.setitem(FILES, "once", 1)


def network(integer: bool = True):
    """3 x 3 with Winograd's form, and odd channel counts; groups; a depthwise layer; whole and partial panels."""
    build = Builder("big", (1, 5, 8, 7), integer, 3)
    one = build.weighted("one", Conv(pads=(1, 1, 1, 1)), "env", (37, 5, 3, 3), U8)
    two = build.weighted("two", Conv(pads=(1, 1, 1, 1)), one, (37, 37, 3, 3), U8)
    deep = build.weighted("deep", Conv(pads=(1, 1, 1, 1), groups=37), two, (37, 1, 3, 3), U8)
    wide = build.weighted("wide", Conv((2, 2)), deep, (32, 37, 1, 1), U8)
    parts = build.weighted("parts", Conv(groups=2), wide, (32 if integer else 64, 16, 1, 1), U8)
    features = int(np.prod(build.graph.shape(parts)[1:]))
    return build.finish(build.weighted("fc", Fc(), parts, (18, features), S8, fixed=True))


def exported(tmp_path, graph, **parameters):
    made = request(graph, parameters={"OpenMP": False, **parameters})
    return made, write_export(tmp_path / "out", made)


def test_a_deep_network_is_measured_once(monkeypatch, tmp_path):
    """Each array asks whether the network is a big one: with a sum over all layers for each, time grows with their square."""
    asked = []
    monkeypatch.setattr("n2d2py.exports.cpp.project.is_big", lambda graph: bool(asked.append(graph)))
    exported(tmp_path, network())
    assert len(asked) <= 2


def test_each_weight_is_there_once(all_big, tmp_path):
    graph = network()
    _, out = exported(tmp_path, graph)
    files = {path.name: path.stat().st_size for path in out.glob("dnn/parameters/*.bin")}
    assert {"one_weights_1.bin", "fc_weights_1.bin"} <= set(files)
    assert not {"one_weights.bin", "one_transformed.bin", "fc_weights.bin"} & set(files)
    listed = (out / "dnn/parameters/derived.list").read_text()
    assert 'derive winograd "one_transformed.bin" "one_weights_1.bin" 37 5\n' in listed
    assert 'derive winograd "two_transformed.bin" "two_weights_1.bin" 37 37\n' in listed
    assert 'derive rows "fc_weights.bin" "fc_weights_1.bin" 18' in listed
    weights = sum(node.params["weights"].size for node in graph.nodes)
    with np.load(out / GRAPH_FILE) as stored:
        small = sum(array.size for name, array in stored.items() if name not in ("graph", "digest"))
    assert small < weights / 4  # biases, scalings, the depthwise weights


@pytest.mark.parametrize("integer", [True, False])
def test_the_build_makes_the_other_orders(integer, all_big, tmp_path, monkeypatch):
    arrays = {}
    derivation = array_module.row_derivation

    def noted(array):
        arrays[array.name] = array
        return derivation(array)

    monkeypatch.setattr("n2d2py.contracts.cpp.code.row_derivation", noted)
    graph = network(integer)
    _, out = exported(tmp_path, graph)
    (tmp_path / "made").mkdir()
    run_command("g++", "-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover", "-o", tmp_path / "derive", out / "dnn/derive.cpp")  # fmt: skip
    command = [tmp_path / "derive", out / "dnn/parameters/derived.list", out / "dnn/parameters", tmp_path / "made"]
    run_command(*command)
    made = {path.stem: path.read_bytes() for path in (tmp_path / "made").iterdir()}
    rows = {name: file_bytes(arrays[name].values) for name in made if name in arrays}
    assert len(rows) >= 3
    for name, expected in rows.items():
        assert made[name] == expected, name
    if integer:
        from n2d2py.contracts.cpp.winograd import transformed

        for node in graph.nodes[:2]:
            values = node.params["weights"].transpose(0, 2, 3, 1)
            assert made[f"{node.name}_transformed"] == transformed(values).tobytes()
    (out / "dnn/parameters/fc_weights_1.bin").write_bytes(b"short")
    done = subprocess.run(command, text=True, capture_output=True)
    assert done.returncode == 1 and "fc_weights_1.bin: " in done.stderr


@pytest.mark.parametrize("integer", [True, False])
def test_the_simulator_reads_the_weights_of_the_kernels(integer, all_big, tmp_path):
    graph = network(integer)
    for simd in ("auto", "none"):
        _, out = exported(tmp_path / simd, graph, SIMD=simd)
        read = read_graph(out / GRAPH_FILE)
        for node, other in zip(graph.nodes, read.nodes, strict=True):
            for role, values in node.params.items():
                assert other.params[role].dtype == values.dtype
                np.testing.assert_array_equal(other.params[role], values)
    file = out / "dnn/parameters/fc_weights.bin"
    data = file.read_bytes()
    file.write_bytes(bytes(len(data)))
    assert refused(r"E806: .*dnn/parameters/fc_weights.bin was changed since it was written", read_graph, out / GRAPH_FILE)
    file.unlink()
    assert refused(r"E806: .*fc_weights.bin is missing", read_graph, out / GRAPH_FILE)


@pytest.mark.parametrize("parameters", [{}, {"WeightsFile": True}, {"WeightsFormat": "once"}], ids=["inline", "apart", "once"])
def test_layers_with_one_tensor_of_weights_share_it(parameters, request, tmp_path):
    if "WeightsFormat" in parameters:
        request.getfixturevalue("all_big")
        parameters = {}
    build = Builder("shared", (1, 32, 6, 6), True, 3)
    one = build.weighted("one", Conv(pads=(1, 1, 1, 1)), "env", (32, 32, 3, 3), U8)
    two = build.weighted("two", Conv(pads=(1, 1, 1, 1)), one, (32, 32, 3, 3), U8)
    first, second = build.graph.nodes[:2]
    first.bound = second.bound = max(first.bound, second.bound)
    second.form, second.rescale = first.form, first.rescale
    graph = build.finish(build.weighted("fc", Fc(), two, (5, 1152), S8, fixed=True))
    made, out = exported(tmp_path, graph, **parameters)
    text = "".join(path.read_text(encoding="utf-8") for path in (out / "dnn").rglob("*.?pp"))
    assert "one_weights" in text and "two_weights" not in text
    read = read_graph(out / GRAPH_FILE)
    assert all(np.array_equal(node.params["weights"], first.params["weights"]) for node in read.nodes[:2])
    make(out, "OPT=-O1")
    compare_outputs(out, graph, list(made.stimuli.inputs))


@x86
@pytest.mark.slow
@pytest.mark.parametrize("integer", [True, False])
def test_every_target_gives_the_same_bits(integer, all_big, tmp_path):
    graph = network(integer)
    made, out = exported(tmp_path, graph)
    for arch in ("-march=x86-64", "-march=x86-64-v2", "-march=x86-64-v3"):
        text = make(out, "OPT=-O1", f"ARCH={arch}")
        assert "-o build/derive" in text or arch != "-march=x86-64"
        compare_outputs(out, graph, list(made.stimuli.inputs))
        make(out, "clean")
    text = make(out, "OPT=-O1", "ARCH=-march=x86-64-v3", "DERIVE=0")  # Winograd's form gives way to the direct one
    assert "build/derive" not in text
    compare_outputs(out, graph, list(made.stimuli.inputs))
    command = ["make", "OPT=-O1", "ARCH=-march=x86-64", "DERIVE=0"]
    done = subprocess.run(command, cwd=out, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode != 0 and "the build makes the constants of portable kernels: DERIVE=1" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("prefix, target", [("aarch64-linux-gnu-", "aarch64"), ("riscv64-linux-gnu-", "riscv64")])
def test_foreign_processors_derive_on_this_one(prefix, target, all_big, tmp_path):
    graph = network()
    made, out = exported(tmp_path, graph)
    make(out, "OPT=-O1", f"TARGET={target}")
    command = [f"qemu-{target}", "-L", f"/usr/{prefix[:-1]}", "bin/run_export", "-outputs", "all.bin"]
    run_command(*command, cwd=out)
    values = simulate(graph, list(made.stimuli.inputs))[graph.outputs[0]]
    assert (out / "all.bin").read_bytes() == b"".join(np.moveaxis(one, 0, -1).tobytes() for one in values)


@pytest.mark.slow
@pytest.mark.parametrize("dispatch", [False, True])
def test_cmake_and_dispatch_derive_too(dispatch, all_big, tmp_path):
    need("cmake", "g++", "make")
    graph = network()
    made, out = exported(tmp_path, graph, RuntimeDispatch=dispatch)
    build = tmp_path / "build"
    flags = [] if dispatch else ["-Dbig_ARCH=-march=x86-64"]
    for command in (["cmake", "-S", out, "-B", build, *flags], ["cmake", "--build", build]):
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0 and "warning" not in done.stdout.lower(), done.stdout
    (out / "bin").mkdir(exist_ok=True)
    (out / "bin/run_export").symlink_to(build / "run_export")
    compare_outputs(out, graph, list(made.stimuli.inputs))
    if dispatch:
        (out / "bin/run_export").unlink()
        make(out, "OPT=-O1")
        compare_outputs(out, graph, list(made.stimuli.inputs))


def test_rows_of_panels_are_the_rows():
    rng = np.random.default_rng(0)
    for outputs, groups, inputs, each in ((37, 1, 9, 4), (8, 3, 7, 2), (16, 1, 4, 4), (1, 1, 5, 4)):
        rows = rng.integers(-127, 128, (outputs * groups, inputs)).astype(np.int8)
        found = rows_of_panels(packed_matrix(rows, outputs, each), len(rows), inputs, outputs, each, 0)
        np.testing.assert_array_equal(found, rows)
    floats = rng.standard_normal((19, 6)).astype(np.float32)
    np.testing.assert_array_equal(rows_of_panels(packed_floats(floats), 19, 6, 19, 1, 1), floats)


def test_a_file_elsewhere_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"\.\./x.bin is not a file of dnn/parameters"):
        StoredRows("../x.bin", "<i1", (1,), (0,)).read(tmp_path)


def test_networks_below_the_limit_keep_what_they_have(tmp_path):
    graph = network()
    assert sum(array.size for node in graph.nodes for array in node.params.values()) < BIG
    _, out = exported(tmp_path, graph, WeightsFormat="binary")
    assert not (out / "dnn/derive.cpp").exists() and "derive" not in (out / "Makefile").read_text().lower()
