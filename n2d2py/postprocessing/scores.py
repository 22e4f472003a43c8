"""Decisions by the scores of classes: best classes, thresholds with hysteresis, moving averages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from n2d2py.arithmetic.decisions import ALWAYS, Decider
from n2d2py.arithmetic.fixed_scale import LOGIT, ONE, POWERS, SIGMOID, FixedScale
from n2d2py.arithmetic.frame import FrameSource
from n2d2py.ini.schema import Key, Kind
from n2d2py.postprocessing.contract import CCall, Infos, KernelConfig, PostProcessor, Size, misfit, only_output, register
from n2d2py.postprocessing.results import ClassScore, Decision

_THRESHOLD = """A class is decided when its score is the best one and above it. Without it, the best class is always decided; of one \
score, class 1 above 0.5."""
_RELEASE = "A decided class ends when its score is not above it. Default: the threshold."
_KEYS = (
    Key("top", Kind.UINT, 1, "Best classes that a result lists.", minimum=1, maximum=100),
    Key("activation", Kind.ENUM, "none", "Function of the outputs, if the model lacks it.", ("none", "sigmoid", "softmax")),
    Key("threshold", Kind.FLOAT, None, _THRESHOLD, minimum=-16384, maximum=16384),
    Key("release", Kind.FLOAT, None, _RELEASE, minimum=-16384, maximum=16384),
    Key("average", Kind.UINT, 1, "Calls whose scores are averaged.", minimum=1, maximum=1000),
    Key("hold", Kind.UINT, 0, "Calls that a decided class lasts at least.", maximum=1000000),
)


@dataclass(frozen=True)
class ScoreDecider(PostProcessor):
    """A decision that is bound to an output of a network. `decider`: its integers."""

    decider: Decider

    kernel: ClassVar = "decisions"
    kernel_class: ClassVar = "Decider"
    function: ClassVar = "decide"
    folder: ClassVar = "scores"
    types: ClassVar = {"State": "decision"}

    @property
    def config(self) -> KernelConfig:
        activation = self.decider.activation
        tables = {
            "sigmoid": SIGMOID.tolist() if activation == "sigmoid" else (),
            "powers": POWERS.tolist() if activation == "softmax" else (),
        }
        kinds = {name.capitalize(): activation == name for name in ("sigmoid", "softmax")}
        return KernelConfig.of(self.decider, {"Value": 0}, tables, **kinds)

    @property
    def memory(self) -> np.ndarray:
        """Of the state, which begins with the result."""
        return np.zeros(5 + 2 * self.decider.top + self.decider.average * self.decider.classes, np.int32)

    def decode(self, outputs: Sequence[np.ndarray]) -> np.ndarray:
        return self.stored([one[None] for one in outputs])[0]

    def stored(self, outputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        return list(self.decider.decide(np.moveaxis(outputs[0], 1, -1).reshape(len(outputs[0]), -1)))

    def compiled(self, call: CCall, samples: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
        state, decisions = self.memory, []
        call("decide_begin", state)
        for sample in samples:
            call(self.function, state, *sample)
            decisions.append(state[: 2 + 2 * self.decider.top].copy())
        return decisions

    def result(self, stored: np.ndarray, source: FrameSource | None = None, frame: Size | None = None) -> Decision:
        """Return a row of `Decider.decide` in real numbers."""
        label, score, *best = stored.tolist()
        top = (ClassScore(one, self.name(one), value / ONE) for one, value in zip(best[::2], best[1::2], strict=True))
        return Decision(label, self.name(label), score / ONE, tuple(top))


def _bind(values: Mapping[str, Any], inputs: Infos, outputs: Infos, names: tuple[str, ...]) -> ScoreDecider:
    info, classes = only_output(outputs), outputs[0].stored[1]
    if int(np.prod(info.stored)) != classes:
        shape = "x".join(map(str, info.shape))
        raise misfit(f"the output '{info.name}' of {shape} has not one score for each class", "choose another by -outputs")
    if names and len(names) != max(classes, 2):
        what = f"{len(names)} class names do not fit the {classes} scores of '{info.name}'"
        raise misfit(what, "name every output by -class-names; of one score, the classes 0 and 1")
    if values["top"] > classes:
        raise misfit(f"top={values['top']} exceeds the {classes} scores of '{info.name}'", f"give {classes} at most")
    if classes == 1 and values["activation"] == "softmax":
        raise misfit(f"a softmax of the only score of '{info.name}' is always 1", "use activation=sigmoid")
    threshold, release = (None if values[key] is None else round(values[key] * ONE) for key in ("threshold", "release"))
    if threshold is None:
        threshold = ONE // 2 if classes == 1 else ALWAYS
    if release is not None and release > threshold:
        raise misfit("release is above the threshold", "give a threshold, and a release below it")
    scale = FixedScale.of(info.type, LOGIT if values["activation"] == "sigmoid" else ONE)
    limits = threshold, threshold if release is None else release
    decider = Decider(classes, scale, values["activation"], values["top"], values["average"], *limits, values["hold"])
    return ScoreDecider(names, decider)


register("scores", "A score of each class: decisions of classifiers, in a stream too.", _KEYS, _bind)
