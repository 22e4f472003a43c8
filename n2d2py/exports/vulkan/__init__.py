"""The export Vulkan: a C++ project that runs integer compute shaders on a GPU."""
