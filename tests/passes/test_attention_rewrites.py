"""Attention of ONNX files becomes integers: what moves heads disappears, norms are one layer; ONNX Runtime is the referee."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from support.onnx_models import decibels, float_results, integer_graph, integer_results, onnx_results, quantized_on
from support.tables import every

ROWS, HEADS, SIZE = 9, 2, 8
WIDTH = HEADS * SIZE
RNG = np.random.default_rng(3)


def normal(*shape: int, scale: float = 0.5) -> np.ndarray:
    """Normal values."""
    return RNG.normal(0, scale, shape).astype(np.float32)


class Model:
    """An ONNX file from x (1, ROWS, WIDTH), node by node."""

    def __init__(self, opset: int = 17):
        self.nodes: list = []
        self.constants: list = []
        self.opset = opset

    def const(self, values) -> str:
        """A constant."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(self, kind: str, *inputs: str, **attributes) -> str:
        """A node; its output has its name."""
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def file(self, output: str) -> bytes:
        """The file whose result is `output`."""
        ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", (1, ROWS, WIDTH)), (output, None))]
        graph = helper.make_graph(self.nodes, "attention", ends[:1], ends[1:], self.constants)
        opsets = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()

    def linear(self, x: str, inputs: int, outputs: int) -> str:
        """A Linear layer."""
        made = self.node("MatMul", x, self.const(normal(inputs, outputs, scale=inputs**-0.5)))
        return self.node("Add", made, self.const(normal(outputs, scale=0.1)))

    def norm(self, x: str, form: str) -> str:
        """LayerNorm of the last axis as an exporter spells it, or RMSNorm."""
        gain, shift = self.const(1 + normal(WIDTH, scale=0.2)), self.const(normal(WIDTH, scale=0.2))
        if form == "node":
            return self.node("LayerNormalization", x, gain, shift, epsilon=1e-5)
        mean = self.node("ReduceMean", x, axes=[-1], keepdims=1)
        away = x if form.startswith("rms") else self.node("Sub", x, mean)
        square = self.node("Pow", away, self.const(np.float32(2)))
        variance = self.node("ReduceMean", square, axes=[-1], keepdims=1)
        root = self.node("Sqrt", self.node("Add", variance, self.const(np.float32(1e-5))))
        if form.startswith("rms"):
            divided = ["Reciprocal", root] if form == "rms" else ["Div", self.const(np.float32(form[-1])), root]
            return self.node("Mul", self.node("Mul", away, self.node(*divided)), gain)
        return self.node("Add", self.node("Mul", self.node("Div", away, root), gain), shift)

    def attention(self, x: str, form: str) -> str:
        """Attention of two heads, with one projection that is split or three."""
        if form == "three":
            parts = [self.linear(x, WIDTH, WIDTH) for _ in range(3)]
            shape = self.const(np.array([1, ROWS, HEADS, SIZE]))
            q, k, v = (self.node("Transpose", self.node("Reshape", part, shape), perm=[0, 2, 1, 3]) for part in parts)
        else:
            made = self.node("Reshape", self.linear(x, WIDTH, 3 * WIDTH), self.const(np.array([1, ROWS, 3, HEADS, SIZE])))
            turned = self.node("Transpose", made, perm=[2, 0, 3, 1, 4])
            q, k, v = (self.node("Gather", turned, self.const(np.array(i)), axis=0) for i in range(3))
        turned = self.node("Transpose", k, perm=[0, 1, 3, 2])
        scores = self.node("Div", self.node("MatMul", q, turned), self.const(np.float32(SIZE**0.5)))
        mixed = self.node("MatMul", self.node("Softmax", scores, axis=-1), v)
        joined = self.node("Reshape", self.node("Transpose", mixed, perm=[0, 2, 1, 3]), self.const(np.array([1, ROWS, WIDTH])))
        return self.linear(joined, WIDTH, WIDTH)


def block(norm: str, form: str) -> bytes:
    """A block of a transformer, without what feeds forward."""
    model = Model(17 if norm == "node" else 13)
    first = model.linear("x", WIDTH, WIDTH)
    total = model.node("Add", first, model.attention(model.norm(first, norm), form))
    return model.file(model.linear(model.norm(total, norm), WIDTH, WIDTH))


BLOCKS = [("node", "split"), ("node", "three"), ("spelled", "split"), ("rms", "three"), ("rms, divides 1", "three")]


@every("norm, form", BLOCKS)
def test_a_block_has_no_moves_and_no_floating_point(norm, form):
    file = block(norm, form)
    graph = integer_graph(file)
    kinds = [node.op.kind for node in graph.nodes]
    assert kinds.count("ArrayMatMul") == 2 and kinds.count("Normalize") == 2 and kinds.count("ElemWise") == 1
    assert not {"ArrayMap", "ArrayReduce", "IndexSelect", "Transpose"} & set(kinds), kinds
    x = np.random.default_rng(5).normal(size=(48, ROWS, WIDTH)).astype(np.float32)
    real = onnx_results(file, x)
    assert np.allclose(float_results(graph, x), real, rtol=1e-4, atol=1e-5)
    typed = quantized_on(graph, x, input_bits=16, output_bits=16)
    assert all(typed.is_integer(node) for node in typed.nodes)
    assert decibels(integer_results(typed, x), real) > 32


def test_two_divided_by_the_deviation():
    file = block("rms, divides 2", "three")
    graph = integer_graph(file)
    x = np.random.default_rng(5).normal(size=(2, ROWS, WIDTH)).astype(np.float32)
    assert np.allclose(float_results(graph, x), onnx_results(file, x), rtol=1e-4, atol=1e-5)


def test_what_is_read_elsewhere_stays():
    """Transposed matrices that are a result of the network as well are still made."""
    model = Model()
    turned = model.node("Transpose", "x", perm=[0, 2, 1])
    product = model.node("MatMul", "x", turned)
    file = model.file(model.node("MatMul", product, model.node("Transpose", model.node("Relu", turned), perm=[0, 2, 1])))
    graph = integer_graph(file)
    x = np.random.default_rng(6).normal(size=(1, ROWS, WIDTH)).astype(np.float32)
    assert np.allclose(float_results(graph, x), onnx_results(file, x), rtol=1e-4, atol=1e-5)


def test_factors_that_are_not_positive_stay():
    model = Model()
    product = model.node(
        "MatMul", model.node("Mul", "x", model.const(np.float32(-2))), model.node("Transpose", "x", perm=[0, 2, 1])
    )
    file = model.file(product)
    graph = integer_graph(file)
    (node,) = [node for node in graph.nodes if node.op.kind == "ArrayMatMul"]
    assert node.op.scale == 1
    x = np.random.default_rng(7).normal(size=(1, ROWS, WIDTH)).astype(np.float32)
    assert np.allclose(float_results(graph, x), onnx_results(file, x), rtol=1e-4, atol=1e-5)
