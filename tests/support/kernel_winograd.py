"""Shared by the tests of kernels: winograd convolutions, bit for bit: sizes around tiles, groups and blocks, extreme values, overlap, all builds; their weights and the choice."""

from __future__ import annotations

from n2d2py.exports.cpp.isa import WINOGRAD, having

SETS = having(WINOGRAD)


FORCED = dict.fromkeys(SETS, True)
