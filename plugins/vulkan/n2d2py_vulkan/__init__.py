"""The export Vulkan: a C++ project that runs integer compute shaders on a GPU."""

from pathlib import Path

HOME = Path(__file__).parent
"""The folder of shaders, headers (`kernels`) and templates."""
