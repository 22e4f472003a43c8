"""[section] Type=ONNX: an ONNX file in the network, and the sections of its layers."""

from math import prod
from pathlib import Path

from n2d2py import log
from n2d2py.contracts.ini.keys import CONFIGURATION, LAYER, PARAMETERS_OF_TRAINING
from n2d2py.contracts.ini.quantizers import load_trained_weights, quantize_output
from n2d2py.contracts.ini.recipes import read_recipe
from n2d2py.contracts.ini.trained import warn_about_unused_quantizer_keys, with_trained_activation, with_trained_weights
from n2d2py.contracts.ini.weights import ROLES, WeightStore, fill, filler_keys
from n2d2py.contracts.operator import make_operator
from n2d2py.errors import require
from n2d2py.graph import Graph, Node, Precision
from n2d2py.ini.document import Section, resolve_path
from n2d2py.ini.ignored import COVERED, TRAINING, Ignored
from n2d2py.ini.params import PRECISION_KEYS
from n2d2py.ini.schema import Key, Kind, Schema, Values, keys

_TEXTS = """
Encodings: AIMET .encodings file with the quantization of the tensors. Same search path as File.
ONNX_init: 0: initial weights from WeightsFiller and BiasFiller of the layers instead of the stored ones.
"""
ONNX_SECTION = Schema(
    "ONNX",
    keys(
        _TEXTS,
        Key("Input", Kind.NAMES, doc="Sections that feed the inputs of the ONNX graph, in order."),
        Key("Type", Kind.STRING, doc="ONNX"),
        Key("File", Kind.PATH, doc="Path of the ONNX or TFLite file, relative to the working directory or to the INI file."),
        Key("Ignore", Kind.STRINGS, (), "Nodes to leave out, named by their first outputs."),
        Key("Inputs", Kind.STRINGS, (), "Tensors of the file that become its inputs, as `-inputs` of the command line."),
        Key("Outputs", Kind.STRINGS, (), "Tensors of the file that become its outputs, as `-outputs` of the command line."),
        Key("IgnoreInputSize", Kind.BOOL, False, "Do not compare the input size with that of the stimuli provider."),
        Key("Encodings", Kind.PATH, None),
        Key("ONNX_init", Kind.BOOL, True),
        Key("CNTK", Kind.BOOL, False, "Accepted for compatibility. Bias additions are always merged."),
        Key("Transpose", Kind.BOOL, False, "Swap X and Y of the inputs: the file expects swapped axes."),
    ),
    doc="An ONNX file inside the network.",
)

_RECTIFIER = "Rectifier"
_FROM_FILE = Ignored(
    "*",
    "layers of ONNX files",
    "changes a layer of the ONNX file",
    "remove it, and change the layer in the ONNX file itself",
    changes=True,
)
_FILLER = Ignored("", "fillers of layers of ONNX files", "gives initial weights", "remove them, or set ONNX_init=0")
_DEFAULTS = Schema(
    "defaults for the layers of an ONNX file",
    (LAYER.key("Model"), LAYER.key("DataType")),  # type: ignore[arg-type]
    accepted=(
        *COVERED.for_keys("ConfigSection", "ConfigSection(*)"),
        *PARAMETERS_OF_TRAINING,
        *TRAINING.for_keys("*Filler", "*Filler.*"),
        _FROM_FILE,
    ),
    doc="Sections `[<ONNX section>:<Type>_def]`.",
)
ONNX_LAYER = with_trained_activation(with_trained_weights(_DEFAULTS)).extended(
    *PRECISION_KEYS,
    *filler_keys("Weights"),
    *filler_keys("Bias"),
    Key(
        "ActivationFunction",
        Kind.ENUM,
        _RECTIFIER,
        "Linear: QAct replaces the rectifier of the file. Rectifier: keep the rectifier.",
        ("Linear", _RECTIFIER),
    ),
    name="a layer of an ONNX file",
    doc="Sections without Input that have the name of a layer of an ONNX file; `[<ONNX section>:<Type>_def]` holds for all layers of a "
    "type. A layer without such a section keeps its parameters in a training.",
)
_CONFIG = CONFIGURATION.extended(
    Key("MovingAverageMomentum", Kind.FLOAT, 0.1, "BatchNorm: share of a new batch in the statistics", ignored=TRAINING),
    Key("NoBias", Kind.BOOL, None, "must say what the file says: whether the layer has no bias"),
    name="configuration of a layer of an ONNX file",
    accepted=(_FROM_FILE,),
)


