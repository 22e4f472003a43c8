"""Upper bounds of the stack of one inference, one for each class of cores; layers whose time depends on the data.

The bound of a layer is that of its kernel: buffers whose sizes the shapes give, and the frames of its calls, which
`-fstack-usage` of GCC 12 gave for -O2 and -Os. `tests/microcontrollers/test_stack.py` compares the bounds with stacks painted in QEMU.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from n2d2py.arithmetic import DoublingRescale, FixedPointRescale, ShiftRescale, round_up
from n2d2py.contracts.cpp.isa import PORTABLE, InstructionSet, instruction_sets
from n2d2py.exports.cpp.view import LayerView
from n2d2py.exports.mcu.boards import CORES
from n2d2py.graph import Aligned, Interpolated, Moved, QuantGraph, QuantNode, Rescaled, Table, Weighted, channels

_CALLS, _CALLS_BY_ROWS = 48, 112
"""Frames of the C interface and of the function that calls the layers, or some rows of them."""
_END = 10
"""Bytes for the addresses of one more input or output."""
_CONVOLUTION, _FULLY_CONNECTED, _POOL, _POINTWISE, _OTHER = 176, 96, 72, 720, 2048
"""Frames of portable kernels, and of all kernels of other operators. Their tiles are counted apart, but for those of the last two."""
_POINTWISE_KINDS = frozenset(("Activation", "Concat", "Convert", "ElemWise", "Softmax"))
_TILE = 64
"""Channels of a pool that are computed at a time."""
_LINES = {"Softmax": 8, "MaskedSoftmax": 12, "ArrayRecurrent": 48}
"""Bytes for each element of a line that an operator has on the stack; the most over its forms."""
_LONGEST_LINE = 1024
"""Elements of a line that a softmax has on the stack."""


@dataclass(frozen=True)
class StackBound:
    """The bound of a class of cores.

    Attributes:
        cores: names of the cores of the export that belong to it.
        when: the condition of the preprocessor, "" for all other cores.
    """

    cores: tuple[str, ...]
    when: str
    bytes: int


def stack_bounds(layers: Sequence[LayerView]) -> tuple[StackBound, ...]:
    """Return the bounds of all classes, in the order in which their conditions are asked; the last one has none."""
    rows = [*(row for row in instruction_sets() if row.microcontroller), PORTABLE]
    calls = _CALLS_BY_ROWS if any(layer.code and layer.code.streamed for layer in layers) else _CALLS
    calls += _END * sum(len(layer.graph.inputs) + len(layer.graph.outputs) - 2 for layer in layers[:1])
    bounds = {row.name: calls + max((_layer_bytes(layer, row) for layer in layers), default=0) for row in rows}
    # Compilers without vectors compile the C of programs whose C++ has them.
    bounds["rvm"] = max(bounds["rvm"], bounds["rvv"])
    cores = {name: tuple(core.name for core in CORES if core.isa == name) for name in bounds}
    return tuple(StackBound(cores[row.name], row.when, bounds[row.name]) for row in rows)


def _layer_bytes(layer: LayerView, row: InstructionSet) -> int:
    if layer.code is None:
        return 0
    streams = [one for one in layer.code.selection.streams if one.values is not None and row.name in one.sets]
    return round_up(streams[-1].stack if streams else _portable_bytes(layer, row), 8)


def _portable_bytes(layer: LayerView, row: InstructionSet) -> int:
    node, kind = layer.node, layer.operation
    wide = 8 if node.bound >= 2**31 else 4
    if kind == "Conv":
        return _CONVOLUTION + _window_bytes(layer, row, wide)
    if kind == "Fc":
        packed = layer.code is not None and layer.code.selection.storage is not None
        return _FULLY_CONNECTED + 16 * wide + (4 * 256 * 2 if packed else 0)
    if kind == "Pool":
        return _POOL + 2 * wide * min(_TILE, channels(layer.graph.shape(node.output)))
    longest = min(_LONGEST_LINE, max(layer.graph.shape(node.output)[1:], default=1))
    return (_POINTWISE if kind in _POINTWISE_KINDS else _OTHER) + _LINES.get(kind, 0) * longest


def _window_bytes(layer: LayerView, row: InstructionSet, wide: int) -> int:
    """Return the bytes of windows, accumulators and unpacked weights of `convolution.hpp` and `depthwise.hpp`."""
    node, weights = layer.node, layer.node.params["weights"]
    size, inputs, outputs = layer.graph.type(node.inputs[0]).bytes, weights[0].size, len(weights) // node.op.groups
    if node.op.is_depthwise(node):
        return min(len(weights), 32) * (wide + size)
    pixels = 0 if inputs == weights.shape[1] and max(node.op.pads[:2]) <= 0 else 4 if row.name == "rvm" else 2
    most = 32
    packed = layer.code is not None and layer.code.selection.storage is not None
    if packed and inputs > 128:
        most = max(4, 1024 // inputs * 4)
    tile = min(outputs, most)
    return pixels * size * inputs + 2 * wide * tile + (2 * inputs * tile if packed else 0)


_FORMS = (Aligned, Interpolated, Moved, Rescaled, Table, Weighted)
_KINDS = frozenset(
    """
    Activation Concat Conv Convert Deconv DepthToSpace ElemWise Fc IndexSelect Padding Pool Reshape Resize Transpose
    """.split()
)
"""Operators whose integer kernels were counted; of the others nothing is promised."""


def _reason(graph: QuantGraph, node: QuantNode) -> str:
    tensors = [graph.type(name) for name in (*node.inputs, node.output)]
    if any(kind.is_float for kind in tensors):
        return "it computes in floating point"
    if not isinstance(node.rescale, (DoublingRescale, FixedPointRescale, ShiftRescale, type(None))):
        return "it rescales in floating point"
    if node.op.kind == "Concat" and not node.op.concatenates_pixels(graph.shape(node.output)):
        return "the time of a concatenation of rows was not counted"
    if node.op.kind not in _KINDS or not isinstance(node.form, _FORMS):
        return f"the time of {node.op.kind} was not counted"
    return ""


def varying_layers(graph: QuantGraph) -> dict[str, str]:
    """Why the time of a layer may depend on the data, by the name of each layer where it may.

    All others run the same instructions for every input: loops end where shapes say, clamps and maxima are selections, tables
    are read at any index for the same price. `tests/microcontrollers/test_steady_time.py` counts.
    """
    reasons = {node.name: _reason(graph, node) for node in graph.nodes}
    return {name: reason for name, reason in reasons.items() if reason}
