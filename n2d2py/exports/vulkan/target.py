"""The export for GPUs as `-export Vulkan` finds it, built and run by the tool."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from n2d2py import log, resources
from n2d2py.errors import N2D2Error
from n2d2py.exports.base import ExportRequest, KernelChoice, Prepared, QuantDefaults
from n2d2py.exports.cpp.parameters import CppParameters
from n2d2py.exports.cpp.project import Project
from n2d2py.exports.cpp.runner import CompiledExport
from n2d2py.exports.cpp.target import CppTarget
from n2d2py.exports.registry import register
from n2d2py.exports.vulkan.dispatch import compiler
from n2d2py.exports.vulkan.project import VulkanProject
from n2d2py.graph import QuantGraph
from n2d2py.ini import Kind, Schema, parameter

_TEXTS = """
IncludeOutputInBuffer: Outputs are computed in the arena, which the device has, and then copied to the caller.
MemoryAlignment: Alignment of the pixel stride in bytes. With 4, a shader loads four channels as one word.
MemoryMode: Outputs never overlap inputs, because the invocations of a shader have no order.
"""
_CONSTANT = """
include_input optimize_buffer strategy budget memories extra_macs pack_activations stream_input weights_file pack_weights
prepack_weights winograd small_code simd runtime_dispatch
"""


@dataclass(frozen=True)
class VulkanParameters(CppParameters, texts=_TEXTS, without=_CONSTANT):
    """The export parameters of Vulkan."""

    include_output: bool | None = parameter("IncludeOutputInBuffer", Kind.ENUM, "1", read=bool, choices=("1",))
    alignment: int = parameter("MemoryAlignment", Kind.UINT, 4, minimum=1, maximum=4096)
    mode: str = parameter("MemoryMode", Kind.ENUM, "Speed", choices=("Speed",))
    prepack_weights: bool = False


class VulkanExport(CompiledExport):
    """A built copy of a written Vulkan export, which runs on the device that N2D2_VULKAN_DEVICE names, or on the best one."""

    remedy = "install g++, make, libvulkan-dev and a Vulkan driver (mesa-vulkan-drivers has one for the CPU)"
    needed = "Vulkan driver (mesa-vulkan-drivers has one for the CPU)"

    @classmethod
    def missing(cls, parameters: Mapping[str, Any]) -> str:
        return super().missing(parameters) or missing_vulkan()


@cache
def missing_vulkan() -> str:
    """Return a Vulkan program cannot be built, or finds no device: the reason; "" where both work."""
    with tempfile.TemporaryDirectory(prefix="n2d2py-") as folder:
        shutil.copy(resources.folder("export_templates") / "vulkan/dnn/src/probe.cpp", folder)
        if shutil.which("g++") is None:
            return "no C++ compiler or make"
        words = ["g++", "probe.cpp", "-o", "probe", "-lvulkan"]
        if subprocess.run(words, cwd=folder, capture_output=True).returncode:
            return "no headers or loader of Vulkan (libvulkan-dev)"
        return "" if subprocess.run(["./probe"], cwd=folder, capture_output=True).returncode == 0 else "no Vulkan driver"


class VulkanTarget(CppTarget):
    """The C++ project with integer compute shaders; layers without a shader run on the CPU with the kernels of CPP."""

    name = "Vulkan"
    aliases = ()
    stands_in_for = ()
    parameter_type = VulkanParameters
    layer_parameters = Schema("export parameters of a layer of Vulkan", ())
    quantization = QuantDefaults(rescaling="Fixed-point-p32", file_types=True)
    keeps_states = False
    in_floats = False
    runner = VulkanExport
    project: type[Project] = VulkanProject

    def overruled(self, parameters: Mapping[str, Any], graph: QuantGraph) -> dict[str, str]:
        return {}

    def make(self, request: ExportRequest) -> Project:
        """As for CPP; E705 for a memory plan that shaders cannot use, E801 without a compiler of shaders."""
        plan, integer = request.memory_plan, request.graph.bits > 0
        if integer and (plan.streamed or plan.memories or any(plane.external for plane in plan.planes.values())):
            text = "the Vulkan export needs whole tensors in the arena, but the export parameters ask for another memory plan"
            remedy = "remove IncludeInputInBuffer, StreamInput, Memories and MemoryManagerStrategy"
            raise N2D2Error("E705", text, remedy=remedy)
        if integer:
            compiler()
        return super().make(request)

    def details(self, prepared: Prepared[Project]) -> dict[str, Any]:
        return {**super().details(prepared), "on_cpu": _project(prepared).on_cpu}

    def constant_bytes(self, prepared: Prepared[Project]) -> dict[str, int]:
        project, sizes = _project(prepared), super().constant_bytes(prepared)
        for name in sizes.keys() - project.on_cpu.keys():
            sizes[name] = sum(one.weights.nbytes + one.parameters.nbytes for one in project.dispatches[name])
        return sizes

    def write(self, prepared: Prepared[Project], folder: Path) -> list[KernelChoice]:
        project = _project(prepared)
        chosen = {one.layer: one for one in super().write(prepared, folder)}
        for name, dispatches in project.dispatches.items():
            shaders = ", ".join(dict.fromkeys(one.shader for one in dispatches))
            chosen[name] = KernelChoice(name, f"GPU: {shaders}", reason=f"{len(dispatches)} of shader {shaders}")
        for name, reason in project.on_cpu.items():
            chosen[name] = replace(chosen[name], kernel=f"CPU: {chosen[name].kernel}", reason=reason)
        count = len(project.dispatches) + len(project.on_cpu)
        log.notice("Vulkan: %d of %d layers have a shader", len(project.dispatches), count)
        for name, reason in project.on_cpu.items():
            log.notice("  on the CPU: %s (%s)", name, reason)
        return list(chosen.values())


def _project(prepared: Prepared[Project]) -> VulkanProject:
    project = prepared.result
    assert isinstance(project, VulkanProject)
    return project


register(VulkanTarget())
