"""Training settings of INI layers: their solvers, and the keys of their quantizers.

Solver keys are in the section of a layer or in its ConfigSection, for example `WeightsSolver.LearningRate`. Keys of `Solvers.`
apply to all parameters of the layer; more specific keys win.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from n2d2py import log
from n2d2py.errors import N2D2Error, suggest
from n2d2py.ini import TRAINING, Ignored, IgnoredKeys, Key, Kind, Section, Values, fields_by_key, merge_config, parameter

POLICIES = ("None", "StepDecay", "ExponentialDecay", "InvTDecay", "PolyDecay", "InvDecay", "CosineDecay")

_STEPS = ("StepDecay", "ExponentialDecay", "InvTDecay")
_POLICY_KEYS = {
    "MinDecay": ("CosineDecay",),
    "WarmUpDuration": ("CosineDecay",),
    "WarmUpLRFrac": ("CosineDecay",),
    "Power": ("PolyDecay", "InvDecay"),
    "MaxIterations": ("PolyDecay", "CosineDecay"),
    "LearningRateStepSize": (*_STEPS, "CosineDecay"),
    "LearningRateDecay": (*_STEPS, "InvDecay"),
}
"""Policies that use a key of SGD; other policies ignore it."""

_PREFIXES = {
    "weights": ("Solvers", "WeightsSolver"),
    "bias": ("Solvers", "BiasSolver"),
    "scale": ("Solvers", "ScaleSolver"),
    "QWeight": ("QWeightSolver", "QWeight.Solver"),
    "QAct": ("QActSolver", "QAct.Solver"),
}
"""Solver names in an INI by parameter role, the most specific one last."""

_OTHER_SOLVER = Ignored("", "keys of another solver", "belongs to another type of solver", "remove them, or name that solver")
_OTHER_POLICY = Ignored(
    "", "keys of another LearningRatePolicy", "belongs to another policy", "remove them, or name a policy that reads them"
)
_BACK_PROPAGATE = Key("BackPropagate", Kind.BOOL, True)
_TRAINING_KEYS = (
    *(f"{prefix}*" for names in _PREFIXES.values() for prefix in names),
    *"QWeight.*InitStepSize QAct.*InitStepSize MovingAverageMomentum BackPropagate".split(),
    *"WithLoss TargetValue DefaultValue BatchSize".split(),
)


@dataclass(frozen=True)
class SolverSettings:
    """An SGD or Adam solver of N2D2 (`kind`), with its keys.

    `iteration_size` counts batches, `learning_rate_step_size` samples. `warm_up_duration` counts `learning_rate_step_size`,
    and so does `max_iterations` with CosineDecay; with PolyDecay it counts steps of `iteration_size` batches. INIs may
    compute counts by a division; N2D2 drops the fraction. `decay`: weight decay; `min_decay`: with CosineDecay, the lowest
    fraction of the rate. `clamping`: (lowest, largest) value of the parameter, or None.
    """

    kind: str = "SGD"
    learning_rate: float = parameter("LearningRate", Kind.FLOAT, 0.01, minimum=0)
    momentum: float = parameter("Momentum", Kind.FLOAT, 0.0, minimum=0, maximum=1)
    polyak_momentum: bool = parameter("PolyakMomentum", Kind.BOOL, True)
    decay: float = parameter("Decay", Kind.FLOAT, 0.0, minimum=0)
    min_decay: float = parameter("MinDecay", Kind.FLOAT, 0.0, minimum=0)
    power: float = parameter("Power", Kind.FLOAT, 0.0)
    iteration_size: int = parameter("IterationSize", Kind.UINT, 1, minimum=1)
    max_iterations: int = parameter("MaxIterations", Kind.FLOAT, 0, read=int, minimum=0)
    warm_up_duration: int = parameter("WarmUpDuration", Kind.FLOAT, 0, read=int, minimum=0)
    warm_up_lr_frac: float = parameter("WarmUpLRFrac", Kind.FLOAT, 0.25, minimum=0, maximum=1)
    learning_rate_policy: str = parameter("LearningRatePolicy", Kind.ENUM, "None", choices=POLICIES)
    learning_rate_step_size: int = parameter("LearningRateStepSize", Kind.FLOAT, 1, read=int, minimum=1)
    learning_rate_decay: float = parameter("LearningRateDecay", Kind.FLOAT, 0.1, minimum=0)
    beta1: float = parameter("Beta1", Kind.FLOAT, 0.9, minimum=0, maximum=1)
    beta2: float = parameter("Beta2", Kind.FLOAT, 0.999, minimum=0, maximum=1)
    epsilon: float = parameter("Epsilon", Kind.FLOAT, 1e-8, minimum=0)
    clamping: tuple[float, float] | None = parameter("Clamping", Kind.STRING, None)


_FIELDS = {key.name: (key, one) for key, one in fields_by_key(SolverSettings).items()}
_ADAM = ("Beta1", "Beta2", "Epsilon")
_KEYS = {"SGD": [name for name in _FIELDS if name not in _ADAM], "Adam": ["LearningRate", *_ADAM, "Clamping"]}
"""Keys of each solver."""
_RATES = {"SGD": 0.01, "Adam": 0.001}
"""Default of the learning rate of each solver."""


@dataclass(frozen=True, eq=False)
class LayerRecipe:
    """Training settings of a layer.

    Attributes:
        values: typed values of its section.
        connected: bool (O, C), the inputs of each output, if only connected weights are stored; else None.
        solvers: by role: weights, bias, scale, QWeight, QAct.
        learns: its parameters and statistics change.
        back_propagates: gradients flow to the layers before it.
    """

    values: Values
    connected: np.ndarray | None
    solvers: dict[str, SolverSettings]
    learns: bool = True
    back_propagates: bool = True

    @property
    def adds_margin(self) -> bool:
        """True for a TargetBias."""
        return "Type" in self.values and self.values["Type"] == "TargetBias"


def refuse_unsupported_quantizers(values: Values) -> None:
    """Raise E124 for unsupported weight quantizers: Prune, and asymmetric ones."""
    for key, refused in (("QWeight", "Prune"), ("QWeight.QuantMode", "Asymmetric")):
        if values[key] == refused:
            what = f"{key}={refused} is not supported, as it changes the result"
            raise values.fail("E124", what, "use SAT or LSQ with symmetric weights", key)


def read_recipe(values: Values, connected: np.ndarray | None, model: str, learns: bool = True) -> LayerRecipe:
    """Return the recipe of a layer. Raises E109 or E122 for its solvers, E124 for settings that cannot be trained."""
    section = values.section
    if "QWeight" in values:
        refuse_unsupported_quantizers(values)
    for key, plain in (("WeightsExportFormat", ("OCHW", "OC")), ("WeightsExportFlip", (False,)), ("OutputsRemap", ("",))):
        if key in values and values[key] not in plain:
            what = f"{key}={values[key]} is not supported in training, which stores weights by output channel"
            raise values.fail("E124", what, "remove it", key)
    merged = merge_config(section, section.document, model)
    solvers = {role: _read_solver(merged, section, names) for role, names in _PREFIXES.items()}
    key = _BACK_PROPAGATE
    back_propagates = next((key.read_from(one, key.name) for one in (merged, section) if one.has(key.name)), True)
    return LayerRecipe(values, connected, solvers, learns, back_propagates)


def unignore_training_keys(ignored: IgnoredKeys) -> None:
    """Remove the keys that training uses from the list of keys without effect."""
    ignored.remove(TRAINING.kind, lambda name: any(fnmatchcase(name, pattern) for pattern in _TRAINING_KEYS))


def _read_solver(merged: Section, section: Section, prefixes: tuple[str, ...]) -> SolverSettings:
    kind, written = _solver_keys((merged, section), prefixes)
    settings: dict[str, Any] = {"kind": kind, "learning_rate": _RATES[kind]}
    for bare, (name, source) in written.items():
        where = source.where(name)
        if bare in _KEYS[kind]:
            key, field = _FIELDS[bare]
            settings[field.name] = field.metadata["read"](key.read_from(source, name))
        elif bare in _FIELDS:
            section.document.ignored.add(_OTHER_SOLVER, name, where)
        elif section.document.is_first_time((where.file, where.line, name, "solver")):
            what = f"key '{name}' is unknown for the solver {kind}; it is ignored"
            remedy = suggest(bare, _KEYS[kind], "remove it or check its spelling")
            log.warning("W102", what, where=where, remedy=remedy)
    if kind == "SGD":
        policy = settings.get("learning_rate_policy", SolverSettings.learning_rate_policy)
        for bare, policies in _POLICY_KEYS.items():
            if bare in written and policy not in policies:
                name, source = written[bare]
                section.document.ignored.add(_OTHER_POLICY, name, source.where(name))
    clamping = settings.get("clamping")
    settings["clamping"] = _read_range(clamping, *written["Clamping"]) if clamping else None
    return SolverSettings(**settings)


def _solver_keys(sources: tuple[Section, Section], prefixes: tuple[str, ...]) -> tuple[str, dict[str, tuple[str, Section]]]:
    """Return the type of a solver, and by bare name its keys, each with the section that has it."""
    kind, found = "SGD", {}
    for prefix, source in ((prefix, source) for prefix in prefixes for source in sources):
        for name in source.keys():
            if name == prefix:
                kind = _solver_type(name, source)
            elif name.startswith(prefix + "."):
                found[name.removeprefix(prefix + ".")] = name, source
    return kind, found


def _solver_type(name: str, source: Section) -> str:
    # N2D2 names the classes of its solvers after where they run: SGDSolver_Frame and the like
    text = source.text(name).split("_")[0].removesuffix("Solver")
    if text not in _KEYS:
        what = f"{name}={source.text(name)} is not a solver"
        raise N2D2Error("E122", what, where=source.where(name), remedy=f"give one of {', '.join(_KEYS)}")
    return text


def _read_range(text: str, name: str, source: Section) -> tuple[float, float]:
    low, _colon, high = text.partition(":")
    try:
        limits = float(low), float(high)
        if not limits[0] < limits[1]:
            raise ValueError
    except ValueError:
        what = f"{name}={text} is not a range"
        raise N2D2Error("E122", what, where=source.where(name), remedy="give LOW:HIGH, such as -1.0:1.0") from None
    return limits
