"""Exports are built with -O0 unless a test says otherwise: most run once, and their values do not depend on it."""

import os

os.environ.setdefault("OPT", "-O0")
