"""[section] Type=Pool."""
from __future__ import annotations

import numpy as np

from n2d2py import log
from n2d2py.frontend.ini.common import ACTIVATED, NB_OUTPUTS, TRAINING_CONFIG, read_activation, read_window, window_keys
from n2d2py.frontend.ini.mapping import MAPPING_KEYS, read_mapping
from n2d2py.frontend.ini.outline import Outline
from n2d2py.frontend.ini.registry import LayerContext, LayerType
from n2d2py.graph import Node
from n2d2py.graph.shapes import Shape, channels
from n2d2py.ini.schema import Key, Kind
from n2d2py.operators import Pool

__all__ = ["LAYER_TYPE"]

_SCHEMA = ACTIVATED.extended(
    NB_OUTPUTS, Key("Pooling", Kind.ENUM, doc="what is taken of a window", choices=("Max", "Average")),
    *window_keys("Pool", None, size=True), *window_keys("Stride", 1), *window_keys("Padding", 0), *MAPPING_KEYS,
    name="Pool", doc="Pooling; an average counts the padding.")


def _build(context: LayerContext) -> None:
    values, outputs = context.values, context.values["NbOutputs"]
    parents = [(name, channels(context.graph.shape(tensor))) for name, tensor in context.parents]
    count = sum(c for _, c in parents)
    mapping = read_mapping(values, parents, outputs)
    if mapping is None and outputs == count:
        log.notice("%s: no Mapping; each output pools the channel of its own number", values.section.location)
    elif mapping is None or outputs != count or not np.array_equal(mapping, np.eye(count, dtype=bool)):
        context.cannot_run("E215", f"a pool of {count} channels into {outputs} outputs is not channel by channel",
                           "use Mapping.Size=1 and as many outputs as channels", "NbOutputs")
    pads = read_window(values, "Padding", 0)
    op = Pool(values["Pooling"], read_window(values, "Pool", None, size=True), read_window(values, "Stride", 1),
              (*pads, *pads), count_pad=True)
    tensor, activation = context.joined(), read_activation(values)
    if outputs != count:
        context.add(Outline((1, outputs, *_extent(context, op, tensor)), "Pool"), [tensor])
    else:
        context.add(op, [tensor], activation=activation)


def _extent(context: LayerContext, op: Pool, tensor: str) -> Shape:
    shape = context.graph.shape(tensor)
    return op.output_shapes([shape], Node(context.name, op, [], [], location=context.values.section.location))[0][2:]


LAYER_TYPE = LayerType("Pool", _SCHEMA, TRAINING_CONFIG, _build)
