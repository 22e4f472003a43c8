"""Sparse weights of .tflite files against LiteRT, which makes them dense itself; MediaPipe's transposed convolution; damaged lists.

They look at `n2d2py.frontend.tflite.file` and `n2d2py.frontend.tflite.translation`.
"""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support.errors import error_line
from support.tables import every

pytest.importorskip("ai_edge_litert", reason="the referee, ai-edge-litert, is not installed")

from support.litert import Reference, channels_first
from support.tflite_files import Small, rewritten

from n2d2py.errors import N2D2Error
from n2d2py.frontend.models import load_model
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.reference.executor import run_graph

DENSE, CSR = 0, 1


def _encoded(values: np.ndarray, order: list[int], formats: list[int], blocks: dict[int, int]):
    """(lists of each axis in the order of storage, values listed) of an array; `blocks`: size of those of an axis."""
    rank = values.ndim
    blocked = list(blocks)
    split = values
    for at, axis in enumerate(reversed(blocked)):  # (..., outer, block, ...) with blocks moved to the end
        shape = list(split.shape)
        shape[axis : axis + 1] = [shape[axis] // blocks[axis], blocks[axis]]
        split = np.moveaxis(split.reshape(shape), axis + 1, rank)
        assert at < rank
    split = split.transpose(order)
    axes = [{"size": size, "begins": [0], "indices": []} for size in split.shape]
    listed = []

    def walk(part: np.ndarray, depth: int) -> None:
        if depth == len(formats):
            listed.append(part[()])
            return
        for index in range(part.shape[0]):
            if formats[depth] == CSR and not part[index].any():
                continue
            axes[depth]["indices"].append(index)
            walk(part[index], depth + 1)
        axes[depth]["begins"].append(len(axes[depth]["indices"]))

    walk(split, 0)
    return axes, np.array(listed, values.dtype), blocked


def _sparsity(schema, order, formats, axes, blocked, width: str):
    made = schema.SparsityParametersT()
    made.traversalOrder, made.blockMap, made.dimMetadata = np.array(order, np.int32), np.array(blocked, np.int32), []
    vector, kind = {"Int32": (schema.Int32VectorT, 1), "Uint16": (schema.Uint16VectorT, 2), "Uint8": (schema.Uint8VectorT, 3)}[
        width
    ]
    for one, axis in zip(formats, axes, strict=True):
        entry = schema.DimensionMetadataT()
        entry.format = one
        if one == DENSE:
            entry.denseSize = axis["size"]
        else:
            for name, values in (("arraySegments", axis["begins"]), ("arrayIndices", axis["indices"])):
                table = vector()
                table.values = np.array(values, {"Int32": np.int32, "Uint16": np.uint16, "Uint8": np.uint8}[width])
                setattr(entry, name, table)
                setattr(entry, f"{name}Type", kind)
        made.dimMetadata.append(entry)
    return made


def _network(folder: Path, shape, order, formats, blocks, width="Int32", half=False, change=None) -> tuple[Path, np.ndarray]:
    """A fully connected layer (2 axes) or a convolution (4) whose weights are sparse, behind DENSIFY."""
    dtype = np.float16 if half else np.float32
    rng = np.random.default_rng(3)
    values = np.where(rng.random(shape) < 0.4, rng.normal(size=shape), 0).astype(dtype)
    values[:, 0] = 0
    m = Small((1, 8, 6, 4) if len(shape) == 4 else (1, shape[1]), None)
    m.file.versions.update(DENSIFY=1)
    listed = m.tensor("w", shape, values=np.zeros(shape, dtype))
    full = m.add("DENSIFY", [listed], shape, None, "DensifyOptions", name="full")
    if half:
        m.file._tensors[full].type = m.schema.TensorType.FLOAT16
        full = m.add("DEQUANTIZE", [full], shape, None, name="real")
    if len(shape) == 4:
        fields = {"padding": 0, "strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
        bias = m.tensor("b", (shape[0],), values=rng.normal(size=shape[0]).astype(np.float32))
        y = m.add("CONV_2D", [m.x, full, bias], (1, 8, 6, shape[0]), None, "Conv2DOptions", name="y", **fields)
    else:
        y = m.add("FULLY_CONNECTED", [m.x, full, -1], (1, shape[0]), None, "FullyConnectedOptions", name="y")
    axes, stored, blocked = _encoded(values, order, formats, blocks)

    def sparse(schema, model) -> None:
        (tensor,) = (one for one in model.subgraphs[0].tensors if one.name == b"w")
        tensor.sparsity = _sparsity(schema, order, formats, axes, blocked, width)
        model.buffers[tensor.buffer].data = np.frombuffer(stored.tobytes(), np.uint8)
        if change is not None:
            change(SimpleNamespace(tensor=tensor, sparsity=tensor.sparsity, axes=tensor.sparsity.dimMetadata, model=model))

    return rewritten(m.write(folder, y), sparse), values.astype(np.float32)


CASES = {
    "rows": ((6, 8), [0, 1], [DENSE, CSR], {}),
    "columns": ((6, 8), [1, 0], [DENSE, CSR], {}),
    "all listed": ((6, 8), [0, 1], [CSR, CSR], {}),
    "blocks of 4": ((6, 8), [0, 1, 2], [DENSE, CSR, DENSE], {1: 4}),
    "blocks of 2 x 4": ((6, 8), [0, 1, 2, 3], [DENSE, CSR, DENSE, DENSE], {0: 2, 1: 4}),
    "a convolution": ((5, 3, 3, 4), [0, 1, 2, 3], [DENSE, DENSE, DENSE, CSR], {}),
    "a convolution, blocks of channels": ((8, 1, 1, 4), [0, 1, 2, 3, 4], [DENSE, DENSE, DENSE, CSR, DENSE], {0: 4}),
}


@every("half", [False, True])
@every("name", CASES)
def test_sparse_weights_as_litert(name, half, tmp_path):
    path, values = _network(tmp_path, *CASES[name], half=half)
    graph = import_onnx(load_model(path))
    (layer,) = (node for node in graph.nodes if "weights" in node.params)
    wanted = values.transpose(0, 3, 1, 2) if values.ndim == 4 else values
    assert np.array_equal(layer.params["weights"].reshape(wanted.shape), wanted) and (wanted == 0).mean() > 0.5
    reference = Reference(path)
    x = np.random.default_rng(4).normal(size=channels_first(np.zeros(reference.inputs[0]["shape"])).shape).astype(np.float32)
    expected = reference.run(x)[reference.outputs[0]["name"]]
    np.testing.assert_allclose(run_graph(graph, {"x": x})[graph.outputs[0]].reshape(expected.shape), expected, atol=1e-5)


@pytest.mark.parametrize("width", ["Uint8", "Uint16"])
def test_short_indices(width, tmp_path):
    path, values = _network(tmp_path, *CASES["rows"], width=width)
    (layer,) = import_onnx(load_model(path)).nodes
    assert np.array_equal(layer.params["weights"].reshape(values.shape), values)


DAMAGES = {
    "in the order": lambda m: setattr(m.sparsity, "traversalOrder", np.array([0, 0], np.int32)),
    "a list of indices is missing": lambda m: setattr(m.axes[1], "arrayIndicesType", 0),
    "an index outside": lambda m: setattr(m.axes[1].arrayIndices, "values", m.axes[1].arrayIndices.values + 1),
    "indices of 5 positions": lambda m: setattr(m.axes[1].arraySegments, "values", m.axes[1].arraySegments.values[:-1]),
    "a dense axis": lambda m: setattr(m.axes[0], "denseSize", 7),
    "blocks of the axes": lambda m: (
        setattr(m.sparsity, "blockMap", np.array([9], np.int32)),
        setattr(m.sparsity, "traversalOrder", np.array([0, 1, 2], np.int32)),
        m.axes.append(m.axes[0]),
    ),
    "in an axis of": lambda m: (
        setattr(m.sparsity, "blockMap", np.array([1], np.int32)),
        setattr(m.sparsity, "traversalOrder", np.array([0, 1, 2], np.int32)),
        m.axes.append(m.axes[0]),
    ),
    "positions for": lambda m: setattr(m.model.buffers[m.tensor.buffer], "data", m.model.buffers[m.tensor.buffer].data[:-4]),
}


@every("text", DAMAGES)
def test_damaged_lists_are_refused(text, tmp_path):
    path, _ = _network(tmp_path, *CASES["rows"], change=DAMAGES[text])
    line = error_line(load_model, path)
    assert text in line
    assert line.startswith("N2D2-E302") and "\n" not in line


@pytest.mark.parametrize(("padding", "kernel", "stride"), [(0, (3, 2), (2, 2)), (1, (3, 3), (2, 1)), (1, (2, 2), (2, 2))])
def test_mediapipe_s_transposed_convolution(padding, kernel, stride, tmp_path):
    """As LiteRT's TRANSPOSE_CONV, with the same bias: the custom operator has no kernel there."""
    m = Small((1, 8, 6, 4), None)
    sizes = [n * s if padding == 0 else (n - 1) * s + k for n, s, k in zip((8, 6), stride, kernel, strict=True)]
    w = m.tensor("w", (5, *kernel, 4), values=m.rng.normal(size=(5, *kernel, 4)).astype(np.float32))
    b = m.tensor("b", (5,), values=m.rng.normal(size=5).astype(np.float32))
    shape = m.constant("s", [1, *sizes, 5])
    fields = {"padding": padding, "strideH": stride[0], "strideW": stride[1]}
    y = m.add("TRANSPOSE_CONV", [shape, w, m.x, b], (1, *sizes, 5), None, "TransposeConvOptions", name="y", **fields)
    m.file.versions["TRANSPOSE_CONV"] = 3
    path = m.write(tmp_path, y)
    x = m.rng.normal(size=(1, 4, 8, 6)).astype(np.float32)
    reference = Reference(path)
    expected = reference.run(x)[reference.outputs[0]["name"]]

    def custom(schema, model, given=(padding + 1, stride[1], stride[0])) -> None:
        (code,) = model.operatorCodes
        code.builtinCode = code.deprecatedBuiltinCode = 32
        code.customCode = "Convolution2DTransposeBias"
        (operator,) = model.subgraphs[0].operators
        operator.inputs = operator.inputs[[2, 1, 3]]
        operator.builtinOptions, operator.builtinOptionsType = None, 0
        operator.customOptions = np.frombuffer(np.array(given, "<i4").tobytes(), np.uint8)

    graph = import_onnx(load_model(rewritten(path, custom)))
    found = run_graph(graph, {"x": x})[graph.outputs[0]]
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-5, atol=1e-5)
    for given, text in (((padding + 1,), "its options of 4 bytes"), ((7, 1, 1), "padding number -1")):
        with pytest.raises(N2D2Error, match=text):
            load_model(rewritten(path, lambda schema, model, given=given: _options(model, given)))


def _options(model, given) -> None:
    model.subgraphs[0].operators[0].customOptions = np.frombuffer(np.array(given, "<i4").tobytes(), np.uint8)
