"""Grouped convolutions as dense ones: each group by itself, or several together with zeros between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from n2d2py_nvdla.export.arithmetic import Post
from n2d2py_nvdla.export.hardware import Region


def blocks(
    source: Region, result: Region, weights: np.ndarray, groups: int, lanes: int, post: Post
) -> Iterator[tuple[Region, Region, np.ndarray, Post]]:
    """(input region, output region, dense weights, post) of each part of a grouped convolution.

    Groups that begin atoms are convolved by themselves; smaller ones together, with zeros between them.
    """
    k, per_group = weights.shape[:2]
    outputs = k // groups
    together = 1
    while (
        groups > 1
        and together < groups
        and ((together * per_group) % lanes or (together * outputs) % lanes or together * min(per_group, outputs) < 32)
    ):
        together += 1
    for first in range(0, groups, together):
        many = min(together, groups - first)
        dense = np.zeros((many * outputs, many * per_group, *weights.shape[2:]), weights.dtype)
        for g in range(many):
            dense[g * outputs : (g + 1) * outputs, g * per_group : (g + 1) * per_group] = weights[
                (first + g) * outputs : (first + g + 1) * outputs
            ]
        at = first * outputs

        def cut(values, at=at, size=many * outputs):
            return values if values is None or np.size(values) == 1 else np.asarray(values)[at : at + size]

        operand = post.operand.part(at, many * outputs) if post.operand is not None else None
        selected = replace(post, gain=cut(post.gain), bias=cut(post.bias), after=cut(post.after), operand=operand)
        yield source.part(first * per_group, many * per_group), result.part(at, many * outputs), dense, selected
