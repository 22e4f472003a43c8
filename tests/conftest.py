"""Exports are built with -O0 unless a test says otherwise: most run once, and their values do not depend on it."""

import logging
import os

import pytest

os.environ.setdefault("OPT", "-O0")


@pytest.fixture(autouse=True)
def propagating_log():
    """`log.setup` of one test does not keep the messages of the next one from `caplog`."""
    logging.getLogger("n2d2py").propagate = True
