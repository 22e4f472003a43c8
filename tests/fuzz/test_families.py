"""Every count, size, axis and shape of the small models set to values without measure, and inputs of other ranks and types."""

import time
from collections.abc import Iterator
from itertools import islice

import numpy as np
import onnx
import pytest
from fuzz_models import models
from onnx import TensorProto, helper, numpy_helper
from support.tables import every

from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.importer import import_onnx

NUMBERS = (-1, 0, 10**6, 2**31, 2**62)
SHAPES = ([], [4], [1, 4], [4, 6], [1, 4, 6], [1, 4, 6, 6, 6], [2, 4, 6, 6], [1, 5, 7, 3], [0, 4, 6, 6], [1, 4, 0, 6])
SECONDS = 20
"""Of processor time, for one import."""


def copied(model: onnx.ModelProto) -> onnx.ModelProto:
    made = onnx.ModelProto()
    made.CopyFrom(model)
    return made


def with_attributes(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto]]:
    kinds = onnx.defs.OpSchema.AttrType
    for index, node in enumerate(model.graph.node):
        if not onnx.defs.has(node.op_type, node.domain):
            continue
        for name, attribute in onnx.defs.get_schema(node.op_type, 21, node.domain).attributes.items():
            if attribute.type not in (kinds.INT, kinds.INTS):
                continue
            given = next((list(a.ints) for a in node.attribute if a.name == name), [])
            for number in NUMBERS:
                made = copied(model)
                kept = [a for a in node.attribute if a.name != name]
                del made.graph.node[index].attribute[:]
                made.graph.node[index].attribute.extend(kept)
                value = number if attribute.type == kinds.INT else [*given[:-1], number]
                made.graph.node[index].attribute.append(helper.make_attribute(name, value))
                yield f"{node.op_type}.{name}={value}", made


def with_constants(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto]]:
    for index, tensor in enumerate(model.graph.initializer):
        array = numpy_helper.to_array(tensor)
        changed = [array.reshape(-1)[:0], array.reshape(-1)[:1], array[None], array.astype(bool), array.astype(np.float64)]
        if array.dtype == np.int64 and array.size:
            for number in NUMBERS:
                changed.append(array.copy())
                changed[-1].reshape(-1)[-1] = number
        for values in changed:
            made = copied(model)
            made.graph.initializer[index].CopyFrom(numpy_helper.from_array(np.asarray(values).copy(), tensor.name))
            yield f"{tensor.name}: {values.dtype} {values.shape} {values.reshape(-1)[-1:]}", made


def with_inputs(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto]]:
    for shape, kind in [*((s, TensorProto.FLOAT) for s in SHAPES), ([1, 4, 6, 6], TensorProto.INT64), ([4], TensorProto.BOOL)]:
        made = copied(model)
        made.graph.input[0].CopyFrom(helper.make_tensor_value_info(model.graph.input[0].name, kind, shape))
        yield f"input {kind} {shape}", made
    for index, node in enumerate(model.graph.node):
        for dropped in range(len(node.input)):
            for left in (node.input[:dropped], [*node.input[:dropped], "", *node.input[dropped + 1 :]]):
                made = copied(model)
                del made.graph.node[index].input[:]
                made.graph.node[index].input.extend(left)
                yield f"{node.op_type} of {left}", made


@every("family", [with_attributes, with_constants, with_inputs])
@every("number", range(len(models())), ids=[name for name, _ in models()])
def test_imports_or_is_refused(number, family):
    """A quarter of the changes of each model; any other exception than the numbered ones fails the test by itself."""
    model = onnx.ModelProto()
    model.ParseFromString(models()[number][1])
    for what, changed in islice(family(model), number % 4, None, 4):
        start = time.process_time()
        try:
            import_onnx(changed)
        except N2D2Error as error:
            assert error.code in ("E314", "E310", "E302", "E305", "E306", "E311") or error.code.startswith("E2"), what
        except Exception as error:
            pytest.fail(f"{what}: {error!r}")
        assert time.process_time() - start < SECONDS, what
