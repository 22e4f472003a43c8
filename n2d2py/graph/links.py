"""Who writes and who reads each tensor of a float network: an index that follows the rewrites of the graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from n2d2py.graph.node import Node


class Links:
    """Producer and readers of every tensor.

    Attributes:
        writer: the node that writes each tensor.
        readers: the nodes that read each tensor, in the order of the network; each once.
        members: ids of the nodes.
    """

    def __init__(self, nodes: Iterable[Node]):
        self.writer: dict[str, Node] = {}
        self.readers: dict[str, list[Node]] = {}
        self.members: set[int] = set()
        for node in nodes:
            self.append(node)

    def append(self, node: Node) -> None:
        """Append a node."""
        self.members.add(id(node))
        for name in node.outputs:
            self.writer.setdefault(name, node)
        for name in dict.fromkeys(node.inputs):
            self.readers.setdefault(name, []).append(node)

    def insert(self, node: Node, nodes: list[Node]) -> None:
        """Take a node up that stands somewhere in `nodes`."""
        self.append(node)
        for name in dict.fromkeys(node.inputs):
            self._in_order(name, nodes)

    def remove(self, node: Node) -> None:
        """Forget a node."""
        self.members.discard(id(node))
        for name in node.outputs:
            if self.writer.get(name) is node:
                del self.writer[name]
        for name in dict.fromkeys(node.inputs):
            self.readers[name].remove(node)

    def redirect(self, old: str, new: str, nodes: list[Node]) -> None:
        """Readers of `old` read `new`."""
        moved = self.readers.pop(old, [])
        present = self.readers.setdefault(new, [])
        known = {id(node) for node in present}
        present += [node for node in moved if id(node) not in known]
        self._in_order(new, nodes)

    def differ(self, other: Links) -> bool:
        """True if two indexes say other things of the tensors that are read or written."""
        read, also_read = ({name: nodes for name, nodes in one.readers.items() if nodes} for one in (self, other))
        return (read, self.writer, self.members) != (also_read, other.writer, other.members)

    def _in_order(self, name: str, nodes: list[Node]) -> None:
        if len(self.readers[name]) > 1:
            self.readers[name].sort(key=nodes.index)
