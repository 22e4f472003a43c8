"""Layers that the accelerator lacks as extension operations: off by default, described in the file, run by the model."""

import json

import numpy as np
import pytest
from support.errors import refused
from support.nvdla_networks import cosine, expected, run, typed
from support.ops import Activation, Concat, ElemWise, Padding, Pool, Resize, Softmax, Transpose
from support.small_graphs import RELU, Net

from n2d2py.contracts.functions import Logistic, Swish
from n2d2py_nvdla import Program, parse_loadable, write_loadable
from n2d2py_nvdla.check import violations
from n2d2py_nvdla.cli import main
from n2d2py_nvdla.config import CONFIGS
from n2d2py_nvdla.dump import dump, dump_text
from n2d2py_nvdla.export.emit import emit
from n2d2py_nvdla.export.lower import lower
from n2d2py_nvdla.export.place import place
from n2d2py_nvdla.extension import Extension, Port, pack_extension, unpack_extension
from n2d2py_nvdla.firmware import FP16, INT8
from n2d2py_nvdla.model import run_program

SHAPE = (8, 7, 6)


def mixed(net: Net) -> str:
    a = net.conv("a", "x", 16, activation=RELU)
    b = net.add("wide", Resize((7, 9), "Bilinear", "HalfPixel"), a)
    c = net.conv("c", b, 20, pads=(1, 1, 1, 1))
    d = net.conv("d", net.add("sig", Activation(Logistic()), c), 10)
    return net.add("soft", Softmax(), d)


def inside_a_concatenation(net: Net) -> str:
    a, b = net.conv("a", "x", 32, pads=(1, 1, 1, 1)), net.conv("b", "x", 8, pads=(1, 1, 1, 1), activation=RELU)
    return net.conv("d", net.add("c", Concat(), net.add("s", Activation(Swish()), a), b), 6)


def far_apart(net: Net) -> str:
    a = net.conv("a", "x", 6, activation=RELU)
    return net.conv(
        "b", net.conv("far", a, 10, kernel=(2, 2), stride=(3, 9), pads=(0, 1, 1, 7)), 7, kernel=(2, 2), activation=RELU
    )


def two_inputs(net: Net) -> str:
    a, b = net.conv("a", "x", 10, activation=RELU), net.conv("b", "x", 10)
    return net.fc("f", net.add("e", ElemWise("EuclideanSum"), a, b), 5)


def first_and_last(net: Net) -> str:
    big = net.add("p", Pool("Max", (1, 11), (1, 11), (0, 3, 0, 2)), net.add("pad", Padding((1, 1, 1, 1)), "x"))
    return net.add("t", Transpose((0, 2, 1, 3)), big)


NETWORKS = {
    "mixed": (mixed, 3),
    "concat": (inside_a_concatenation, 1),
    "far": (far_apart, 1),
    "sum": (two_inputs, 1),
    "ends": (first_and_last, 3),
}


def samples() -> np.ndarray:
    return np.random.default_rng(5).standard_normal((2, *SHAPE)).astype(np.float32)


def loaded(network, config: str, precision: int, abi: str):
    net = Net(SHAPE)
    graph = net.done(network(net))
    lowered, problems = lower(typed(graph, precision, samples()), CONFIGS[config], precision, fallback=True)
    assert problems == []
    data = write_loadable(emit(lowered, abi).loadable)
    return graph, lowered, data, Program.of(parse_loadable(data), "net.nvdla")


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(
    "config, precision, abi",
    [
        ("nv_small", INT8, "v12"),
        ("nv_small", INT8, "v10"),
        ("nv_full", FP16, "v12"),
        ("nv_full", FP16, "v10"),
        ("nv_medium_512", INT8, "v12"),
    ],
)
def test_networks(name, config, precision, abi):
    network, least = NETWORKS[name]
    if precision == INT8 and name == "sum":
        pytest.skip("floating point in an integer network at its end has no scale")
    graph, lowered, _, program = loaded(network, config, precision, abi)
    assert program.abi.name == abi and violations(program, CONFIGS[config]) == []
    extensions = [
        op
        for task in program.tasks
        if hasattr(task, "operations")
        for op in task.operations
        if getattr(op, "extension", None) is not None
    ]
    assert (config != "nv_full" or name != "concat") <= len(extensions) <= least
    placement = place(lowered)
    assert placement.size <= 1.1 * placement.live
    found, wanted = run(lowered, program, samples()), expected(graph, samples())
    assert found.shape == wanted.shape
    assert cosine(found, wanted) > (0.99999 if precision == FP16 else 0.998)


