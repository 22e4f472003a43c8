"""Export target `-export EthosU`: a .tflite file that Vela, Arm's compiler for the Ethos-U, compiles to a program of the NPU."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.exports.base import ExportRequest, Prepared
from n2d2py.exports.model_file import hex_rows, require_precision, write_rendered
from n2d2py.exports.tflite.file import int8_grid, need_schema
from n2d2py.exports.tflite.layers import TfliteModel
from n2d2py.exports.tflite.target import TfliteTarget, write_c_arrays
from n2d2py.exports.tflite.writer import channels_last
from n2d2py.exports.tflite.xnnpack import with_reference
from n2d2py.files import write_text
from n2d2py.graph import QuantGraph
from n2d2py.ini import ExportParameters, Kind, parameter

NPU = "ETHOS_U"
"""The custom operator of a compiled file that the NPU runs, spelled as built-in ones."""
_CUSTOM = b"ethos-u"
_KIB = 1024


@dataclass(frozen=True)
class Program:
    """A network that runs entirely on the NPU.

    Attributes:
        commands: command stream with the driver's header.
        weights: the constants, compressed.
        arena: bytes of the memory for inputs, outputs and intermediate tensors.
        fast: bytes of the separate fast memory; 0 if there is none.
        regions: region numbers of the constants, the arena and the fast memory in the command stream.
        inputs, outputs: offsets in the arena, in the order of the network.
    """

    commands: bytes
    weights: bytes
    arena: int
    fast: int
    regions: tuple[int, int, int]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class Compiled:
    """A model compiled by Vela.

    Attributes:
        model: the .tflite file for TFLite Micro; `NPU` replaces the operators that the NPU runs.
        codes: its kinds of operators, in the order of first use.
        cpu_ops: number of operators that the CPU runs.
        cycles: of the NPU for one inference; `ram`, `flash`: bytes of each; all estimated by Vela.
        summary: all figures of Vela, as a table.
        program: None if the CPU runs an operator.
    """

    model: bytes
    codes: tuple[str, ...]
    cpu_ops: int
    cycles: int
    ram: int
    flash: int
    summary: str
    program: Program | None


def need_vela() -> None:
    """Raise E721 if Vela or the .tflite schema is missing."""
    if not (find_spec("ethosu") and find_spec("ai_edge_litert")):
        text = "Vela, Arm's compiler for Ethos-U, or the package ai-edge-litert is not installed"
        raise N2D2Error("E721", text, remedy="pip install n2d2py[ethosu]")


def compile_model(data: bytes, options: Sequence[str]) -> Compiled:
    """Return the compiled form of a .tflite file. Raise E802 with Vela's message if it fails."""
    with tempfile.TemporaryDirectory(prefix="n2d2py-") as name:
        folder = Path(name)
        (folder / "model.tflite").write_bytes(data)
        _run_vela(folder, options)
        model = (folder / "out" / "model_vela.tflite").read_bytes()
        (table,) = (folder / "out").glob("*_summary_*.csv")
        summary = table.read_text(encoding="utf-8")
        codes, program = _operators(model), None
        if codes == [NPU]:
            _run_vela(folder, [*options, "--output-format", "raw"])
            program = _read_program(folder / "out" / "model_vela.npz")
    (row,) = csv.DictReader(summary.splitlines())

    def bytes_of(*memories: str) -> int:
        return round(sum(float(row[f"{memory}_memory_used"]) for memory in memories) * _KIB)

    cycles, on_cpu = round(float(row["cycles_total"])), sum(code != NPU for code in codes)
    ram, flash = bytes_of("sram", "dram"), bytes_of("on_chip_flash", "off_chip_flash")
    return Compiled(model, tuple(dict.fromkeys(codes)), on_cpu, cycles, ram, flash, summary, program)


def _run_vela(folder: Path, options: Sequence[str]) -> None:
    words = [sys.executable, "-m", "ethosu.vela", "model.tflite", "--output-dir", "out", *options]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        reason = lines[-1].split("Error: ")[-1].strip('"') if lines else "no reason"
        raise N2D2Error("E802", f"Vela cannot compile the model: {reason}", remedy="correct the export parameters of EthosU")


