"""Operators of .tflite files against LiteRT's reference kernels: at most a step apart, real numbers the same."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert", reason="the referee, ai-edge-litert, is not installed")

from support.litert import Reference, agreement, channels_first
from support.tflite_cases import CASES, REALS

from n2d2py.frontend.models import load_model
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.reference.executor import run_graph


@pytest.mark.parametrize("name", CASES)
def test_int8_as_litert(name, tmp_path):
    """Every stored tensor, fed the reference's inputs, is at most a step away; few are."""
    made, output = CASES[name]()
    path = made.write(tmp_path, output)
    shape = channels_first(np.zeros(Reference(path).inputs[0]["shape"])).shape
    scale = made.file._tensors[made.x].quantization.scale[0]
    zero = made.file._tensors[made.x].quantization.zeroPoint[0]
    low, high = (0, 255) if made.file._tensors[made.x].type == made.schema.TensorType.UINT8 else (-128, 127)
    x = (made.rng.integers(low, high + 1, (8, *shape[1:])) - zero) * np.float32(scale)
    found = agreement(path, x.astype(np.float32))
    assert found.layers
    assert found.outputs <= 1 and max(found.layers.values()) <= 1, found.layers
    # means and interpolations have many results in the middle of two integers, products and slopes are rounded twice by LiteRT
    twice = name.startswith(("average_pool", "mean", "resize_bilinear", "mul", "leaky_relu"))
    assert found.same >= (0.85 if twice else 0.99) * found.elements, found.counts


@pytest.mark.parametrize("name", REALS)
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
