"""Attention of ONNX files becomes integers: what moves heads disappears, norms are one layer; ONNX Runtime is the referee."""

import numpy as np
from support.onnx_models import (
    ModelBuilder,
    decibels,
    float_results,
    integer_graph,
    integer_results,
    onnx_results,
    quantized_on,
)
from support.tables import every

ROWS, HEADS, SIZE = 9, 2, 8
WIDTH = HEADS * SIZE
RNG = np.random.default_rng(3)


def normal(*shape: int, scale: float = 0.5) -> np.ndarray:
    """Normal values."""
    return RNG.normal(0, scale, shape).astype(np.float32)


class Model(ModelBuilder):
    """An ONNX file from x (1, ROWS, WIDTH), node by node."""

    def file(self, output: str) -> bytes:
        """The file whose result is `output`."""
        return self.proto({"x": (1, ROWS, WIDTH)}, output).SerializeToString()

    def linear(self, x: str, inputs: int, outputs: int) -> str:
        """A Linear layer."""
        made = self.add("MatMul", x, normal(inputs, outputs, scale=inputs**-0.5))
        return self.add("Add", made, normal(outputs, scale=0.1))

    def norm(self, x: str, form: str) -> str:
        """LayerNorm of the last axis as an exporter spells it, or RMSNorm."""
        gain, shift = 1 + normal(WIDTH, scale=0.2), normal(WIDTH, scale=0.2)
        if form == "node":
            return self.add("LayerNormalization", x, gain, shift, epsilon=1e-5)
        mean = self.add("ReduceMean", x, axes=[-1], keepdims=1)
        away = x if form.startswith("rms") else self.add("Sub", x, mean)
        square = self.add("Pow", away, 2.0)
        variance = self.add("ReduceMean", square, axes=[-1], keepdims=1)
        root = self.add("Sqrt", self.add("Add", variance, 1e-5))
        if form.startswith("rms"):
            divided = ["Reciprocal", root] if form == "rms" else ["Div", float(form[-1]), root]
            return self.add("Mul", self.add("Mul", away, self.add(*divided)), gain)
        return self.add("Add", self.add("Mul", self.add("Div", away, root), gain), shift)

    def attention(self, x: str, form: str) -> str:
        """Attention of two heads, with one projection that is split or three."""
        if form == "three":
            parts = [self.linear(x, WIDTH, WIDTH) for _ in range(3)]
            shape = [1, ROWS, HEADS, SIZE]
            q, k, v = (self.add("Transpose", self.add("Reshape", part, shape), perm=[0, 2, 1, 3]) for part in parts)
        else:
            made = self.add("Reshape", self.linear(x, WIDTH, 3 * WIDTH), [1, ROWS, 3, HEADS, SIZE])
            turned = self.add("Transpose", made, perm=[2, 0, 3, 1, 4])
            q, k, v = (self.add("Gather", turned, i, axis=0) for i in range(3))
        turned = self.add("Transpose", k, perm=[0, 1, 3, 2])
        scores = self.add("Div", self.add("MatMul", q, turned), SIZE**0.5)
        mixed = self.add("MatMul", self.add("Softmax", scores, axis=-1), v)
        joined = self.add("Reshape", self.add("Transpose", mixed, perm=[0, 2, 1, 3]), [1, ROWS, WIDTH])
        return self.linear(joined, WIDTH, WIDTH)


def block(norm: str, form: str) -> bytes:
    """A block of a transformer, without what feeds forward."""
    model = Model(opset=17 if norm == "node" else 13)
    first = model.linear("x", WIDTH, WIDTH)
    total = model.add("Add", first, model.attention(model.norm(first, norm), form))
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
    turned = model.add("Transpose", "x", perm=[0, 2, 1])
    product = model.add("MatMul", "x", turned)
    file = model.file(model.add("MatMul", product, model.add("Transpose", model.add("Relu", turned), perm=[0, 2, 1])))
    graph = integer_graph(file)
    x = np.random.default_rng(6).normal(size=(1, ROWS, WIDTH)).astype(np.float32)
    assert np.allclose(float_results(graph, x), onnx_results(file, x), rtol=1e-4, atol=1e-5)


def test_factors_that_are_not_positive_stay():
    model = Model()
    file = model.file(model.add("MatMul", model.add("Mul", "x", -2.0), model.add("Transpose", "x", perm=[0, 2, 1])))
    graph = integer_graph(file)
    (node,) = [node for node in graph.nodes if node.op.kind == "ArrayMatMul"]
    assert node.op.scale == 1
    x = np.random.default_rng(7).normal(size=(1, ROWS, WIDTH)).astype(np.float32)
    assert np.allclose(float_results(graph, x), onnx_results(file, x), rtol=1e-4, atol=1e-5)
