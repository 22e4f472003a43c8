"""The modules of this folder, as `run.py` imports them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
