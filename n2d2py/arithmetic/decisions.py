"""Scores of classes to a decision in a stream, in integers: the definition that `kernels/n2d2/decisions.hpp` computes too.

Stored values become fixed point once (`arithmetic/fixed_scale.py`): scores in 1/65536, or logits of a sigmoid in 1/2048. A
softmax of values v is, with e = 2^30 * exp((v - max) / 65536) by the table `POWERS`,

    (65536 * e + sum(e) / 2) / sum(e)

The average of a class is that of its scores in the last calls, rounded; of equal averages the first class is the best. A class
is decided when it is the best and its average is above `threshold`. Otherwise the class before stays while its average is above
`release`. A decided class stays for `hold` calls in any case. The decision of one score is between class 0 and class 1.
"""

from dataclasses import dataclass

import numpy as np

from n2d2py.arithmetic.fixed_scale import LOGIT, ONE, POWERS, FixedScale, between, logistic

LIMIT = 2**30
"""Bound of the values in 1/65536."""

ALWAYS = -LIMIT - 1
"""The threshold below all scores."""


@dataclass(frozen=True)
class Decider:
    """The integers of a decision between `classes` scores of a call.

    `score`: conversion of the stored values. `activation`: their function, "none", "sigmoid" or "softmax". `top`: best classes
    that a result lists. `average`: calls in an average. `threshold`, `release`: bounds of averages, in 1/65536. `hold`: calls
    that a decision lasts at least, after that in which it was made.
    """

    classes: int
    score: FixedScale
    activation: str = "none"
    top: int = 1
    average: int = 1
    threshold: int = ALWAYS
    release: int = ALWAYS
    hold: int = 0

    def scores(self, stored: np.ndarray) -> np.ndarray:
        """Return the scores in 1/65536 (N, classes) of stored values."""
        if self.activation == "sigmoid":
            return logistic(self.score.of_stored(stored, 16 * LOGIT))
        values = self.score.of_stored(stored, LIMIT)
        return softmax(values) if self.activation == "softmax" else values

    def decide(self, stored: np.ndarray) -> np.ndarray:
        """Return the result of each call of a stream (N, classes), int64 (N, 2 + 2 * top).

        Its values are the decided class, -1 for none, and its average (of none, the best one); then those of the best classes.
        """
        scores, first = self.scores(stored), int(self.classes == 1)
        results, label, wait = np.zeros((len(scores), 2 + 2 * self.top), np.int64), -1, 0
        for call, result in enumerate(results):
            window = scores[max(0, call + 1 - self.average) : call + 1]
            means = (window.sum(0) + len(window) // 2) // len(window)
            best = np.argsort(-means, kind="stable")[: self.top]
            if wait:
                wait -= 1
            elif means[best[0]] > self.threshold:
                wait = self.hold if label != best[0] + first else 0
                label = int(best[0]) + first
            elif label < first or means[label - first] <= self.release:
                label = first - 1
            result[:2] = label, means[max(label - first, 0) if label >= first else best[0]]
            result[2::2], result[3::2] = best + first, means[best]
        return results


def softmax(values: np.ndarray) -> np.ndarray:
    """Return probabilities in 1/65536 of values (N, C) in 1/65536."""
    exponents = ((values - values.max(1, keepdims=True)) * 94548 + ONE // 2) >> 16  # log2(e) in 1/65536
    terms = between(POWERS, exponents & 65535, 8) << 14 >> np.minimum(-(exponents >> 16), 31)
    total = terms.sum(1, keepdims=True)
    return (terms * ONE + (total >> 1)) // total
