"""Pools whose outputs take the windows of several input channels, against loops over the mapping.

They look at `n2d2py.frontend.ini.mapping` and `n2d2py.frontend.ini.inputs`.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.numpy_layers import pool
from support.tables import every

POOL = "[a]\nInput=sp\nType=Dropout\nNbOutputs=6\n[pool]\nInput=a\nType=Pool\nPoolDims=3 2\nStride=2\nPadding=1\n"


def expected(x: np.ndarray, mode: str, mapping: np.ndarray) -> np.ndarray:
    """`mapping` (outputs, channels): the maximum, or the mean with the padding counted, over all connected windows."""
    single = pool(x, (2, 3), (2, 2), (1, 1), mode)
    combine = np.max if mode == "Max" else np.mean
    return np.stack([combine(single[:, row], axis=1) for row in mapping], axis=1)


def matrix(outputs: int, cells) -> np.ndarray:
    result = np.zeros((outputs, 6), bool)
    for output, channel in cells:
        result[output, channel] = True
    return result


CASES = [
    ("NbOutputs=3\nMapping.SizeY=2\nMapping.StrideY=2", matrix(3, [(0, 0), (0, 1), (1, 2), (1, 3), (2, 4), (2, 5)])),
    ("NbOutputs=2", np.ones((2, 6), bool)),
    ("NbOutputs=6\nMapping.NbGroups=2", np.kron(np.eye(2), np.ones((3, 3))).astype(bool)),
    ("NbOutputs=6\nMapping.Size=1\nMapping.OffsetX=2", matrix(6, [((c + 2) % 6, c) for c in range(6)])),
    ("NbOutputs=9\nMapping.Size=1", matrix(9, [(k % 9, k % 6) for k in range(9)])),
    (
        "NbOutputs=4\nMapping(a)=1 0 0 0  1 1 0 0  0 1 1 0  0 1 0 0  0 0 1 0  0 0 1 1",
        matrix(4, [(0, 0), (0, 1), (1, 1), (1, 2), (1, 3), (2, 2), (2, 4), (2, 5), (3, 5)]),
    ),
]


@every("mode", ["Max", "Average"])
@every("keys, mapping", CASES)
def test_values(mode, keys, mapping, build):
    x = np.random.default_rng(0).normal(size=(2, 6, 8, 10))
    net = build(f"{POOL}Pooling={mode}\n{keys}\nActivationFunction=Rectifier\n", (6, 8, 10))
    (found,) = net.run(x, "pool")
    np.testing.assert_allclose(found, np.maximum(expected(x, mode, mapping), 0), atol=1e-7)
    assert [node.name for node in net.graph.nodes if not node.helper] == ["a", "pool"]


def test_many_channels_and_two_parents(build):
    """All 40 channels of two inputs into each output."""
    x = np.random.default_rng(1).normal(size=(1, 20, 4, 4))
    net = build(
        "[a]\nInput=sp\nType=Dropout\nNbOutputs=20\n[p]\nInput=sp,a\nType=Pool\nPooling=Max\nPoolSize=2\nNbOutputs=3\n",
        (20, 4, 4),
    )
    (found,) = net.run(x, "p")
    whole = pool(x, (2, 2), (1, 1), (0, 0), "Max").max(axis=1)
    np.testing.assert_array_equal(found, np.stack([whole] * 3, axis=1))


def test_equal_outputs_are_computed_once(build):
    net = build(f"{POOL}Pooling=Max\nNbOutputs=500\n", (6, 8, 10))
    assert net.graph.node("pool").op.kind == "IndexSelect" and len(net.graph.nodes) == 10
    assert net.dims("pool") == [5, 5, 500]


@every("channels", [9, 12, 16, 17, 100])
def test_folded_maxima(channels, build):
    """More channels than one element-wise layer takes: half and half again."""
    x = np.random.default_rng(channels).normal(size=(1, channels, 3, 4))
    keys = f"NbOutputs=3\nMapping.SizeY={channels - 1}\nMapping.StrideY=1\nMapping.NbIterations=3\n"
    net = build(f"[p]\nInput=sp\nType=Pool\nPooling=Max\nPoolSize=2\n{keys}", (channels, 3, 4))
    (found,) = net.run(x, "p")
    single = pool(x, (2, 2), (1, 1), (0, 0), "Max")
    for output in range(3):
        left_out = (output + channels - 1) % channels
        np.testing.assert_array_equal(found[:, output], np.delete(single, left_out, axis=1).max(axis=1))
    assert len(net.graph.nodes) <= 1 + 3 * channels.bit_length()


@pytest.mark.parametrize("keys", ["NbOutputs=99999999", "NbOutputs=4000\nMapping.SizeY=3999"])
def test_pools_that_are_too_large(keys, refusal):
    assert "N2D2-E229" in refusal(f"[p]\nInput=sp\nType=Pool\nPooling=Max\nPoolSize=1\n{keys}\n", (4000, 1, 1))


@every(
    "keys, limit, name",
    [
        ("NbOutputs=5", 30, "MAX_CONNECTIONS"),
        ("NbOutputs=2", 12, "MAX_CONNECTIONS"),
        ("NbOutputs=3\nMapping.SizeY=2\nMapping.StrideY=2", 6, "MAX_WINDOWS"),
        ("NbOutputs=5\nMapping.SizeY=2\nMapping.StrideY=1", 15, "MAX_WINDOWS"),
        ("NbOutputs=5", 6, "MAX_WINDOWS"),
    ],
)
def test_pools_of_the_largest_size(keys, limit, name, build, refusal, monkeypatch):
    """So many connections, of all outputs with all channels, or windows are allowed, one less is refused."""
    text = f"{POOL}Pooling=Max\n{keys}\n"
    monkeypatch.setattr(f"n2d2py.operators.pool.ini.{name}", limit)
    assert build(text, (6, 8, 10)).dims("pool")[:2] == [5, 5]
    monkeypatch.setattr(f"n2d2py.operators.pool.ini.{name}", limit - 1)
    assert "N2D2-E229: net.ini:13 [pool]: " in refusal(text, (6, 8, 10))


def test_output_without_channels_is_refused(refusal):
    assert "N2D2-E215" in refusal(f"{POOL}Pooling=Max\nNbOutputs=7\nMapping.NbIterations=6\nMapping.Size=1\n", (6, 8, 10))


def test_vectors_are_pooled_as_images(build):
    net = build(
        "[f]\nInput=sp\nType=Fc\nNbOutputs=4\n[p]\nInput=f\nType=Pool\nPooling=Max\nPoolSize=1\nNbOutputs=2\n"
        "Mapping.SizeY=2\nMapping.StrideY=2\n"
    )
    assert net.dims("p") == [1, 1, 2]


@pytest.mark.parametrize("keys, told", [("", True), ("Mapping.Size=1", False), ("Mapping.NbGroups=2", False)])
def test_what_a_pool_without_a_mapping_does_is_told(keys, told, build, capsys):
    build(f"{POOL}Pooling=Max\nNbOutputs=6\n{keys}\n", (6, 8, 10))
    assert ("no Mapping; " in capsys.readouterr().err) == told
