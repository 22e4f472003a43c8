"""Networks between the stages: Graph (floating point) and QuantGraph (a number type on every edge)."""

from n2d2py.graph.chains import CHAINS, Chain, chain
from n2d2py.graph.describe import layer_macs, layer_params
from n2d2py.graph.forms import (
    Aligned,
    Custom,
    Dequantized,
    Exponentials,
    Form,
    Interpolated,
    MaskedExponentials,
    Moved,
    Normalized,
    Real,
    Rescaled,
    Shifted,
    StoredSums,
    Table,
    Weighted,
    form_of,
)
from n2d2py.graph.graph import Graph, Tensor, complete_params
from n2d2py.graph.inputs import (
    NO_CONTRACT,
    InputContract,
    InputSource,
    PixelMap,
    each_call,
    each_sample,
    named_inputs,
    split_inputs,
    stimulus_shape,
    with_states,
)
from n2d2py.graph.node import INT8, ONCE, OTHER, TWICE, TWICE_UINT8, UINT8, Node, Precision, TargetForm
from n2d2py.graph.port import Ends, FilePort, TensorInfo, plain_port
from n2d2py.graph.quant import QuantGraph, QuantNode, QuantTensor, ResidualAdd, StripPiece, nodes_for, outputs_from, requantized
from n2d2py.graph.shapes import (
    MAX_ELEMENTS,
    MAX_TENSOR,
    Shape,
    axis_along,
    channels,
    elements,
    height,
    in_memory_order,
    memory_axes,
    n2d2_dims,
    of_memory_order,
    rows_along,
    width,
)
