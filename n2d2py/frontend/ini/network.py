"""Import of an INI document as a Graph: layer sections in the order of their levels, with ONNX files."""

from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

import numpy as np

from n2d2py import log
from n2d2py.contracts.ini.keys import FLOATS
from n2d2py.contracts.ini.layers import LayerContext, LayerType, layer_types, refuse_to_run
from n2d2py.contracts.ini.quantizers import quantize_output
from n2d2py.contracts.ini.recipes import read_recipe
from n2d2py.contracts.ini.trained import check_trained_keys, warn_about_unused_quantizer_keys
from n2d2py.contracts.ini.weights import WeightStore
from n2d2py.errors import ErrorList, N2D2Error, suggest
from n2d2py.frontend.ini.onnx_section import attach_section
from n2d2py.graph import Graph, Node, Precision, Shape, Tensor, channels, height, width
from n2d2py.ini.document import Document, Section
from n2d2py.ini.ignored import SPIKING, TRAINING, Ignored
from n2d2py.ini.schema import Key, Kind, Schema, Values, keys
from n2d2py.operators.batchnorm import BatchNorm
from n2d2py.operators.quantize import grid_type

PROVIDERS = ("cenv", "env", "sp")
"""Section names of the stimuli provider; the first one present is used."""

_EARLY = Ignored("", "keys of early versions of N2D2", "is called NbOutputs today", "remove them")

MAX_LAYERS = 2500
"""Limit of the number of layers, far above the deepest networks."""

REFUSED = {
    "LSTM": "recurrent layers are read from ONNX files, which an INI may name with Type=ONNX",
    "Rbf": "N2D2 does not have it any more either",
}
"""Layer types of N2D2 that will not be supported, with the reason."""

_OUTSIDE = ("Spike", "CSpike", "RRAM", "PCM")

_TEXTS = """
DefaultDataType: Floating-point type. Has no effect, as -nbbits selects the precision.
InsertBatchNormAfterConv: Insert a BatchNorm <layer>_batchnorm after every Conv without one. Without stored statistics, its
    mean is 0 and its variance 1.
"""
GLOBALS = Schema(
    "the global section",
    keys(
        _TEXTS,
        Key("DefaultModel", Kind.STRING, "Frame", "Execution model of the layers: Frame, Frame_CUDA or Transcode."),
        Key("DefaultDataType", Kind.DATATYPE, "Float32", ignored=FLOATS),
        Key("InsertBatchNormAfterConv", Kind.BOOL, False),
    ),
    accepted=(*SPIKING.for_keys("ProgramMethod*"), *TRAINING.for_keys("CheckWeightRange")),
    doc="Properties before the first section.",
)

INPUT_SECTION = Schema(
    "Input",
    (
        Key("Type", Kind.STRING, doc="Input"),
        Key("SizeX", Kind.UINT, 1, "Width.", minimum=1),
        Key("SizeY", Kind.UINT, 1, "Height.", minimum=1),
        Key("NbChannels", Kind.UINT, 1, "Channels.", minimum=1),
    ),
    doc="An additional input of the network. Its name is the name of the section. Use -calib-data to provide data for "
    "several inputs.",
)


@dataclass
class _Layer:
    """A layer section. `batchnorm`: InsertBatchNormAfterConv adds a BatchNorm to this convolution."""

    section: Section
    parents: list[str]
    batchnorm: bool = False


