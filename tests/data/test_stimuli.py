"""Streaming: order, bounds of what is held, several threads, errors and early ends."""

import threading
import time

import numpy as np
import pytest
from support.tables import every

from n2d2py.data.stimuli import Stimuli


def _stimuli(count, load=None):
    return Stimuli(
        [f"s{index}" for index in range(count)],
        np.arange(count) % 3,
        (1, 2),
        load or (lambda index: np.full((1, 2), index, np.float32)),
    )


@every("count, size", [(1, 1), (7, 3), (8, 8), (9, 8), (100, 13), (64, 64), (65, 200)])
def test_batches_are_in_order_and_complete(count, size):
    batches = list(_stimuli(count).batches(size, workers=3))
    assert [len(x) for x, _, _ in batches[:-1]] == [size] * (len(batches) - 1)
    np.testing.assert_array_equal(np.concatenate([x[:, 0, 0] for x, _, _ in batches]), np.arange(count))
    np.testing.assert_array_equal(np.concatenate([labels for _, labels, _ in batches]), np.arange(count) % 3)
    assert [name for _, _, names in batches for name in names] == [f"s{i}" for i in range(count)]
    assert batches[0][0].dtype == np.float32


def test_order_holds_when_early_stimuli_are_slow():
    def load(index):
        time.sleep(0.02 if index < 8 else 0)
        return np.full((1, 2), index, np.float32)

    ((x, _, _),) = _stimuli(24, load).batches(24, workers=3)
    np.testing.assert_array_equal(x[:, 0, 0], np.arange(24))


def test_two_stimuli_are_loaded_at_once():
    meeting = threading.Barrier(2, timeout=5)

    def load(index):
        if index in (0, 8):  # the first of each of two chunks: passes only if both are running
            meeting.wait()
        return np.zeros((1, 2), np.float32)

    assert len(list(_stimuli(16, load).batches(16, workers=2))) == 1


def test_what_is_read_ahead_is_bounded():
    loaded = []

    def load(index):
        loaded.append(index)
        return np.zeros((1, 2), np.float32)

    batches = _stimuli(10_000, load).batches(8, workers=2)
    next(batches)
    time.sleep(0.1)
    assert len(loaded) <= 64
    batches.close()
    assert len(loaded) <= 64
    assert not [one for one in threading.enumerate() if one.name.startswith("stimuli")]


def test_an_error_comes_in_its_turn_and_ends_the_threads():
    def load(index):
        if index == 20:
            raise ValueError("number 20")
        return np.zeros((1, 2), np.float32)

    batches = _stimuli(100, load).batches(10, workers=2)
    assert len(next(batches)[0]) == 10 and len(next(batches)[0]) == 10
    with pytest.raises(ValueError, match="number 20"):
        next(batches)
    assert not [one for one in threading.enumerate() if one.name.startswith("stimuli")]


def test_take_and_single_stimuli():
    taken = _stimuli(10).take([7, 2]).take([1])
    assert taken.names == ["s2"] and taken.labels.tolist() == [2] and taken[0][0, 0] == 2
    with pytest.raises(IndexError):
        _stimuli(3)[3]
    with pytest.raises(IndexError):
        _stimuli(3).take([-1])
