"""Texts of an Ethos-U export: the NPU program in C, README."""

from __future__ import annotations

from math import prod
from pathlib import Path

from n2d2py.exports.base import ExportRequest
from n2d2py.exports.ethosu.vela import NPU, Compiled, Program
from n2d2py.exports.ncnn.file import identifier
from n2d2py.exports.tflite.file import int8_grid
from n2d2py.exports.tflite.writer import channels_last
from n2d2py.exports.writer import hex_rows, write_rendered


def write_program(request: ExportRequest, program: Program, folder: Path) -> None:
    """Write `src/NET_npu.h` and `src/NET_npu.c`: the constants, and a function that passes them to the NPU driver."""
    stem = identifier(request.graph.name).lower()
    regions = [program.regions[0], program.regions[1], *([program.regions[2]] if program.fast else [])]
    values = {
        "name": request.graph.name,
        "accelerator": request.parameters["Accelerator"],
        "stem": stem,
        "macro": stem.upper(),
        "program": program,
        "ports": _ports(request, program),
        "regions": 1 + max(regions),
        "commands": hex_rows(program.commands, ", "),
        "weights": hex_rows(program.weights, ", "),
    }
    (folder / "src").mkdir(exist_ok=True)
    for ending in ("h", "c"):
        write_rendered(folder / "src" / f"{stem}_npu.{ending}", f"ethosu/npu.{ending}", **values)


def _ports(request: ExportRequest, program: Program) -> list[dict[str, object]]:
    """Return the header comments of the inputs and outputs."""
    graph, found = request.graph, []
    for kind, names, offsets in (("INPUT", graph.inputs, program.inputs), ("OUTPUT", graph.outputs, program.outputs)):
        for number, (name, offset) in enumerate(zip(names, offsets, strict=True)):
            scale, zero = int8_grid(graph.type(name))
            shape = channels_last(graph.shape(name))[1:]
            label = f"{kind}_{number}" if len(names) > 1 else kind
            size = {"shape": " x ".join(map(str, shape)), "bytes": prod(shape), "offset": offset}
            found.append({"name": name, "label": label, "scale": f"{scale:.9g}", "zero": zero, **size})
    return found


def write_readme(request: ExportRequest, compiled: Compiled, model: str, folder: Path) -> None:
    """Write Vela's estimate and the use of each file."""
    write_rendered(
        folder / "README.md",
        "ethosu/README.md",
        graph=request.graph,
        parameters=request.parameters,
        compiled=compiled,
        on_cpu=[code for code in compiled.codes if code != NPU],
        model=model,
        stem=identifier(request.graph.name).lower(),
    )