def _operators(data: bytes) -> list[str]:
    schema = need_schema()
    model = schema.Model.GetRootAs(data, 0)
    names = {value: name for name, value in vars(schema.BuiltinOperator).items() if not name.startswith("_")}
    codes = []
    for index in range(model.OperatorCodesLength()):
        code = model.OperatorCodes(index)
        builtin = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        codes.append(NPU if code.CustomCode() == _CUSTOM else names[builtin])
    graph = model.Subgraphs(0)
    return [codes[graph.Operators(index).OpcodeIndex()] for index in range(graph.OperatorsLength())]


def _read_program(path: Path) -> Program:
    with np.load(path) as arrays:  # object arrays are not read
        one: Any = {name: arrays[name] for name in arrays.files if not name.endswith("_quantization")}
    return Program(
        one["cmd_data"].tobytes(),
        one["weight_data"].tobytes(),
        int(one["scratch_size"]),
        int(one["scratch_fast_size"]),
        (int(one["weight_region"]), int(one["scratch_region"]), int(one["scratch_fast_region"])),
        tuple(map(int, one["input_offset"])),
        tuple(map(int, one["output_offset"])),
    )


_TEXTS = """
Accelerator: The NPU and its multiplications per cycle.
VelaSystemConfig: System of Vela's configuration file: clock and memories, such as Ethos_U55_High_End_Embedded. Without it Vela's own default.
VelaMemoryMode: Use of the memories, of the same file, such as Shared_Sram.
VelaConfig: Vela's configuration file; a path, or one that Vela has.
VelaOptimise: What the compiler prefers: few cycles, or little memory.
VelaArenaCacheSize: Bytes of fast memory that the compiler may use; 0 for what VelaMemoryMode says.
ModelArray: Also write the compiled file as a C array, with the list of operators for the TFLite Micro resolver.
"""
_SIZES = {"u55": (32, 64, 128, 256), "u65": (256, 512), "u85": (128, 256, 512, 1024, 2048)}


@dataclass(frozen=True)
class EthosUParameters(ExportParameters, texts=_TEXTS):
    """The export parameters of EthosU."""

    accelerator: str = parameter(
        "Accelerator",
        Kind.ENUM,
        "ethos-u55-128",
        choices=tuple(f"ethos-{series}-{size}" for series, sizes in _SIZES.items() for size in sizes),
    )
    system_config: str = parameter("VelaSystemConfig", Kind.STRING, "")
    memory_mode: str = parameter("VelaMemoryMode", Kind.STRING, "")
    config: str = parameter("VelaConfig", Kind.STRING, "Arm/vela.ini")
    optimise: str = parameter("VelaOptimise", Kind.ENUM, "Performance", choices=("Performance", "Size"))
    cache_size: int = parameter("VelaArenaCacheSize", Kind.INT, 0, minimum=0)
    model_array: bool = parameter("ModelArray", Kind.BOOL, True)


_FILE_PARAMETERS = {"IntegerIO": True, "Kernels": "Reference"}
"""Parameters of the .tflite file: the NPU computes the results of TFLite's reference kernels."""


@dataclass(frozen=True)
class NpuModel(TfliteModel):
    """The file and its compiled form."""

    compiled: Compiled


