"""Drawn streams of scores through `kernels/n2d2/decisions.hpp`."""

from collections.abc import Iterator

import numpy as np

from n2d2py.arithmetic.decisions import ALWAYS, Decider
from n2d2py.arithmetic.fixed_scale import LOGIT, ONE, FixedScale
from n2d2py.postprocessing.scores import ScoreDecider
from support import post_cases

RUN = """template <class Cfg>
struct Decision {
    struct { std::int32_t label, score; } top[Cfg::Top];
    std::int32_t label, score, wait, count, next, history[Cfg::Average * Cfg::Classes];
};
template <class Cfg>
static void run(const typename Cfg::Value* values, int calls) {
    static typename Cfg::State state;
    n2d2::Decider<Cfg>::begin(state);
    for (int call = 0; call < calls; ++call) {
        const std::int32_t before = state.label;
        if (n2d2::Decider<Cfg>::run(state, values + call * Cfg::Classes) != (state.label != before))
            number(-99);
        number(state.label);
        number(state.score);
        for (int i = 0; i < Cfg::Top; ++i) {
            number(state.top[i].label);
            number(state.top[i].score);
        }
    }
}
"""
Case = tuple[Decider, np.ndarray]
"""A decider, and stored values (calls, classes)."""


def decision_cases(count: int, seed: int) -> Iterator[Case]:
    """`count` streams; each activation meets each type, one class, ties, constants and extreme values."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        activation = ("none", "sigmoid", "softmax")[number % 3]
        classes = int(rng.choice([2, 3, 12, 40] if activation == "softmax" else [1, 2, 5, 40]))
        kind = post_cases.TYPES[number // 3 % 4](1 / 250 if activation == "none" else 8 / 100)
        calls = int(rng.integers(1, 40))
        drift = np.cumsum(rng.normal(0, 0.5, (calls, classes)), 0)
        special = ("drift", "ties", "constant", "extremes")[number // 12 % 4]
        real = {"ties": np.round(drift), "constant": np.full_like(drift, 0.5), "extremes": 1e9 * rng.normal(0, 1, drift.shape)}
        values = real.get(special, drift)
        values = 1 / (1 + np.exp(-np.clip(values, -30, 30))) if activation == "none" and special != "extremes" else values
        stored = kind.quantize(values)
        if kind.is_float:
            stored[::7, 0] = np.nan
        threshold = int(rng.choice([ALWAYS, ONE // 3, ONE * 4 // 5]))
        release = threshold if threshold == ALWAYS else threshold - int(rng.integers(0, ONE // 4))
        scale = FixedScale.of(kind, LOGIT if activation == "sigmoid" else ONE)
        top, average, hold = int(rng.integers(1, min(classes, 5) + 1)), int(rng.choice([1, 2, 5])), int(rng.choice([0, 3]))
        yield Decider(classes, scale, activation, top, average, threshold, release, hold), stored


def wanted(cases: list[Case]) -> list[int]:
    """Numbers that the program prints."""
    return [int(value) for decider, stored in cases for value in decider.decide(stored).ravel()]


def program(cases: list[Case], write: str) -> str:
    """The C++ text; `write` is the statement that prints `text`."""
    configs, calls = RUN, ""
    for number, (decider, stored) in enumerate(cases):
        configs += post_cases.array(f"values{number}", stored)
        configs += post_cases.config(f"Case{number}", ScoreDecider((), decider), [stored], {"State": f"Decision<Case{number}>"})
        calls += f"    run<Case{number}>(values{number}, {len(stored)});\n"
    return post_cases.program("decisions", configs, "", calls, write)
