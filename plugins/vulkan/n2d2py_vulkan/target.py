"""The export for GPUs as `-export Vulkan` finds it: the files of the C++ export, and the network's steps on the device."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import round_up
from n2d2py.contracts.cpp import Array, LayerCode, is_file, zero_padded
from n2d2py.errors import N2D2Error
from n2d2py.exports.base import ExportRequest, KernelChoice, Prepared, QuantDefaults
from n2d2py.exports.cpp.headers import PLUGIN_FOLDERS
from n2d2py.exports.cpp.parameters import CppParameters
from n2d2py.exports.cpp.project import Project
from n2d2py.exports.cpp.target import CompiledExport, CppTarget
from n2d2py.exports.cpp.view import ArrayView, LayerView, PortView
from n2d2py.graph import QuantGraph
from n2d2py.ini import Kind, Schema, parameter
from n2d2py.memory.plan import Plane
from n2d2py_vulkan import HOME
from n2d2py_vulkan.dispatch import Dispatch, NoShader, compiler, dispatches, overlaps, spirv

Ranges = tuple[tuple[int, int], ...]
_HEADERS = HOME / "kernels" / "n2d2" / "vulkan"
_QUAD = 4
"""Words of the unit in which the constants are aligned."""


@dataclass(frozen=True)
class StepView:
    """A step of the table of the project.

    Attributes:
        layer: C literal of its name, for a comment.
        pipeline: its number; -1 for the CPU.
    """

    layer: str
    pipeline: int
    groups: tuple[int, int] = (0, 0)
    places: tuple[int, ...] = (0, 0, 0, 0, 0)
    waits: bool = False
    identifier: str = ""
    arguments: str = ""
    touched: Ranges = ()


class VulkanProject(Project):
    """A project whose layers run on a GPU, as far as there are shaders."""

    folders = (str(HOME / "templates"), "cpp")
    device_library = "vulkan"

    def __init__(self, request: ExportRequest, codes: Mapping[str, LayerCode], parameters: CppParameters):
        super().__init__(request, codes, parameters)
        PLUGIN_FOLDERS.add("n2d2/vulkan", _HEADERS)
        self.on_cpu: dict[str, str] = {}
        self.dispatches: dict[str, tuple[Dispatch, ...]] = {}
        for node in self.graph.nodes:
            if node.name in codes:
                try:
                    self.dispatches[node.name] = tuple(dispatches(node, self.graph, self.plan))
                except NoShader as reason:
                    self.on_cpu[node.name] = str(reason)

    @cached_property
    def has_files(self) -> bool:
        return super().has_files or any(is_file(one.values, self.weights_format) for one in self.device_arrays)

    @property
    def compiled_layers(self) -> list[LayerView]:
        return [layer for layer in super().compiled_layers if layer.node.name in self.on_cpu]

    @property
    def sources(self) -> list[str]:
        return [*super().sources, "device"]

    def _files(self) -> list[tuple[str, str]]:
        left_out, own = {"dnn/include/forward.hpp", "dnn/include/guard.hpp"}, "dnn/include/device.hpp"
        return [*(pair for pair in super()._files() if pair[0] not in left_out), (own, own)]

    def write(self, folder: Path) -> None:
        super().write(folder)
        views = [ArrayView.of(array, self.weights_format) for array in self.device_arrays]
        self._write_files(views, folder)
        text = self._rendered("dnn/parameters/layer.cpp", {"layer": {"name": "the device"}, "own": views})
        (folder / "dnn/parameters/device_constants.cpp").write_text(text, encoding="utf-8", newline="\n")

    @property
    def kernel_headers(self) -> list[str]:
        return [*super().kernel_headers, "n2d2/vulkan/engine.hpp"]

    # ---- tables of the device ----------------------------------------------------------------------
    @cached_property
    def _linked(self) -> tuple[np.ndarray, dict[bytes, int]]:
        """The constants of all dispatches, int32, and by the bytes of weights or parameters the quad where they begin; 0 for none."""
        parts, quads, length = [np.zeros(_QUAD, np.int32)], {b"": 0}, _QUAD
        for values in (values for one in self._every for values in (one.weights, one.parameters)):
            if (key := values.tobytes()) not in quads:
                quads[key] = length // _QUAD
                parts.append(zero_padded(values.reshape(-1).astype(np.int32), round_up(values.size, _QUAD)))
                length += parts[-1].size
        return np.concatenate(parts), quads

    @cached_property
    def _every(self) -> list[Dispatch]:
        return [one for layer in self.layers for one in self.dispatches.get(layer.node.name, ())]

    @cached_property
    def _shader_keys(self) -> list[tuple[str, int]]:
        return sorted({(one.shader, one.pixels) for one in self._every})

    @cached_property
    def pipelines(self) -> list[tuple[int, tuple[int, ...]]]:
        """The number of the shader and the specialization constants of each pipeline."""
        return list(dict.fromkeys(self._pipeline(one) for one in self._every))

    def _pipeline(self, one: Dispatch) -> tuple[int, tuple[int, ...]]:
        return self._shader_keys.index((one.shader, one.pixels)), one.specialization

    @cached_property
    def device_arrays(self) -> list[Array]:
        """The constants of all layers, and the shaders."""
        arrays = [Array("device_constants", "std::int32_t", self._linked[0])]
        for shader, pixels in self._shader_keys:
            for dot in (False, True) if shader == "conv" else (False,):
                name = f"shader_{shader}{pixels}{'_dot' if dot else ''}"
                arrays.append(Array(name, "std::uint32_t", spirv(shader, pixels, dot)))
        return arrays

    @cached_property
    def bytes_of(self) -> dict[str, int]:
        return {array.name: array.bytes for array in self.device_arrays}

    @property
    def shaders(self) -> list[tuple[str, str]]:
        """SPIR-V of the shaders in the order of their numbers: arrays without and with integer dot products, "" if there is none."""
        names = [f"shader_{shader}{pixels}" for shader, pixels in self._shader_keys]
        return [(name, f"{name}_dot" if f"{name}_dot" in self.bytes_of else "") for name in names]

    @cached_property
    def steps(self) -> list[StepView]:
        """The steps in the order of the plan, each with whether it waits for those before it."""
        pipelines = {key: number for number, key in enumerate(self.pipelines)}
        steps: list[StepView] = []
        read: list[Plane] = []
        written: list[Plane] = []
        for layer in self.layers:
            name = layer.node.name
            inputs, output = [self.plan.planes[one] for one in layer.node.inputs], self.plan.planes[layer.node.output]
            if name in self.on_cpu:
                touched = (*(part for plane in (*inputs, output) for part in plane.intervals()), *self._scratch(name))
                steps.append(StepView(layer.name, -1, identifier=layer.identifier, arguments=layer.arguments, touched=touched))
                read, written = [], []
                continue
            waits = _meet(inputs, written) or _meet([output], [*read, *written])
            for one in self.dispatches.get(name, ()):
                places = (*one.places, *(self._linked[1][values.tobytes()] for values in (one.weights, one.parameters)))
                steps.append(StepView(layer.name, pipelines[self._pipeline(one)], one.groups, places, waits))
                read, written = ([], []) if waits else (read, written)
                waits = False
            if self.dispatches.get(name):
                read, written = [*read, *inputs], [*written, output]
        return steps

    @property
    def traced(self) -> list[tuple[int, int, int]]:
        """The steps [first, stop) of each layer, and the lines of its output."""
        names = (layer.node.name for layer in self.layers)
        counts = [1 if name in self.on_cpu else len(self.dispatches.get(name, ())) for name in names]
        stops = list(accumulate(counts))
        return [(stop - count, stop, layer.lines) for layer, count, stop in zip(self.layers, counts, stops, strict=True)]

    def device_port(self, port: PortView) -> tuple[int, ...]:
        """Return the fields of the C++ struct `Port`; in a buffer of the application, pixels are aligned as in the arena."""
        plane = port.memory
        pixel = round_up(plane.size, self.parameters.alignment)
        return plane.offset, plane.length, plane.count, plane.size, plane.stride, plane.line_bytes, pixel

    def _scratch(self, name: str) -> Ranges:
        scratch = self.plan.scratch.get(name)
        return ((scratch.offset, scratch.offset + scratch.size),) if scratch else ()

    @property
    def constant_bytes(self) -> int:
        """Bytes of the constants of the device and of the layers of the CPU."""
        return super().constant_bytes + sum(array.bytes for array in self.device_arrays)


def _meet(some: list[Plane], others: list[Plane]) -> bool:
    return any(overlaps(one, other) for one in some for other in others)


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
        shutil.copy(HOME / "templates" / "probe.cpp", folder)
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
        for name, made in project.dispatches.items():
            shaders = ", ".join(dict.fromkeys(one.shader for one in made))
            chosen[name] = KernelChoice(name, f"GPU: {shaders}", reason=f"{len(made)} of shader {shaders}")
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
