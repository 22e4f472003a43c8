"""Low-bit activations are stored packed between the layers.

    R(P(x))  =>  R(UnpackChannels(PackChannels(P(x))))

Each consumer has its own UnpackChannels directly before it. Where layers run row by row, only the rows in use are unpacked. The
producer keeps its name for its result.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from n2d2py.errors import InternalError
from n2d2py.graph import QuantGraph, QuantNode, QuantTensor, Shape, elements
from n2d2py.memory.access import Overlay, access_of
from n2d2py.operators.packed_channels import PACKED, PackChannels, UnpackChannels, packed_bits, packed_bytes


@dataclass(frozen=True)
class LowBitTensor:
    """A tensor of at most 4 bits.

    Attributes:
        bits: bits of a packed element: 1, 2 or 4.
        bytes, packed_bytes: size of one sample without and with packing.
        refused: why it cannot be packed; "" if it can.
        packed: it is packed.
    """

    name: str
    bits: int
    bytes: int
    packed_bytes: int
    refused: str
    packed: bool


def low_bit_tensors(graph: QuantGraph) -> list[LowBitTensor]:
    """Return the tensors of at most 4 bits, in the order of their producers."""
    views = {each.name for each in graph.nodes if each.op.is_part or _is_view(each, graph)}
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


def _is_view(node: QuantNode, graph: QuantGraph) -> bool:
    return access_of(node, graph).overlay is Overlay.VIEW


def pack_activations(graph: QuantGraph, names: Collection[str]) -> QuantGraph:
    """Return the network with these tensors, of `packable_tensors`, packed."""
    rewriting = _PackingRewriter(graph, names)
    return rewriting.done() if names else graph


class _PackingRewriter:
    def __init__(self, graph: QuantGraph, names: Collection[str]):
        self.graph, self.names = graph, set(names)
        self._tensors = dict(graph.tensors)
        self._nodes: list[QuantNode] = []
        self._packed: dict[str, str] = {}
        self._taken = {*graph.tensors, *(node.name for node in graph.nodes)}
        self._unpacked: dict[str, str] = {}

    def done(self) -> QuantGraph:
        for node in self.graph.nodes:
            inputs = {name: self._unpack(name, node) for name in dict.fromkeys(node.inputs) if name in self.names}
            self._nodes.append(replace(node, inputs=[inputs.get(name, name) for name in node.inputs]) if inputs else node)
            for name in node.outputs:
                if name in self.names:
                    self._pack(name, node)
        packed = {packed: name for name, packed in self._packed.items()}
        return replace(self.graph, tensors=self._tensors, nodes=self._nodes, unpacked=self._unpacked, packed=packed)

    def _pack(self, name: str, node: QuantNode) -> None:
        tensor = self.graph.tensors[name]
        bits = self._bits(tensor)
        packed = self._packed[name] = self._fresh(f"{name}.packed")
        self._add(node, PackChannels(bits, tensor.type.qmin), name, QuantTensor(packed, _packed_shape(tensor, bits), PACKED))

    def _unpack(self, name: str, reader: QuantNode) -> str:
        tensor = self.graph.tensors[name]
        op = UnpackChannels(self._bits(tensor), tensor.type.qmin, tensor.shape[1])
        unpacked = self._fresh(f"{name}.for.{reader.name}")
        self._unpacked[unpacked] = name
        self._add(reader, op, self._packed[name], replace(tensor, name=unpacked))
        return unpacked

    def _add(self, neighbour: QuantNode, op: PackChannels | UnpackChannels, source: str, tensor: QuantTensor) -> None:
        self._tensors[tensor.name] = tensor
        self._nodes.append(QuantNode(tensor.name, op, [source], [tensor.name], location=neighbour.location))

    @staticmethod
    def _bits(tensor: QuantTensor) -> int:
        bits = packed_bits(tensor.type)
        if bits is None:
            raise InternalError(f"{tensor.name} has more than 4 bits")
        return bits

    def _fresh(self, name: str) -> str:
        """Return `name`, with a number if it is in use."""
        number, unused = 1, name
        while unused in self._taken:
            number += 1
            unused = f"{name}.{number}"
        self._taken.add(unused)
        return unused
