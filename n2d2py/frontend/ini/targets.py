"""Sections about outputs: <layer>.Target says how one is scored, <name>.Post is post-processing, as with `-post`."""

from dataclasses import replace
from pathlib import Path

from n2d2py import log
from n2d2py.errors import ErrorList, N2D2Error, suggest
from n2d2py.graph import Graph
from n2d2py.ini.document import Document, Section, resolve_path, wildcard_match
from n2d2py.ini.ignored import TRAINING, Ignored
from n2d2py.ini.schema import REQUIRED, Key, Kind, Schema, Values, keys
from n2d2py.postprocessing import KINDS, parse_post
from n2d2py.targets.target import ScoreTarget

_SCORING = tuple(
    Ignored(name, "keys of scores", does, remedy, same=same)
    for name, does, remedy, same in (
        ("ValueThreshold", "leaves estimates below it without a class", "remove it; compare in the application", ("0", "0.0")),
        ("WeakTarget", "leaves stimuli of a label out of the score", "map this label to -1 with LabelsMapping", ("-2",)),
        ("MaskLabelTarget", "scores only where another target gives a label", "remove it", ("",)),
        ("MaskedLabel", "is the label where MaskLabelTarget scores", "remove it", ("-1",)),
        ("MaskedLabelValue", "decides what MaskLabelTarget keeps", "remove it", ("0",)),
        ("ROIsLabelTarget", "takes the labels from the regions of another target", "remove it", ("",)),
        ("BatchPacked", "tells that a file holds a single stimulus", "remove it", ("1", "true")),
    )
)
"""Keys that change scores and training targets, but not the network results. Only -test and -learn refuse them."""

_TEXTS = """
Type: Kind of evaluation. -test supports TargetScore and TargetCompare, the mean squared error between the layer output and
    tensors in files.
DataPath: TargetCompare: folder of the tensors (text, .npy or float32 .bin). The order of the names is the order of the
    stimuli.
TargetFormat: TargetCompare: axis order in the files.
"""
TARGET = Schema(
    "Target",
    keys(
        _TEXTS,
        Key("Type", Kind.STRING, "TargetScore"),
        Key("TopN", Kind.UINT, 1, "Number of top labels per stimulus. 5 reports top-1 and top-5.", minimum=1),
        Key("LabelsMapping", Kind.PATH, "", "File with lines 'label output'."),
        Key("TargetValue", Kind.FLOAT, 1.0, "Training target of the correct output.", ignored=TRAINING),
        Key("DefaultValue", Kind.FLOAT, 0.0, "Training target of the other outputs.", ignored=TRAINING),
        Key("DataAsTarget", Kind.BOOL, False, "Use the input as expected output (auto-encoders)."),
        Key("BinaryThreshold", Kind.FLOAT, 0.5, "Decision threshold of a single output."),
        Key("DataPath", Kind.PATH, ""),
        Key("Matching", Kind.STRING, "*.dat", "TargetCompare: pattern of the file names."),
        Key("TargetFormat", Kind.ENUM, "NCHW", choices=("NCHW", "NHWC", "NCWH", "NWHC", "NHCW", "NWCH")),
        Key("TargetTranspose", Kind.BOOL, False, "TargetCompare: X and Y are swapped in the files."),
        Key("LabelsHueOffset", Kind.FLOAT, 0.0, "Hue of output 0 in segmentation images, in degrees."),
    ),
    accepted=(
        *_SCORING,
        *Ignored("", "keys of images and logs of targets", "belongs to N2D2's images and logs", "remove them").for_keys(
            *"""
            NoDisplayLabel EstimatedLabelsValueDisplay ImageLogFormat ConfusionRangeMin ConfusionRangeMax
            ConfusionQuantSteps LogDistrib LogError CreateMissingLabels
            """.split()
        ),
        *Ignored(
            "", "keys of targets of boxes", "is for the detection of objects", "remove them; boxes are not scored"
        ).for_keys(
            *"""
            MinSize MinOverlap FilterMin* FilterMax* MergeMaxHDist MergeMaxVDist ScoreTopN GenerateLabelsROIs
            GenerateAnchors NbAnchors NbIter NbClass TargetType RP Anchor
            """.split()
        ),
    ),
    doc="Sections named <layer>.Target...: a layer whose output is scored; * and ? in the name stand for several layers.",
)


_COMPARED = Ignored("", "keys of TargetCompare in other targets", "is for TargetCompare", "remove them, or set its Type")


def _target_layers(name: str, graph: Graph) -> dict[str, str]:
    tensor = graph.resolve(name)
    if tensor is not None:
        return {name: tensor}
    return {node.name: node.output for node in graph.nodes if not node.helper and wildcard_match(name, node.name)}


