"""Operators on arrays: kernels against the normative arithmetic, bit for bit, over kinds, ranks and attributes."""

from __future__ import annotations

import pytest
from support import array_cases, recurrent_cases
from support import kernel_harness as harness
from support.kernel_sweep import SLOW_BUILDS, need

from n2d2py.exports.cpp.layer import layer_kinds
from n2d2py.memory.access import MEMORY_ACCESSES
from n2d2py.operators.arrays.map.op import MAP_FUNCTIONS
from n2d2py.operators.arrays.reduce import REDUCTIONS


def array_kinds(base=array_cases.ArrayOp) -> set[str]:
    """The kinds of operators on arrays."""
    return {kind for made in base.__subclasses__() for kind in {made.kind, *array_kinds(made)}}


def test_arrays(tmp_path):
    need("g++")
    harness.check_all(array_cases.everything(1, 11), tmp_path, flags=("-O0",), units=2)


def test_every_function_is_on_the_sweep():
    nodes = [case.node.op for case in array_cases.everything(2)]
    assert {op.function for op in nodes if op.kind == "ArrayMap"} >= set(MAP_FUNCTIONS)
    assert {op.function for op in nodes if op.kind == "ArrayReduce"} == set(REDUCTIONS)
    nodes += [case.node.op for case in recurrent_cases.everything(2, 11)]
    assert {op.kind for op in nodes} == array_kinds()


def test_every_operator_has_all_its_places():
    kinds = array_kinds()
    assert kinds <= set(layer_kinds()) and kinds <= set(MEMORY_ACCESSES)


@pytest.mark.slow
@pytest.mark.parametrize("build", sorted(SLOW_BUILDS))
def test_arrays_in_every_build(build, tmp_path):
    compiler, flags = SLOW_BUILDS[build]
    need(compiler)
    harness.check_all(array_cases.everything(2), tmp_path, compiler, flags)
