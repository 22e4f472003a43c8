"""A max pool and the sum behind it become one layer, for floating-point exports.

    ElemWise Sum(Pool Max(x), y)  =>  PoolSum(x, y)

One pass over memory reads the image and what is added, and stores the result: the pooled image is never stored. In integers
the sum rescales both inputs, and the pool keeps its own pass.
"""

from __future__ import annotations

from n2d2py.graph import Node
from n2d2py.operators.base import Op
from n2d2py.operators.pool_sum import PoolSum
from n2d2py.passes.chain import ChainPass

__all__ = ["FusePoolSum"]


def _becomes(pool: Node, total: Node) -> Op | str:
    if pool.op.mode != "Max":
        return "it is no max pool"
    weights, shifts = total.op.coefficients(len(total.inputs))
    if total.op.operation != "Sum" or any(w != 1 for w in weights) or any(shifts):
        return f"{total.name} is no plain sum"
    if len(total.inputs) != 2 or total.inputs[0] == total.inputs[1]:
        return f"{total.name} does not add one other tensor"
    if min(pool.op.pads) < 0:
        return "it crops"
    return PoolSum(pool.op.kernel, pool.op.stride, pool.op.pads)


class FusePoolSum(ChainPass):
    """Max pool, then a plain sum with another tensor => PoolSum."""

    def __init__(self) -> None:
        super().__init__("fuse-pool-sum", "sums merged into the max pool before", ("Pool", "ElemWise"), _becomes)
