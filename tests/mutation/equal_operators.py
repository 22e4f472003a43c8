"""Mutants of n2d2py/operators that no test can tell from the original: see `equivalent.py`."""

from __future__ import annotations

from entry import Equivalent

__all__ = ["EQUIVALENT"]

EQUIVALENT: tuple[Equivalent, ...] = (
    Equivalent(
        "n2d2py/operators/arrays/norm/onnx.py",
        "_softmax",
        "a.builder.guard_batch(a.node, 0, axis, 'normalises over')",
        "a.builder.guard_batch(a.node, -1, axis, 'normalises over')",
        "A softmax has one input, which is the first and the last.",
    ),
    Equivalent(
        "n2d2py/operators/activation/onnx.py",
        "_prelu",
        "float(slope.flat[0])",
        "float(slope.flat[-1])",
        "It is read where all slopes are equal.",
    ),
    Equivalent(
        "n2d2py/operators/activation/onnx.py",
        "_prelu",
        "slope == slope.flat[0]",
        "slope == slope.flat[-1]",
        "All are equal to the first one exactly if all are equal to the last one.",
    ),
    Equivalent(
        "n2d2py/operators/elemwise/onnx.py",
        "_affine",
        "vector is None and source != tensor",
        "vector is None",
        "Without a transposition both axes are the same, so the second attempt gives None again and is refused alike.",
    ),
    Equivalent(
        "n2d2py/operators/elemwise/idioms.py",
        "_gate",
        "isinstance(function, Clip) and before == x and (function.low == 0) and np.isfinite(function.high) and (function.high > 0)",
        "isinstance(function, Clip) and before == x and (function.low == 0) and np.isfinite(function.high) and (function.high > -1)",
        "A limit lies at 0 or above it, and where it is 0 the gate is 0 in either form.",
    ),
    Equivalent(
        "n2d2py/operators/unpool.py",
        "Unpool._positions",
        "-np.inf if z.dtype.kind == 'f' else int(z.min()) - 1",
        "-np.inf if z.dtype.kind == 'f' else int(z.min()) - 2",
        "Either is below all values.",
    ),
    Equivalent(
        "n2d2py/operators/elemwise/op.py",
        "ElemWise.run",
        "inputs[0].dtype.type",
        "inputs[-1].dtype.type",
        "Real numbers of one run have one type.",
    ),
    Equivalent(
        "n2d2py/operators/pool_sum.py",
        "PoolSum.output_shapes",
        "self.pool.output_shapes(inputs[:1], node)[0]",
        "self.pool.output_shapes(inputs[:1], node)[-1]",
        "A pool has one output, which is the first and the last.",
    ),
    Equivalent(
        "n2d2py/operators/elemwise/idioms.py",
        "_scaling",
        "(float(weights[0]), float(bias[0]))",
        "(float(weights[0]), float(bias[-1]))",
        "It is read where all are equal.",
    ),
    Equivalent(
        "n2d2py/operators/arrays/integers.py",
        "_centred",
        "zero.dims[-1:] != (1,)",
        "zero.dims[-0:] != (1,)",
        "It decides about several zero points along one axis only, which is the last one.",
    ),
)