def build_graph(document: Document, input_shape: Shape, weights: WeightStore | None, seed: int) -> Graph:
    """Return the float graph of a document with stimuli of `input_shape` (1, C, H, W).

    Without `weights` (-describe), parameters are zeros that take no memory, and layers with known dimensions but without
    implementation are included. The automatic properties of each layer (_OutputsWidth, ...) are set.

    Raises N2D2Error: E10x to E22x; errors of different layers are collected where possible.
    """
    values = GLOBALS.read(document.globals)
    _refuse_spiking(values, "DefaultModel", describing=weights is None)
    graph = Graph(document.name)
    provider = next((name for name in PROVIDERS if name in document), "sp")
    graph.add_input(provider, input_shape)
    graph.aliases.update({name: provider for name in PROVIDERS if name != provider})
    for section in further_inputs(document):
        input_values = INPUT_SECTION.read(section)
        graph.add_input(section.name, (1, input_values["NbChannels"], input_values["SizeY"], input_values["SizeX"]))
    layers = _sort_layers(_collect_layers(document), graph.inputs)
    if len(layers) > MAX_LAYERS:
        what = f"the network has {len(layers):,} layers, more than the limit of {MAX_LAYERS:,}"
        raise N2D2Error("E241", what, where=layers[MAX_LAYERS].section.location, remedy="reduce the loops of the templates")
    if values["InsertBatchNormAfterConv"]:
        read = {name for layer in layers if layer.section.raw("Type") == "BatchNorm" for name in layer.parents}
        for layer in layers:
            layer.batchnorm = layer.section.name not in read
    attached: dict[str, list[str]] = {}
    for layer in layers:
        _build_layer(graph, layer, weights, seed, attached)
    if not graph.nodes:
        what = "the network has no layers"
        raise N2D2Error("E221", what, where=str(document.path), remedy="add sections with Input= and Type=")
    return graph


def further_inputs(document: Document) -> list[Section]:
    """Return the sections of network inputs other than the stimuli provider."""
    return [section for section in document.sections if section.has("Type") and section.raw("Type") == "Input"]


def _refuse_spiking(values: Values, key: str, describing: bool) -> None:
    if values[key].startswith(_OUTSIDE):
        error = values.fail("E222", f"the spiking model {values[key]} is not supported", "use Model=Frame", key)
        refuse_to_run(error, describing=describing)


def _collect_layers(document: Document) -> list[_Layer]:
    inputs = {section.name for section in further_inputs(document)}
    sections = [one for one in document.sections if one.has("Input") and ".Target" not in one.name and one.name not in inputs]
    return [_Layer(one, list(filter(None, map(str.strip, one.text("Input").split(","))))) for one in sections]


def _sort_layers(layers: list[_Layer], inputs: list[str]) -> list[_Layer]:
    """Return the layers by level (1 + the highest level of a known parent), in file order within a level.

    A parent that is not a section is a tensor of an ONNX section: one above in the file if there is any, else one below.
    """
    sections, known = {layer.section.name: layer.section for layer in layers}, {*PROVIDERS, *inputs}
    onnx_names = [name for name, section in sections.items() if _is_onnx(section)]
    sorter: TopologicalSorter[str] = TopologicalSorter()
    above: list[str] = []
    errors: list[N2D2Error] = []
    for layer in layers:
        unknown = [name for name in layer.parents if name not in sections and name not in known]
        if not onnx_names:
            errors += [_unknown_input(name, [*sections, *PROVIDERS, *inputs], layer) for name in unknown]
        parents = [name for name in layer.parents if name in sections]
        if unknown:
            parents += above or [name for name in onnx_names if name != layer.section.name]
        if _is_onnx(layer.section):
            above.append(layer.section.name)
        sorter.add(layer.section.name, *parents)
    ErrorList.raise_if(errors)
    try:
        sorter.prepare()
    except CycleError as error:
        names = error.args[1]
        what, where = f"the layers {' -> '.join(names[:7])} form a cycle", sections[names[0]].where("Input")
        raise N2D2Error("E224", what, where=where, remedy="remove one of these inputs") from None
    levels: dict[str, int] = {}
    while ready := sorter.get_ready():
        levels |= dict.fromkeys(ready, len(levels))
        sorter.done(*ready)
    return sorted(layers, key=lambda layer: levels[layer.section.name])


def _unknown_input(name: str, known: list[str], layer: _Layer) -> N2D2Error:
    remedy = suggest(name, known, "name a layer or sp")
    return N2D2Error("E223", f"Input names '{name}', which is not a layer", where=layer.section.where("Input"), remedy=remedy)


