"""Operators of .tflite files against LiteRT's reference kernels: at most a step apart, real numbers the same.

They look at `n2d2py.frontend.tflite.file`, `n2d2py.frontend.tflite.lowering`, `n2d2py.frontend.tflite.operators`,
`n2d2py.frontend.tflite.array_operators` and `n2d2py.frontend.tflite.translation`.
"""

import numpy as np
import pytest
from support.tables import every

pytest.importorskip("ai_edge_litert", reason="the referee, ai-edge-litert, is not installed")

from support.litert import Reference, agreement, channels_first
from support.tflite_cases import CASES, REALS
from support.tflite_files import IN, Small

from n2d2py.frontend.models import load_model
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.reference.executor import run_graph


@every("name", CASES)
def test_integers_as_litert(name, tmp_path):
    """Every stored tensor, fed the reference's inputs, is the same; a step away where LiteRT rounds in another way."""
    made, output = CASES[name]()
    path = made.write(tmp_path, output)
    shape = channels_first(np.zeros(Reference(path).inputs[0]["shape"])).shape
    scale = made.file._tensors[made.x].quantization.scale[0]
    zero = made.file._tensors[made.x].quantization.zeroPoint[0]
    info = np.iinfo(made.dtype)
    low, high = info.min, info.max
    x = (made.rng.integers(low, high + 1, (8, *shape[1:])) - zero) * np.float32(scale)
    found = agreement(path, x.astype(np.float32))
    assert found.layers
    assert found.outputs <= 1 and max(found.layers.values()) <= 1, found.layers
    # products by constants of arrays are rounded twice; next to activations of 16 bits
    # LiteRT rounds factors to 16 bits
    other = name.startswith(("mul_", "softmax", "products"))
    assert found.same >= (0.8 if "_16" in name else 0.85 if other else 1) * found.elements, found.counts


@every("scale", [0.1, 0.07])
@every("size", [8, 7])
@every("code", ["MEAN", "AVERAGE_POOL_2D"])
def test_means_behind_a_rectifier(code, size, scale, tmp_path):
    """Sums in the middle of two results: MEAN rounds its sums away from zero, AVERAGE_POOL_2D the mean of stored integers."""
    made = Small((1, size, size, 64), (0.1, -128))
    if code == "MEAN":
        axes = made.constant("axes", [1, 2])
        output = made.add("MEAN", [made.x, axes], (1, 64), (scale, -128), "ReducerOptions", keepDims=False, name="y")
    else:
        window = {"padding": 1, "strideH": size, "strideW": size, "filterHeight": size, "filterWidth": size}
        output = made.add(code, [made.x], (1, 1, 1, 64), (0.1, -128), "Pool2DOptions", name="y", **window)
    stored = np.abs(made.rng.normal(0, 40, (30, 64, size, size))).round().clip(0, 255)
    found = agreement(made.write(tmp_path, output), (stored * np.float32(0.1)).astype(np.float32))
    assert found.same == found.elements == 30 * 64, found.counts


@every("name", REALS)
def test_floats_as_litert(name, tmp_path):
    """Files of real numbers give LiteRT's results."""
    made, output = REALS[name]()
    path = made.write(tmp_path, output)
    x = made.rng.normal(size=(3, 4, 8, 6)).astype(np.float32)
    reference = Reference(path)
    wanted = reference.run(x)[reference.outputs[0]["name"]]
    graph = import_onnx(load_model(path))
    found = np.concatenate([run_graph(graph, {"x": one[None]})[graph.outputs[0]] for one in x])
    np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=2e-5, atol=2e-5)


@every("grid", [None, IN])
@every("code, options, kind", [("ARG_MAX", "ArgMaxOptions", np.int64), ("ARG_MIN", "ArgMinOptions", np.int32)])
def test_positions_as_litert(code, options, kind, grid, tmp_path):
    """Of the largest or smallest channel, in the file's type of integers; the first one where several are equal."""
    made = Small((1, 8, 6, 4), grid)
    output = made.file.tensor("y", (1, 8, 6), kind, None, None)
    made.file.versions[code] = 2
    made.file.operator(code, [made.x, made.constant("axis", [3])], output, options, outputType=2 if kind == np.int32 else 4)
    path = made.write(tmp_path, output)
    stored = made.rng.integers(-3, 4, (1, 8, 6, 4))
    port = (interpreter := Reference(path).interpreter).get_input_details()[0]
    interpreter.set_tensor(port["index"], stored.astype(port["dtype"]))
    interpreter.invoke()
    wanted = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    graph = import_onnx(load_model(path))
    x = stored.transpose(0, 3, 1, 2).astype(np.float32)
    (found,) = run_graph(graph, {"x": x if grid is None else (x - grid[1]) * np.float32(grid[0])}).values()
    assert found.dtype == wanted.dtype and np.array_equal(found.reshape(wanted.shape), wanted)
