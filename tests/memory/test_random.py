"""A sample of the random networks of `sweep.py`."""

from __future__ import annotations

import pytest
from support.memory_plans import check


@pytest.mark.parametrize("seed", [223, *range(3000, 3004)])  # 223: a tensor that is read under two names
def test_every_optimization_on_and_off(seed):
    assert check(seed) >= 25


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
def test_more_networks(block):
    assert sum(check(seed) for seed in range(4000 + 10 * block, 4010 + 10 * block)) > 250
