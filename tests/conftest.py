"""Exports are built with -O0 unless a test says otherwise: most run once, and their values do not depend on it."""

import logging
import os

import pytest

from n2d2py.errors import N2D2Error

os.environ.setdefault("OPT", "-O0")


@pytest.fixture(autouse=True)
def fresh_messages():
    """`log.setup` of one test, or its use of the Python API, changes no messages of the next: their way to `caplog`, their words."""
    logging.getLogger("n2d2py").propagate = True
    N2D2Error.words = None
