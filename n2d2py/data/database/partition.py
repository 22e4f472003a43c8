"""Partition of stimuli into Learn, Validation and Test: a pure function of the seed and the label list."""

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
        learn, validation, test: fractions if `per_label`, else counts (values up to 1 are fractions there too); `test` None is the rest.
        shuffle: draw at random, else in list order.
        per_label: split each label by these fractions.
        equivalent: with `per_label`, learn and validation have equally many stimuli of each label, the fraction of the rarest label;
            the rest tests.
    """

    learn: float = 0.0
    validation: float = 0.0
    test: float | None = None
    shuffle: bool = True
    per_label: bool = True
    equivalent: bool = True


def partition(labels: np.ndarray, how: Partition, seed: int, where: Location | str | None = None) -> dict[str, np.ndarray]:
    """Return the positions (int64) of the stimuli of each set, for the label ids of the list.

    A stimulus is in at most one set. A shuffled set is in random order of the whole list: its first stimuli have all labels.

    Raises: E409 for parts that are negative or exceed the list.
    """
    labels = np.asarray(labels, np.int64)
    _check_partition(how, len(labels), where)
    order = listing_order(len(labels), how.shuffle, seed)
    if not how.per_label:
        groups = [order]
    else:
        groups = [order[labels[order] == label] for label in np.unique(labels)]
    rarest = min((len(group) for group in groups), default=0)
    equal = how.per_label and how.equivalent
    parts: dict[str, list[np.ndarray]] = {name: [] for name in SETS}
    for group in groups:
        bounds = _set_bounds(how, len(group), rarest if equal else len(group))
        for name, (start, stop) in zip(SETS, pairwise(bounds), strict=True):
            parts[name].append(group[start:stop])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    empty = np.zeros(0, np.int64)
    return {name: order[np.sort(rank[np.concatenate([empty, *parts[name]])])] for name in SETS}


def listing_order(count: int, shuffle: bool, seed: int) -> np.ndarray:
    """Return the positions 0 to count-1, permuted by the seed if `shuffle`."""
    if not shuffle:
        return np.arange(count, dtype=np.int64)
    # RandomState: the one generator whose stream NumPy guarantees across versions.
    return np.random.RandomState(seed % 2**32).permutation(count).astype(np.int64)


def _round_half_up(value: float) -> int:
    """Return the nearest integer, ties upwards, tolerating the error of sums of fractions."""
    return math.floor(value + 0.5 + 1e-9)


def _set_bounds(how: Partition, count: int, base: int) -> list[int]:
    """Return the start of each set and the end, in a group of `count`; `base` is the size of the rarest group."""

    def size(part: float) -> float:
        return part * base if how.per_label or part <= 1 else part

    learn = min(_round_half_up(size(how.learn)), count)
    used = min(_round_half_up(size(how.learn) + size(how.validation)), count)
    if how.test is None:
        nothing_left = how.per_label and how.learn + how.validation > 1 - 1e-9
        return [0, learn, used, used if nothing_left else count]
    whole = how.test * count if how.per_label or how.test <= 1 else how.test
    if base == count:
        end = _round_half_up(size(how.learn) + size(how.validation) + whole)
    else:
        end = used + _round_half_up(whole)
    return [0, learn, used, max(used, min(end, count))]


def _check_partition(how: Partition, count: int, where: Location | str | None) -> None:
    parts = {"Learn": how.learn, "Validation": how.validation, "Test": how.test or 0.0}
    for name, part in parts.items():
        if part < 0:
            raise N2D2Error("E409", f"{name}={part:g} is negative", where=where, remedy="give a fraction from 0 to 1")
    total = sum(parts.values())
    text = " + ".join(f"{name} ({part:g})" for name, part in parts.items() if part)
    if how.per_label and total > 1 + 1e-6:
        raise N2D2Error("E409", f"{text} exceeds 1", where=where, remedy="give fractions with a total of at most 1")
    numbers = sum(part * count if part <= 1 else part for part in parts.values())
    if not how.per_label and numbers > count + 1e-6:
        what = f"{text} exceeds the {count} stimuli"
        raise N2D2Error("E409", what, where=where, remedy=f"give numbers with a total of at most {count}, or fractions")
