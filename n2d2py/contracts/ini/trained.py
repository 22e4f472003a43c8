"""Keys of quantization-aware training (QAT) in layer sections: the quantizers that a network was trained with.

QWeight belongs to layers with weights; QAct belongs to layers with an activation and replaces it. Both keys are refused
elsewhere: ignoring them would change the network.
"""

from dataclasses import replace

from n2d2py import log
from n2d2py.arithmetic.trained import RANGES
from n2d2py.errors import ErrorList, Location, N2D2Error
from n2d2py.ini import TRAINING, Document, Ignored, Key, Kind, Schema, Section, Unreadable, Values, keys, wildcard_match

_QAT = Ignored(
    "",
    "keys of training with quantization",
    "trains with quantized values (QAT)",
    "put them into the sections of layers: QWeight of Conv, Deconv and Fc, QAct of layers with an activation",
    changes=True,
)
_NAMES = ("QWeight*", "QAct*", "QBias*")
QUANTIZED_ELSEWHERE = _QAT.for_keys(*_NAMES)
"""QAT keys in sections other than layers: refused."""
QUANTIZED_TRAINING = tuple(replace(each, changes=False) for each in QUANTIZED_ELSEWHERE)
"""QAT keys in layer sections. `check_trained_keys` refuses those that do not apply to the layer, except with -describe."""
_QAT_BEFORE = replace(_QAT, remedy="use QAct and QWeight; remove the keys only if the weights were trained without them")
QUANTIZED_ACTIVATION = _QAT_BEFORE.for_keys("ActivationFunction.Quantization*", "ActivationFunction.Log2Rounding*")


def _check_range(value: int) -> None:
    if value not in RANGES:
        what = f"{value} steps do not match a number of bits"
        raise Unreadable(what, f"give one of {', '.join(map(str, RANGES))}: 1 to 8 bits", "E122")


def _check_sign(value: float) -> None:
    if value <= 0:
        raise Unreadable(f"{value:g} is not above 0", "give a value above 0", "E122")


QUANTIZER_SOLVERS = TRAINING.for_keys("QWeightSolver*", "QWeight.Solver*", "QActSolver*", "QAct.Solver*")
"""Solvers of quantizers, in the section of a layer or in its ConfigSection."""
_SOLVERS = QUANTIZER_SOLVERS + TRAINING.for_keys(
    *"""
    QWeight.Pruning* QWeight.Threshold QWeight.Delta QWeight.StartThreshold QWeight.StepSizeThreshold
    QWeight.GammaThreshold
    """.split()
)


def _range_key(name: str, values: str) -> Key:
    doc = f"Number of steps of the {values}: 1, 3, 7, 15, ... 255 for 1 to 8 bits."
    return Key(name, Kind.UINT, 255, doc, check=_check_range)


def _step_key(name: str) -> Key:
    return Key(name, Kind.BOOL, True, "LSQ: training takes its first step from the first batch", ignored=TRAINING)


_TEXTS = """
QWeight.QuantMode: SAT: quantization grid with R = Range. Default: 2i - R. Symmetric: -h .. h with h = (R - 1) / 2.
    FullRange: -2^(b-1) .. 2^(b-1) - 1.
QWeight.Mode: Storage of the weights in training. Has no effect.
QWeight.ApplyScaling: SAT: 1 for weights that were divided by sqrt(NbOutputs * variance) afterwards.
"""
_WEIGHT_KEYS = keys(
    _TEXTS,
    Key("QWeight", Kind.ENUM, "", "Quantizer used to train the weights. Empty: none.", ("SAT", "LSQ", "Prune", "")),
    _range_key("QWeight.Range", "weights"),
    Key("QWeight.QuantMode", Kind.ENUM, "Default", choices=("Default", "Integer", "Symmetric", "Asymmetric", "FullRange")),
    Key("QWeight.Mode", Kind.ENUM, "Default", choices=("Default", "Integer"), ignored=TRAINING),
    Key("QWeight.StepSize", Kind.FLOAT, 100.0, "LSQ: step size, if the weights contain none.", check=_check_sign),
    Key("QWeight.PerChannel", Kind.BOOL, False, "LSQ: one step size per output. Extension of n2d2py."),
    _step_key("QWeight.SetOptInitStepSize"),
    _step_key("QWeight.StepOptInitStepSize"),
    Key("QWeight.ApplyQuantization", Kind.BOOL, True, "SAT: 0 for weights that were only scaled to [-1, 1]."),
    Key("QWeight.ApplyScaling", Kind.BOOL, False),
)
_FOR_OUTPUTS = ("SAT", "LSQ", "")
_ACTIVATION_KEYS = (
    Key("QAct", Kind.ENUM, "", "Quantizer used to train the output, which replaces a rectifier. Empty: none.", _FOR_OUTPUTS),
    _range_key("QAct.Range", "output"),
    Key("QAct.Alpha", Kind.FLOAT, 8.0, "SAT: clipping value, if the weights contain none.", check=_check_sign),
    Key("QAct.StepSize", Kind.FLOAT, 100.0, "LSQ: step size, if the weights contain none.", check=_check_sign),
    _step_key("QAct.SetOptInitStepSize"),
    _step_key("QAct.StepOptInitStepSize"),
)
_UNUSED_KEYS = {
    "SAT": ("QWeight.StepSize", "QWeight.PerChannel", "QAct.StepSize"),
    "LSQ": ("QWeight.QuantMode", "QWeight.ApplyQuantization", "QWeight.ApplyScaling", "QAct.Alpha"),
}
"""Keys without effect, by quantizer."""


