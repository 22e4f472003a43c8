"""The text of a layer: literals, accumulators, kernel choice, and what is refused."""

import numpy as np
import pytest
from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_layouts import plane
from support.ops import LRN, BatchNorm, Reshape

from n2d2py.contracts.cpp.identifiers import Identifiers, float_literal
from n2d2py.contracts.cpp.layer import layer_code
from n2d2py.errors import InternalError, N2D2Error
from n2d2py.memory.plan import MemoryPlan

SWEEP = cases.Sweep(3)


def code_of(case: harness.Case):
    return layer_code(case.node, case.graph, case.plan, Identifiers(case.graph))


def test_float_literals_are_exact():
    bits = np.random.default_rng(0).integers(0, 2**31, 2000, dtype=np.uint32)
    values = bits.view(np.float32)
    values = values[np.isfinite(values)]
    assert all(np.float32(float_literal(v, "float").rstrip("f")) == v for v in values)


def test_accumulator_follows_the_bound():
    case = SWEEP.fc((1, 16), 4, (cases.U8, cases.U8), "apart")
    case.node.bound = 2**31 - 1
    assert "typedef std::int32_t Sum;" in code_of(case).config
    case.node.bound = 2**31
    assert "typedef std::int64_t Sum;" in code_of(case).config


def refused(op, shape=(1, 4, 3, 3), result=None, kind=cases.U8, **node) -> Exception:
    graph = SWEEP.graph(op, {"x": (shape, kind)}, (result or shape, kind), **node)
    tensors = {name: (t.shape, t.type) for name, t in graph.tensors.items()}
    with pytest.raises((N2D2Error, InternalError)) as caught:
        layer_code(graph.nodes[0], graph, MemoryPlan("apart", 0, cases.layouts.apart(tensors), ()), Identifiers(graph))
    return caught.value


def test_refusals_name_code_and_layer():
    unknown, integer = refused(BatchNorm()), refused(LRN())
    rank = refused(Reshape((2, 2, 3, 3)), (1, 4, 3, 3), (1, 2, 2, 3, 3))
    assert (unknown.code, integer.code, rank.code) == ("E701", "E702", "E703")
    assert "'layer'" in unknown.line() and "BatchNorm" in unknown.line()
    assert "rank 5" in rank.line() and "2x2x3x3" in rank.line()


def test_layers_that_need_their_whole_input_refuse_to_overwrite_it():
    case = SWEEP.fc((1, 16), 4, (cases.U8, cases.U8), "apart")
    case.planes["y"] = plane(case.planes["x"].offset, (1, 4), cases.U8)
    with pytest.raises(InternalError, match="lies over its input"):
        code_of(case)
