"""Functions of 16-bit integers with every input there is, for the sweeps of kernels."""

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.contracts.functions import (
    Abs,
    Elu,
    Erf,
    Exp,
    Gelu,
    GeluTanh,
    HardSigmoid,
    HardSwish,
    LeakyRectifier,
    Log,
    Logistic,
    Mish,
    Softplus,
    Softsign,
    Sqrt,
    Swish,
    Tanh,
)
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.contracts.quant.quantizer import LayerTypes, quantize_layer
from n2d2py.graph import Node, Table
from support import kernel_harness as harness
from support.kernel_cases import S8, S16, U8, U16, Sweep
from support.ops import Activation

FUNCTIONS = {  # function -> range of the input, range of the output, pieces of its table
    Logistic(): (8, 1, 512),
    Tanh(): (4, 1, 1024),
    Exp(): (2, 7.4, 512),
    Gelu(): (6, 6, 512),
    GeluTanh(): (6, 6, 512),
    HardSwish(): (8, 8, 512),
    HardSigmoid(): (4, 1, 256),
    Swish(): (8, 8, 512),
    Erf(): (3, 1, 1024),
    Softplus(): (8, 8, 256),
    Elu(): (6, 6, 512),
    Mish(): (8, 8, 512),
    Softsign(): (8, 1, 4096),
    LeakyRectifier(0.1): (5, 5, 256),
    Abs(): (5, 5, 256),
    Sqrt(): (4, 2, 0),
    Log(): (4, 1.5, 4096),
}
"""0 pieces: a table with an entry for every input."""


def layer(function, kind: NumType, output: NumType):
    """The integer form of a layer between tensors that use their whole types for the ranges above."""
    low, high, _ = FUNCTIONS[function]
    x, y = kind.with_scale(low / kind.qmax), output.with_scale(high / output.qmax)
    node = Node("layer", Activation(function), ["x"], ["y"])
    return quantize_layer(node, LayerTypes([x], y, QuantOptions(bits=16))), x, y


def cases(sweep: Sweep, functions=tuple(FUNCTIONS)) -> list[harness.Case]:
    """Every function with every input there is."""
    made, layouts = [], ("apart", "strided", "wrapped", "strided wrapped")
    for index, function in enumerate(functions):
        kind, output = ((S16, S16), (U16, S16), (S16, U16), (S16, U8), (U16, S8))[index % 5]
        node, x, y = layer(function, kind, output)
        graph = sweep.graph(node.op, {"x": ((1, 16, 64, 64), x)}, ((1, 16, 64, 64), y), form=node.form)
        every = np.arange(2**16).reshape(1, 16, 64, 64) - (2**15 if x.signed else 0)
        if isinstance(node.form, Table):
            every = np.maximum(every, x.qmin)
        made.append(sweep.case(f"{function} {x} to {y}", graph, {"x": every.astype(x.dtype)}, layouts[index % 4]))
    return made
