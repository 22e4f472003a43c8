"""A Softmax over the channels of an image or of a vector has integers where the target takes them."""

from __future__ import annotations

import pytest
from support.tables import every

from n2d2py.graph import Precision
from n2d2py.operators.activation import Activation
from n2d2py.operators.functions import Clip
from n2d2py.operators.softmax import Softmax
from n2d2py.passes import fuse
from n2d2py.quant.types.float_fallback import float_layers


def network(b, op: Softmax):
    b.layer("s", op)
    b.layer("last", Activation(Clip(0.125)), "s")
    return b.done("last")


@every("shape, group", [((8, 2, 3), 0), ((8, 2, 3), 4), ((8, 5), 0), ((6,), 0)])
@pytest.mark.parametrize("rows", [True, False])
def test_in_integers_where_the_target_takes_them(build, kinds, shape, group, rows):
    after, _ = fuse(network(build(*shape), Softmax(group)), integer=True, rows=rows)
    assert kinds(after) == [("s", "Softmax"), ("last", "Activation")]
    assert float_layers(after) == (set() if rows else {"s", "last"})


def test_logarithms_stay_in_floating_point(build):
    after, _ = fuse(network(build(8, 2, 3), Softmax(log=True)), integer=True)
    assert "s" in float_layers(after)


def test_one_that_the_user_wants_in_floating_point_stays(build):
    graph = network(build(8, 2, 3), Softmax())
    graph.precisions["s"] = Precision(quantize=False)
    assert "s" in float_layers(fuse(graph, integer=True)[0])