def attach_section(
    graph: Graph, section: Section, parents: list[tuple[str, str]], weights: WeightStore | None, seed: int
) -> list[str]:
    """Add the layers of the ONNX file of a section; return its output tensors.

    `seed`: of initial weights, if the weights of the file are not loaded.

    Raises N2D2Error: E227 for a Transpose of output maps, E301 for a missing file, E124 for keys that change layers of the
    file, and the errors of the import.
    """
    require("onnx", "a section of Type=ONNX", "onnx")
    from n2d2py.frontend.onnx.attach import attach_onnx
    from n2d2py.frontend.onnx.cut import Cut
    from n2d2py.frontend.onnx.model import ImportOptions

    values = ONNX_SECTION.read(section)
    tensors = [tensor for _, tensor in parents]
    if values["Transpose"]:
        tensors = [_transpose_image(graph, tensor, section) for tensor in tensors]
    path = _require_file(values, "File", "E301", "the ONNX file")
    encodings = None
    if values["Encodings"] is not None:
        encodings = _require_file(values, "Encodings", "E315", "the file of encodings")
    before, known = len(graph.nodes), set(graph.aliases)
    cut = Cut(tuple(values["Inputs"]), tuple(values["Outputs"]))
    options = ImportOptions(tuple(values["Ignore"]), values["ONNX_init"], seed, encodings, cut)
    where, ignore_input_size = values.section.location, values["IgnoreInputSize"]
    outputs = attach_onnx(graph, path, tensors, options, ignore_input_size=ignore_input_size, where=where)
    for name in outputs if values["Transpose"] else ():
        if prod(graph.shape(name)[2:]) > 1:
            what = f"Transpose=1 is not supported for the output '{name}', which is a feature map"
            remedy = "remove it, and put layers of Type=Transpose before and after the ONNX section"
            raise values.fail("E227", what, remedy, "Transpose")
    nodes = [node for node in graph.nodes[before:] if not node.helper]
    if weights is not None:
        _load_stored(nodes, weights)
    merged, fill_seed = set(graph.aliases) - known, None if values["ONNX_init"] else seed
    _read_layers(graph, section, nodes, merged, weights, fill_seed)
    return outputs


def _transpose_image(graph: Graph, tensor: str, section: Section) -> str:
    if len(graph.shape(tensor)) != 4:
        return tensor
    name = graph.fresh_name(f"{tensor}_transposed")
    swap = make_operator("Transpose", (0, 1, 3, 2))
    graph.add(Node(name, swap, [tensor], [name], location=section.location, helper=True))
    return name


def _require_file(values: Values, key: str, code: str, what: str) -> Path:
    path = resolve_path(values[key], values.section.document.folder)
    if path is None:
        remedy = "give the path relative to the working directory or the INI file, or set N2D2_MODELS"
        raise values.fail(code, f"{what} '{values[key]}' does not exist", remedy, key)
    return path


def _read_layers(
    graph: Graph, file: Section, nodes: list[Node], merged: set[str], weights: WeightStore | None, seed: int | None
) -> None:
    """Read the sections of the file's layers and of layer types: precision, training, quantizers.

    `seed`: of initial weights; None if the weights of the file are kept.
    """
    from n2d2py.frontend.onnx.attach import duplicate_layer_error

    document, title = file.document, file.name
    written = {node.name for node in nodes}
    names = {name for node in nodes for name in (node.name, *node.source, *node.outputs)} | merged
    own: dict[str, list[Section]] = {}
    for section in document.sections:
        if section.has("Input"):
            if section.name in written:
                raise duplicate_layer_error(section.name, section.location)
        elif section.name in names:
            tensor = graph.resolve(section.name)
            producer = graph.producer(tensor) if tensor is not None else None
            if producer is not None:
                own.setdefault(producer.name, []).append(section)
            else:
                section.mark_used()
    for node in nodes:
        general = document.section(f"{title}:{node.op.kind}_def")
        sections = [*own.get(node.name, ()), *([] if general is None else [general])]
        first = sections[0] if sections else document.automatic_section(node.name)
        _apply_sections(graph, node, sections, Section(document, first.name, first.location, tuple(sections)), weights, seed)
    for section in document.matching(f"{title}:*_def"):
        if not section.used:
            log.notice("%s: the ONNX file has no layer of this type", section.location)
            ONNX_LAYER.read(section, _CONFIG)


