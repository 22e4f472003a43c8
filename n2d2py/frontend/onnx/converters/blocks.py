"""DepthToSpace and SpaceToDepth."""

from __future__ import annotations

from n2d2py.frontend.onnx.builder import Builder
from n2d2py.frontend.onnx.node import OnnxNode
from n2d2py.frontend.onnx.registry import Unsupported
from n2d2py.operators.depth_to_space import DepthToSpace, SpaceToDepth

__all__ = ["CONVERTERS"]


def _blocks(kind: type[DepthToSpace] | type[SpaceToDepth]):
    def convert(node: OnnxNode, builder: Builder) -> None:
        node.require_rank(4)
        block = int(node.attribute("blocksize", 0))
        if block < 1:
            raise Unsupported(f"its blocksize is {block}")
        builder.layer(node, kind(block, node.attribute("mode", "DCR") == "CRD"), [node.tensor()])

    return convert


CONVERTERS = {"DepthToSpace": _blocks(DepthToSpace), "SpaceToDepth": _blocks(SpaceToDepth)}
