"""Low-bit activations are stored packed between the layers.

    R(P(x))  =>  R(UnpackChannels(PackChannels(P(x))))

Each consumer has its own UnpackChannels directly before it. Where layers run row by row, only the rows in use are unpacked. The
producer keeps its name for its result.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import chain, count

from n2d2py.graph import QuantGraph, QuantNode, QuantTensor, Shape, elements
from n2d2py.memory.access import Overlay, access_of
from n2d2py.operators.packed_channels import PACKED, PackChannels, UnpackChannels, packed_bits, packed_bytes


@dataclass(frozen=True)
class LowBitTensor:
    """A tensor of at most 4 bits, and whether it is packed; `refused` is why it cannot be, "" if it can.

    Attributes:
        bits: bits of a packed element: 1, 2 or 4.
        bytes, packed_bytes: size of one sample without and with packing.
    """

    name: str
    bits: int
    bytes: int
    packed_bytes: int
    refused: str
    packed: bool


def low_bit_tensors(graph: QuantGraph) -> list[LowBitTensor]:
    """Return the tensors of at most 4 bits, in the order of their producers."""
    views = {each.name for each in graph.nodes if each.op.is_part or access_of(each, graph).overlay is Overlay.VIEW}
    packed = set(graph.packed.values())
    tensors, makers = [], [(name, each) for each in graph.nodes for name in each.outputs]
    for name, node in [*((name, None) for name in graph.inputs), *makers]:
        tensor, bits = graph.tensors[name], packed_bits(graph.type(name))
        if bits is not None and name not in graph.unpacked:
            size = elements(_packed_shape(tensor, bits))
            refused = _reason_against_packing(name, node, graph, views) or (
                "" if size < tensor.bytes else "its channels fill no byte"
            )
            tensors.append(LowBitTensor(name, bits, tensor.bytes, size, refused, name in packed))
    return tensors


def packable_tensors(graph: QuantGraph) -> list[str]:
    """Return the tensors that can be packed, in the order of their producers."""
    return [one.name for one in low_bit_tensors(graph) if not one.refused]


def _packed_shape(tensor: QuantTensor, bits: int) -> Shape:
    batch, count, *rest = tensor.shape
    return batch, packed_bytes(count, bits), *rest


def _reason_against_packing(name: str, node: QuantNode | None, graph: QuantGraph, views: Collection[str]) -> str:
    if node is None:
        return "it is an input, which the caller fills"
    if name in graph.outputs:
        return "it is an output, which the caller reads"
    readers = graph.consumers(name)
    viewed = next((each.name for each in (node, *readers) if each.name in views), "")
    if viewed:
        return f"'{viewed}' sees its bytes in another shape"
    return "" if readers else "no layer reads it"


def pack_activations(graph: QuantGraph, names: Collection[str]) -> QuantGraph:
    """Return the network with these tensors, of `packable_tensors`, packed."""
    if not names:
        return graph
    tensors, layers = dict(graph.tensors), {node.name for node in graph.nodes}
    widths = {name: bits for name in names if (bits := packed_bits(graph.type(name))) is not None}
    nodes: list[QuantNode] = []
    packed: dict[str, str] = {}
    unpacked: dict[str, str] = {}

    def fresh(name: str) -> str:
        numbered = (f"{name}.{number}" for number in count(2))
        return next(each for each in chain([name], numbered) if each not in tensors and each not in layers)

    def add(neighbour: QuantNode, op: PackChannels | UnpackChannels, source: str, tensor: QuantTensor) -> None:
        tensors[tensor.name] = tensor
        nodes.append(QuantNode(tensor.name, op, [source], [tensor.name], location=neighbour.location))

    def pack(name: str, node: QuantNode) -> None:
        tensor, bits = graph.tensors[name], widths[name]
        packed[name] = fresh(f"{name}.packed")
        result = QuantTensor(packed[name], _packed_shape(tensor, bits), PACKED)
        add(node, PackChannels(bits, tensor.type.qmin), name, result)

    def unpack(name: str, reader: QuantNode) -> str:
        tensor, result = graph.tensors[name], fresh(f"{name}.for.{reader.name}")
        unpacked[result] = name
        op = UnpackChannels(widths[name], tensor.type.qmin, tensor.shape[1])
        add(reader, op, packed[name], replace(tensor, name=result))
        return result

    for node in graph.nodes:
        inputs = {name: unpack(name, node) for name in dict.fromkeys(node.inputs) if name in names}
        nodes.append(replace(node, inputs=[inputs.get(name, name) for name in node.inputs]) if inputs else node)
        for name in node.outputs:
            if name in names:
                pack(name, node)
    originals = {name: original for original, name in packed.items()}
    return replace(graph, tensors=tensors, nodes=nodes, unpacked=unpacked, packed=originals)
