"""Exports are built with -O0 unless a test says otherwise."""

import os

import pytest

pytest.register_assert_rewrite("support.e2e_run")
os.environ.setdefault("OPT", "-O0")
