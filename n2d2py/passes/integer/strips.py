"""Segments of a typed network run as strips of columns, or slices of channels.

    Y = Ln(...L1(X))  =>  Y = SideBySide(strip 0, strip 1, ...), strip i = Ln'(...L1'(columns of X))
    Y = Pool(...Conv(X))  =>  Y = Concat(slice 0, slice 1, ...), slice i = Pool(...Conv'(X)), Conv' with some channels of the
    weights

Every layer of a segment occurs once for each strip, with the constants of the original. The integers are the same: each element
has the same inputs, and padding applies at the border of the feature map only.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from n2d2py.contracts.operator import make_operator
from n2d2py.graph import QuantGraph, QuantNode, QuantTensor, StripPiece, channels, width
from n2d2py.graph.forms import Dequantized, Interpolated, Moved, Real, Table, Weighted
from n2d2py.memory.access import Window, access_of
from n2d2py.memory.strips import (
    Channels,
    Columns,
    SegmentCut,
    beginning_at,
    read_columns,
    slice_name,
    strip_name,
    window_columns,
)

_WINDOWS = ("Conv", "Pool")
_POINTWISE = ("Activation", "Affine", "ElemWise", "Quantize", "Convert")


def by_columns(graph: QuantGraph) -> Callable[[str], bool]:
    """Return a predicate: the layer, by name, can compute some columns of its output alone."""
    nodes = {node.name: node for node in graph.nodes}
    return lambda name: _has_columns(nodes[name], graph)


def _has_columns(node: QuantNode, graph: QuantGraph) -> bool:
    if node.residual is not None or len(node.outputs) != 1 or len(graph.shape(node.outputs[0])) != 4:
        return False
    if node.op.kind in _WINDOWS:
        return node.op.kind == "Conv" or not isinstance(node.form, Dequantized)
    wide = channels(graph.shape(node.outputs[0]))
    return node.op.kind in _POINTWISE and (
        node.op.kind == "Activation" or all(values.size <= max(wide, len(node.inputs)) for values in node.params.values())
    )


def by_channels(graph: QuantGraph) -> Callable[[str], bool]:
    """Return a predicate: the layer can compute some output channels from the same input channels, a convolution from all."""
    nodes = {node.name: node for node in graph.nodes}
    return lambda name: _has_channels(nodes[name])


def _has_channels(node: QuantNode) -> bool:
    if node.residual is not None or len(node.outputs) != 1:
        return False
    if node.op.kind == "Conv":
        return isinstance(node.form, Weighted) or (isinstance(node.form, Real) and set(node.params) == {"weights", "bias"})
    return node.op.kind == "Pool" or (node.op.kind == "Activation" and isinstance(node.form, (Table, Interpolated)))


def with_strips(graph: QuantGraph, cuts: Sequence[SegmentCut]) -> QuantGraph:
    """Return the network with the layers of `cuts` strip by strip, or slice by slice."""
    return _StripRewriter(graph, cuts).done() if cuts else graph


class _StripRewriter:
    def __init__(self, graph: QuantGraph, cuts: Sequence[SegmentCut]):
        self.graph, self.cuts = graph, cuts
        self._layers = {node.name: node for node in graph.nodes}
        gone = {self._layers[name].output for cut in cuts for name in cut.ops[:-1]}
        self._tensors = {name: tensor for name, tensor in graph.tensors.items() if name not in gone}
        self._nodes: list[QuantNode] = []
        self._views: dict[tuple[str, Columns], str] = {}
        self._pieces: dict[str, StripPiece] = {}

    def done(self) -> QuantGraph:
        last = {cut.ops[-1]: cut for cut in self.cuts}
        inside = {name for cut in self.cuts for name in cut.ops}
        for node in self.graph.nodes:
            if node.name in last:
                cut = last[node.name]
                if cut.slices:
                    self._add_slices(cut, node)
                    continue
                for number, strip in enumerate(cut.strips):
                    for name in cut.ops:
                        self._add(self._layers[name], strip, number)
                pieces = [strip_name(node.output, number) for number in range(len(cut.strips))]
                join = QuantNode(node.name, make_operator("SideBySide"), pieces, [node.output], location=node.location)
                self._nodes.append(join)
            elif node.name not in inside:
                self._nodes.append(node)
        return replace(self.graph, tensors=self._tensors, nodes=self._nodes, pieces=self._pieces)

    def _add(self, node: QuantNode, strip: dict[str, Columns], number: int) -> None:
        columns = strip[node.output]
        op, access = node.op, access_of(node, self.graph)
        read = read_columns(access, columns, width(self.graph.shape(node.inputs[0])))
        if isinstance(access, Window):
            op = replace(op, pads=beginning_at(access, window_columns(access, columns), read).pads)
        name = strip_name(node.output, number)
        self._make(name, self.graph.tensors[node.output], columns)
        inputs = [self._piece(each, strip, number, read) for each in node.inputs]
        self._append(replace(node, op=op), strip_name(node.name, number), inputs, name)

    def _add_slices(self, cut: SegmentCut, last: QuantNode) -> None:
        inner = {self._layers[name].output for name in cut.ops}
        for number, part in enumerate(cut.slices):
            for node in (self._layers[name] for name in cut.ops):
                name = slice_name(node.output, number)
                whole = self.graph.tensors[node.output]
                self._tensors[name] = replace(whole, name=name, shape=(1, part[1] - part[0], *whole.shape[2:]))
                self._pieces[name] = StripPiece(node.output, *part, axis=1)
                inputs = [slice_name(each, number) if each in inner else each for each in node.inputs]
                piece = _slice_of(node, part) if node.op.kind == "Conv" else node
                self._append(piece, slice_name(node.name, number), inputs, name)
        names = [slice_name(last.output, number) for number in range(cut.count)]
        kind = self.graph.type(last.output)
        form, clamp = (Real(), None) if kind.is_float else (Moved(), (kind.qmin, kind.qmax))
        concat, outputs = make_operator("Concat"), [last.output]
        self._nodes.append(QuantNode(last.name, concat, names, outputs, form, clamp=clamp, location=last.location))

    def _append(self, node: QuantNode, name: str, inputs: list[str], output: str) -> None:
        source = list(node.source or [node.name])
        self._nodes.append(replace(node, name=name, inputs=inputs, outputs=[output], source=source))

    def _piece(self, tensor: str, strip: dict[str, Columns], number: int, read: Columns) -> str:
        """Return the tensor that holds exactly the columns `read` of `tensor`."""
        begin, end = strip.get(tensor, (0, width(self.graph.shape(tensor))))
        holder = strip_name(tensor, number) if tensor in strip else tensor
        if (begin, end) == read:
            return holder
        columns = read[0] - begin, read[1] - begin
        if (holder, columns) not in self._views:
            name = f"{holder}.columns{columns[0]}to{columns[1]}"
            self._views[holder, columns] = name
            self._make(name, self.graph.tensors[tensor], read)
            self._nodes.append(QuantNode(name, make_operator("Columns", *columns), [holder], [name]))
        return self._views[holder, columns]

    def _make(self, name: str, whole: QuantTensor, columns: Columns) -> None:
        first, stop = columns
        self._tensors[name] = replace(whole, name=name, shape=(*whole.shape[:3], stop - first))
        self._pieces[name] = StripPiece(whole.name, first, stop)


def _slice_of(node: QuantNode, part: Channels) -> QuantNode:
    first, stop = part
    constants = {role: values[first:stop] for role, values in node.params.items()}
    form = Real(constants) if isinstance(node.form, Real) else Weighted(**constants)
    return replace(node, form=form, rescale=node.rescale and node.rescale.part(first, stop))
