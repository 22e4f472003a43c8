"""The export for microcontrollers as `-export CPP_MCU` finds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from n2d2py import log
from n2d2py.exports.base import ExportRequest, KernelChoice, Prepared, QuantDefaults
from n2d2py.exports.cpp.project import Project
from n2d2py.exports.cpp.target import CppTarget
from n2d2py.exports.mcu.boards import transforming_cores
from n2d2py.exports.mcu.mlperf import check_benchmark, warn_of_negative_results
from n2d2py.exports.mcu.parameters import McuParameters
from n2d2py.exports.mcu.project import McuProject, constants_of, winograd_forms
from n2d2py.exports.mcu.runner import BoardExport
from n2d2py.exports.mcu.stack import varying_layers
from n2d2py.exports.registry import register
from n2d2py.graph import QuantGraph
from n2d2py.ini import Schema
from n2d2py.memory.constants import Constant
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.scratch import ScratchNeed


class McuTarget(CppTarget):
    """The C++ project with boards, startup code and test vectors, for cores without an operating system."""

    name = "CPP_MCU"
    aliases = ("CPP_STM32",)
    stands_in_for = ()
    parameter_type = McuParameters
    layer_parameters = Schema("export parameters of a layer of CPP_MCU", ())
    quantization = QuantDefaults(rescaling="Fixed-point-p32", file_types=True)
    adds_residuals = False
    runner = BoardExport
    project = McuProject
    in_floats = False

    def overruled(self, parameters: Mapping[str, Any], graph: QuantGraph) -> dict[str, str]:
        reasons, own = super().overruled(parameters, graph), McuParameters.of(parameters)
        if own.portable:
            reasons["SpeedForFlash"] = "SIMD=none leaves the portable kernels"
        elif not replace(own, speed_for_flash=True).trades_flash:
            cores = ", ".join(one.name for one in transforming_cores())
            reasons["SpeedForFlash"] = f"Core={own.core.name} has no kernels by Winograd; these have: {cores}"
        if not (own.tensor_memories and own.roms):
            reasons["CopyWeights"] = "Memories does not name both a memory for tensors and one for constants"
        return reasons

    def constant_needs(self, graph: QuantGraph, plan: MemoryPlan, parameters: Mapping[str, Any]) -> list[Constant]:
        own = McuParameters.of(parameters)
        return constants_of(graph, plan, self.choices(own), own.portable)

    def details(self, prepared: Prepared[Project]) -> dict[str, Any]:
        """Return the details for the runner: the core, the layers in execution order, and those whose time varies."""
        request = prepared.request
        return {
            **super().details(prepared),
            "core": McuParameters.of(request.parameters).core.name,
            "layers": list(request.memory_plan.order),
            "varying_time": varying_layers(request.graph),
            "arena_bytes": prepared.result.arena_bytes if prepared.result else 0,
        }

    def scratch_needs(self, graph: QuantGraph, plan: MemoryPlan, parameters: Mapping[str, Any]) -> Mapping[str, ScratchNeed]:
        """None: its kernels have their windows on the stack, which `NAME_STACK_BYTES` bounds."""
        return {}

    def make(self, request: ExportRequest) -> Project:
        """As for CPP; E705 for a network that does not fit MLPerfTiny."""
        benchmark = McuParameters.of(request.parameters).benchmark
        if benchmark and request.graph.bits > 0:
            check_benchmark(benchmark, request.graph)
        return super().make(request)

    def write(self, prepared: Prepared[Project], folder: Path) -> list[KernelChoice]:
        """As for CPP; W109 where SpeedForFlash makes no layer faster; W706 for results that a benchmark does not expect."""
        own, forms = McuParameters.of(prepared.request.parameters), winograd_forms(prepared.result)
        if own.benchmark:
            warn_of_negative_results(own.benchmark, prepared.request.graph)
        if own.trades_flash and all(one.values is None for one in forms):
            why = f"no convolution is faster with Winograd ({'; '.join(dict.fromkeys(one.problem for one in forms))})"
            reason = why if forms else "there is no dense convolution"
            log.warning("W109", f"SpeedForFlash has no effect: {reason}", remedy="remove it")
        return super().write(prepared, folder)


register(McuTarget())
