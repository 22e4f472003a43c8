"""ONNX files that mean harm: one clear line, before memory or time is spent."""

import os
import subprocess
import sys
import time
import tracemalloc
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.tables import every

from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.frontend.onnx.importer import import_onnx

NODE = helper.make_node


def save(folder: Path, nodes, constants=None, tensors=(), inputs=(("x", [1, 1, 8, 8]),), functions=()) -> Path:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in inputs],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [*tensors, *(numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items())],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("d", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=functions), folder / "net.onnx")
    return folder / "net.onnx"


def refused(path: Path, code: str, text: str) -> None:
    """The import gives this error within 10 s of processor time and 200 MB of Python's and NumPy's memory."""
    start = time.process_time()
    tracemalloc.start()
    try:
        with pytest.raises((N2D2Error, ErrorList)) as caught:
            import_onnx(path)
        assert tracemalloc.get_traced_memory()[1] < 200_000_000
    finally:
        tracemalloc.stop()
    assert time.process_time() - start < 10
    error = caught.value.errors[0]
    assert error.code == code and text in error.what, str(error)
    assert "\n" not in error.line().strip()


def test_files_of_2_gb_and_more(tmp_path):
    with open(tmp_path / "net.onnx", "wb") as file:
        file.truncate(2**31)
    refused(tmp_path / "net.onnx", "E302", "2,147,483,648 bytes")


def test_no_more_of_a_data_file_is_read_than_the_tensor_needs(tmp_path):
    with open(tmp_path / "data.bin", "wb") as file:
        file.truncate(5 * 10**9)
    weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4, 1, 3, 3], data_location=TensorProto.EXTERNAL)
    weights.external_data.add(key="location", value="data.bin")
    path = save(tmp_path, [NODE("Conv", ["x", "w"], ["y"])], tensors=[weights])
    assert import_onnx(path).nodes[0].params["weights"].shape == (4, 1, 3, 3)


def _function(name: str, *calls: str) -> onnx.FunctionProto:
    names = ["a", *(f"t{index}" for index in range(len(calls) - 1)), "b"]
    nodes = [NODE(call, [names[i]], [names[i + 1]], domain="d" if call[0] == "f" else "") for i, call in enumerate(calls)]
    return helper.make_function("d", name, ["a"], ["b"], nodes, [helper.make_opsetid("", 18), helper.make_opsetid("d", 1)])


@pytest.mark.parametrize(
    "functions, code, text",
    [
        ([_function("f0", "f0")], "E302", "cannot be inlined"),
        ([_function("f0", "f1"), _function("f1", "f0")], "E302", "cannot be inlined"),
        (
            [*(_function(f"f{i}", f"f{i + 1}", f"f{i + 1}") for i in range(15)), _function("f15", "Relu")],
            "E302",
            "32,768 nodes",
        ),
        ([*(_function(f"f{i}", f"f{i + 1}", f"f{i + 1}") for i in range(32)), _function("f32", "Relu")], "E317", "functions"),
    ],
)
def test_functions_that_grow_without_end(functions, code, text, tmp_path):
    refused(save(tmp_path, [NODE("f0", ["x"], ["y"], domain="d")], functions=functions), code, text)


def test_chains_without_end(tmp_path):
    names = ["x", *(f"t{i}" for i in range(30_000)), "y"]
    nodes = [NODE("Relu", [a], [b]) for a, b in pairwise(names)]
    refused(save(tmp_path, nodes), "E302", "30,001 nodes")