def _apply_sections(
    graph: Graph, node: Node, sections: list[Section], section: Section, weights: WeightStore | None, seed: int | None
) -> None:
    """Apply `sections`, the base sections of `section`, to a layer of the file."""
    model = section.text("Model") if section.has("Model") else ""
    values = ONNX_LAYER.read(section, _CONFIG, model)
    if (asked := Precision.of(values.as_dict())) != Precision():
        graph.precisions[node.name] = asked
    _check_keys(node, sections, values)
    if weights is None:
        return
    _fill_parameters(node, section, values, weights, seed)
    if weights.recipes is not None:
        weights.recipes[node.name] = read_recipe(values, None, model, learns=bool(sections))
        return
    if values["QWeight"] and "weights" in node.params:
        weights.set_default(node.name, "weights", node.params["weights"])
        shape = node.params["weights"].shape
        rows = (prod(shape[1:]),) * shape[0]
        trained, scales = load_trained_weights(values, weights, node.name, node.params["weights"], rows, ())
        node.params = {**node.params, "weights": trained, **({} if scales is None else {"weight_scales": scales})}
    if values["QAct"]:
        quantize_output(graph, values, weights, node, node.name)


def _check_keys(node: Node, sections: list[Section], values: Values) -> None:
    """Refuse keys that would change a layer of the file; remove its activation if QAct replaces it."""
    has_weights = "weights" in node.params
    if values["NoBias"] is not None and not (has_weights and values["NoBias"] == node.unbiased):
        raise _FROM_FILE.error("NoBias", values.where("NoBias"))
    if values["QWeight"] and not has_weights:
        if any(base.has("QWeight") for base in sections if not base.name.endswith("_def")):
            raise values.fail("E242", f"'{node.name}' has no weights to quantize", "remove QWeight", "QWeight")
    warn_about_unused_quantizer_keys(values)
    if values["ActivationFunction"] == "Linear":
        if not values["QAct"]:
            raise _FROM_FILE.error("ActivationFunction", values.where("ActivationFunction"))
        if node.op.kind == "Activation":
            node.op = make_operator("Identity")
        node.activation = None


def _fill_parameters(node: Node, section: Section, values: Values, weights: WeightStore, seed: int | None) -> None:
    """Replace the weights and the bias by initial values, if they are neither stored nor those of the file."""
    for key, role in (("Weights", "weights"), ("Bias", "biases")):
        if values[f"{key}Filler"] is None or ROLES[role] not in node.params or weights.has(node.name, role):
            continue
        if seed is None:
            section.document.ignored.add(_FILLER, f"{key}Filler", values.where(f"{key}Filler"))
        else:
            shape = node.params[ROLES[role]].shape
            node.params = {**node.params, ROLES[role]: fill(values, key, shape, seed=seed, name=node.name)}


def _load_stored(nodes: list[Node], weights: WeightStore) -> None:
    """Replace arrays of the ONNX file by arrays stored under the layer's name."""
    loaded = []
    for node in nodes:
        arrays = {
            role: weights.load(node.name, name, node.params[role], node.location)
            for name, role in ROLES.items()
            if role in node.params and weights.has(node.name, name)
        }
        if arrays:
            node.params = {**node.params, **arrays}
            loaded.append(node.name)
    if loaded:
        text = "%s: loaded the weights of %d layers of the ONNX file from there: %s"
        log.notice(text, weights.path, len(loaded), ", ".join(loaded[:5]) + (", ..." if len(loaded) > 5 else ""))
