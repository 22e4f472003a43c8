"""[section] Type=Unpool: max unpooling with the positions of a pool, or average unpooling."""

from __future__ import annotations

import numpy as np

from n2d2py.frontend.ini.contract import LayerContext, LayerType
from n2d2py.frontend.ini.inputs import as_images
from n2d2py.frontend.ini.keys import ACTIVATED, CONFIGURATION, NB_OUTPUTS, THIRD_AXIS, read_activation, read_window, window_keys
from n2d2py.frontend.ini.mapping import MAPPING_KEYS, read_mapping
from n2d2py.graph import Node
from n2d2py.graph.shapes import channels
from n2d2py.ini.schema import Key, Kind
from n2d2py.operators.deconv import Deconv
from n2d2py.operators.pool import Pool
from n2d2py.operators.unpool import Unpool

__all__ = ["LAYER_TYPE"]

_SCHEMA = ACTIVATED.extended(
    NB_OUTPUTS,
    Key("Pooling", Kind.ENUM, doc="Max: values return to their maxima; Average: they are spread", choices=("Max", "Average")),
    Key("ArgMax", Kind.STRING, "", "the max pool whose positions are used"),
    *window_keys("Pool", None, size=True),
    *window_keys("Stride", 1),
    *window_keys("Padding", 0),
    *MAPPING_KEYS,
    accepted=THIRD_AXIS,
    name="Unpool",
    doc="The reverse of a pool, channel by channel.",
)


def _build(context: LayerContext) -> None:
    values, outputs = context.values, context.values["NbOutputs"]
    as_images(context)
    parents = [(name, channels(context.graph.shape(tensor))) for name, tensor in context.parents]
    count = sum(c for _, c in parents)
    mapping = read_mapping(values, parents, outputs)
    if outputs != count or (mapping is not None and not np.array_equal(mapping, np.eye(count, dtype=bool))):
        raise context.fail(
            "E215",
            f"an unpooling of {count} channels into {outputs} outputs is not channel by channel",
            "use Mapping.Size=1 and as many outputs as channels",
            "NbOutputs",
        )
    pads = read_window(values, "Padding", 0)
    kernel, stride = read_window(values, "Pool", None, size=True), read_window(values, "Stride", 1)
    if values["Pooling"] == "Average":
        share = np.full((count, 1, *kernel), 1.0 / (kernel[0] * kernel[1]), np.float32)
        context.add(
            Deconv(stride, (*pads, *pads), groups=count),
            [context.joined()],
            {"weights": share, "bias": np.zeros(count, np.float32)},
            read_activation(values),
        )
        return
    pool = _pool(context)
    if (pool.op.kernel, pool.op.stride, pool.op.pads) != (kernel, stride, (*pads, *pads)):
        raise context.fail(
            "E210",
            f"its window differs from that of [{pool.name}], which ArgMax names",
            "give both the same PoolDims, Stride and Padding",
            "ArgMax",
        )
    context.add(Unpool(kernel, stride, (*pads, *pads)), [context.joined(), pool.inputs[0]], activation=read_activation(values))


def _pool(context: LayerContext) -> Node:
    """The max pool that ArgMax names.

    Raises:
        N2D2Error: E210 when there is none before this layer.
    """
    name = context.values["ArgMax"]
    for node in context.graph.nodes:
        if node.name == name and isinstance(node.op, Pool) and node.op.mode == "Max":
            return node
    raise context.fail(
        "E210", f"ArgMax='{name}' is not a max pool before this layer", "name the max pool that it reverses", "ArgMax"
    )


LAYER_TYPE = LayerType("Unpool", _SCHEMA, CONFIGURATION, _build)