LARGE = {
    "constants that double": (
        [NODE("Concat", [f"c{i}", f"c{i}"], [f"c{i + 1}"], axis=1) for i in range(40)]
        + [NODE("ReduceMax", ["c40"], ["m"]), NODE("Add", ["x", "m"], ["y"])],
        {"c0": np.ones((1, 1024), np.float32)},
        "E310",
        "33,554,432 elements",
    ),
    "an outer sum": (
        [
            NODE("Transpose", ["c"], ["t"]),
            NODE("Add", ["c", "t"], ["s"]),
            NODE("ReduceMax", ["s"], ["m"]),
            NODE("Add", ["x", "m"], ["y"]),
        ],
        {"c": np.ones((60000, 1), np.float32)},
        "E310",
        "3,600,000,000",
    ),
    "tensors that double": (
        [NODE("Concat", ["x", "x"], ["c0"], axis=1)]
        + [NODE("Concat", [f"c{i}", f"c{i}"], [f"c{i + 1}"], axis=1) for i in range(40)]
        + [NODE("Relu", ["c40"], ["y"])],
        {},
        "E240",
        "at most 67,108,864",
    ),
    "Expand": (
        [NODE("ReduceMax", ["x"], ["m"]), NODE("Expand", ["m", "s"], ["y"])],
        {"s": np.array([1, 1, 1, 250_000_000])},
        "E240",
        "at most 67,108,864",
    ),
    "Tile": ([NODE("Tile", ["x", "s"], ["y"])], {"s": np.array([1, 1, 1, 10**9])}, "E240", "at most 67,108,864"),
    "Pad": ([NODE("Pad", ["x", "s"], ["y"])], {"s": np.array([0, 0, 0, 0, 0, 0, 0, 2**40])}, "E240", "at most 67,108,864"),
    "Resize by sizes": (
        [NODE("Resize", ["x", "", "", "s"], ["y"], mode="linear")],
        {"s": np.array([1, 1, 16000, 16000])},
        "E240",
        "256,000,000",
    ),
    "Resize by scales": (
        [NODE("Resize", ["x", "", "s"], ["y"])],
        {"s": np.array([1, 1, 1e9, 1e9], np.float32)},
        "E240",
        "at most 67,108,864",
    ),
    "Resize by no number": (
        [NODE("Resize", ["x", "", "s"], ["y"])],
        {"s": np.array([1, 1, np.nan, np.inf], np.float32)},
        "E310",
        "scales",
    ),
    "ConvTranspose": (
        [NODE("ConvTranspose", ["x", "w"], ["y"], strides=[100000, 100000])],
        {"w": np.ones((1, 1, 3, 3), np.float32)},
        "E240",
        "490,004,200,009",
    ),
    "a window": (
        [NODE("AveragePool", ["x"], ["y"], kernel_shape=[2**40, 2**40], pads=[2**39] * 4)],
        {},
        "E310",
        "larger than any image",
    ),
    "pads": (
        [NODE("Conv", ["x", "w"], ["y"], pads=[2**50] * 4)],
        {"w": np.ones((1, 1, 3, 3), np.float32)},
        "E240",
        "at most 67,108,864",
    ),
    "OneHot": (
        [NODE("Cast", ["x"], ["k"], to=7), NODE("OneHot", ["k", "d", "v"], ["y"])],
        {"d": np.array(10**9), "v": np.array([0, 1], np.float32)},
        "E240",
        "at most 67,108,864",
    ),
    "Range": (
        [NODE("Range", ["a", "b", "c"], ["r"]), NODE("ReduceMax", ["r"], ["m"]), NODE("Add", ["x", "m"], ["y"])],
        {"a": np.float32(0), "b": np.float32(1e30), "c": np.float32(1e-30)},
        "E310",
        "cannot be computed",
    ),
    "ConstantOfShape": (
        [NODE("ConstantOfShape", ["s"], ["c"]), NODE("ReduceMax", ["c"], ["m"]), NODE("Add", ["x", "m"], ["y"])],
        {"s": np.array([10**5, 10**5])},
        "E310",
        "10,000,000,000 elements",
    ),
}


@every("name", LARGE)
def test_shapes_without_measure(name, tmp_path):
    nodes, constants, code, text = LARGE[name]
    refused(save(tmp_path, nodes, constants), code, text)


_MEASURE = """import resource, sys
from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.importer import import_onnx
try:
    import_onnx(sys.argv[1])
except N2D2Error as error:
    print(error.code, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.slow
def test_twenty_million_indices_are_refused_within_a_gigabyte(tmp_path):
    """The memory of the whole process, that of protobuf included."""
    path = save(tmp_path, [NODE("Gather", ["x", "i"], ["y"], axis=3)], {"i": np.zeros(20_000_000, np.int64)})
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    code, megabytes = done.stdout.split()
    assert code == "E240" and int(megabytes) < 1000, done
