"""Normalisations of lines that a file spells out become one layer; what differs in one place stays as it is."""

from __future__ import annotations

import re

import pytest
from onnx import parser

from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.operators.arrays.norm import ArrayNorm

CONSTANTS = "<float tiny = {0.25}, float none = {0}, float less = {-0.25}, float one = {1}, float two = {2}>"
FORM = {
    "m": "ReduceMean <axes = [-1]> (x)",
    "d": "Sub (x, m)",
    "q": "Mul (d, d)",
    "v": "ReduceMean <axes = [-1]> (q)",
    "e": "Add (v, tiny)",
    "s": "Sqrt (e)",
    "y": "Div (d, s)",
}
"""A LayerNorm without gains, of lines of 2 elements."""
RMS = {"q": "Mul (x, x)", "y": "Div (x, s)"}
ONE = {"r": "Reciprocal (s)", "y": "Mul (d, r)"}
WHOLE = ArrayNorm(60, 2, 0.25, True)
"""What it becomes."""
AWAY = ArrayNorm(60, 2, 0.25, False)
"""What the part behind another subtraction becomes, or a form that subtracts nothing."""


def graph_of(changes: dict[str, str]):
    steps, lines = {**FORM, **changes}, []
    while steps:
        name = next(name for name, text in steps.items() if not set(re.findall(r"\b\w\b(?=[,)])", text)) & set(steps))
        lines.append(f"{name} = {steps.pop(name)}")
    body = "\n".join(lines)
    return import_onnx(
        parser.parse_model(
            f'<ir_version: 8, opset_import: ["": 17]> g (float[1,3,4,5,2] x) => (float[1,3,4,5,2] y) {CONSTANTS} {{ {body} }}'
        )
    )


@pytest.mark.parametrize(
    "changes, found",
    [
        ({}, WHOLE),
        ({"m": "ReduceMean <axes = [3, 4]> (x)", "v": "ReduceMean <axes = [-1, -2]> (q)"}, ArrayNorm(12, 10, 0.25, True)),
        ({"m": "ReduceMean <keepdims = 1> (x)", "v": "ReduceMean (q)"}, ArrayNorm(1, 120, 0.25, True)),
        ({"e": "Add (tiny, v)"}, WHOLE),
        (RMS, AWAY),
        (ONE, WHOLE),
        ({**ONE, "y": "Mul (r, d)"}, WHOLE),
        ({**ONE, "r": "Div (one, s)"}, WHOLE),
        ({**ONE, **RMS, "y": "Mul (x, r)"}, AWAY),
        # another subtraction, of which the square is normalised all the same
        ({"d": "Sub (m, x)"}, AWAY),
        ({"d": "Add (x, m)"}, AWAY),
        ({"m": "ReduceMax <axes = [-1]> (x)"}, AWAY),
        ({"m": "ReduceMean <axes = [3]> (x)"}, AWAY),
        ({"m": "ReduceMean <axes = [3, 4]> (x)"}, AWAY),
        ({"z": "Exp (x)", "m": "ReduceMean <axes = [-1]> (z)"}, AWAY),
        ({"d": "Mul (x, m)"}, AWAY),
        # means of another shape
        ({"w": "ReduceMean <axes = [1]> (x)", "m": "ReduceMean <axes = [-1]> (w)"}, AWAY),
        ({"a": "Add (x, tiny)", "m": "ReduceMean <axes = [-1]> (a)"}, AWAY),
        ({**ONE, "y": "Div (d, r)"}, None),
        # no normalisation
        ({"v": "ReduceMean <axes = [3]> (q)"}, ArrayNorm(24, 5, 0.25, False)),
        ({"v": "ReduceMean <axes = [0, 4]> (q)"}, WHOLE),
        ({"v": "ReduceMax <axes = [-1]> (q)"}, None),
        ({"e": "Add (v, v)"}, None),
        ({"e": "Mul (v, two)"}, ArrayNorm(60, 2, 5e-25, True)),
        ({"e": "Sub (tiny, v)", "s": "Sqrt (q)"}, None),
        ({"e": "Add (v, none)"}, None),
        ({"w": "Mul (v, two)", "e": "Add (w, tiny)"}, ArrayNorm(60, 2, 0.125, True)),
        ({"q": "Mul (d, x)"}, None),
        ({"d": "Abs (x)", "q": "Mul (d, two)"}, None),
        ({"d": "Abs (x)", "q": "Add (d, d)"}, None),
        ({"v": "Softmax <axis = -1> (q)"}, None),
        # what it reads is an input
        ({"b": "Abs (x)", "s": "Sqrt (b)"}, None),
        ({"d": "Abs (x)", "y": "Div (d, x)"}, None),
        ({"d": "Abs (x)", "v": "ReduceMean <axes = [-1]> (d)"}, None),
        ({"e": "Add (x, two)", "q": "Mul (e, e)", "s": "Sqrt (q)"}, None),
        ({"q": "Mul (x, x)"}, None),
        ({"s": "Exp (e)"}, None),
        ({"z": "Relu (e)", "s": "Sqrt (z)"}, None),
        ({"y": "Div (s, d)"}, None),
        ({"y": "Mul (d, s)"}, None),
        ({"y": "Add (d, s)"}, None),
        ({"z": "Exp (x)", "y": "Div (z, s)"}, None),
        ({**ONE, "r": "Div (two, s)"}, WHOLE),
        ({**ONE, "r": "Div (s, two)"}, None),
        ({**ONE, "r": "Exp (s)"}, None),
    ],
)
def test_a_norm_is_one_layer_and_nothing_else_is(changes, found):
    norms = [node.op for node in graph_of(changes).nodes if isinstance(node.op, ArrayNorm)]
    assert norms == ([] if found is None else [found])
