"""Networks between the stages: Graph (floating point) and QuantGraph (a number type on every edge)."""

from n2d2py.graph.chains import CHAINS, Chain, chain
from n2d2py.graph.describe import layer_macs, layer_params
from n2d2py.graph.forms import Aligned, Custom, Dequantized, Interpolated, Moved, Real, Rescaled, StoredSums, Table, Weighted
from n2d2py.graph.graph import Graph, Tensor, complete_params
from n2d2py.graph.inputs import NO_CONTRACT, InputContract, PixelMap, each_call, each_sample, named_inputs, stimulus_shape
from n2d2py.graph.node import INT8, ONCE, OTHER, TWICE, TWICE_UINT8, UINT8, Node, Precision, TargetForm
from n2d2py.graph.port import Ends, FilePort, TensorInfo, plain_port
from n2d2py.graph.quant import QuantGraph, QuantNode, QuantTensor, ResidualAdd, StripPiece, nodes_for, outputs_from, requantized
from n2d2py.graph.shapes import Shape, channels, dims_text, elements, height, in_memory_order, n2d2_dims, of_memory_order, width
