"""The export for microcontrollers as `-export CPP_MCU` finds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from n2d2py import log
from n2d2py.exports.base import ExportRequest, KernelChoice, Prepared, QuantDefaults
from n2d2py.exports.cpp.parameters import PARAMETERS as CPP_PARAMETERS
from n2d2py.exports.cpp.project import Project
from n2d2py.exports.cpp.target import CppTarget
from n2d2py.exports.mcu.boards import CORES, DEFAULT_CORE, transforming_cores
from n2d2py.exports.mcu.mlperf import BENCHMARKS, benchmark_problem, warn_of_negative_results
from n2d2py.exports.mcu.project import McuProject, constants_of, winograd_forms
from n2d2py.exports.mcu.runner import BoardExport
from n2d2py.exports.mcu.steady import varying_layers
from n2d2py.exports.registry import register
from n2d2py.graph import QuantGraph
from n2d2py.ini.schema import Key, Kind, Schema, keys
from n2d2py.memory.constants import Constant
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.scratch import ScratchNeed
from n2d2py.memory.settings import read_memories

_DEFAULTS = {"BufferAlignment": 4}
"""Defaults for a microcontroller that differ from CPP."""
_OTHERWISE: dict[str, dict[str, Any]] = {
    "WeightsFormat": {
        "choices": ("auto", "text", "string"),
        "doc": "Storage of weights. text: numbers. string: string literals, which compile faster. auto: chosen by size.",
    }
}
"""Further text about a parameter."""
_WITHOUT = ("OpenMP", "RuntimeDispatch", "FuseResidualAdd", "PrepackWeights", "Winograd", "SmallCode", "WeightsFile")
"""Parameters without use."""

_TEXTS = """
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
PARAMETERS = Schema(
    "export parameters of CPP_MCU",
    tuple(
        replace(key, default=_DEFAULTS.get(key.name, key.default), **_OTHERWISE.get(key.name, {}))
        for key in CPP_PARAMETERS.keys
        if key.name not in _WITHOUT
    ),
).extended(
    *keys(
        _TEXTS,
        Key("Core", Kind.ENUM, DEFAULT_CORE, choices=tuple(core.name for core in CORES)),
        Key("TestVectors", Kind.UINT, 3, minimum=1, maximum=999),
        Key("SpeedForFlash", Kind.BOOL, False),
        Key("CopyWeights", Kind.ENUM, "single", choices=("single", "double")),
        Key("SingleFile", Kind.BOOL, False),
        Key("MLPerfTiny", Kind.ENUM, "none", choices=("none", *BENCHMARKS)),
    ),
    name="export parameters of CPP_MCU",
)


class McuTarget(CppTarget):
    """The C++ project with boards, startup code and test vectors, for cores without an operating system."""

    name = "CPP_MCU"
    aliases = ("CPP_STM32",)
    stands_in_for = ()
    parameters = PARAMETERS
    layer_parameters = Schema("export parameters of a layer of CPP_MCU", ())
    quantization = QuantDefaults(rescaling="Fixed-point-p32", file_types=True)
    adds_residuals = False
    runner = BoardExport
    project = McuProject
    in_floats = False

    def overruled(self, parameters: Mapping[str, Any], bits: int) -> dict[str, str]:
        """As for CPP, which knows of dispatch too; SpeedForFlash on a core without Winograd."""
        reasons = super().overruled({**parameters, "RuntimeDispatch": False}, bits)
        if parameters["SIMD"] == "none":
            reasons["SpeedForFlash"] = "SIMD=none leaves the portable kernels"
        elif not self.trades_flash({**parameters, "SpeedForFlash": True}):
            cores = ", ".join(one.name for one in transforming_cores())
            reasons["SpeedForFlash"] = f"Core={parameters['Core']} has no kernels by Winograd; these have: {cores}"
        kinds = {memory.kind for memory in read_memories(parameters["Memories"])}
        if not {"", "rom"} <= kinds:
            reasons["CopyWeights"] = "Memories does not name both a memory for tensors and one for constants"
        return reasons

    def constant_needs(self, graph: QuantGraph, plan: MemoryPlan, parameters: Mapping[str, Any]) -> list[Constant]:
        return constants_of(graph, plan, self.choices(parameters), portable=parameters["SIMD"] == "none")

    def trades_flash(self, parameters: Mapping[str, Any]) -> bool:
        core = parameters.get("Core", DEFAULT_CORE)
        wanted = parameters.get("SpeedForFlash", False) and parameters.get("SIMD", "auto") != "none"
        return bool(wanted) and any(one.name == core for one in transforming_cores())

    def details(self, prepared: Prepared[Project]) -> dict[str, Any]:
        """Details for the runner: the core, the layers in the order in which they run; the layers whose time the data change."""
        request = prepared.request
        return {
            **super().details(prepared),
            "core": request.parameters.get("Core", DEFAULT_CORE),
            "layers": list(request.memory_plan.order),
            "varying_time": varying_layers(request.graph),
            "arena_bytes": prepared.result.arena_bytes if prepared.result else 0,
        }

    def scratch_needs(self, graph: QuantGraph, plan: MemoryPlan, parameters: Mapping[str, Any]) -> Mapping[str, ScratchNeed]:
        """None: its kernels have their windows on the stack, which `NAME_STACK_BYTES` bounds."""
        return {}

    def prepare(self, request: ExportRequest) -> Prepared[Project]:
        """As for CPP; E705 for a network that does not fit MLPerfTiny."""
        problem = benchmark_problem(request) if request.graph.bits > 0 else None
        return Prepared(request, [problem]) if problem else super().prepare(request)

    def write(self, prepared: Prepared[Project], folder: Path) -> list[KernelChoice]:
        """As for CPP; W109 where SpeedForFlash makes no layer faster; W706 for results that a benchmark does not expect."""
        warn_of_negative_results(prepared.request)
        forms = winograd_forms(prepared.result)
        if self.trades_flash(prepared.request.parameters) and all(one.values is None for one in forms):
            why = f"no convolution is faster with Winograd ({'; '.join(dict.fromkeys(one.problem for one in forms))})"
            reason = why if forms else "there is no dense convolution"
            log.warning("W109", f"SpeedForFlash has no effect: {reason}", remedy="remove it")
        return super().write(prepared, folder)


register(McuTarget())
