"""Mapping keys at their limits: patterns, groups, explicit matrices, and the largest of all.

They look at `n2d2py.frontend.ini.mapping`.
"""

from __future__ import annotations

import numpy as np
import pytest

from n2d2py.frontend.ini.mapping import as_groups

POOL = "[p]\nInput=sp\nType=Pool\nPooling=Max\nPoolSize=1\nNbOutputs={outputs}\n{keys}\n"
CONV = (
    "[c]\nInput=sp\nType=Conv\nKernelSize=1\nNbOutputs={outputs}\nWeightsFiller=ConstantFiller\nWeightsFiller.Value=1\n{keys}\n"
)


def rows(build, keys: str, channels: int, outputs: int) -> list[str]:
    """The channels of each output: a convolution of ones, with zeros where nothing is connected."""
    net = build(CONV.format(outputs=outputs, keys=keys), (channels, 1, 1))
    weights, groups = net.params("c")["weights"][:, :, 0, 0], net.graph.node("c").op.groups
    whole = np.zeros((outputs, channels), int)
    for output in range(outputs):
        first = output // (outputs // groups) * weights.shape[1]
        whole[output, first : first + weights.shape[1]] = weights[output]
    return ["".join(map(str, row)) for row in whole]


PATTERNS = [
    ("Mapping.Size=1", 4, 2, ["1010", "0101"]),
    ("Mapping.Size=1", 2, 4, ["10", "01", "10", "01"]),
    ("Mapping.Size=1\nMapping.NbIterations=1", 4, 2, ["1000", "0000"]),
    ("Mapping.Size=1\nMapping.NbIterations=3", 4, 2, ["1010", "0100"]),
    ("Mapping.SizeX=2\nMapping.NbIterations=1", 3, 4, ["100", "100", "000", "000"]),
    ("Mapping.SizeY=2\nMapping.NbIterations=1", 3, 4, ["110", "000", "000", "000"]),
    ("Mapping.Size=2\nMapping.SizeY=1\nMapping.NbIterations=1", 3, 4, ["100", "100", "000", "000"]),
    ("Mapping.Size=3\nMapping.SizeX=1\nMapping.NbIterations=1", 4, 3, ["1110", "0000", "0000"]),
    ("Mapping.Size=1\nMapping.OffsetY=2\nMapping.NbIterations=1", 3, 4, ["001", "000", "000", "000"]),
    ("Mapping.Size=1\nMapping.OffsetX=2\nMapping.NbIterations=1", 3, 4, ["000", "000", "100", "000"]),
    ("Mapping.Size=1\nMapping.Offset=5\nMapping.NbIterations=1", 3, 4, ["000", "001", "000", "000"]),
    ("Mapping.Size=1\nMapping.Offset=1\nMapping.OffsetY=0\nMapping.NbIterations=1", 3, 4, ["000", "100", "000", "000"]),
    ("Mapping.Size=1\nMapping.Stride=2\nMapping.NbIterations=2", 3, 4, ["100", "000", "001", "000"]),
    ("Mapping.Size=1\nMapping.StrideX=0\nMapping.NbIterations=2", 3, 4, ["110", "000", "000", "000"]),
    ("Mapping.Size=1\nMapping.StrideY=0\nMapping.NbIterations=2", 3, 4, ["100", "100", "000", "000"]),
    ("Mapping.Size=1\nMapping.StrideX=3\nMapping.StrideY=2\nMapping.NbIterations=2", 3, 4, ["100", "000", "000", "001"]),
    ("Mapping.Size=2\nMapping.OffsetX=3\nMapping.OffsetY=2\nMapping.NbIterations=1", 3, 4, ["101", "000", "000", "101"]),
    ("Mapping.SizeX=3\nMapping.OffsetX=2\nMapping.NbIterations=1", 3, 4, ["100", "000", "100", "100"]),
    ("Mapping.SizeY=5\nMapping.NbIterations=1", 7, 2, ["1111100", "0000000"]),
    ("Mapping.SizeY=6\nMapping.NbIterations=1", 7, 2, ["1111110", "0000000"]),
    ("Mapping.SizeY=7\nMapping.NbIterations=1", 7, 2, ["1111111", "0000000"]),
    ("Mapping(sp).SizeY=2\nMapping(sp).NbIterations=1", 3, 2, ["110", "000"]),
    ("Mapping.SizeY=2\nMapping(sp).SizeX=2\nMapping(sp).NbIterations=1", 3, 2, ["110", "110"]),
    ("Mapping.NbIterations=2\nMapping(sp).NbIterations=1", 3, 2, ["100", "000"]),
    ("Mapping(sp).Size=4294967295\nMapping(sp).NbIterations=1", 3, 2, ["111", "111"]),
    ("Mapping(other).Size=2", 3, 2, ["111", "111"]),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "channels", "outputs", "wanted"), PATTERNS)
def test_rectangles(keys, channels, outputs, wanted, build):
    """X counts outputs, Y channels; both wrap around."""
    assert rows(build, keys, channels, outputs) == wanted