def _read_target(name: str, tensor: str, section: Section, values: Values | None, document: Document) -> ScoreTarget:
    if values is None:
        return ScoreTarget(name, tensor, location=section.location)
    kind = values["Type"].strip()
    for key in () if kind == "TargetCompare" else ("DataPath", "Matching", "TargetFormat", "TargetTranspose"):
        if values.is_given(key):
            document.ignored.add(_COMPARED, key, values.where(key))
    stored = None
    if kind == "TargetCompare":
        path = resolve_path(values["DataPath"], document.folder) or Path(values["DataPath"])
        stored = path, values["Matching"], values["TargetFormat"], values["TargetTranspose"]
    kind, as_data = "TargetScore" if kind == "Target" else kind, values["DataAsTarget"] or stored is not None
    labels = {"top_n": values["TopN"], "mapping": values["LabelsMapping"], "hue": values["LabelsHueOffset"]}
    numbers = {"binary_threshold": values["BinaryThreshold"], "high": values["TargetValue"], "low": values["DefaultValue"]}
    origin = {"location": section.location, "stored": stored, "unscored": _unscored_error(section)}
    return ScoreTarget(name, tensor, kind=kind, as_data=as_data, **labels, **numbers, **origin)


def _unscored_error(section: Section) -> N2D2Error | None:
    """Return the error for a key that changes the score of a target, to be raised when it is scored."""
    for entry in _SCORING:
        if section.has(entry.pattern) and not entry.is_same_behaviour(section.text(entry.pattern)):
            return entry.error(entry.pattern, section.where(entry.pattern))
    return None


def read_targets(document: Document, graph: Graph, *, describing: bool = False) -> list[ScoreTarget]:
    """Return the targets of a document. Their layers become the network outputs.

    Without a target, the graph outputs (or the last layer) are scored, with a notice. If `describing`, only layer names are
    read.

    Raises N2D2Error: E219 for a target of an unknown layer; the warning W219 if `describing`.
    """
    targets, errors = [], []
    known = [name for node in graph.nodes for name in node.source]
    for section in document.sections:
        layer, dot, suffix = section.name.rpartition(".Target")
        if not dot:
            continue
        values = None if describing else TARGET.read(section)
        layers = _target_layers(layer, graph)
        what, remedy = f"the target's layer '{layer}' is an input", "name a layer"
        if not layers:
            what = f"the target's layer '{layer}' does not exist"
            remedy = suggest(layer, known, "name an existing layer", form="[{}.Target]")
            if describing:
                log.warning("W219", what, where=section.location, remedy=remedy)
        if not describing and (not layers or not set(layers.values()).isdisjoint(graph.inputs)):
            errors.append(N2D2Error("E219", what, where=section.location, remedy=remedy))
        for name, tensor in layers.items():
            targets.append(_read_target(f"{name}.Target{suffix}", tensor, section, values, document))
    ErrorList.raise_if(errors)
    if not targets:
        if not graph.outputs:
            read = {name for node in graph.nodes for name in node.inputs}
            graph.outputs = [name for node in graph.nodes for name in node.outputs if name not in read]
        names = "', '".join(graph.outputs)
        text = "no Target section: the output%s '%s' %s scored"
        log.notice(text, *(("s", names, "are") if len(graph.outputs) > 1 else ("", names, "is")))
        return [ScoreTarget(f"{name}.Target", name) for name in graph.outputs]
    graph.outputs = list(dict.fromkeys(target.tensor for target in targets))
    return targets


# ---- post-processing ----------------------------------------------------------------------------
def post_schema() -> Schema:
    """Return the schema of the section: the keys of all kinds of -post, capitalized."""
    own: dict[str, Key] = {}
    for key in (key for kind in KINDS.values() for key in kind.keys):
        name, default = key.name.capitalize(), None if key.default is REQUIRED else key.default
        own[name] = _either(own[name], key) if name in own else replace(key, name=name, default=default)
    kinds = Key("Type", Kind.ENUM, doc="Kind of the post-processing.", choices=tuple(KINDS))
    return Schema("Post", (kinds, *own.values()), doc="A section named <name>.Post: post-processing of the outputs, as -post.")


def read_post(document: Document) -> str | None:
    """Return the section in the syntax of -post; None without a section.

    Raises N2D2Error: E003 for a key that the kind does not have, E106 for a second section, and the errors of `Schema.read`.
    """
    sections = [section for section in document.sections if section.name.endswith(".Post")]
    if not sections:
        return None
    if len(sections) > 1:
        raise N2D2Error("E106", "the model has two sections .Post", where=sections[1].location, remedy="remove one of them")
    (section,) = sections
    schema = post_schema()
    values = schema.read(section)
    names = [key.name for key in schema.keys[1:] if values.is_given(key.name)]
    text = f"{values['Type']}:{','.join(f'{name.lower()}={section.text(name)}' for name in names)}"
    parse_post(text, section.location)
    return text


def _either(key: Key, other: Key) -> Key:
    """Return a key that kinds of -post understand differently; `parse_post` knows the bounds of each."""
    doc = key.doc if other.doc in key.doc else f"{key.doc} {other.doc}"
    differing = {name: None for name in ("default", "minimum", "maximum") if getattr(key, name) != getattr(other, name)}
    return replace(key, doc=doc, **differing)