def _with_keys(schema: Schema, keys: tuple[Key, ...], pattern: str) -> Schema:
    others = tuple(entry for entry in schema.accepted if entry.pattern != pattern)
    return replace(schema.extended(*keys), accepted=(*_SOLVERS, *others))


def with_trained_weights(schema: Schema) -> Schema:
    """Return a layer schema with the keys of QWeight."""
    return _with_keys(schema, _WEIGHT_KEYS, "QWeight*")


def with_trained_activation(schema: Schema) -> Schema:
    """Return a layer schema with the keys of QAct."""
    return _with_keys(schema, _ACTIVATION_KEYS, "QAct*")


def check_trained_keys(section: Section, schema: Schema) -> None:
    """Refuse QAT keys that do not apply to the layer of a section. Raise E242 with all names of these keys."""
    entries = [entry for entry in schema.accepted if entry in QUANTIZED_TRAINING]
    names = [name for name in section.keys() if any(wildcard_match(entry.pattern, name) for entry in entries)]
    if names:
        first = names[0]
        part = "weights" if first.startswith("QWeight") else "activation" if first.startswith("QAct") else "quantized bias"
        what = f"{', '.join(names)}: a layer of Type={section.text('Type')} has no {part} to quantize"
        raise N2D2Error("E242", what, where=section.where(first), remedy=_QAT.remedy)


def warn_about_unused_quantizer_keys(values: Values) -> None:
    """Warn W422 for keys, if not at their defaults, of a quantizer that a layer lacks: of SAT with LSQ, or without any."""
    for kind, known in (("QWeight", _WEIGHT_KEYS), ("QAct", _ACTIVATION_KEYS)):
        if kind not in values:
            continue
        used = values[kind]
        names = [
            key.name
            for key in known
            if not key.ignored and values[key.name] != key.default and (not used or key.name in _UNUSED_KEYS.get(used, ()))
        ]
        if names:
            what = f"{', '.join(names)} has no effect {f'with {kind}={used}' if used else f'without {kind}'}"
            other = f"remove {'it' if len(names) == 1 else 'them'}, or give another {kind}"
            log.warning("W422", what, where=values.where(names[0]), remedy=other if used else f"give {kind}=SAT or LSQ")


def has_quantized_training(document: Document) -> bool:
    """True if a layer of the document was trained with quantizers."""
    return any(
        section.used and section.has(key) and section.text(key).strip()
        for section in document.sections
        for key in ("QWeight", "QAct")
    )


def refuse_quantized_training(document: Document) -> None:
    """Refuse QAT keys outside of sections, and those of early versions of N2D2 in any section, used or not.

    Raises E242 with all names of keys, one error for each kind.
    """
    errors = []
    for entry in (*QUANTIZED_ELSEWHERE, *QUANTIZED_ACTIVATION):
        older = entry in QUANTIZED_ACTIVATION
        places: dict[str, Location] = {}
        for section in (document.globals, *(document.sections if older else ())):
            for name in section.keys():
                if wildcard_match(entry.pattern, name):
                    places.setdefault(name, section.where(name))
        if places:
            why = "is a key of early N2D2 versions" if older else "is not a key of this layer type"
            ignoring = f"ignoring {'it' if len(places) == 1 else 'them'} would change the network"
            what, where = f"{', '.join(places)} {why}, and {ignoring}", next(iter(places.values()))
            errors.append(N2D2Error("E242", what, where=where, remedy=entry.remedy))
    ErrorList.raise_if(errors)
