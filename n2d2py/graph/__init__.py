"""Networks between the stages: Graph (floating point) and QuantGraph (a number type on every edge)."""

from n2d2py.graph.graph import Graph, Tensor, complete_params
from n2d2py.graph.node import Node
from n2d2py.graph.precision import Precision
from n2d2py.graph.quant import QuantGraph, QuantNode, QuantTensor, ResidualAdd, StripPiece
from n2d2py.graph.shapes import Shape

__all__ = [
    "Graph",
    "Node",
    "Precision",
    "QuantGraph",
    "QuantNode",
    "QuantTensor",
    "ResidualAdd",
    "Shape",
    "StripPiece",
    "Tensor",
    "complete_params",
]
