"""Shared by the tests of kernels: functions, chosen positions and repeated operands: kernels against the normative arithmetic."""

from n2d2py.operators.elemwise import ElemWise
from support import kernel_harness as harness
from support.kernel_cases import Sweep


def repeated(sweep: Sweep, operation: str, shape, other, kinds, layout: str, swap: bool) -> harness.Case:
    """Two operands, the one with axes of length 1 first or second."""
    kind, out_kind = kinds
    shapes = (other, shape) if swap else (shape, other)
    inputs = {name: (s, kind) for name, s in zip(("x", "x1"), shapes, strict=True)}
    node = {} if kind.is_float else sweep._integer_elemwise(operation, [kind, kind], out_kind, shape)
    graph = sweep.graph(ElemWise(operation), inputs, (shape, out_kind), **node)
    values = {name: sweep.stored(s, k) for name, (s, k) in inputs.items()}
    return sweep.case(f"{operation} of {shapes[0][1:]} and {shapes[1][1:]}", graph, values, layout)
