"""Makes the helpers of this folder, and those that build exports, importable by their names."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "export")]