GROUPS = [
    ("Mapping.NbGroups=1", 3, 2, ["111", "111"]),
    ("Mapping.NbGroups=2", 4, 3, ["1100", "0011", "0011"]),
    ("Mapping.NbGroups=2", 4, 5, ["1100", "1100", "0011", "0011", "0011"]),
    ("Mapping.NbGroups=3", 3, 5, ["100", "010", "010", "001", "001"]),
    ("Mapping.NbGroups=3", 3, 2, ["010", "001"]),
    ("Mapping.NbGroups=3", 6, 4, ["110000", "001100", "000011", "000011"]),
    ("Mapping.ChannelsPerGroup=3", 3, 2, ["111", "111"]),
    ("Mapping.ChannelsPerGroup=3", 6, 4, ["111000", "111000", "000111", "000111"]),
    ("Mapping.ChannelsPerGroup=2", 6, 5, ["110000", "001100", "001100", "000011", "000011"]),
]


@pytest.mark.parametrize(("keys", "channels", "outputs", "wanted"), GROUPS)
def test_groups(keys, channels, outputs, wanted, build):
    """Outputs that are left over go to the last groups."""
    assert rows(build, keys, channels, outputs) == wanted


WRONG = [
    ("Mapping.NbGroups=4", 6, 4, "Mapping.NbGroups=4 does not divide the 6 input channels"),
    ("Mapping.ChannelsPerGroup=4", 6, 4, "Mapping.ChannelsPerGroup=4 does not divide the 6 input channels"),
    ("Mapping.NbGroups=7", 6, 7, "Mapping.NbGroups=7 does not divide the 6 input channels"),
    ("Mapping(sp).Size=4294967296", 3, 2, "Mapping(sp).Size=4294967296 is not an unsigned integer"),
    ("Mapping(sp).Size=-1", 3, 2, "Mapping(sp).Size=-1 is not an unsigned integer"),
    ("Mapping(sp).Size=two", 3, 2, "Mapping(sp).Size=two is not an unsigned integer"),
    ("Mapping(sp)=1 0 1 1 0", 3, 2, "Mapping(sp) has 5 values, but 3 input channels x 2 outputs need 6"),
    ("Mapping(sp)=1 0 1 1 0 1 1", 3, 2, "Mapping(sp) has 7 values, but 3 input channels x 2 outputs need 6"),
    ("Mapping(sp)=1 0 1 1 0 yes", 3, 2, "Mapping(sp) must hold zeros and ones"),
]


@pytest.mark.parametrize(("keys", "channels", "outputs", "text"), WRONG)
def test_mappings_that_do_not_fit(keys, channels, outputs, text, refusal):
    assert f"N2D2-E213: net.ini:9 [c]: {text}; " in refusal(CONV.format(outputs=outputs, keys=keys), (channels, 1, 1))


@pytest.mark.parametrize(
    ("matrix", "groups"),
    [
        (["11", "11"], 1),
        (["10", "01"], 2),
        (["01", "10"], None),
        (["1100", "0011"], 2),
        (["1100", "1100", "0011", "0011"], 2),
        (["1100", "0011", "0011"], None),
        (["1010", "0101"], None),
        (["110", "011"], None),
        (["11000", "11000", "00110", "00110"], None),
        (["1000", "0100"], None),
        (["110", "110"], None),
        (["000", "000"], None),
        (["100", "110"], None),
        (["100", "010", "001"], 3),
        (["100", "100", "010", "010", "001", "001"], 3),
        (["1110", "1110"], None),
        (["1", "1", "1"], 1),
        (["1", "0", "1"], None),
    ],
)
def test_equal_neighbouring_groups(matrix, groups):
    assert as_groups(np.array([[letter == "1" for letter in row] for row in matrix])) == groups


def test_a_pattern_that_reaches_every_cell(build):
    """After as many steps as both sizes have in common at the latest, more than a million here."""
    net = build(POOL.format(outputs=1025, keys="Mapping(sp).Size=1\nMapping(sp).NbIterations=4294967295"), (1024, 1, 1))
    x = np.arange(1024.0).reshape(1, 1024, 1, 1)
    (found,) = net.run(x, "p")
    assert found.shape == (1, 1025, 1, 1) and (found == 1023).all()


@pytest.mark.parametrize(("outputs", "taken"), [(4096, True), (4097, False)])
def test_the_most_connections(outputs, taken, build, refusal):
    text = CONV.format(outputs=outputs, keys="Mapping.ChannelsPerGroup=1")
    if taken:
        assert build(text, (4096, 1, 1)).graph.node("c").op.groups == 4096
    else:
        assert (
            "N2D2-E229: net.ini:2 [c]: a mapping of 16,781,312 connections is too large, at most 16,777,216 are supported"
            in refusal(text, (4096, 1, 1))
        )


@pytest.mark.parametrize("key", ["Mapping.NbGroups", "Mapping.ChannelsPerGroup"])
def test_groups_of_nothing(key, refusal):
    assert f"{key}=0 is below 1" in refusal(CONV.format(outputs=2, keys=f"{key}=0"), (3, 1, 1))
