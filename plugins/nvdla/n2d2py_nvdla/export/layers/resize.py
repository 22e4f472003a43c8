"""Resampling to the nearest neighbour: copies of lines and columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from n2d2py.graph import QuantNode
from n2d2py_nvdla.export.arithmetic import Post, one_pass
from n2d2py_nvdla.export.lowering import Lowering, lowering, refuse
from n2d2py_nvdla.export.rearrange import gather


@lowering("Resize", in_bytes=True)
def _resize(state: Lowering, node: QuantNode) -> None:
    op, value = node.op, state.values[node.inputs[0]]
    if op.mode != "Nearest":
        raise refuse(
            node, f"resampling of mode {op.mode}; the accelerator copies, it does not interpolate", "use the nearest neighbour"
        )
    scale = state.scale_or(node.output, value.scale)
    post = Post(np.array([value.scale]), None, scale)
    post = state.activated(node, post, None if state.integer else node.activation, node.clamp)
    (rows, _, _), (columns, _, _) = (op.taps(n, m) for n, m in zip(value.region.shape[1:], op.size, strict=True))
    result = state.result(node.output)
    if one_pass(state.precision, post):
        chains = gather(state, value.region, result, rows, columns, post)
    else:
        plain = Post(np.array([value.scale]), None, scale)
        chains = gather(state, value.region, result, rows, columns, plain)
        chains += state.passes(node, result, _behind(post), result)
    state.finish(node, node.output, result, scale, chains)


def _behind(post: Post) -> Post:
    """Return the activation alone, for values that are in the result's scale already."""
    return replace(post, gain=np.array([post.scale]))
