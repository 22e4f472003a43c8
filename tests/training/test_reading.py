"""Batches for a training: the same from threads and from processes; what goes wrong in a process ends with a code."""

import importlib.util
import os

import numpy as np
import pytest
from support.errors import refused

from n2d2py.data.stimuli import Stimuli
from n2d2py.errors import N2D2Error

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")

PARTS = [np.array([7, 2, 9]), np.array([0, 4, 1]), np.array([5])]


def stimuli(load) -> Stimuli:
    return Stimuli([f"s{k}" for k in range(10)], np.arange(10), (2, 3), load)


def read(load, workers: int, epoch: int = 0, label_map=None):
    from n2d2py.training.loop import Source

    def drawn(number: int) -> Stimuli:
        found = stimuli(lambda k: load(k) + np.float32(100 * number))
        found.label_map = label_map
        return found

    return [(x.numpy(), labels) for x, labels in Source(stimuli(load), drawn, workers).batches(PARTS, epoch)]


def plain(position: int) -> np.ndarray:
    return np.full((2, 3), position, np.float32)


def test_processes_read_what_threads_read():
    threads, processes = read(plain, 0, epoch=3), read(plain, 2, epoch=3)
    assert len(threads) == len(processes) == 3
    for part, (x, labels), (y, others) in zip(PARTS, threads, processes, strict=True):
        assert np.array_equal(x, y) and np.array_equal(labels, others)
        assert np.array_equal(labels, part) and np.array_equal(x[:, 0, 0], part + 300)


@pytest.mark.parametrize("workers", [0, 2])
def test_labels_of_pixels_are_read_too(workers):
    for part, (x, labels) in zip(PARTS, read(plain, workers, label_map=lambda k: np.full((2, 3), k)), strict=True):
        assert np.array_equal(x, labels) and np.array_equal(labels[:, 1, 2], part)


def test_an_error_of_a_stimulus_keeps_its_code():
    def load(position: int) -> np.ndarray:
        if position == 4:
            raise N2D2Error("E415", "stimulus s4 is uint16", where="net.ini:3", remedy="store all in one number type")
        return plain(position)

    for workers in (0, 2):
        assert refused("E415.*net.ini:3.*s4 is uint16", read, load, workers)


def test_a_process_that_dies_is_named():
    def load(position: int) -> np.ndarray:
        if position == 4:
            os._exit(9)
        return plain(position)

    assert refused("E434.*-learn-workers", read, load, 2)


def test_what_is_held_is_read_once():
    from n2d2py.training.loop import Source

    asked: list[int] = []
    source = Source(stimuli(lambda k: asked.append(k) or plain(k)))
    for _ in range(2):
        assert [x.shape for x, _ in source.batches(PARTS)] == [(3, 2, 3), (3, 2, 3), (1, 2, 3)]
    assert sorted(asked) == list(range(10))
