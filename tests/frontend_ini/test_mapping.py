"""Mapping: which input channel feeds which output, in every form of the key.

They look at `n2d2py.contracts.ini.mapping` and `n2d2py.contracts.ini.convolution`.
"""

import numpy as np
import pytest
from support.numpy_layers import convolve, pool
from support.tables import every

CONV = "[conv]\nInput={parents}\nType=Conv\nNbOutputs={outputs}\nKernelDims=1 1\nWeightsFiller=HeFiller\n{keys}\n"
MORE = "[more]\nInput=sp\nType=Conv\nNbOutputs=2\nKernelDims=1 1\n"


def connections(net, layer: str, channels: int) -> np.ndarray:
    """Which channels an output depends on, found by running the layer on one channel at a time."""
    x = np.concatenate([np.zeros((1, channels, 2, 2)), np.eye(channels)[:, :, None, None] * np.ones((1, 1, 2, 2))])
    (y,) = net.run(x, layer)
    return (np.abs(y[1:] - y[:1]).max(axis=(2, 3)) > 1e-9).T


@every(
    "keys,channels,outputs,expected",
    [
        ("", 2, 3, ["11", "11", "11"]),
        ("Mapping.NbGroups=2", 4, 4, ["1100", "1100", "0011", "0011"]),
        ("Mapping.ChannelsPerGroup=1", 3, 3, ["100", "010", "001"]),
        ("Mapping.ChannelsPerGroup=1", 2, 4, ["10", "10", "01", "01"]),
        ("Mapping.ChannelsPerGroup=2", 4, 5, ["1100", "1100", "0011", "0011", "0011"]),
        ("Mapping.Size=1", 3, 3, ["100", "010", "001"]),
        ("Mapping.SizeY=2\nMapping.StrideY=2", 8, 4, ["11000000", "00110000", "00001100", "00000011"]),
        ("Mapping.Size=1\nMapping.OffsetX=1", 3, 3, ["001", "100", "010"]),
        ("Mapping.Size=2\nMapping.Offset=1\nMapping.NbIterations=1", 4, 4, ["0000", "0110", "0110", "0000"]),
        ("Mapping.SizeX=0\nMapping.NbIterations=1", 3, 2, ["100", "100"]),
        ("Mapping.SizeY=0\nMapping.NbIterations=1", 3, 2, ["111", "000"]),
        ("Mapping.Size=0\nMapping.NbIterations=1", 3, 2, ["111", "111"]),
        ("Mapping.SizeX=0\nMapping.SizeY=2\nMapping.NbIterations=1", 3, 2, ["110", "110"]),
        ("Mapping.Size=7\nMapping.NbIterations=1", 2, 3, ["11", "11", "11"]),
        ("Mapping.NbIterations=0\nMapping.SizeX=1", 2, 3, ["10", "01", "10"]),
        ("Mapping.NbIterations=2\nMapping.SizeX=1", 2, 3, ["10", "01", "00"]),
        ("Mapping.SizeX=2\nMapping.StrideX=2\nMapping.NbIterations=2", 2, 4, ["10", "10", "01", "01"]),
        ("Mapping(sp)=1 0 1 \\\n1 1 0", 2, 3, ["11", "01", "10"]),
        ("Mapping(sp).Size=1", 2, 2, ["10", "01"]),
        ("Mapping.Size=2\nMapping(sp).Size=1", 2, 2, ["10", "01"]),
    ],
)
def test_forms(keys, channels, outputs, expected, build):
    net = build(CONV.format(parents="sp", outputs=outputs, keys=keys), (channels, 2, 2))
    found = connections(net, "conv", channels)
    assert ["".join(str(int(bit)) for bit in row) for row in found] == expected


@every(
    "keys,channels,outputs,groups,weights",
    [
        ("Mapping.ChannelsPerGroup=1", 6, 6, 6, (6, 1, 1, 1)),
        ("Mapping.NbGroups=3", 6, 9, 3, (9, 2, 1, 1)),
        ("Mapping.Size=1", 4, 4, 4, (4, 1, 1, 1)),
        ("Mapping.NbGroups=1", 4, 4, 1, (4, 4, 1, 1)),
        ("Mapping.ChannelsPerGroup=2", 4, 5, 1, (5, 4, 1, 1)),
    ],
)
def test_regular_mappings_become_groups(keys, channels, outputs, groups, weights, build):
    net = build(CONV.format(parents="sp", outputs=outputs, keys=keys), (channels, 2, 2))
    assert net.graph.node("conv").op.groups == groups and net.params("conv")["weights"].shape == weights


