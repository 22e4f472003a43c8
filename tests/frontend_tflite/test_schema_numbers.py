"""The numbers of .tflite files are those of the schema that LiteRT brings."""

from __future__ import annotations

import numpy as np
import pytest

from n2d2py.frontend.tflite import schema

given = pytest.importorskip("ai_edge_litert.schema_py_generated", reason="the referee, ai-edge-litert, is not installed")
OTHERS = {"BOOL": "bool", "INT4": "int8"}
"""What stands for types that NumPy does not have, or calls by another name."""


def numbers(enumeration: type) -> dict[int, str]:
    return {value: name for name, value in vars(enumeration).items() if isinstance(value, int)}


def test_types_of_tensors():
    names = numbers(given.TensorType)
    assert {names[number]: kind for number, kind in schema.TYPES.items()} == {
        names[number]: np.dtype(OTHERS.get(names[number], names[number].lower())) for number in schema.TYPES
    }
    assert names[schema.INT4] == "INT4"
    others = {number: name for number, name in names.items() if number not in schema.TYPES}
    assert {number: schema.OTHER_TYPES[number] for number in others} == others


def test_operators():
    names = numbers(given.BuiltinOperator)
    assert {number: schema.OPERATORS[number] for number in names if number < len(schema.OPERATORS)} == {
        number: name for number, name in names.items() if number < len(schema.OPERATORS)
    }
    assert names[schema.CUSTOM] == "CUSTOM"


def test_activations_paddings_and_modes():
    assert dict(enumerate(schema.ACTIVATIONS)) == numbers(given.ActivationFunctionType)
    assert numbers(given.Padding) == {schema.SAME: "SAME", schema.VALID: "VALID"}
    assert numbers(given.MirrorPadMode)[schema.REFLECT] == "REFLECT"
