"""Equalization of the queries, keys and values that one linear layer computes for an attention.

A product of queries and keys sums over channels, so q_k f_k and k_k / f_k give the same result. The error is least for f_k^2 =
(rms of k_k) / (rms of q_k), as long as both keep their ranges. Common factors a and b of all queries and all keys change the
scale of the product by 1 / (a b). So queries, keys and values of one layer can share one range.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from n2d2py.graph import Graph, Node, TargetForm
from n2d2py.operators import ArrayMatMul, Conv, Fc, scalar_factor
from n2d2py.operators.arrays.matmul import view_positions
from n2d2py.operators.linear import MOVES, WeightedReaders, axis_numbers, weighted_readers

_EXPONENTS = (0.0, 0.25, 0.5)
_PAYS = 0.7
"""Factors are used if they leave at most this share of the expected error, since samples do not show all ranges."""
LARGEST = 256.0
"""Limit of the factor of a channel, in both directions."""


@dataclass(frozen=True)
class ValueChannels:
    """Channels (P) of a projection that one weighted layer reads after a product, in the order of its inputs; `read` by it."""

    channels: np.ndarray
    readers: WeightedReaders
    read: str


@dataclass(frozen=True)
class Projection:
    """A linear layer whose channels are all queries, keys or values. `sides`: by product and operand (0 or 1), the channels (P)
    of the layer over which the product sums. `values`: the other channels."""

    node: Node
    sides: Mapping[tuple[str, int], np.ndarray]
    values: tuple[ValueChannels, ...]

    @property
    def parts(self) -> list[np.ndarray]:
        """The channels of each part."""
        return [*self.sides.values(), *(each.channels for each in self.values)]


def find_projections(graph: Graph) -> list[Projection]:
    """Return the layers whose channels can be scaled together with the channels they are multiplied by."""
    candidates = [one for node in graph.nodes for one in [_projection(graph, node)] if one is not None]
    while True:
        sizes = {key: len(channels) for one in candidates for key, channels in one.sides.items()}
        consistent = [
            one for one in candidates if all(sizes.get((name, 1 - side)) == sizes[name, side] for name, side in one.sides)
        ]
        if len(consistent) == len(candidates):
            return candidates
        candidates = consistent


def _projection(graph: Graph, node: Node) -> Projection | None:
    precision = graph.precision(node)
    if not isinstance(node.op, (Conv, Fc)) or node.activation is not None or "weight_scales" in node.params:
        return None
    if precision.quantize is False or precision.target is TargetForm.SUMS:
        return None
    shape = graph.shape(node.output)
    sides: dict[tuple[str, int], np.ndarray] = {}
    values = []
    for reader, side, read in _readers(graph, node.output, axis_numbers(shape)):
        part = _summed_channels(reader, side, read) if side >= 0 else None
        if part is not None:
            sides[reader.name, side] = part
            continue
        part = _value_channels(graph, reader, read) if side == 1 else None
        if part is None:
            return None
        values.append(part)
    projection = Projection(node, sides, tuple(values))
    once = sides and np.array_equal(np.sort(np.concatenate(projection.parts)), np.arange(shape[1]))
    return projection if once else None


def _readers(graph: Graph, tensor: str, numbers: np.ndarray) -> Iterator[tuple[Node, int, np.ndarray]]:
    """Yield consumers of a tensor or of scaled copies, the operand of a product (else -1), the channel of each element."""
    if tensor in graph.outputs:
        yield graph.nodes[0], -1, numbers
    for reader in graph.consumers(tensor):
        factor = scalar_factor(reader)
        plain = reader.activation is None
        if plain and isinstance(reader.op, MOVES) and not getattr(reader.op, "fills", ()):
            yield from _readers(graph, reader.output, reader.op.run([numbers], reader)[0])
        elif plain and factor is not None and factor > 0:
            yield from _readers(graph, reader.output, numbers)
        elif plain and isinstance(reader.op, ArrayMatMul) and reader.op.slots == (0, 1) and not reader.op.result:
            for side in (0, 1):
                if reader.inputs[side] == tensor:
                    yield reader, side, numbers
        else:
            yield reader, -1, numbers


def _summed_channels(product: Node, side: int, numbers: np.ndarray) -> np.ndarray | None:
    """Return the channels (batch, K) over which a product sums; None if rows of an operand use different channels."""
    op = product.op
    operand = numbers.reshape(-1)[view_positions(op.full_views()[side], (op.left, op.right)[side])]
    operand = operand if side == 0 else np.swapaxes(operand, -1, -2)
    return None if (operand != operand[..., :1, :]).any() else operand[..., 0, :].reshape(-1).astype(np.int64)


def _value_channels(graph: Graph, product: Node, numbers: np.ndarray) -> ValueChannels | None:
    """Return the channels of the right operand of a product whose result one weighted layer reads; None for others."""
    columns = product.op.column_numbers(numbers.reshape(1, -1))
    readers = "" if columns is None else weighted_readers(graph, product.output, columns)
    if isinstance(readers, str) or len(readers) > 1:
        return None
    ((reader, channels),) = readers
    if not isinstance(reader.op, (Conv, Fc)) or getattr(reader.op, "groups", 1) > 1:
        return None
    return ValueChannels(channels, [(reader, np.arange(len(channels)))], reader.inputs[0])


def score_factors(queries: tuple[np.ndarray, np.ndarray], keys: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return factors for queries and keys from their largest values and mean squares (P); all 1 if none help."""
    (largest_query, power), (largest_key, key_power) = queries, keys
    usable = (power > 0) & (key_power > 0)
    ratio = np.sqrt(np.divide(key_power, power, out=np.ones_like(power), where=usable))
    candidates = [np.clip(ratio**exponent, 1 / LARGEST, LARGEST) for exponent in _EXPONENTS]
    errors = [((largest_query * f).max() / f) ** 2 @ key_power + ((largest_key / f).max() * f) ** 2 @ power for f in candidates]
    best = int(np.argmin(errors))
    factors = candidates[best] if errors[best] < _PAYS * errors[0] else candidates[0]
    return factors, 1 / factors


def with_one_range(parts: list[np.ndarray], factors: np.ndarray, largest: np.ndarray) -> np.ndarray:
    """Return the factors (C) with all parts scaled to the range of the widest one."""
    ranges = [float((factors * largest)[part].max()) for part in parts]
    result = factors.copy()
    for part, extent in zip(parts, ranges, strict=True):
        wanted = min(max(ranges) / extent, LARGEST) if extent > 0 else 1.0
        if _PAYS * wanted**2 > 1:
            result[part] *= wanted
    return result


def compensate(graph: Graph, projections: list[Projection], factors: Mapping[str, np.ndarray]) -> None:
    """Divide the scale of the products by the factors (C) of their operands, by the tensor of a projection."""
    sides = {key: (one.node.output, channels) for one in projections for key, channels in one.sides.items()}
    for name in dict.fromkeys(name for name, _ in sides):
        gain = np.float64(1)
        for tensor, channels in (sides[name, 0], sides[name, 1]):
            gain = gain * (factors[tensor][channels] if tensor in factors else 1.0)
        product = graph.node(name)
        product.op = replace(product.op, scale=product.op.scale / float(np.mean(gain)))