def test_a_depthwise_convolution_computes_channel_by_channel(build, stimulus):
    net = build("[dw]\nInput=sp\nType=Conv\nNbOutputs=3\nKernelDims=3 3\nPadding=1\nMapping.ChannelsPerGroup=1\n")
    p, (found,) = net.params("dw"), net.run(stimulus, "dw")
    for c in range(3):
        alone = convolve(stimulus[:, c : c + 1], p["weights"][c : c + 1], p["bias"][c : c + 1], pad=(1, 1))
        np.testing.assert_allclose(found[:, c : c + 1], alone, atol=1e-6)


def test_two_parents_have_mappings_of_their_own(build):
    keys = "Mapping(sp).Size=1\nMapping(more)=1 0 0 1\n0 1 1 0".replace("\n0", " \\\n0")
    net = build(MORE + CONV.format(parents="sp,more", outputs=4, keys=keys), (4, 2, 2))
    weights = net.params("conv")["weights"][:, :, 0, 0] != 0
    np.testing.assert_array_equal(weights[:, :4], np.eye(4, dtype=bool))
    np.testing.assert_array_equal(weights[:, 4:], [[1, 0], [0, 1], [0, 1], [1, 0]])


def test_a_parent_without_mapping_is_fully_connected(build):
    net = build(MORE + CONV.format(parents="more,sp", outputs=3, keys="Mapping(sp).Size=1"), (3, 2, 2))
    weights = net.params("conv")["weights"][:, :, 0, 0] != 0
    assert weights[:, :2].all()
    np.testing.assert_array_equal(weights[:, 2:], np.eye(3, dtype=bool))


def test_groups_are_made_for_each_parent(build):
    net = build(MORE + CONV.format(parents="more,sp", outputs=4, keys="Mapping.NbGroups=2"), (4, 2, 2))
    weights = net.params("conv")["weights"][:, :, 0, 0] != 0
    np.testing.assert_array_equal(weights[:, :2], np.kron(np.eye(2, dtype=bool), np.ones((2, 1), bool)))
    np.testing.assert_array_equal(weights[:, 2:], np.kron(np.eye(2, dtype=bool), np.ones((2, 2), bool)))


def test_stored_weights_of_an_irregular_mapping_skip_what_is_not_connected(build, tmp_path):
    np.savez(tmp_path / "w.npz", conv_weights=np.arange(1.0, 4.0), conv_biases=np.zeros(2))
    net = build(CONV.format(parents="sp", outputs=2, keys="Mapping(sp)=1 0 \\\n1 1"), (2, 1, 1), weights=tmp_path / "w.npz")
    np.testing.assert_array_equal(net.params("conv")["weights"][:, :, 0, 0], [[1, 2], [0, 3]])


def test_an_output_without_connection_warns(build):
    from n2d2py import log

    build(CONV.format(parents="sp", outputs=3, keys="Mapping.Size=1\nMapping.NbIterations=2"), (3, 2, 2))
    (line,) = [warning.line() for warning in log.warnings_seen()]
    assert line.startswith("N2D2-W213") and "1 outputs" in line


def test_a_pool_without_mapping_is_channel_by_channel(build, stimulus, capsys):
    net = build("[p]\nInput=sp\nType=Pool\nPooling=Max\nPoolDims=1 1\nNbOutputs=3\n")
    np.testing.assert_array_equal(net.run(stimulus, "p")[0], stimulus)
    assert "no Mapping" in capsys.readouterr().err


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


def test_vectors_are_pooled_as_images(build):
    net = build(
        "[f]\nInput=sp\nType=Fc\nNbOutputs=4\n[p]\nInput=f\nType=Pool\nPooling=Max\nPoolSize=1\nNbOutputs=2\n"
        "Mapping.SizeY=2\nMapping.StrideY=2\n"
    )
    assert net.dims("p") == [1, 1, 2]
