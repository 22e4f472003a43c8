"""Factors of queries, keys and values: the function stays, and integers lose nothing to channels that differ."""

import numpy as np
import pytest
from support.onnx_models import decibels, integer_graph, integer_results, text_model

from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.graph import Graph
from n2d2py.quant.calibration import observe, prepare, quantize_observed
from n2d2py.quant.correct.projections import find_projections
from n2d2py.reference.executor import run_graph

ROWS, WIDTH = 6, 16
HEADS = """{0}r = Reshape ({0}, split) {0}h = Transpose <perm = [0, 2, 1, 3]> ({0}r)"""
ATTENTION = f"""{" ".join(HEADS.format(name) for name in "qkv")}
t = Transpose <perm = [0, 1, 3, 2]> (kh) s = MatMul (qh, t) d = Mul (s, third) a = Softmax <axis = -1> (d) c = MatMul (a, vh)
m = Transpose <perm = [0, 2, 1, 3]> (c) l = Reshape (m, joined) y = MatMul (l, o)"""
ONE_LAYER = "p = MatMul (x, w) q, k, v = Split <axis = 2> (p, thirds)"
THREE_LAYERS = "q = MatMul (x, wq) k = MatMul (x, wk) v = MatMul (x, wv)"


def attention(projections: str, gain: np.ndarray, wide: np.ndarray, end: str = "") -> Graph:
    """Attention of two heads. Its queries are multiplied and its keys divided by gains, its values multiplied by others."""
    q, k, v, out = np.random.default_rng(4).normal(0, WIDTH**-0.5, (4, WIDTH, WIDTH))
    weights = {"wq": 3 * q * gain, "wk": k / gain, "wv": v * wide, "o": out / wide[:, None]}
    weights["w"] = np.concatenate([weights["wq"], weights["wk"], weights["wv"]], axis=1)
    constants = {name: values.astype(np.float32) for name, values in weights.items()}
    constants |= {
        "split": np.array([0, ROWS, 2, WIDTH // 2]),
        "joined": np.array([0, ROWS, WIDTH]),
        "thirds": np.array([WIDTH] * 3),
    }
    ends = f"float[N,{ROWS},{WIDTH}] x => float[N,{ROWS},{WIDTH}] y" + (f", float[N,{ROWS},{WIDTH}] z" if end else "")
    model = text_model(ends, f"{projections} {ATTENTION} {end}", constants | {"third": np.float32(0.35)})
    return prepare(integer_graph(model.SerializeToString()), True, True)


@pytest.mark.parametrize("projections", [ONE_LAYER, THREE_LAYERS], ids=["one layer", "three layers"])
def test_channels_that_differ_cost_nothing(projections):
    """Gains of a factor of 100 leave the decibels of none, with float64 as the referee; without equalization they cost 10 dB."""
    rng = np.random.default_rng(3)
    samples, x = rng.normal(size=(2, 48, ROWS, WIDTH)).astype(np.float32)
    found = []
    wide = np.exp(rng.uniform(-2.3, 2.3, (2, WIDTH)))
    for gains, equalized in ((np.ones((2, WIDTH)), True), (wide, True), (wide, False)):
        graph = attention(projections, *gains)
        observed = observe(graph, [samples], [samples], {graph.inputs[0]: None}, equalized, "key")
        real, scaled = (
            run_graph(one, {one.inputs[0]: x.astype(np.float64)})[one.outputs[0]] for one in (graph, observed.graph)
        )
        np.testing.assert_allclose(scaled, real, rtol=1e-4, atol=1e-4 * np.abs(real).max())
        typed, _ = quantize_observed(observed, QuantOptions())
        found.append(decibels(integer_results(typed, x), real.reshape(len(x), -1)))
    assert found[1] > found[0] - 1.5 and found[2] < found[1] - 10, found


def test_layers_that_others_read_are_left_alone():
    """Keys that another layer or an output reads keep their scale, and so do the queries."""
    ones = np.ones(WIDTH)
    assert len(find_projections(attention(ONE_LAYER, ones, ones))) == 1
    assert len(find_projections(attention(THREE_LAYERS, ones, ones))) == 2
    for end in ("z = Relu (k)", "z = Identity (k)", "z = MatMul (k, o)"):
        assert find_projections(attention(THREE_LAYERS, ones, ones, end)) == []
        assert find_projections(attention(ONE_LAYER, ones, ones, end)) == []
