"""Layers of small networks for the rewrites, and chains of them: each is added by a function of a builder, a name and what it reads."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from n2d2py.operators.activation import Activation
from n2d2py.operators.affine import Affine
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.arrays.matmul import ArrayMatMul
from n2d2py.operators.batchnorm import BatchNorm
from n2d2py.operators.conv import Conv
from n2d2py.operators.fc import Fc
from n2d2py.operators.functions import Clip, Tanh

TANH = Activation(Tanh())
Make = Callable[[Any], list[str]]


def conv(b, name: str, source: str = "x", size=(1, 1), groups: int = 1, outputs: int = 4, activation=None, **options) -> str:
    channels = b.graph.shape(source)[1]
    params = {"weights": b.array(outputs, channels // groups, *size), "bias": b.array(outputs)}
    return b.layer(name, Conv(groups=groups, **options), source, params, activation)


def dense(b, name: str, source: str, outputs: int = 3) -> str:
    return b.layer(name, Fc(), source, {"weights": b.array(outputs, prod(b.graph.shape(source)[1:])), "bias": b.array(outputs)})


def affine(b, name: str, source: str = "x", activation=None) -> str:
    count = b.graph.shape(source)[1]
    return b.layer(name, Affine(), source, {"weights": b.array(count, low=0.5), "bias": b.array(count)}, activation)


def normal(b, name: str, source: str, activation=None) -> str:
    count = b.graph.shape(source)[1]
    params = {role: b.array(count, low=0.25) for role in ("scale", "bias", "mean", "variance")}
    return b.layer(name, BatchNorm(), source, params, activation)


def constant(b, name: str, function: str, dims, shape, source: str, at: int = 1, values=None, **options) -> str:
    """An ArrayMap of `source` and a constant of `shape`, which is operand `at`."""
    shapes, slots = ((shape, dims), (-1, 0)) if at == 0 else ((dims, shape), (0, -1))
    array = b.array(prod(shape), low=0.5) if values is None else np.asarray(values)
    activation = options.pop("activation", None)
    return b.layer(name, ArrayMap(function, dims, shapes, slots, **options), source, {f"operand{at}": array}, activation)


def product(b, name: str, left, right, source: str = "x") -> str:
    return b.layer(name, ArrayMatMul(left, right, (0, -1)), source, {"operand1": b.array(prod(right))})


def behind(op, source=None, activation=None, params=None, reader=TANH) -> Make:
    """A layer `n` of the input, or behind a layer `c`, and one `o` behind it."""

    def make(b) -> list[str]:
        b.layer("n", op, source(b, "c", "x") if source else "x", params, activation)
        return [b.layer("o", reader, "n")] if reader else ["n"]

    return make


def clamp(function: Clip, *before: Callable, activation=None) -> Make:
    """A clamp `n` behind a chain of layers."""

    def make(b) -> list[str]:
        source = "x"
        for at, layer in enumerate(before):
            source = layer(b, f"l{at}", source)
        return [b.layer("n", Activation(function), source, activation=activation)]

    return make


def layer(op, activation=None, params=None) -> Callable:
    return lambda b, name, source: b.layer(name, op, source, params(b) if params else None, activation)


def chain(*layers: Callable, also: tuple[str, ...] = ()) -> Make:
    """Layers l0, l1, ... one behind the other; the last is the output, with those of `also`."""

    def make(b) -> list[str]:
        source = "x"
        for at, each in enumerate(layers):
            source = each(b, f"l{at}", source)
        return [source, *also]

    return make
