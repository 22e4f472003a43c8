"""Training settings of INI layers: their solvers, and the keys of their quantizers.

Solver keys are in the section of a layer or in its ConfigSection, for example `WeightsSolver.LearningRate`. Keys of `Solvers.`
apply to all parameters of the layer; more specific keys win.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from n2d2py import log
from n2d2py.errors import N2D2Error, suggest
from n2d2py.ini import TRAINING, Ignored, IgnoredKeys, Key, Kind, MergedSection, Section, Unreadable, Values, merge_config

POLICIES = ("None", "StepDecay", "ExponentialDecay", "InvTDecay", "PolyDecay", "InvDecay", "CosineDecay")

_SGD = (
    Key("LearningRate", Kind.FLOAT, 0.01, minimum=0),
    Key("Momentum", Kind.FLOAT, minimum=0, maximum=1),
    Key("PolyakMomentum", Kind.BOOL),
    Key("Decay", Kind.FLOAT, minimum=0),
    Key("MinDecay", Kind.FLOAT, minimum=0),
    Key("Power", Kind.FLOAT),
    Key("IterationSize", Kind.UINT, minimum=1),
    Key("MaxIterations", Kind.FLOAT, minimum=0),
    Key("WarmUpDuration", Kind.FLOAT, minimum=0),
    Key("WarmUpLRFrac", Kind.FLOAT, minimum=0, maximum=1),
    Key("LearningRatePolicy", Kind.ENUM, choices=POLICIES),
    Key("LearningRateStepSize", Kind.FLOAT, minimum=1),
    Key("LearningRateDecay", Kind.FLOAT, minimum=0),
    Key("Clamping", Kind.STRING),
)
_ADAM = (
    Key("LearningRate", Kind.FLOAT, 0.001, minimum=0),
    Key("Beta1", Kind.FLOAT, minimum=0, maximum=1),
    Key("Beta2", Kind.FLOAT, minimum=0, maximum=1),
    Key("Epsilon", Kind.FLOAT, minimum=0),
    Key("Clamping", Kind.STRING),
)
"""Keys of each solver. `SolverSettings` has the defaults, except for the learning rate, which depends on the solver."""
_SOLVERS = {"SGD": _SGD, "Adam": _ADAM}
_COUNTS = ("MaxIterations", "WarmUpDuration", "LearningRateStepSize")
"""Counts that INIs may compute by a division. N2D2 drops the fraction."""
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
    "QWeight.*InitStepSize",
    "QAct.*InitStepSize",
    "MovingAverageMomentum",
    "BackPropagate",
    "WithLoss",
    "TargetValue",
    "DefaultValue",
    "BatchSize",
)


@dataclass(frozen=True)
class SolverSettings:
    """An SGD or Adam solver of N2D2 (`kind`), with its keys.

    `iteration_size` counts batches, `learning_rate_step_size` samples. `warm_up_duration` counts `learning_rate_step_size`, and
    so does `max_iterations` with CosineDecay; with PolyDecay it counts steps of `iteration_size` batches.

    Attributes:
        decay: weight decay; `min_decay`: with CosineDecay, the lowest fraction of the rate.
        clamping: (lowest, largest) value of the parameter, or None.
    """

    kind: str = "SGD"
    learning_rate: float = 0.01
    momentum: float = 0.0
    polyak_momentum: bool = True
    decay: float = 0.0
    min_decay: float = 0.0
    power: float = 0.0
    iteration_size: int = 1
    max_iterations: int = 0
    warm_up_duration: int = 0
    warm_up_lr_frac: float = 0.25
    learning_rate_policy: str = "None"
    learning_rate_step_size: int = 1
    learning_rate_decay: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    clamping: tuple[float, float] | None = None


_FIELDS = {field.name.replace("_", ""): field.name for field in fields(SolverSettings)}


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
    """Return the recipe of the layer in a section.

    Raises:
        N2D2Error: E109 or E122 for unreadable solver values, E124 for settings that cannot be trained.
    """
    section = values.section
    if "QWeight" in values:
        refuse_unsupported_quantizers(values)
    for key, plain in (("WeightsExportFormat", ("OCHW", "OC")), ("WeightsExportFlip", (False,)), ("OutputsRemap", ("",))):
        if key in values and values[key] not in plain:
            what = f"{key}={values[key]} is not supported in training, which stores weights by output channel"
            raise values.fail("E124", what, "remove it", key)
    merged = merge_config(section, section.document, model)
    solvers = {role: _read_solver(merged, section, names) for role, names in _PREFIXES.items()}
    return LayerRecipe(values, connected, solvers, learns, _back_propagates(merged, section))


def _back_propagates(*sections: Section | MergedSection) -> bool:
    for section in sections:
        if section.has(_BACK_PROPAGATE.name):
            try:
                return _BACK_PROPAGATE.read(_BACK_PROPAGATE.name, section.text(_BACK_PROPAGATE.name))[0]
            except Unreadable as problem:
                raise problem.error(section.where(_BACK_PROPAGATE.name)) from None
    return True


def unignore_training_keys(ignored: IgnoredKeys) -> None:
    """Remove the keys that training uses from the list of keys without effect."""
    ignored.remove(TRAINING.kind, lambda name: any(fnmatchcase(name, pattern) for pattern in _TRAINING_KEYS))


def _read_solver(merged: MergedSection, section: Section | MergedSection, prefixes: tuple[str, ...]) -> SolverSettings:
    kind, values_given = _solver_keys((merged, section), prefixes)
    keys = {key.name: key for key in _SOLVERS[kind]}
    settings: dict[str, Any] = {"kind": kind, "learning_rate": keys["LearningRate"].default}
    for bare, (name, source) in values_given.items():
        where = source.where(name)
        if bare in keys:
            try:
                value = keys[bare].read(name, source.text(name))[0]
            except Unreadable as problem:
                raise problem.error(where) from None
            settings[_FIELDS[bare.lower()]] = int(value) if bare in _COUNTS else value
        elif any(bare == key.name for known in _SOLVERS.values() for key in known):
            section.document.ignored.add(_OTHER_SOLVER, name, where)
        elif section.document.is_first_time((where.file, where.line, name, "solver")):
            what = f"key '{name}' is unknown for the solver {kind}; it is ignored"
            remedy = suggest(bare, list(keys), "remove it or check its spelling")
            log.warning("W102", what, where=where, remedy=remedy)
    if kind == "SGD":
        policy = settings.get("learning_rate_policy", SolverSettings.learning_rate_policy)
        for bare, policies in _POLICY_KEYS.items():
            if bare in values_given and policy not in policies:
                name, source = values_given[bare]
                section.document.ignored.add(_OTHER_POLICY, name, source.where(name))
    clamping = settings.get("clamping")
    settings["clamping"] = _read_range(clamping, *values_given["Clamping"]) if clamping else None
    return SolverSettings(**settings)


def _solver_keys(
    sources: tuple[MergedSection, Section | MergedSection], prefixes: tuple[str, ...]
) -> tuple[str, dict[str, tuple[str, Section | MergedSection]]]:
    """Return the type of a solver, and by bare name its keys, each with the section that has it."""
    kind, found = "SGD", {}
    for prefix, source in ((prefix, source) for prefix in prefixes for source in sources):
        for name in source.keys():
            if name == prefix:
                kind = _solver_type(name, source)
            elif name.startswith(prefix + "."):
                found[name.removeprefix(prefix + ".")] = name, source
    return kind, found


def _solver_type(name: str, source: Section | MergedSection) -> str:
    # N2D2 names the classes of its solvers after where they run: SGDSolver_Frame and the like
    text = source.text(name).split("_")[0].removesuffix("Solver")
    if text not in _SOLVERS:
        what = f"{name}={source.text(name)} is not a solver"
        raise N2D2Error("E122", what, where=source.where(name), remedy=f"give one of {', '.join(_SOLVERS)}")
    return text


def _read_range(text: str, name: str, source: Section | MergedSection) -> tuple[float, float]:
    low, _colon, high = text.partition(":")
    try:
        limits = float(low), float(high)
        if not limits[0] < limits[1]:
            raise ValueError
    except ValueError:
        what = f"{name}={text} is not a range"
        raise N2D2Error("E122", what, where=source.where(name), remedy="give LOW:HIGH, such as -1.0:1.0") from None
    return limits
