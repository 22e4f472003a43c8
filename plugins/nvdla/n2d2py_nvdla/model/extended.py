"""Extension operations, computed by the operators' own floating-point arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from n2d2py.contracts.functions import FUNCTIONS
from n2d2py.contracts.operator import operator_kinds
from n2d2py.errors import N2D2Error
from n2d2py.graph import Node
from n2d2py_nvdla.extension import Extension
from n2d2py_nvdla.firmware import INT8


def _value(value: Any) -> Any:
    """Return an attribute from its JSON form: lists are tuples, functions have a kind, numbers that JSON lacks are words."""
    if isinstance(value, list):
        return tuple(_value(one) for one in value)
    if isinstance(value, dict):
        kind = FUNCTIONS[value["function"]]
        return kind(**{name: _value(one) for name, one in value.items() if name != "function"})
    return float(value) if value in ("inf", "-inf", "nan") else value


def run_extension(extension: Extension, arrays: list[np.ndarray], where: str) -> list[np.ndarray]:
    """Return the results in the order of the outputs, as real numbers over the scale of their port, rounded and limited for
    bytes.

    `arrays` holds the stored inputs: int8, or float16 whose scale is 1.

    Raises:
        N2D2Error: E903 for an operator that does not exist, or cannot run with these attributes.
    """
    kind = operator_kinds().get(extension.operator)
    if kind is None:
        raise N2D2Error(
            "E903",
            f"the extension operation '{extension.name}' is a {extension.operator}, which is not an operator",
            where=where,
            remedy="use a version of n2d2py that has it",
        )
    try:
        op = kind(**{name: _value(one) for name, one in extension.attributes.items()})
        activation = None if extension.activation is None else _value(extension.activation)
        node = Node(
            extension.name,
            op,
            [f"in{i}" for i in range(len(arrays))],
            [f"out{i}" for i in range(len(extension.outputs))],
            dict(extension.constants),
            activation,
        )
        inputs = [
            x.astype(np.float32).reshape(port.shape) * np.float32(port.scale)
            for x, port in zip(arrays, extension.inputs, strict=True)
        ]
        with np.errstate(all="ignore"):
            results = op.run(inputs, node)
            results = [activation(y) for y in results] if activation is not None else results
        if [y.shape for y in results] != [port.shape for port in extension.outputs]:
            raise ValueError(f"its results have the shapes {[list(y.shape) for y in results]}")
    except (
        N2D2Error,
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        AttributeError,
        ZeroDivisionError,
        MemoryError,
        OverflowError,
    ) as error:
        text = error.what if isinstance(error, N2D2Error) else f"{type(error).__name__}: {error}".splitlines()[0]
        raise N2D2Error(
            "E903",
            f"the extension operation '{extension.name}' ({extension.operator}) cannot run: {text}",
            where=where,
            remedy="compile it again",
        ) from None
    integer = arrays[0].dtype == np.int8 if arrays else False
    return [_limited(y, port) if integer else y for y, port in zip(results, extension.outputs, strict=True)]


def _limited(y: np.ndarray, port: Any) -> np.ndarray:
    real = np.nan_to_num(y.astype(np.float64) / port.scale)
    return np.clip(np.rint(real), port.low, port.high)


def stored(values: np.ndarray, precision: int) -> np.ndarray:
    """Return the values of `run_extension` in the type of a buffer; halves beyond the range become the largest."""
    if precision == INT8:
        return values.astype(np.int8)
    with np.errstate(over="ignore"):
        return np.clip(values, -65504, 65504).astype(np.float16)
