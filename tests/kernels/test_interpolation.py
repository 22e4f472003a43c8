"""Functions of 16-bit integers: C++ gives Python's integers for all 65,536 inputs, within one step of the function."""

from __future__ import annotations

import numpy as np
import pytest
from support import kernel_harness as harness
from support.kernel_cases import S8, S16, U8, U16, Sweep
from support.kernel_sweep import SLOW_BUILDS, need

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.interpolated import SEGMENTS, fit_knots, interpolate, nearest_defined
from n2d2py.graph import Node
from n2d2py.graph.forms import Interpolated, Table
from n2d2py.operators.activation import Activation
from n2d2py.operators.functions import (
    Abs,
    Elu,
    Erf,
    Exp,
    Gelu,
    GeluTanh,
    HardSigmoid,
    HardSwish,
    LeakyRectifier,
    Log,
    Logistic,
    Mish,
    Softplus,
    Softsign,
    Sqrt,
    Swish,
    Tanh,
)
from n2d2py.quant.contract import LayerTypes, quantize_layer
from n2d2py.quant.options import QuantOptions

FUNCTIONS = {  # function -> range of the input, range of the output, pieces of its table
    Logistic(): (8, 1, 512),
    Tanh(): (4, 1, 1024),
    Exp(): (2, 7.4, 512),
    Gelu(): (6, 6, 512),
    GeluTanh(): (6, 6, 512),
    HardSwish(): (8, 8, 512),
    HardSigmoid(): (4, 1, 256),
    Swish(): (8, 8, 512),
    Erf(): (3, 1, 1024),
    Softplus(): (8, 8, 256),
    Elu(): (6, 6, 512),
    Mish(): (8, 8, 512),
    Softsign(): (8, 1, 4096),
    LeakyRectifier(0.1): (5, 5, 256),
    Abs(): (5, 5, 256),
    Sqrt(): (4, 2, 0),
    Log(): (4, 1.5, 4096),
}
"""0 pieces: a table with an entry for every input."""


def layer(function, kind: NumType, output: NumType):
    """The integer form of a layer between tensors that use their whole types for the ranges above."""
    low, high, _ = FUNCTIONS[function]
    x, y = kind.with_scale(low / kind.qmax), output.with_scale(high / output.qmax)
    node = Node("layer", Activation(function), ["x"], ["y"])
    return quantize_layer(node, LayerTypes([x], y, QuantOptions(bits=16))), x, y


def cases(sweep: Sweep, functions=tuple(FUNCTIONS)) -> list[harness.Case]:
    """Every function with every input there is."""
    made, layouts = [], ("apart", "strided", "wrapped", "strided wrapped")
    for index, function in enumerate(functions):
        kind, output = ((S16, S16), (U16, S16), (S16, U16), (S16, U8), (U16, S8))[index % 5]
        node, x, y = layer(function, kind, output)
        graph = sweep.graph(node.op, {"x": ((1, 16, 64, 64), x)}, ((1, 16, 64, 64), y), form=node.form)
        every = np.arange(2**16).reshape(1, 16, 64, 64) - (2**15 if x.signed else 0)
        if isinstance(node.form, Table):
            every = np.maximum(every, x.qmin)
        made.append(sweep.case(f"{function} {x} to {y}", graph, {"x": every.astype(x.dtype)}, layouts[index % 4]))
    return made


def test_interpolated(tmp_path):
    need("g++")
    harness.check_all(cases(Sweep(1), tuple(FUNCTIONS)[::4]), tmp_path, flags=("-O0",), units=2)


@pytest.mark.slow
@pytest.mark.parametrize("build", sorted(SLOW_BUILDS))
def test_interpolated_in_every_build(build, tmp_path):
    compiler, flags = SLOW_BUILDS[build]
    need(compiler)
    harness.check_all(cases(Sweep(2)), tmp_path, compiler, flags)


@pytest.mark.parametrize("function", FUNCTIONS, ids=repr)
def test_within_one_step_of_the_function(function):
    node, x, y = layer(function, S16, S16)
    stored = np.arange(x.qmin, x.qmax + 1)
    with np.errstate(all="ignore"):
        real = nearest_defined(function(stored * x.scale))
    knots = FUNCTIONS[function][2]
    assert isinstance(node.form, Interpolated) == (knots > 0), node.form
    if knots:
        assert node.form.knots.size - 1 == knots
        found = interpolate(node.form.knots, stored + 2**15, y.qmin, y.qmax)
        off = np.abs(found - np.clip(real / y.scale, y.qmin, y.qmax)).max()
        assert off <= (0.75 if function != HardSigmoid() else 0.92), off
    else:
        assert np.abs(node.form.table - np.clip(np.rint(real / y.scale), y.qmin, y.qmax)).max() <= 1  # of float32 inputs


def test_lines_by_hand():
    """Two knots 256 inputs apart with 5 bits of fraction: 10 and 20, a quarter of the way and half of it."""
    knots = np.zeros(257, np.int32)
    knots[1:3] = 10 * 32, 20 * 32
    assert interpolate(knots, np.array([256, 256 + 64, 256 + 128, 512]), 0, 19).tolist() == [10, 13, 15, 19]


def test_the_smallest_table_that_does():
    position = np.arange(2**16 + 1)
    assert fit_knots(position / 2, 0, 65535, 0.75).size == SEGMENTS[0] + 1
    wave = 30000 * np.sin(position / 2000)
    assert fit_knots(wave, -32767, 32767, 1.5).size == SEGMENTS[3] + 1
    assert fit_knots(wave, -32767, 32767, 0.75).size == SEGMENTS[4] + 1
    assert fit_knots(np.where(position > 77, 1000, 0), -32767, 32767, 1.5) is None


def test_what_is_not_a_number_gets_its_neighbour():
    nan = np.nan
    assert nearest_defined(np.array([nan, 1, nan, nan, 4, nan])).tolist() == [1, 1, 1, 4, 4, 4]
    assert nearest_defined(np.array([nan])) is None
