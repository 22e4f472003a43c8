"""Vela, Arm's compiler for the Ethos-U: from a .tflite file to an NPU program."""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py.exports.tflite.file import need_schema

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
        figures: Vela's estimate by the names of its summary.
        summary: that summary, as CSV.
        program: None if the CPU runs an operator.
    """

    model: bytes
    codes: tuple[str, ...]
    cpu_ops: int
    figures: Mapping[str, str]
    summary: str
    program: Program | None

    def number(self, name: str) -> float:
        """Return a figure of the summary."""
        return float(self.figures[name])

    @property
    def cycles(self) -> int:
        """Return the estimated NPU cycles of one inference."""
        return round(self.number("cycles_total"))

    @property
    def ram(self) -> int:
        """Return the bytes of SRAM and DRAM."""
        return round((self.number("sram_memory_used") + self.number("dram_memory_used")) * _KIB)

    @property
    def flash(self) -> int:
        return round((self.number("on_chip_flash_memory_used") + self.number("off_chip_flash_memory_used")) * _KIB)


def missing_vela() -> N2D2Error | None:
    """Return E721 if Vela or the .tflite schema is missing; else None."""
    if find_spec("ethosu") and find_spec("ai_edge_litert"):
        return None
    text = "Vela, Arm's compiler for Ethos-U, or the package ai-edge-litert is not installed"
    return N2D2Error("E721", text, remedy="pip install n2d2py[ethosu]")


def compile_model(data: bytes, options: Sequence[str]) -> Compiled:
    """Return the compiled form of a .tflite file. Raise E802 with Vela's message if it fails."""
    with tempfile.TemporaryDirectory(prefix="n2d2py-") as name:
        folder = Path(name)
        (folder / "model.tflite").write_bytes(data)
        _run_vela(folder, options)
        model = (folder / "out" / "model_vela.tflite").read_bytes()
        (table,) = (folder / "out").glob("*_summary_*.csv")
        summary = table.read_text(encoding="utf-8")
        (figures,) = csv.DictReader(summary.splitlines())
        codes = _operators(model)
        left = sum(code != NPU for code in codes)
        program = None
        if codes == [NPU]:
            _run_vela(folder, [*options, "--output-format", "raw"])
            program = _read_program(folder / "out" / "model_vela.npz")
    return Compiled(model, tuple(dict.fromkeys(codes)), left, figures, summary, program)


def _run_vela(folder: Path, options: Sequence[str]) -> None:
    words = [sys.executable, "-m", "ethosu.vela", "model.tflite", "--output-dir", "out", *options]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        reason = lines[-1].split("Error: ")[-1].strip('"') if lines else "no reason"
        raise N2D2Error("E802", f"Vela cannot compile the model: {reason}", remedy="correct the export parameters of EthosU")


def _operators(data: bytes) -> list[str]:
    """Return the kind of each operator of a file."""
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
