"""The export for microcontrollers as `-export CPP_MCU` finds it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.exports.base import ExportRequest, KernelChoice, Prepared, QuantDefaults
from n2d2py.exports.cpp.build import BuiltCopy, run_make, start
from n2d2py.exports.cpp.project import Project
from n2d2py.exports.cpp.target import CppTarget
from n2d2py.exports.mcu.boards import board, core, transforming_cores
from n2d2py.exports.mcu.mlperf import check_benchmark, warn_of_negative_results
from n2d2py.exports.mcu.project import McuParameters, McuProject, constants_of, winograd_forms
from n2d2py.exports.mcu.stack import varying_layers
from n2d2py.exports.registry import register
from n2d2py.exports.stimuli import from_hwc, hwc_field, stored_bytes
from n2d2py.graph import QuantGraph, elements
from n2d2py.ini import Schema
from n2d2py.memory.constants import Constant
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.scratch import ScratchNeed
from n2d2py.runtime.base import LayerInfo, Network, NetworkInfo
from n2d2py.runtime.graph_file import GRAPH_FILE, read_graph
from n2d2py.runtime.simulator import ends


class BoardExport(BuiltCopy):
    """A copy of a written export, built for its core; removed at the end."""

    needed = "compiler and QEMU"
    remedy = (
        "install the compiler, make and QEMU (Debian: gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm; for RISC-V "
        "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf qemu-system-misc)"
    )

    @classmethod
    def missing(cls, parameters: Mapping[str, Any]) -> str:
        one = McuParameters.of(parameters).core
        for program in ("make", one.compiler, f"{one.prefix}gcc", board(one.board).emulator.split()[0]):
            if shutil.which(program) is None:
                return f"no {program}"
        return ""

    def build(self) -> None:
        log.notice("building the export for %s", self.details["core"])
        status, printed = run_make(self.folder, "all")
        if status:
            raise self._failed("make", printed)

    def _failed(self, what: str, printed: str) -> N2D2Error:
        return self.failed(what, [line.strip() for line in printed.splitlines() if line.strip()], "no message")

    def run(self, *words: str) -> str:
        """Output of the test program for `words`. Raise E810 when it fails."""
        one = core(self.details["core"])
        emulator = board(one.board).emulator.split()
        arguments = ",".join(["enable=on,target=native,arg=test", *(f"arg={word}" for word in words)])
        command = [
            *emulator,
            *("-nographic", "-monitor", "none", "-serial", "none"),
            *("-kernel", f"build/{one.name}/test.elf", "-semihosting-config", arguments),
        ]
        with start(command, self.folder) as process:
            printed = process.communicate()[0]
        if process.returncode:
            raise self._failed(f"{emulator[0]} (status {process.returncode})", printed)
        return printed

    def run_stimuli(self, mode: str, stimuli: Sequence[bytes]) -> Path:
        """Return the file of the results of each stimulus, the bytes of its inputs, as the mode `outputs` or `layers` of the test
        program writes it. Raise E810 when the program fails."""
        (self.folder / "stimuli.bin").write_bytes(b"".join(stimuli))
        self.run(mode, "stimuli.bin", "results.bin", str(len(stimuli)))
        return self.folder / "results.bin"

    def outputs(self, graph: QuantGraph, count: int) -> dict[str, np.ndarray]:
        sizes = [elements(graph.shape(name)) * graph.type(name).bytes for name in graph.user_inputs]
        stimuli = []
        for line in (self.folder / "stimuli.list").read_text(encoding="utf-8").splitlines()[:count]:
            images = zip(line.split(" "), sizes, strict=True)  # values follow three lines of text
            stimuli.append(b"".join((self.folder / file).read_bytes().split(b"\n", 3)[3][:size] for file, size in images))
        return self.read_outputs(self.run_stimuli("outputs", stimuli), graph, len(stimuli))

    def instructions(self) -> tuple[str, int, bool] | None:
        """Return the core, the instructions of one inference of vector 0, counted in QEMU, and whether that is so for every
        input.

        None without a compiler of this machine, which the plugin of QEMU needs.
        """
        count = re.search(r"^inference +(\d+)$", self._counts, re.MULTILINE)
        if count is None:
            log.detail("instructions are not counted: %s", self._counts.strip().rpartition("\n")[2])
            return None
        return core(self.details["core"]).name, int(count[1]), not self.details["varying_time"]

    @cached_property
    def _counts(self) -> str:
        return run_make(self.folder, "-s", "count")[1]

    def conversion_cost(self, inferences: int) -> str:
        cost = re.search(r"^(frame|hop) of (\S+) +(\d+)$", self._counts, re.MULTILINE)
        unit = {"frame": "", "hop": " samples"}
        return "" if cost is None else f"{int(cost[3]):,} instructions for a {cost[1]} of {cost[2]}{unit[cost[1]]}"

    def sizes(self) -> dict[str, int]:
        return self.read_sizes(run_make(self.folder, "-s", "size")[1])

    def network(self) -> BoardNetwork:
        return BoardNetwork(self, read_graph(self.folder / GRAPH_FILE), self.details)


class BoardNetwork(Network):
    """A network on a board: every call starts QEMU."""

    def __init__(self, export: BoardExport, graph: QuantGraph, details: Mapping[str, Any]):
        self._export, self.graph = export, graph
        nodes, layers = {node.name: node for node in graph.nodes}, []
        for node in (nodes[name] for name in details["layers"]):
            shape, kind = tuple(graph.shape(node.output)), graph.type(node.output)
            layers.append(LayerInfo(node.name, shape, kind, operation=node.op.kind))
        self.info = NetworkInfo(graph.name, *ends(graph), tuple(layers), details["arena_bytes"])

    def _run(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
        file = self._export.run_stimuli("outputs", _samples(inputs))
        return list(self._export.read_outputs(file, self.graph, len(inputs[0])).values())

    def _run_layers(self, inputs: list[np.ndarray]) -> dict[str, np.ndarray]:
        fields = []
        for i, info in enumerate(self.info.layers):
            kind, (lines, *pixels) = hwc_field(info.stored, info.dtype)
            line = np.dtype([("made", "u1"), ("values", kind, tuple(pixels))])
            fields.append((f"l{i}", line, (lines,)))
        file = self._export.run_stimuli("layers", _samples(inputs))
        rows = self._export.read_results(file, np.dtype([*fields, ("end", "u1")]), len(inputs[0]))
        results = {}
        for i, info in enumerate(self.info.layers):
            computed = np.all(rows[f"l{i}"]["made"], axis=0)
            if not computed.any():
                continue
            values = from_hwc(rows[f"l{i}"]["values"], info.stored)
            if not computed.all():
                values = np.ma.masked_array(values, np.broadcast_to(~computed[:, None], values.shape))
            results[info.name] = values
        return results


def _samples(inputs: list[np.ndarray]) -> list[bytes]:
    """Return the bytes of the stored inputs of each stimulus."""
    return [b"".join(map(stored_bytes, sample)) for sample in zip(*inputs, strict=True)]


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
            "arena_bytes": prepared.result.arena_bytes,
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
