"""Partitions: sizes by hand, determinism, refusals."""

import numpy as np
from support.errors import error_line
from support.tables import every

from n2d2py.data.database.base import SETS, Partition, partition


def _sizes(labels, how, seed=1):
    return [len(partition(np.array(labels), how, seed)[name]) for name in SETS]


def test_a_pure_function_of_the_seed():
    labels = np.arange(200) % 7
    how = Partition(0.5, 0.2)
    first, again, other = (partition(labels, how, seed) for seed in (3, 3, 4))
    for name in SETS:
        np.testing.assert_array_equal(first[name], again[name])
    assert not np.array_equal(first["Learn"], other["Learn"])


def test_the_stream_does_not_change_between_versions():
    assert partition(np.zeros(8), Partition(0.5), 1)["Learn"].tolist() == [7, 2, 1, 6]


def test_each_stimulus_is_in_one_set():
    split = partition(np.arange(100) % 3, Partition(0.5, 0.25), 1)
    assert sorted(np.concatenate(list(split.values()))) == list(range(100))


def test_sets_start_with_all_labels():
    labels = np.repeat(np.arange(4), 50)
    test = partition(labels, Partition(), 1)["Test"]
    assert set(labels[test[:30]]) == {0, 1, 2, 3}


def test_fractions_of_each_label():
    labels = np.array([0] * 10 + [1] * 30)
    split = partition(labels, Partition(0.5, 0.2, equivalent=False), 1)
    assert [np.bincount(labels[split[name]]).tolist() for name in SETS] == [[5, 15], [2, 6], [3, 9]]


def test_the_same_number_of_each_label_and_the_rest_tests():
    labels = np.array([0] * 10 + [1] * 30)
    split = partition(labels, Partition(0.5, 0.2), 1)
    assert [np.bincount(labels[split[name]]).tolist() for name in SETS] == [[5, 5], [2, 2], [3, 23]]


@every(
    "how, expected",
    [
        (Partition(), [0, 0, 40]),
        (Partition(0.0, 0.0, 0.5), [0, 0, 20]),
        (Partition(0.0, 1.0), [0, 10 + 10, 0]),  # the rarest label has 10, nothing is left over
        (Partition(0.0, 1.0, equivalent=False), [0, 40, 0]),
        (Partition(1.0, equivalent=False), [40, 0, 0]),
        (Partition(0.5, 0.2, 0.1), [10, 4, 4]),  # test: a tenth of 10 and of 30
        (Partition(25, 5, per_label=False), [25, 5, 10]),
        (Partition(25, 5, 2, per_label=False), [25, 5, 2]),
        (Partition(0.5, 0.25, per_label=False), [20, 10, 10]),
    ],
)
def test_sizes(how, expected):
    assert _sizes([0] * 10 + [1] * 30, how) == expected


def test_sums_of_fractions_lose_nothing():
    for count in range(1, 60):
        assert sum(_sizes([0] * count, Partition(0.6, 0.2, 0.2, equivalent=False))) == count


def test_in_order_without_shuffling():
    split = partition(np.array([0, 1, 0, 1]), Partition(0.5, shuffle=False), 1)
    assert split["Learn"].tolist() == [0, 1] and split["Test"].tolist() == [2, 3]


def test_an_empty_list():
    assert _sizes([], Partition(0.5, 0.5)) == [0, 0, 0]


@every(
    "how, message",
    [
        (Partition(0.8, 0.3), "E409: net: Learn (0.8) + Validation (0.3) "),
        (Partition(0.5, -0.1), "E409: net: Validation=-0.1 is negative"),
        (Partition(30, 20, per_label=False), "Learn (30) + Validation (20) "),
        (Partition(2, 3), "E409: net: Learn (2) + Validation (3) "),
    ],
)
def test_refusals(how, message):
    assert message in error_line(partition, np.zeros(40), how, 1, "net")