def _is_onnx(section: Section) -> bool:
    return section.has("Type") and section.text("Type") == "ONNX"


def _input_tensors(graph: Graph, layer: _Layer, attached: dict[str, list[str]]) -> list[tuple[str, str]]:
    """Return (name, tensor) of each input. An ONNX section among several inputs only sets the layer order.

    `attached`: the outputs of each ONNX section above.
    """
    inputs = []
    for name in layer.parents:
        section = layer.section.document.section(name)
        if section is not None and _is_onnx(section):
            outputs = attached.get(name, [])
            if len(layer.parents) == 1 and len(outputs) > 1:
                what = f"Input names the ONNX file '{name}' without one of its outputs {', '.join(outputs)}"
                raise N2D2Error("E223", what, where=layer.section.where("Input"), remedy=f"write Input={name},<output>")
            if len(layer.parents) == 1:
                inputs += [(name, tensor) for tensor in outputs]
            continue
        tensor = graph.resolve(name)
        if tensor is None:
            raise _unknown_input(name, [node.name for node in graph.nodes], layer)
        inputs.append((name, tensor))
    if not inputs:
        raise N2D2Error("E225", "Input is empty", where=layer.section.where("Input"), remedy="name a layer or sp")
    return inputs


def _build_layer(graph: Graph, layer: _Layer, weights: WeightStore | None, seed: int, attached: dict[str, list[str]]) -> None:
    section, types = layer.section, layer_types()
    if not section.has("Type"):
        raise section.missing("Type", section.location)
    kind = section.text("Type")
    parents = _input_tensors(graph, layer, attached)
    before = len(graph.nodes)
    if kind == "ONNX":
        attached[section.name] = attach_section(graph, section, parents, weights, seed)
        for node in graph.nodes[before:]:
            if node.name in graph.tensors:  # else the quantizer of a layer, whose tensor has the name of that
                _set_automatic(section.document, graph, node.name, [(name, name) for name in node.inputs])
        return
    if kind not in types:
        raise _unknown_type(kind, types, section)
    layer_type = types[kind]
    values, model = _read_values(section, layer_type)
    context = LayerContext(graph, values, list(parents), weights, seed)
    _refuse_spiking(values, "Model", describing=weights is None)
    context.crop_inputs()
    layer_type.build(context)
    if kind == "Conv" and layer.batchnorm:
        insert_batchnorm(context)
    if weights is not None:
        _finish_trained(context, weights, model)
    if attached:
        _add_outputs(graph, before)
    asked = Precision.of(values.as_dict())
    if asked != Precision():
        graph.precisions.update({node.name: asked for node in graph.nodes[before:]})
    _set_automatic(section.document, graph, section.name, parents)
    shape = graph.shape(section.name)
    log.detail("Layer: %s [%s]  # Outputs dims: %d %d %d", section.name, kind, width(shape), height(shape), channels(shape))


def _finish_trained(context: LayerContext, weights: WeightStore, model: str) -> None:
    """Keep the recipe of a layer's training, or quantize its output as in training; warn of what quantizers do to a Softmax."""
    values = context.values
    if weights.recipes is not None:
        weights.recipes[context.name] = read_recipe(values, context.connected, model)
    elif "QAct" in values:
        if values["QAct"]:
            quantize_output(context.graph, values, weights, context.graph.nodes[-1], context.name)
    if values.section.text("Type") == "Softmax":
        _warn_of_cut_logits(context.graph, values.section, context.parents)


def _read_values(section: Section, layer_type: LayerType) -> tuple[Values, str]:
    document = section.document
    given = ((section, "Model"), (document.globals, "DefaultModel"))
    model = next((one.text(key) for one, key in given if one.has(key)), "Frame")
    _rename_outputs(section)
    if not document.described:
        check_trained_keys(section, layer_type.schema)
    values = layer_type.schema.read(section, layer_type.config, model)
    warn_about_unused_quantizer_keys(values)
    return values, model


