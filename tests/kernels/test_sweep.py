"""Every kernel against the normative arithmetic, bit for bit (floating point: 1e-5 of the largest value), on every compiler."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from support import array_cases, attention_cases, kernel_interpolation, recurrent_cases
from support import kernel_harness as harness
from support.kernel_builds import ISAS, SLOW_BUILDS, TARGETS, X86, check_build, on_builds
from support.kernel_cases import Sweep, sweep_cases
from support.kernel_elements import element_cases, vector_size_cases
from support.kernel_lines import line_cases
from support.kernel_numbers import conversion_cases
from support.kernel_overlaps import overlapping_cases
from support.kernel_packed import half_cases
from support.kernel_quantized_layers import length_cases, quantized_cases, table_cases
from support.kernel_resampling import resampling_cases

from n2d2py.contracts.cpp.layer import LAYERS
from n2d2py.operators.arrays.base import ArrayOp
from n2d2py.operators.arrays.map import MAP_FUNCTIONS
from n2d2py.operators.arrays.reduce import REDUCTIONS

Cases = list[harness.Case]


@dataclass(frozen=True)
class Kernels:
    """The cases of the fast run and its build, and all cases by seed."""

    few: Callable[[], Cases]
    all: Callable[[int], Cases]
    build: str = "-O0"


def attention(seed: int, every: int = 1) -> Cases:
    """Products, softmaxes, normalisations and sums of attention."""
    kinds = (
        attention_cases.products,
        attention_cases.real_products,
        attention_cases.softmaxes,
        attention_cases.masked_softmaxes,
        attention_cases.norms,
        attention_cases.sums,
    )
    return [case for made in kinds for case in made(seed, every)]


def quantized_layers() -> Cases:
    return [*quantized_cases(3)[::5], *table_cases(Sweep(3)), *length_cases(Sweep(3))]


SWEEPS = {
    "layers": Kernels(lambda: sweep_cases(1, 44), lambda seed: sweep_cases(seed, 132)),
    "conversions": Kernels(lambda: conversion_cases(5), conversion_cases),
    "functions, takes and repeats": Kernels(lambda: element_cases(5), element_cases),
    "lines": Kernels(lambda: line_cases(5), line_cases),
    "outputs over inputs": Kernels(lambda: overlapping_cases(3)[::3], overlapping_cases),
    "real layers": Kernels(lambda: resampling_cases(3), resampling_cases),
    "layers that come quantized": Kernels(quantized_layers, quantized_cases),
    "sizes around vectors": Kernels(lambda: vector_size_cases(21)[::3], vector_size_cases, "-O0 avx2"),
    "halves": Kernels(lambda: half_cases(1)[1::4], half_cases, "-O0,-mf16c"),
    "functions of 16 bits": Kernels(
        lambda: kernel_interpolation.cases(Sweep(1), tuple(kernel_interpolation.FUNCTIONS)[::4]),
        lambda seed: kernel_interpolation.cases(Sweep(seed)),
    ),
    "arrays": Kernels(lambda: array_cases.everything(1, 11), array_cases.everything),
    "attention": Kernels(lambda: attention(1, 5), attention, "-O0 portable"),
    "recurrent layers": Kernels(lambda: recurrent_cases.everything(1, 5), recurrent_cases.everything, "-O0 portable"),
}


@pytest.mark.parametrize("name", SWEEPS)
def test_sweep(name, tmp_path):
    check_build(SWEEPS[name].few(), tmp_path, SWEEPS[name].build)


@on_builds({}, *SLOW_BUILDS)
@pytest.mark.parametrize("name", SWEEPS)
def test_builds(name, build, every, tmp_path):
    check_build(SWEEPS[name].all(6), tmp_path, build)


@on_builds({f"-O0 {ISAS[0]}": 4}, f"-O0 {'|'.join(ISAS[1:])}")
def test_attention_on_instruction_sets(tmp_path, build, every):
    check_build(attention(2, 4), tmp_path, build)


@on_builds({}, f"g++|clang++ -O0|-O3,-DN2D2_PARALLEL_WORK=0|sanitizers {X86}")
@pytest.mark.parametrize("name", ["attention", "recurrent layers"])
def test_instruction_sets(name, tmp_path, build, every):
    check_build(SWEEPS[name].all(4), tmp_path, build)


@on_builds({}, "-O2 emulated-avx512|portable", "avx2 sanitizers", "-O1 emulated-avxvnni")
@pytest.mark.parametrize("name", ["attention", "recurrent layers", "sizes around vectors"])
def test_other_instruction_sets(name, build, every, tmp_path):
    check_build(SWEEPS[name].all(5), tmp_path, build)


@on_builds({}, f"-O1 {'|'.join(sorted(TARGETS))}")
@pytest.mark.parametrize("name", ["attention", "recurrent layers", "real layers", "functions, takes and repeats"])
def test_other_processors(name, build, every, tmp_path):
    check_build(SWEEPS[name].all(11)[::5], tmp_path, build)


# ---- what the sweeps hold ------------------------------------------------------------------------
def array_kinds(base=ArrayOp) -> set[str]:
    """The kinds of operators on arrays."""
    return {kind for made in base.__subclasses__() for kind in {made.kind, *array_kinds(made)} if kind}


def test_every_operator_on_arrays_is_on_the_sweep():
    nodes = [case.node.op for case in array_cases.everything(2)]
    assert {op.function for op in nodes if op.kind == "ArrayMap"} >= set(MAP_FUNCTIONS)
    assert {op.function for op in nodes if op.kind == "ArrayReduce"} == set(REDUCTIONS)
    nodes += [case.node.op for case in recurrent_cases.everything(2, 11)]
    assert {op.kind for op in nodes} >= array_kinds() <= set(LAYERS)


def test_lines_over_inputs_go_both_ways():
    made = overlapping_cases(3)
    for way in ("forwards", "backwards"):
        assert sum(case.inplace and case.title.endswith(way) for case in made) > 25