def test_it_is_off_by_default_and_everything_is_listed():
    net = Net(SHAPE)
    quantized = typed(net.done(mixed(net)), INT8, samples())
    _, problems = lower(quantized, CONFIGS["nv_small"], INT8)
    assert [problem.code for problem in problems] == ["E715"] * 3
    assert [name in problem.what for name, problem in zip(("'wide'", "'sig'", "'soft'"), problems, strict=True)] == [True] * 3


def test_the_dump_says_so():
    _, _, _, program = loaded(mixed, "nv_small", INT8, "v12")
    text = dump_text(program)
    assert "operation 0 (EXTENSION Resize)" in text and "mode = Bilinear" in text
    tasks = json.loads(json.dumps(dump(program)))["tasks"]
    assert [task["interface"] for task in tasks] == ["DLA1", "EMU1", "DLA1", "EMU1", "DLA1", "EMU1"]
    assert tasks[1]["operations"][0]["extension"]["attributes"]["size"] == [7, 9]


def test_check_names_them(tmp_path, capsys):
    (tmp_path / "net.nvdla").write_bytes(loaded(mixed, "nv_small", INT8, "v12")[2])
    assert main(["check", str(tmp_path / "net.nvdla")]) == 0
    assert (
        "NVIDIA's runtime lacks 3 extension operations: wide (Resize), sig (Activation), soft (Softmax)"
        in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    "at, bytes_", [(0, b"N2DY"), (4, b"\2"), (8, b"\xff\xff\xff\x7f"), (12, b"["), (14, b"\xff"), (8, b"\1\0\0\0")]
)
def test_damaged_descriptions(at, bytes_):
    loadable = parse_loadable(loaded(mixed, "nv_small", INT8, "v12")[2])
    blob = next(blob for blob in loadable.blobs if blob.name.endswith("extension0"))
    data = bytearray(blob.data)
    data[at : at + len(bytes_)] = bytes_
    blob.data = bytes(data)
    assert refused("E901.*description of operation 0 is damaged", Program.of, loadable, "net.nvdla")


@pytest.mark.parametrize(
    "old, new, text",
    [
        ("Resize", "Resise", "is a Resise"),
        ('"mode": "Bilinear"', '"made": "Bilinear"', "cannot run"),
        ("[7, 9]", "[7, 8]", "cannot run: ValueError: its results have the shapes"),
    ],
)
def test_descriptions_that_cannot_run(old, new, text):
    loadable = parse_loadable(loaded(mixed, "nv_small", INT8, "v12")[2])
    blob = next(blob for blob in loadable.blobs if blob.name.endswith("extension0"))
    assert old.encode() in bytes(blob.data)
    blob.data = bytes(blob.data).replace(old.encode(), new.encode())
    assert refused(f"E903.*{text}", lambda: run_program(Program.of(loadable, "net.nvdla"), []))


def test_descriptions_are_read_as_written():
    random = np.random.default_rng(1)
    constants = {"weights": random.standard_normal((3, 2, 1)).astype(np.float32), "index": np.arange(5)}
    one = Extension(
        "a",
        "Conv",
        {"pads": [1, 2], "low": "-inf"},
        {"function": "Clip", "low": 0.0, "high": "inf"},
        (Port((1, 2, 3), 0.5),),
        (Port((1, 4), 0.25, -3, 7), Port((1,))),
        constants,
    )
    again = unpack_extension(pack_extension(one))
    assert all(np.array_equal(again.constants[role], array) for role, array in constants.items())
    assert {**vars(again), "constants": 0} == {**vars(one), "constants": 0}
