"""The export parameters of CPP_MCU."""

from __future__ import annotations

from dataclasses import dataclass

from n2d2py.exports.cpp.parameters import CppParameters
from n2d2py.exports.mcu.boards import CORES, DEFAULT_CORE, Core, core, transforming_cores
from n2d2py.exports.mcu.mlperf import BENCHMARKS, Benchmark
from n2d2py.ini import Kind, parameter

_TEXTS = """
WeightsFormat: Storage of weights. text: numbers. string: string literals, which compile faster. auto: chosen by size.
Core: Core on which -test and -compare run the export in QEMU, and default of TARGET in the Makefile. The export runs on all
    cores.
TestVectors: Number of inputs in test/vectors, each with the results of all layers.
SpeedForFlash: Use Winograd for 3x3 convolutions with stride 1 on cortex-m4, m7 and m33 where it takes fewer instructions.
    Results stay exact. Transformed weights take 3.6 times the flash, and the stack grows.
CopyWeights: Copies of weights in the fastest memory, with Memories for constants. single: before the layer. double: while the
    layer before runs, for firmware with DMA.
SingleFile: Also write src/<namespace>.hpp with interface, kernels, constants and network in one C++11 file, and the files
    of an Arduino library and a CMSIS pack.
MLPerfTiny: Also write the firmware of this benchmark of MLPerf Tiny for the runner of MLCommons, in mlperf/. Its API is not
    part of the export (docs/how-to/mlperf_tiny.md).
"""


@dataclass(frozen=True)
class McuParameters(
    CppParameters,
    texts=_TEXTS,
    without="openmp runtime_dispatch fuse_residuals prepack_weights winograd small_code weights_file",
):
    """The export parameters of CPP_MCU."""

    buffer_alignment: int = parameter(
        "BufferAlignment", Kind.UINT, 4, CppParameters.rows["buffer_alignment"].doc, minimum=1, maximum=4096
    )
    weights_format: str = parameter("WeightsFormat", Kind.ENUM, "auto", choices=("auto", "text", "string"))
    prepack_weights: bool = False
    core: Core = parameter("Core", Kind.ENUM, DEFAULT_CORE, read=core, choices=tuple(one.name for one in CORES))
    test_vectors: int = parameter("TestVectors", Kind.UINT, 3, minimum=1, maximum=999)
    speed_for_flash: bool = parameter("SpeedForFlash", Kind.BOOL, False)
    copy_weights: str = parameter("CopyWeights", Kind.ENUM, "single", choices=("single", "double"))
    single_file: bool = parameter("SingleFile", Kind.BOOL, False)
    benchmark: Benchmark | None = parameter("MLPerfTiny", Kind.ENUM, "none", read=BENCHMARKS.get, choices=("none", *BENCHMARKS))

    @property
    def trades_flash(self) -> bool:
        return self.speed_for_flash and not self.portable and self.core in transforming_cores()
