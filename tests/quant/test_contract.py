"""One registry answers whether a layer has an integer form, and gives it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from n2d2py.arithmetic import NumType
from n2d2py.errors import InternalError, N2D2Error
from n2d2py.graph import Node
from n2d2py.graph.forms import Aligned, Dequantized, Moved, Real, Rescaled, Table, Weighted
from n2d2py.operators.activation import Activation
from n2d2py.operators.base import operator_kinds
from n2d2py.operators.concat import Concat
from n2d2py.operators.convert import Convert
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.fc import Fc
from n2d2py.operators.functions import Clip, Tanh
from n2d2py.operators.lrn import LRN
from n2d2py.operators.pool import Pool
from n2d2py.operators.pool_sum import PoolSum
from n2d2py.operators.quantize import Quantize
from n2d2py.operators.reshape import Reshape
from n2d2py.operators.resize import Resize
from n2d2py.operators.unpool import Unpool
from n2d2py.quant.contract import (
    QUANTIZERS,
    LayerTypes,
    Quantizer,
    computes_plain,
    prequantize_layer,
    quantize_layer,
    quantizer,
    refused,
)
from n2d2py.quant.options import QuantOptions

S8 = NumType(8, scale=0.5)
U8 = NumType(8, False, scale=0.25, zero_point=3)
FLOAT = NumType(32, is_float=True)
FULL = {"weights": np.array([[0.5, -1.0]], np.float32), "bias": np.array([0.25], np.float32)}


def node(op, inputs=("x",), **params) -> Node:
    return Node("y", op, list(inputs), ["y"], params=params)


def types(*inputs: NumType, output: NumType = S8, **options) -> LayerTypes:
    return LayerTypes(list(inputs), output, QuantOptions(**options))


@pytest.mark.parametrize(
    "layer, kinds, form",
    [
        (node(Fc(), **FULL), types(U8), Weighted),
        (node(Pool("Max", (2, 2))), types(S8), Moved),
        (node(Pool("Average", (2, 2))), types(U8), Rescaled),
        (node(Concat(), "ab"), types(S8, S8), Moved),
        (node(Concat(), "ab"), types(S8, U8), Rescaled),
        (node(ElemWise("Sum"), "ab"), types(S8, U8), Aligned),
        (node(ElemWise("Prod"), "ab"), types(S8, U8), Aligned),
        (node(Activation(Tanh())), types(U8), Table),
        (node(Resize((4, 4), "Nearest")), types(S8), Moved),
        (node(Resize((4, 4), "Bilinear")), replace(types(S8), input_shape=(1, 2, 8, 8)), Rescaled),
        (node(Convert(True)), types(S8, output=FLOAT), Real),
        (node(Convert()), types(FLOAT), Rescaled),
    ],
    ids=lambda value: value.op.kind if isinstance(value, Node) else "",
)
def test_the_form_of_each_operator(layer, kinds, form):
    made = quantize_layer(layer, kinds)
    assert refused(layer) is None and type(made.form) is form
    assert (made.rescale is None) == (form in (Moved, Table, Real))


@pytest.mark.parametrize(
    "layer, form",
    [
        (node(Fc(), **FULL, weight_scales=np.array([0.5], np.float32)), Weighted),
        (node(Pool("Max", (2, 2))), Moved),
        (node(Pool("Average", (2, 2))), Dequantized),
        (node(ElemWise("Sum"), ["x"]), Dequantized),
        (node(Activation(Tanh())), Table),
        (node(Quantize(S8)), Table),
        (node(Reshape((4,))), Moved),
    ],
    ids=lambda value: value.op.kind if isinstance(value, Node) else "",
)
def test_the_form_of_each_operator_of_a_prequantized_network(layer, form):
    assert type(prequantize_layer(layer, types(U8)).form) is form


@pytest.mark.parametrize(
    "op, what",
    [
        (LRN(), "LRN"),
        (Quantize(S8), "Quantize"),
        (PoolSum(Pool("Max", (2, 2))), "PoolSum"),
        (ElemWise("EuclideanSum", (), (0.0, 1.0)), "ElemWise EuclideanSum"),
        (ElemWise("Max", (2.0, 1.0)), "ElemWise Max"),
        (ElemWise("Min", (), (0.0, 1.0)), "ElemWise Min"),
        (Unpool((2, 2), (1, 1)), "Unpool with overlapping windows"),
    ],
)
def test_what_is_refused_is_not_quantized(op, what):
    layer = node(op, "ab")
    assert refused(layer) == what
    with pytest.raises(N2D2Error) as caught:
        quantize_layer(layer, types(S8, S8))
    assert caught.value.code == "E510" and f"layer 'y' ({what}) has no integer arithmetic" in caught.value.what


@pytest.mark.parametrize(
    "op",
    [
        ElemWise("Max"),
        ElemWise("EuclideanSum", (2.0, 1.0)),
        ElemWise("Sum", (2.0, 1.0), (0.0, 1.0)),
        Unpool((2, 2), (2, 2)),
        Pool("Max", (2, 2)),
    ],
)
def test_the_attributes_of_an_operator_decide(op):
    assert refused(node(op, "ab")) is None


def test_plain_integers():
    plain = {kind for kind in QUANTIZERS if type(QUANTIZERS[kind]).plain is not Quantizer.plain}
    assert plain == {"Pool", "PoolSum", "Reshape", "Transpose", "Identity"} and plain <= set(operator_kinds())
    assert computes_plain(node(Pool("Max", (2, 2)))) and computes_plain(node(PoolSum(Pool("Max", (2, 2))), "ab"))
    assert not computes_plain(node(Pool("Average", (2, 2)))) and not computes_plain(node(LRN()))
    assert not computes_plain(Node("y", Reshape((4,)), ["x"], ["y"], activation=Clip(0.0)))


def test_a_quantizer_is_registered_once():
    with pytest.raises(InternalError, match="the quantizer of Conv is registered twice"):

        @quantizer("Conv")
        class Second(Quantizer):
            """Of a kind that has one."""


def test_a_layer_of_another_form_is_an_internal_error():
    with pytest.raises(InternalError, match="y is Moved, not Table"):
        quantize_layer(node(Reshape((4,))), types(S8)).form_as(Table)
