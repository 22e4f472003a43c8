"""Which stimuli learn, validate and test: a pure function of the seed and of the listed labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from n2d2py.errors import Location, N2D2Error

SETS = ("Learn", "Validation", "Test")


@dataclass(frozen=True)
class Partition:
    """Split of a list of stimuli.

    Attributes:
        learn, validation, test: fractions when `per_label`, else counts (values up to 1 are
            fractions there too); `test` None takes what the others leave.
        shuffle: draw at random, else in the order of the list.
        per_label: each label is split by these fractions.
        equivalent: with `per_label`, learn and validation take the same number of each label, the
            fraction of the rarest one's; the rest tests.
    """

    learn: float = 0.0
    validation: float = 0.0
    test: float | None = None
    shuffle: bool = True
    per_label: bool = True
    equivalent: bool = True


def partition(labels: np.ndarray, how: Partition, seed: int, where: Location | str | None = None) -> dict[str, np.ndarray]:
    """Positions (int64) of the stimuli of each set, for the label ids of the list.

    A stimulus is in one set at most. A set is in random order of the whole list when shuffled, so
    that its first stimuli are of all labels.

    Raises:
        N2D2Error: E409 when the parts are negative or more than there is.
    """
    labels = np.asarray(labels, np.int64)
    _check(how, len(labels), where)
    order = listing_order(len(labels), how.shuffle, seed)
    if not how.per_label:
        groups = [order]
    else:
        groups = [order[labels[order] == label] for label in np.unique(labels)]
    rarest = min((len(group) for group in groups), default=0)
    equal = how.per_label and how.equivalent
    parts: dict[str, list[np.ndarray]] = {name: [] for name in SETS}
    for group in groups:
        bounds = _bounds(how, len(group), rarest if equal else len(group))
        for name, (start, stop) in zip(SETS, pairwise(bounds), strict=True):
            parts[name].append(group[start:stop])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    empty = np.zeros(0, np.int64)
    return {name: order[np.sort(rank[np.concatenate([empty, *parts[name]])])] for name in SETS}


def listing_order(count: int, shuffle: bool, seed: int) -> np.ndarray:
    """The positions 0 to count-1, permuted by the seed when `shuffle`."""
    if not shuffle:
        return np.arange(count, dtype=np.int64)
    # RandomState: the one generator whose stream NumPy guarantees across versions.
    return np.random.RandomState(seed % 2**32).permutation(count).astype(np.int64)


def _rounded(value: float) -> int:
    """The nearest integer, ties upwards, forgiving the error of sums of fractions."""
    return math.floor(value + 0.5 + 1e-9)


def _bounds(how: Partition, count: int, base: int) -> list[int]:
    """Start of the sets and the end, in a group of `count`; `base` is the size of the rarest."""

    def size(part: float) -> float:
        return part * base if how.per_label or part <= 1 else part

    learn = min(_rounded(size(how.learn)), count)
    seen = min(_rounded(size(how.learn) + size(how.validation)), count)
    if how.test is None:
        nothing_left = how.per_label and how.learn + how.validation > 1 - 1e-9
        return [0, learn, seen, seen if nothing_left else count]
    whole = how.test * count if how.per_label or how.test <= 1 else how.test
    if base == count:
        end = _rounded(size(how.learn) + size(how.validation) + whole)
    else:
        end = seen + _rounded(whole)
    return [0, learn, seen, max(seen, min(end, count))]


def _check(how: Partition, count: int, where: Location | str | None) -> None:
    parts = {"Learn": how.learn, "Validation": how.validation, "Test": how.test or 0.0}
    for name, part in parts.items():
        if part < 0:
            raise N2D2Error("E409", f"{name}={part:g} is negative", where=where, remedy="give a fraction from 0 to 1")
    total = sum(parts.values())
    told = " + ".join(f"{name} ({part:g})" for name, part in parts.items() if part)
    if how.per_label and total > 1 + 1e-6:
        raise N2D2Error("E409", f"{told} exceeds 1", where=where, remedy="give fractions with a total of at most 1")
    numbers = sum(part * count if part <= 1 else part for part in parts.values())
    if not how.per_label and numbers > count + 1e-6:
        what = f"{told} exceeds the {count} stimuli"
        raise N2D2Error("E409", what, where=where, remedy=f"give numbers with a total of at most {count}, or fractions")
