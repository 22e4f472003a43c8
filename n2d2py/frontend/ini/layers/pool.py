"""[section] Type=Pool."""
from __future__ import annotations

import numpy as np

from n2d2py import log
from n2d2py.frontend.ini.common import ACTIVATED, NB_OUTPUTS, TRAINING_CONFIG, read_activation, read_window, window_keys
from n2d2py.frontend.ini.inputs import as_images
from n2d2py.frontend.ini.mapping import MAPPING_KEYS, as_groups, read_mapping
from n2d2py.frontend.ini.registry import LayerContext, LayerType
from n2d2py.graph.shapes import channels
from n2d2py.ini.schema import Key, Kind
from n2d2py.operators import Conv, ElemWise, Pool, Take

__all__ = ["LAYER_TYPE"]

_SCHEMA = ACTIVATED.extended(
    NB_OUTPUTS, Key("Pooling", Kind.ENUM, doc="what is taken of a window", choices=("Max", "Average")),
    *window_keys("Pool", None, size=True), *window_keys("Stride", 1), *window_keys("Padding", 0), *MAPPING_KEYS,
    name="Pool", doc="Pooling; an average counts the padding. With a Mapping, over the windows of all channels that feed an output; "
    "without one and as many outputs as channels, channel by channel.")


_AT_ONCE = 8
"""Inputs of one element-wise maximum."""


def _build(context: LayerContext) -> None:
    values, outputs = context.values, context.values["NbOutputs"]
    as_images(context)
    parents = [(name, channels(context.graph.shape(tensor))) for name, tensor in context.parents]
    count = sum(c for _, c in parents)
    mapping = read_mapping(values, parents, outputs)
    pads = read_window(values, "Padding", 0)
    op = Pool(values["Pooling"], read_window(values, "Pool", None, size=True), read_window(values, "Stride", 1),
              (*pads, *pads), count_pad=True)
    if mapping is None and outputs == count:
        log.notice("%s: no Mapping; each output pools the channel of its own number", values.section.location)
    elif mapping is None:
        mapping = np.ones((outputs, count), bool)
    if mapping is None or (outputs == count and np.array_equal(mapping, np.eye(count, dtype=bool))):
        context.add(op, [context.joined()], activation=read_activation(values))
    else:
        _mapped(context, op, mapping)


def _mapped(context: LayerContext, op: Pool, mapping: np.ndarray) -> None:
    """A pool over the windows of several channels: `mapping` (outputs, channels), true where one feeds the other.

    Each output of one channel: Take, then the pool. Average: the convolution whose weights are 1 / (window * channels
    of the output). Max: the pool of every channel, then the element-wise maximum of the first channel of each output,
    of its second one, and so on.

    Raises:
        N2D2Error: E215 an output without channels.
    """
    fed = mapping.sum(axis=1)
    if not fed.all():
        raise context.fail("E215", f"output {int(np.argmin(fed))} of the pool has no channel", "check the Mapping keys",
                           "NbOutputs")
    tensor, activation = context.joined(), read_activation(context.values)
    chosen = np.sort(np.where(mapping, np.arange(mapping.shape[1]), mapping.shape[1]), axis=1)[:, :fed.max()]
    chosen = np.where(chosen < mapping.shape[1], chosen, chosen[:, :1])  # fewer channels: the first one again
    ways = [Take((tuple(map(int, way)), None, None)) for way in chosen.T]
    if len(ways) == 1:
        context.add(op, [context.helper("channels", ways[0], [tensor])], activation=activation)
    elif op.mode == "Average":
        groups = as_groups(mapping) or 1
        connected = np.ones((len(mapping), mapping.shape[1] // groups), bool) if groups > 1 else mapping
        share = connected / (fed * op.kernel[0] * op.kernel[1])[:, None]
        weights = np.broadcast_to(share[:, :, None, None], (*share.shape, *op.kernel)).astype(np.float32)
        context.add(Conv(op.stride, op.pads, (1, 1), groups), [tensor],
                    {"weights": weights, "bias": np.zeros(len(mapping), np.float32)}, activation)
    else:
        pooled = context.helper("pooled", op, [tensor])
        parts = [context.helper(f"channels{index}", way, [pooled]) for index, way in enumerate(ways)]
        while len(parts) > _AT_ONCE:
            parts = [*parts[_AT_ONCE:], context.helper(f"maximum{len(parts)}", ElemWise("Max"), parts[:_AT_ONCE])]
        context.add(ElemWise("Max"), parts, activation=activation)


LAYER_TYPE = LayerType("Pool", _SCHEMA, TRAINING_CONFIG, _build)
