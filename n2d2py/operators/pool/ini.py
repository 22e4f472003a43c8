"""[section] Type=Pool."""

from collections.abc import Iterable

import numpy as np

from n2d2py import log
from n2d2py.contracts.ini.keys import ACTIVATED, NB_OUTPUTS, THIRD_AXIS, read_activation, read_window, window_keys
from n2d2py.contracts.ini.layers import LayerContext, ini
from n2d2py.contracts.ini.mapping import MAPPING_KEYS, MAX_CONNECTIONS, as_groups, read_mapping
from n2d2py.contracts.windows import Pads
from n2d2py.ini import Key, Kind, Values
from n2d2py.operators.conv import Conv
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.index_select import IndexSelect
from n2d2py.operators.pool import Pool

_MAX_OPERANDS = 8
"""Largest number of operands of an element-wise maximum."""

MAX_WINDOWS = 1 << 16
"""Largest number of windows over all outputs of a pool over several channels."""


WINDOWS = (*window_keys("Pool", None, size=True), *window_keys("Stride", 1), *window_keys("Padding", 0), *MAPPING_KEYS)
"""Keys of a pool and of its reversal."""


def read_windows(values: Values) -> tuple[tuple[int, int], tuple[int, int], Pads]:
    """Return (kernel, stride, pads)."""
    pads = read_window(values, "Padding", 0)
    return read_window(values, "Pool", None, size=True), read_window(values, "Stride", 1), (*pads, *pads)


@ini(
    "Pool",
    NB_OUTPUTS,
    Key("Pooling", Kind.ENUM, doc="Pooling operation.", choices=("Max", "Average")),
    *WINDOWS,
    base=ACTIVATED,
    accepted=THIRD_AXIS,
    doc="Pooling layer. Averages include the padding. With a Mapping, each output pools the windows of all connected "
    "channels. Without a Mapping and with as many outputs as channels, each channel is pooled separately.",
)
def _build(context: LayerContext) -> None:
    values, outputs = context.values, context.values["NbOutputs"]
    context.as_images()
    mapping, count = read_mapping(context)
    op = Pool(values["Pooling"], *read_windows(values))
    if mapping is None and outputs == count:
        log.notice("%s: no Mapping; each output pools the channel of the same index", values.section.location)
    elif mapping is None:
        _check_size(context, outputs * count, MAX_CONNECTIONS)
        mapping = np.ones((outputs, count), bool)
    if mapping is None or (outputs == count and np.array_equal(mapping, np.eye(count, dtype=bool))):
        context.add(op, [context.concat_inputs()], activation=read_activation(values))
    else:
        _add_mapped(context, op, mapping)


def _check_size(context: LayerContext, size: int, limit: int) -> None:
    if size > limit:
        what = f"the pool has {size:,} windows, more than the limit of {limit:,}"
        raise context.fail("E229", what, "correct NbOutputs and the Mapping keys", "NbOutputs")


def _add_mapped(context: LayerContext, op: Pool, mapping: np.ndarray) -> None:
    """Add a pool over the windows of several channels: `mapping` (outputs, channels) is true for connections.

    One channel per output: IndexSelect, then the pool. Average: a convolution with weights 1 / (window * channels of the
    output). Max: a pool of each channel, then the element-wise maximum of the first channels of all outputs, their second
    channels, and so on.
    """
    fan_in, count = mapping.sum(axis=1), mapping.shape[1]
    if not fan_in.all():
        what = f"output {int(np.argmin(fan_in))} of the pool has no input channel"
        raise context.fail("E215", what, "correct the Mapping keys", "NbOutputs")
    tensor, activation = context.concat_inputs(), read_activation(context.values)
    if op.mode == "Average" and fan_in.max() > 1:
        groups = as_groups(mapping) or 1
        connected = np.ones((len(mapping), count // groups), bool) if groups > 1 else mapping
        share = connected / (fan_in * op.kernel[0] * op.kernel[1])[:, None]
        weights = np.broadcast_to(share[:, :, None, None], (*share.shape, *op.kernel)).astype(np.float32)
        params = {"weights": weights, "bias": np.zeros(len(mapping), np.float32)}
        context.add(Conv(op.stride, op.pads, (1, 1), groups), [tensor], params, activation)
        return
    _check_size(context, len(mapping) * int(fan_in.max()), MAX_WINDOWS)
    chosen = np.sort(np.where(mapping, np.arange(count), count), axis=1)[:, : fan_in.max()]
    ways = np.where(chosen < count, chosen, chosen[:, :1]).T  # rows with fewer channels repeat their first one
    if len(ways) == 1:
        context.add(op, [context.add_helper("channels", _select_channels(ways[0]), [tensor])], activation=activation)
        return
    tensor = context.add_helper("pooled", op, [tensor])
    while len(ways) > _MAX_OPERANDS:  # all in one tensor, halved
        half = -(-len(ways) // 2)
        parts = _select_each(context, [ways[:half].reshape(-1), ways[-half:].reshape(-1)], tensor, f"{len(ways)}_")
        tensor = context.add_helper(f"maximum{half}", ElemWise("Max"), parts)
        ways = np.arange(half * len(mapping)).reshape(half, len(mapping))
    context.add(ElemWise("Max"), _select_each(context, ways, tensor), activation=activation)


def _select_each(context: LayerContext, ways: Iterable[np.ndarray], tensor: str, prefix: str = "") -> list[str]:
    return [context.add_helper(f"channels{prefix}{index}", _select_channels(way), [tensor]) for index, way in enumerate(ways)]


def _select_channels(chosen: np.ndarray) -> IndexSelect:
    return IndexSelect((tuple(chosen.tolist()), None, None))
