"""Shared by the tests of kernels: every kernel against the normative arithmetic, bit for bit (floating point: 1e-5 of the largest value)."""

from support import kernel_cases as cases
from support import kernel_harness as harness

SLOW_BUILDS = {
    "gcc-O0": ("g++", ("-O0",)),
    "gcc-O3-native": ("g++", ("-O3", "-march=native", "-fopenmp")),
    "gcc-O2-all-loops-parallel": ("g++", ("-O2", "-fopenmp", "-DN2D2_PARALLEL_WORK=0")),
    "gcc-O2-native-all-loops-parallel": ("g++", ("-O2", "-march=native", "-fopenmp", "-DN2D2_PARALLEL_WORK=0")),
    "clang-O0": ("clang++", ("-O0",)),
    "clang-O3-native": ("clang++", ("-O3", "-march=native")),
    "gcc-sanitizers": ("g++", ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")),
    "clang-sanitizers": ("clang++", ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")),
}


def sweep_cases(seed: int, convolutions: int) -> list[harness.Case]:
    """The whole sweep."""
    sweep = cases.Sweep(seed)
    return [
        *cases.convolutions(sweep, convolutions),
        *cases.fully_connected(sweep),
        *cases.pools(sweep),
        *cases.pointwise(sweep),
        *cases.moves(sweep),
        *cases.floats(sweep),
        *cases.packed_channels(sweep),
    ]
