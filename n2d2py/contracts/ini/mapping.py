"""Connections from input channels to output channels (N2D2's Mapping keys)."""

from math import lcm

import numpy as np

from n2d2py.contracts.ini.layers import LayerContext
from n2d2py.graph.shapes import channels
from n2d2py.ini.schema import Key, Kind, Values

_OF_PARENT = "Mapping(parent): explicit matrix with one row per input channel. Mapping(parent).*: pattern for one parent."
MAPPING_KEYS = (
    Key("Mapping.NbGroups", Kind.UINT, None, "Number of channel groups.", minimum=1),
    Key("Mapping.ChannelsPerGroup", Kind.UINT, None, "Input channels per group. 1: depthwise.", minimum=1),
    Key("Mapping.*", Kind.UINT, None, "Pattern of connections: Size, SizeX, SizeY, Stride*, Offset*, NbIterations."),
    Key("Mapping(*", Kind.STRING, None, _OF_PARENT),
)
MAX_CONNECTIONS = 1 << 24
"""Limit of outputs times input channels with Mapping keys: 4096 x 4096."""

_PATTERN = {"Size": 1, "Stride": 1, "Offset": 0}


def read_mapping(context: LayerContext) -> tuple[np.ndarray | None, int]:
    """Return (the mapping, bool (outputs, channels of all inputs), or None if all are connected; the number of channels).

    Raises E213 for groups that do not divide the channels or a matrix of the wrong size, E229 for too many connections.
    """
    values, outputs = context.values, context.values["NbOutputs"]
    parents = [(name, channels(context.graph.shape(tensor))) for name, tensor in context.parents]
    count = sum(number for _, number in parents)
    if outputs * count > MAX_CONNECTIONS and any(name.startswith("Mapping") for name in values.section.keys()):
        what = f"the mapping has {outputs * count:,} connections, more than the limit of {MAX_CONNECTIONS:,}"
        raise values.fail("E229", what, "reduce NbOutputs, or correct the Mapping keys")
    blocks = [_map_parent(values, name, number, outputs) for name, number in parents]
    if all(block is None for block in blocks):
        return None, count
    full = [np.ones((outputs, number), bool) for _, number in parents]
    return np.concatenate([ones if block is None else block for block, ones in zip(blocks, full, strict=True)], axis=1), count


def _map_parent(values: Values, parent: str, channels: int, outputs: int) -> np.ndarray | None:
    in_groups = [key for key in ("Mapping.NbGroups", "Mapping.ChannelsPerGroup") if values[key] is not None]
    if len(in_groups) > 1:
        raise values.fail("E213", f"{' and '.join(in_groups)} exclude each other", "keep one of them", in_groups[0])
    if in_groups:
        return _group_mapping(values, in_groups[0], channels, outputs)
    explicit = f"Mapping({parent})"
    if values.is_given(explicit):
        return _explicit_mapping(values, explicit, channels, outputs)
    general, own = values.matching("Mapping.*"), values.matching(f"{explicit}.*")
    if general or own:
        settings = {key.removeprefix("Mapping."): int(value) for key, value in general.items()}
        settings.update({key.removeprefix(f"{explicit}."): _unsigned(values, key, value) for key, value in own.items()})
        return _pattern_mapping(settings, channels, outputs)
    return None


def _unsigned(values: Values, key: str, text: str) -> int:
    if not text.strip().isdecimal() or int(text) >= 1 << 32:
        raise values.fail("E213", f"{key}={text} is not an unsigned integer", "give an unsigned integer", key)
    return int(text)


def _group_mapping(values: Values, key: str, channels: int, outputs: int) -> np.ndarray:
    divisor = values[key]
    if channels % divisor:
        what = f"{key}={divisor} does not divide the {channels} input channels"
        raise values.fail("E213", what, "choose a divisor of the number of channels", key)
    count = divisor if key == "Mapping.NbGroups" else channels // divisor
    small, larger = outputs // count, outputs % count
    members = np.full(count, small)
    members[count - larger :] += 1
    group_of_output = np.repeat(np.arange(count), members)
    return group_of_output[:, None] == np.arange(channels) // (channels // count)


def _explicit_mapping(values: Values, key: str, channels: int, outputs: int) -> np.ndarray:
    try:
        numbers = [int(word) for word in values[key].split()]
    except ValueError:
        what = f"{key} contains values other than 0 and 1"
        raise values.fail("E213", what, "give one row per input channel and one column per output", key) from None
    if len(numbers) != channels * outputs:
        product = f"{channels} input channels x {outputs} outputs require {channels * outputs}"
        what = f"{key} has {len(numbers)} values, but {product}"
        raise values.fail("E213", what, "give one row per input channel and one column per output", key)
    return np.array(numbers, bool).reshape(channels, outputs).T


def _pattern_mapping(settings: dict[str, int], channels: int, outputs: int) -> np.ndarray:
    """Return a mapping with a rectangle SizeX (outputs) x SizeY (channels) repeated NbIterations times, with wrap-around."""
    axes = {}
    for what, default in _PATTERN.items():
        both = settings.get(what, default)
        axes[what] = (settings.get(what + "X", both), settings.get(what + "Y", both))
    size = (axes["Size"][0] or outputs, axes["Size"][1] or channels)
    steps = min(settings.get("NbIterations", 0) or max(outputs, channels), lcm(outputs, channels))
    result, step = np.zeros((outputs, channels), bool), np.arange(steps)
    rows, columns = ((axes["Offset"][i] + step * axes["Stride"][i]) % extent for i, extent in enumerate(result.shape))
    result[rows, columns] = True
    for axis, extent in enumerate(result.shape):
        result = _extend_cells(result, axis, min(size[axis], extent))
    return result


def _extend_cells(corners: np.ndarray, axis: int, size: int) -> np.ndarray:
    """Extend each true cell to `size` cells along `axis`, with wrap-around."""
    reach = 1
    while reach < size:
        step = min(reach, size - reach)
        corners = corners | np.roll(corners, step, axis)
        reach += step
    return corners


def as_groups(mapping: np.ndarray) -> int | None:
    """Return the number of groups if the mapping consists of equal, contiguous groups; else None."""
    outputs, channels = mapping.shape
    per_output = set(mapping.sum(axis=1).tolist())
    (size,) = per_output if len(per_output) == 1 else (0,)
    if not size:
        return None
    groups = channels // size
    expected = np.kron(np.eye(groups, dtype=bool), np.ones((outputs // groups, channels // groups), bool))
    return groups if np.array_equal(expected, mapping) else None
