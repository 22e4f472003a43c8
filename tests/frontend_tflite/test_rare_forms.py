"""Rare forms of .tflite files, against LiteRT: fewer axes, constants behind a dequantize, four bits, another order of operators.

They look at `n2d2py.frontend.tflite.file`, `n2d2py.frontend.tflite.lowering`, `n2d2py.frontend.tflite.operators`,
`n2d2py.frontend.tflite.array_operators` and `n2d2py.frontend.tflite.translation`.
"""

import numpy as np
import pytest
from support.errors import error_line, refused
from support.tables import every

pytest.importorskip("ai_edge_litert", reason="the referee, ai-edge-litert, is not installed")

from support.tflite_files import IN, Small, compare, rewritten, written

from n2d2py.frontend.models import load_model
from n2d2py.frontend.onnx.importer import import_onnx


@pytest.mark.parametrize("first", [True, False])
def test_a_computed_operand_of_fewer_axes(first, tmp_path):
    """It is filled up from the left."""
    m = Small((1, 8, 6, 4), None)
    numbers = [m.constant(name, values) for name, values in (("b", [0, 3, 0, 0]), ("e", [1, 4, 6, 4]), ("s", [1] * 4))]
    line = m.add("STRIDED_SLICE", [m.x, *numbers], (6, 4), None, "StridedSliceOptions", shrinkAxisMask=3)
    operands = [line, m.x] if first else [m.x, line]
    path = written(m, tmp_path, m.add("SUB", operands, (1, 8, 6, 4), None, "SubOptions"))
    compare(path, [m.rng.normal(size=(1, 8, 6, 4)).astype(np.float32)])


@pytest.mark.parametrize("axis", [None, 0, 3])
def test_constants_behind_a_dequantize(axis, tmp_path):
    """With one scale, or one for each element of an axis; as the weights of a convolution of real numbers."""
    m = Small((1, 8, 6, 4), None)
    count = {None: 1, 0: 5, 3: 4}[axis]
    scales = np.linspace(0.01, 0.05, count).astype(np.float32)
    stored = m.rng.integers(-127, 128, (5, 3, 3, 4)).astype(np.int8)
    w = m.tensor("w", stored.shape, (scales, 0), np.int8, stored, axis or 0)
    real = m.add("DEQUANTIZE", [w], stored.shape, None)
    fields = {"padding": 0, "strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    path = m.write(tmp_path, m.add("CONV_2D", [m.x, real], (1, 8, 6, 5), None, "Conv2DOptions", name="y", **fields))
    graph = import_onnx(load_model(path))
    shape = [1, 1, 1, 1]
    shape[axis or 0] = count
    wanted = stored * scales.reshape(shape)
    np.testing.assert_allclose(graph.nodes[-1].params["weights"], wanted.transpose(0, 3, 1, 2), rtol=1e-6)


def test_weights_of_four_bits(tmp_path):
    """Two of them in a byte, the first one in the lower half; an odd number of them leaves one over."""
    m = Small((1, 3), None)
    stored = np.array([[-8, 7, 1], [0, -1, 3], [5, -4, 2]], np.int8)
    w = m.tensor("w", stored.shape, (np.float32(0.5), 0), np.int8, stored)
    path = m.write(tmp_path, m.add("FULLY_CONNECTED", [m.x, w, -1], (1, 3), None, "FullyConnectedOptions", name="y"))

    def pack(schema, model) -> None:
        tensor = model.subgraphs[0].tensors[w]
        halves = np.append(stored.reshape(-1), 0).astype(np.int8).view(np.uint8) & 15
        tensor.type, model.buffers[tensor.buffer].data = schema.TensorType.INT4, halves[::2] | halves[1::2] << 4

    graph = import_onnx(load_model(rewritten(path, pack)))
    assert np.array_equal(graph.nodes[-1].params["weights"].reshape(3, 3), stored * 0.5)


def test_sparse_weights_of_four_bits_are_refused(tmp_path):
    m = Small((1, 3), None)
    w = m.tensor("w", (3, 3), (np.float32(0.5), 0), np.int8, np.ones((3, 3), np.int8))
    path = m.write(tmp_path, m.add("FULLY_CONNECTED", [m.x, w, -1], (1, 3), None, "FullyConnectedOptions", name="y"))

    def pack(schema, model) -> None:
        model.subgraphs[0].tensors[w].type = schema.TensorType.INT4
        model.subgraphs[0].tensors[w].sparsity = schema.SparsityParametersT()

    assert "E310" in error_line(lambda: import_onnx(load_model(rewritten(path, pack))))


@every(
    ("change", "text"),
    [
        (lambda graph: setattr(graph, "inputs", np.array([0, 0], np.int32)), "an input is listed twice"),
        (lambda graph: setattr(graph, "outputs", np.array([9], np.int32)), "the output 9 is not one of the 3 tensors"),
        (lambda graph: setattr(graph, "inputs", np.array([3], np.int32)), "the input 3 is not one of the 3 tensors"),
        (lambda graph: setattr(graph.operators[0], "opcodeIndex", 2), "has the code 2 of 2"),
        (lambda graph: setattr(graph.operators[0], "inputs", np.array([3], np.int32)), "operator 0 names the tensors 3 of 3"),
        (lambda graph: setattr(graph.operators[0], "inputs", np.array([2], np.int32)), "which no earlier operator writes"),
        (lambda graph: setattr(graph.operators[1], "outputs", np.array([1], np.int32)), "which is written or constant already"),
        (
            lambda graph: setattr(graph.operators[1], "outputs", np.array([], np.int32)),
            "operator 1 names the tensors of no output",
        ),
        (
            lambda graph: setattr(graph.operators[1], "outputs", np.array([-1], np.int32)),
            "operator 1 names the tensors -1 of 3",
        ),
        (lambda graph: setattr(graph, "outputs", np.array([2], np.int32)), ""),
    ],
)
def test_the_order_of_a_file(change, text, tmp_path):
    m = Small((1, 8, 6, 4), IN)
    path = m.write(tmp_path, m.add("LOGISTIC", [m.add("RELU", [m.x], (1, 8, 6, 4), IN)], (1, 8, 6, 4), (1 / 256, -128)))
    rewritten(path, lambda schema, model: change(model.subgraphs[0]))
    if not text:
        assert import_onnx(load_model(path)).nodes
        return
    assert refused(f"E302.*{text}", lambda: import_onnx(load_model(path)))


@pytest.mark.parametrize(("name", "text"), [("none.tflite", "E301.*does not exist"), ("folder.tflite", "E301.*cannot be read")])
def test_files_that_are_not_there(name, text, tmp_path):
    (tmp_path / "folder.tflite").mkdir()
    assert refused(text, load_model, tmp_path / name)
