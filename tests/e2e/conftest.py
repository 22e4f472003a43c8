"""Makes the helpers of this folder importable; exports are built with -O0 unless a test says otherwise."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("e2e_run")
os.environ.setdefault("OPT", "-O0")
