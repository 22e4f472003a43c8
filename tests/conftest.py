"""The environment of all tests: exports are built with -O0, since most run once and their values do not depend on it.

Libraries compute with one thread, as in the command line: more would only spin between the small products of a test.
"""

import logging
import os

for variable, value in (("OPT", "-O0"), ("OPENBLAS_NUM_THREADS", "1"), ("OMP_NUM_THREADS", "1")):
    os.environ.setdefault(variable, value)

import pytest  # noqa: E402
from support.extra_targets import INSTALLED  # noqa: E402

from n2d2py.errors import N2D2Error  # noqa: E402
from n2d2py.exports.registry import EXTRAS  # noqa: E402

ABSENT = sorted(EXTRAS.keys() - INSTALLED)
collect_ignore_glob = [f"{EXTRAS[name]}/*" for name in ABSENT]


def pytest_report_header() -> str:
    """Say which targets are not tested."""
    return "".join(f"not installed, not tested: {name} (pip install ./plugins/{EXTRAS[name]})\n" for name in ABSENT)


@pytest.fixture(autouse=True)
def fresh_messages():
    """`log.setup` of one test, or its use of the Python API, changes no messages of the next: their way to `caplog`, their words."""
    logging.getLogger("n2d2py").propagate = True
    N2D2Error.words = None


@pytest.fixture
def without_report(monkeypatch):
    """Exports leave out `statistics/`, which takes up to half of their time: for tests that look at other files."""
    monkeypatch.setattr("n2d2py.pipeline.report_stage", lambda *parts: None)