def _warn_of_cut_logits(graph: Graph, section: Section, parents: list[tuple[str, str]]) -> None:
    """Warn of a Softmax after an unsigned quantizer: its inputs are never below 0."""
    for name, tensor in parents:
        kind = grid_type(graph, tensor)
        if kind is not None and not kind.signed and kind.zero_point == 0:
            clipped = f"QAct of '{name}', which clips values to 0 .. {kind.scale * kind.qmax:.4g}"
            what, remedy = f"the Softmax follows {clipped}, so classes can become equal", "train the last layer without QAct"
            log.warning("W227", what, where=section.where("Input"), remedy=f"{remedy} (QAct= in its section)")


def _add_outputs(graph: Graph, first: int) -> None:
    """Make the results of the nodes from `first` on graph outputs, and their inputs no longer (after an ONNX file)."""
    nodes = graph.nodes[first:]
    read = {name for node in nodes for name in node.inputs}
    outputs = [name for node in nodes for name in node.outputs]
    graph.outputs = [name for name in (*graph.outputs, *outputs) if name not in read]


def _rename_outputs(section: Section) -> None:
    """Rename NbChannels to NbOutputs, as in early versions of N2D2; no effect if NbOutputs is given."""
    if not section.has("NbChannels"):
        return
    where = section.where("NbChannels")
    if section.has("NbOutputs"):
        section.document.ignored.add(_EARLY, "NbChannels", where)
    else:
        log.notice("%s: NbChannels is read as NbOutputs, its current name", where)
        section.assign("NbOutputs", section.raw("NbChannels"), where)


def _unknown_type(kind: str, types: dict[str, LayerType], section: Section) -> N2D2Error:
    what, remedy = f"Type={kind} is not a supported layer type", suggest(kind, sorted([*types, "ONNX"]))
    if kind in REFUSED:
        what, remedy = f"Type={kind} is not supported: {REFUSED[kind]}", "remove the layer"
    return N2D2Error("E226", what, where=section.where("Type"), remedy=remedy)


def _set_automatic(document: Document, graph: Graph, name: str, parents: list[tuple[str, str]]) -> None:
    section, inputs = document.automatic_section(name), [graph.shape(tensor) for _, tensor in parents]
    section.set_automatic("_NbChannels", sum(map(channels, inputs)))
    for prefix, shape in (("_Channels", inputs[0]), ("_Outputs", graph.shape(name))):
        section.set_automatic(f"{prefix}Width", width(shape))
        section.set_automatic(f"{prefix}Height", height(shape))
    section.set_automatic("_NbOutputs", channels(graph.shape(name)))


_STATISTICS = {"scales": ("scale", 1.0), "biases": ("bias", 0.0), "means": ("mean", 0.0), "variances": ("variance", 1.0)}
"""Role and initial value of each stored array of a BatchNorm."""


def insert_batchnorm(context: LayerContext) -> None:
    """Add the BatchNorm <layer>_batchnorm after the convolution that was just built.

    It takes over the layer's tensor and activation. Its statistics are those stored under its name, else mean 0 and variance 1.
    """
    graph, name = context.graph, context.name
    conv = graph.nodes[-1]
    shape, inserted, between = graph.shape(name), f"{name}_batchnorm", f"{name}_linear"
    while between in graph.tensors:
        between += "_"
    del graph.tensors[name]
    graph.tensors[between] = Tensor(between, shape)
    conv.outputs, activation, conv.activation = [between], conv.activation, None
    params = {}
    for stored, (role, value) in _STATISTICS.items():
        params[role] = np.full(channels(shape), value, np.float32)
        if context.weights is not None and context.weights.has(inserted, stored):
            params[role] = context.weights.load(inserted, stored, params[role], conv.location)
    graph.add(Node(inserted, BatchNorm(), [between], [name], params, activation, conv.location))