class EthosUTarget(TfliteTarget):
    """Target for Arm's Ethos-U, compiled by Vela."""

    name = "EthosU"
    parameter_type = EthosUParameters
    in_floats = False

    def overruled(self, parameters: Mapping[str, Any], graph: QuantGraph) -> dict[str, str]:
        own = EthosUParameters.of(parameters)
        selects = own.system_config or own.memory_mode
        return {} if selects else {"VelaConfig": "neither VelaSystemConfig nor VelaMemoryMode is given"}

    def as_computed(self, graph: QuantGraph, parameters: Mapping[str, Any]) -> QuantGraph:
        return with_reference(graph)

    def prepare(self, request: ExportRequest) -> Prepared[TfliteModel]:
        return super().prepare(replace(request, parameters={**request.parameters, **_FILE_PARAMETERS}))

    def make(self, request: ExportRequest) -> NpuModel:
        """Raise the errors of the TFLite target, E705 in floating point, E721 without Vela, E802 if Vela fails."""
        require_precision(request.graph, "EthosU supports 8-bit integers", (8,), "use -nbbits 8")
        need_vela()
        own = EthosUParameters.of(request.parameters)
        if bool(own.system_config) != bool(own.memory_mode):
            name = "VelaSystemConfig" if own.system_config else "VelaMemoryMode"
            text = f"{name} is given alone, while VelaSystemConfig and VelaMemoryMode go together"
            raise N2D2Error("E705", text, remedy="give both, or neither")
        model = super().make(request)
        return NpuModel(model.data, model.codes, model.index, compile_model(model.data, _options(own)))

    def details(self, prepared: Prepared[TfliteModel]) -> dict[str, Any]:
        compiled = _compiled(prepared)
        figures = {"cycles": compiled.cycles, "RAM": compiled.ram, "flash": compiled.flash}
        figures["operators left to the CPU"] = compiled.cpu_ops
        accelerator = EthosUParameters.of(prepared.request.parameters).accelerator
        estimate = {"estimated by Vela": f"an inference on {accelerator}"}
        return {**super().details(prepared), "estimate": estimate | {name: f"{value:,}" for name, value in figures.items()}}

    def write(self, prepared: Prepared[TfliteModel], folder: Path) -> None:
        request, compiled = prepared.request, _compiled(prepared)
        own = EthosUParameters.of(request.parameters)
        model = self.write_model(prepared, folder).stem
        (folder / f"{model}_vela.tflite").write_bytes(compiled.model)
        if own.model_array:
            write_c_arrays(folder, compiled.model, compiled.codes)
        (folder / "statistics").mkdir(exist_ok=True)
        write_text(folder / "statistics" / "vela.csv", compiled.summary)
        stem = re.sub(r"[^0-9A-Za-z_]", "_", request.graph.name).lower()
        if compiled.program is not None:
            write_program(request.graph, compiled.program, own.accelerator, stem, folder / "src")
        on_cpu = [code for code in compiled.codes if code != NPU]
        values = {"graph": request.graph, "parameters": own, "compiled": compiled}
        write_rendered(folder / "README.md", _TEMPLATES / "README.md", on_cpu=on_cpu, model=model, stem=stem, **values)
        log.notice(
            "%s: %s operators left to the CPU; %s cycles, %s bytes of RAM, %s of flash (estimated by Vela)",
            own.accelerator,
            compiled.cpu_ops or "no",
            f"{compiled.cycles:,}",
            f"{compiled.ram:,}",
            f"{compiled.flash:,}",
        )


def _compiled(prepared: Prepared[TfliteModel]) -> Compiled:
    model = prepared.result
    assert isinstance(model, NpuModel)
    return model.compiled


def _options(own: EthosUParameters) -> list[str]:
    words = ["--accelerator-config", own.accelerator, "--optimise", own.optimise]
    if own.system_config or own.memory_mode:
        words += ["--config", own.config]
    named = {"--system-config": own.system_config, "--memory-mode": own.memory_mode, "--arena-cache-size": own.cache_size}
    return words + [word for option, value in named.items() if value for word in (option, str(value))]


_TEMPLATES = Path(__file__).parent / "templates"


def write_program(graph: QuantGraph, program: Program, accelerator: str, stem: str, folder: Path) -> None:
    """Write `STEM_npu.h` and `STEM_npu.c`: the constants, and a function that passes them to the NPU driver."""
    regions = program.regions if program.fast else program.regions[:2]
    values = {
        "name": graph.name,
        "accelerator": accelerator,
        "stem": stem,
        "macro": stem.upper(),
        "program": program,
        "ports": _ports(graph, program),
        "regions": 1 + max(regions),
        "commands": hex_rows(program.commands, ", "),
        "weights": hex_rows(program.weights, ", "),
    }
    folder.mkdir(exist_ok=True)
    for ending in ("h", "c"):
        write_rendered(folder / f"{stem}_npu.{ending}", _TEMPLATES / f"npu.{ending}", **values)


def _ports(graph: QuantGraph, program: Program) -> list[dict[str, object]]:
    ports: list[dict[str, object]] = []
    for kind, names, offsets in (("INPUT", graph.inputs, program.inputs), ("OUTPUT", graph.outputs, program.outputs)):
        for number, (name, offset) in enumerate(zip(names, offsets, strict=True)):
            scale, zero = int8_grid(graph.type(name))
            shape = channels_last(graph.shape(name))[1:]
            label = f"{kind}_{number}" if len(names) > 1 else kind
            size = {"shape": " x ".join(map(str, shape)), "bytes": prod(shape), "offset": offset}
            ports.append({"name": name, "label": label, "scale": f"{scale:.9g}", "zero": zero, **size})
    return ports
