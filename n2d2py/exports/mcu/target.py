"""The export for microcontrollers as `-export CPP_MCU` finds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from n2d2py.errors import N2D2Error
from n2d2py.exports.base import ExportRequest, Prepared, QuantDefaults
from n2d2py.exports.cpp.project import Project
from n2d2py.exports.cpp.states import bytes_with_states
from n2d2py.exports.cpp.target import CppTarget
from n2d2py.exports.mcu.boards import DEFAULT_CORE
from n2d2py.exports.mcu.parameters import PARAMETERS
from n2d2py.exports.mcu.project import McuProject
from n2d2py.exports.mcu.runner import BoardExport
from n2d2py.exports.mcu.steady import varying_layers
from n2d2py.exports.registry import register
from n2d2py.graph import QuantGraph
from n2d2py.ini.schema import Schema
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.scratch import ScratchNeed


class McuTarget(CppTarget):
    """The C++ project with boards, startup code and test vectors, for cores without an operating system."""

    name = "CPP_MCU"
    aliases = ("CPP_STM32",)
    stands_in_for = ()
    parameters = PARAMETERS
    layer_parameters = Schema("export parameters of a layer of CPP_MCU", ())
    quantization = QuantDefaults(rescaling="Fixed-point-p32")
    adds_residuals = False
    runner = BoardExport
    project = McuProject

    def overruled(self, parameters: Mapping[str, Any], bits: int) -> dict[str, str]:
        """As for CPP, which knows of dispatch too."""
        return super().overruled({**parameters, "RuntimeDispatch": False}, bits)

    def details(self, prepared: Prepared[Project]) -> dict[str, Any]:
        """What the runner needs: the core, the layers in the order in which they run; the layers whose time the data change."""
        request = prepared.request
        return {
            **super().details(prepared),
            "core": request.parameters.get("Core", DEFAULT_CORE),
            "layers": list(request.memory_plan.order),
            "varying_time": varying_layers(request.graph),
            "arena_bytes": max(1, bytes_with_states(request.graph, request.memory_plan.arena_bytes)),
        }

    def scratch_needs(self, graph: QuantGraph, plan: MemoryPlan, parameters: Mapping[str, Any]) -> Mapping[str, ScratchNeed]:
        """None: its kernels have their windows on the stack, which `NAME_STACK_BYTES` bounds."""
        return {}

    def prepare(self, request: ExportRequest) -> Prepared[Project]:
        """As for CPP; E704 for a network that computes in floating point."""
        if request.graph.bits < 0:
            error = N2D2Error(
                "E705",
                f"the network '{request.graph.name}' computes in floating point",
                remedy="export it with -nbbits 8, or with -export CPP",
            )
            return Prepared(request, [error])
        return super().prepare(request)

    def check_tunable(self, parameters: Mapping[str, Any]) -> None:
        """Nothing is timed."""
        raise N2D2Error("E808", f"-tune does not fit: the export {self.name} is not timed", remedy="leave out -tune")


register(McuTarget())
