"""Failures in the helpers of this folder show their values."""

import pytest

pytest.register_assert_rewrite("support.e2e_run")
