"""Attach an ONNX network to tensors of an existing Graph."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from pathlib import Path

from n2d2py import log
from n2d2py.contracts.operator import make_operator
from n2d2py.errors import Location, N2D2Error
from n2d2py.frontend.models import load_model
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.frontend.onnx.inputs_outputs import nhwc_inputs
from n2d2py.frontend.onnx.model import Dims, ImportOptions, OnnxModel, dims_text
from n2d2py.graph import Graph, Node, Shape
from n2d2py.naming import FreshNames


def attach_onnx(
    graph: Graph,
    path: str | Path,
    parents: Sequence[str],
    options: ImportOptions = ImportOptions(),
    *,
    ignore_input_size: bool = False,
    where: Location | None = None,
) -> list[str]:
    """Add the layers of an ONNX file to `graph`, its inputs fed by the tensors `parents` in order.

    Returns the tensors with its outputs, which become outputs of `graph`. The sizes of the parents win. A size that differs
    from the file is a warning unless `ignore_input_size`. A vector also serves as a 1x1 image and vice versa; an image of one
    row or column serves as a sequence.

    Raises N2D2Error: as `import_onnx`; E312 a name that the graph already has, E313 parents whose number or channels do not
    fit.
    """
    model = load_model(path, options)
    if len(parents) != len(model.inputs):
        names = ", ".join(value.name for value in model.inputs)
        what = f"Input names {len(parents)} sections, but the ONNX graph has {len(model.inputs)} inputs ({names})"
        raise N2D2Error("E313", what, where=where or model.place(), remedy="name one section in Input for each graph input")
    transposed = nhwc_inputs(model.proto.graph)
    shapes, feeds = {}, {}
    for value, parent in zip(model.inputs, parents, strict=True):
        declared = value.shape
        if value.name in transposed and len(declared) == 4:
            declared = (*declared[:1], declared[3], *declared[1:3])
        source = _match_rank(graph, parent, declared, value.name, where)
        title, provided = f"input '{value.name}' of {Path(model.path).name}", source in graph.inputs
        _check_fit(graph.shape(source), declared, title, where or model.place(), provided, ignore_input_size)
        shapes[value.name], feeds[value.name] = graph.shape(source), source
    part = import_onnx(model, graph.name, input_shapes=shapes)
    return _merge_graph(graph, part, feeds, model)


def duplicate_layer_error(name: str, where: Location) -> N2D2Error:
    """Return the error for an INI layer with the same name as a layer of the file."""
    what = f"layer name '{name}' is used by both the INI and the ONNX graph"
    return N2D2Error("E312", what, where=where, remedy="rename the section")


def _match_rank(graph: Graph, parent: str, declared: Dims, name: str, where: Location | None) -> str:
    """Return the parent in the declared rank: a 1x1 image as a vector and back, a one-row image as a sequence (C, L).

    Other parents are returned unchanged.
    """
    shape = graph.shape(parent)
    single = all(size in (None, 1) for size in (*shape[2:], *declared[2:]))
    line = len(shape) == 4 and len(declared) == 3 and 1 in shape[2:]
    if not (line or (single and {len(shape), len(declared)} == {2, 4})) or declared[1] not in (None, shape[1]):
        return parent
    restated = graph.fresh_name(f"{parent}_as_{name}")
    reshape = make_operator("Reshape", (shape[1], *([prod(shape[2:])] if line else [1] * (len(declared) - 2))))
    graph.add(Node(restated, reshape, [parent], [restated], location=where, helper=True))
    return restated


def _check_fit(shape: Shape, declared: Dims, title: str, where: Location, provided: bool, ignore_size: bool) -> None:
    """Check the parent's shape against the declared one; `provided`: the parent is an input of the network."""
    actual, wanted = (dims_text(dims[1:], " x ") for dims in (shape, declared))
    if len(shape) != len(declared) or (declared[1] is not None and declared[1] != shape[1]):
        remedy = "name a layer of that shape in Input, or put a Reshape or a Resize between them"
        remedy = "correct Size, NbChannels and the transformations of the stimuli provider" if provided else remedy
        raise N2D2Error("E313", f"{title} is {wanted} (channels first), but receives {actual}", where=where, remedy=remedy)
    if not ignore_size and any(d not in (None, size) for d, size in zip(declared[2:], shape[2:], strict=True)):
        remedy = "correct Size of the stimuli provider, or set IgnoreInputSize=1"
        log.warning("W305", f"{title} is declared as {wanted}, but receives {actual}", where=where, remedy=remedy)


def _merge_graph(graph: Graph, part: Graph, feeds: dict[str, str], model: OnnxModel) -> list[str]:
    names = set(graph.tensors)  # each layer has the name of its output
    fresh = FreshNames([*names, *part.tensors])
    written = {name for node in model.proto.graph.node for name in node.output}
    new, aliases = dict(feeds), {**part.aliases, **feeds}
    for name, tensor in zip(model.outputs, part.outputs, strict=True):
        if tensor != name:
            aliases[name] = tensor
    for node in part.nodes:  # each has the name of its only output
        if node.name not in names:
            continue
        if node.name in written:
            raise duplicate_layer_error(node.name, model.place(node.name))
        new[node.name] = fresh(node.name)  # a layer that the import added: another ONNX section has the same
    for node in part.nodes:
        name = new.get(node.name, node.name)
        graph.add(replace(node, name=name, inputs=[new.get(source, source) for source in node.inputs], outputs=[name]))
    for old, target in aliases.items():
        if old not in graph.tensors:
            graph.aliases[old] = new.get(target, target)
    outputs = [new.get(name, name) for name in part.outputs]  # none of them is an input of `part`
    graph.outputs += outputs
    return outputs
