"""Rows of an array with their axes in another order, by way of an image: the views cost nothing, the Transpose moves bytes."""

from __future__ import annotations

from n2d2py.graph import Graph, Node
from n2d2py.operators.base import Op
from n2d2py.operators.channels_last import FromChannelsLast, ToChannelsLast
from n2d2py.operators.reshape import Reshape
from n2d2py.operators.transpose import Transpose


def turn_rows(
    graph: Graph,
    node: Node,
    at: int,
    source: str,
    shape: tuple[int, int, int],
    perm: tuple[int, ...],
    stem: str,
    rows: bool = True,
) -> str:
    """Adds, for `node` and at position `at`, layers that read the rows of `source` as an image of `shape` (C, H, W) and permute
    its axes by `perm`; returns their result: rows again, or with `rows` False the image."""
    ops: list[tuple[str, Op]] = [
        ("image", FromChannelsLast(shape[0])),
        ("lines", Reshape(shape)),
        ("turned", Transpose(perm)),
        *([("rows", ToChannelsLast())] if rows else []),
    ]
    for step, (label, op) in enumerate(ops):
        made = graph.fresh_name(f"{stem}_{label}")
        graph.add(Node(made, op, [source], [made], location=node.location, helper=True), at=at + step)
        source = made
    return source
