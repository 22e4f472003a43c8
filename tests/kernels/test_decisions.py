"""Decisions: the definition against float64 and by hand, the kernel against the definition."""

import numpy as np
from support.decision_cases import decision_cases, program, wanted
from support.kernel_harness import each_compiler, printed_by

from n2d2py.arithmetic import FLOAT32
from n2d2py.arithmetic.decisions import Decider, softmax
from n2d2py.arithmetic.fixed_scale import ONE, FixedScale


def test_softmax_is_that_of_float64():
    """Within 2 / 65536, for two to a thousand classes, equal values and values that are far apart."""
    rng = np.random.default_rng(1)
    for classes in (2, 10, 1000):
        values = np.concatenate([rng.normal(0, spread, (40, classes)) for spread in (0, 0.1, 3, 2000)])
        fixed = np.rint(values * ONE).astype(np.int64)
        terms = np.exp(fixed / ONE - (fixed / ONE).max(1, keepdims=True))
        assert abs(softmax(fixed) - ONE * terms / terms.sum(1, keepdims=True)).max() <= 2


def stream(scores: list[list[float]], **settings: int) -> list[list[float]]:
    """Decided class and its score of each call."""
    found = Decider(len(scores[0]), FixedScale.of(FLOAT32, ONE), **settings).decide(np.array(scores, np.float32))
    return [[label, score / ONE] for label, score in found[:, :2].tolist()]


def test_streams_by_hand():
    rising = [[0.0, 0.25], [0.0, 0.75], [0.0, 0.5], [0.0, 0.25]]
    assert stream(rising) == [[1, 0.25], [1, 0.75], [1, 0.5], [1, 0.25]]
    assert stream(rising, threshold=ONE // 2, release=ONE * 3 // 8) == [[-1, 0.25], [1, 0.75], [1, 0.5], [-1, 0.25]]
    assert stream(rising, threshold=ONE // 2, release=ONE // 2) == [[-1, 0.25], [1, 0.75], [-1, 0.5], [-1, 0.25]]
    assert stream(rising, average=2) == [[1, 0.25], [1, 0.5], [1, 0.625], [1, 0.375]]
    turns = [[0.875, 0.125], [0.125, 0.875], [0.125, 0.875], [0.0, 0.0]]
    assert stream(turns, threshold=ONE // 2, release=ONE // 2, hold=1) == [[0, 0.875], [0, 0.125], [1, 0.875], [1, 0.0]]
    single = [[0.25], [0.75], [0.5], [0.25]]
    assert [label for label, _ in stream(single, threshold=ONE // 2, release=ONE * 3 // 8)] == [0, 1, 1, 0]
    assert stream([[0.5, 0.5]] * 2) == [[0, 0.5]] * 2
    (best,) = Decider(3, FixedScale.of(FLOAT32, ONE), top=3).decide(np.array([[0.25, 0.5, 0.25]], np.float32)).tolist()
    assert best[2:] == [1, ONE // 2, 0, ONE // 4, 2, ONE // 4]


@each_compiler(48, 96)
def test_kernels_on_this_machine(compiler, count, tmp_path):
    cases = list(decision_cases(count, seed=count))
    printed = printed_by(program(cases, "std::fputs(text, stdout)"), compiler, tmp_path)
    assert list(map(int, printed)) == wanted(cases)
    assert {-1, 0, 1} <= set(wanted(cases))
