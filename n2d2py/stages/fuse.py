"""Stage fuse: fewer, larger layers with the same function."""
from __future__ import annotations

from n2d2py.frontend.ini.targets import Target
from n2d2py.graph import Graph
from n2d2py.passes import FuseReport, fuse
from n2d2py.stages.load import Network

__all__ = ["fuse_stage"]


def fuse_stage(network: Network, *, integer: bool) -> tuple[Network, FuseReport]:
    """The network with a fused graph; targets follow the tensors that now carry their results."""
    graph, report = fuse(network.graph, integer=integer)
    graph.verify()
    targets = [_moved(target, graph) for target in network.targets]
    return Network(graph, targets, network.data, network.files, network.document, network.mappings), report


def _moved(target: Target, graph: Graph) -> Target:
    from dataclasses import replace

    tensor = graph.resolve(target.tensor)
    return target if tensor is None else replace(target, tensor=tensor)
