"""The texts of an export for the Ethos-U: the program of the NPU in C, README."""

from __future__ import annotations

from math import prod
from pathlib import Path

from n2d2py.exports.base import ExportRequest
from n2d2py.exports.cpp.text import templates
from n2d2py.exports.ethosu.vela import NPU, Compiled, Program
from n2d2py.exports.ncnn.file import identifier
from n2d2py.exports.tflite.file import int8_grid
from n2d2py.exports.tflite.readme import array_rows
from n2d2py.exports.tflite.writer import channels_last
from n2d2py.files import write_text


def write_program(request: ExportRequest, program: Program, folder: Path) -> None:
    """Write `src/NET_npu.h` and `src/NET_npu.c`: the constants, and a function that gives them to the driver of the NPU."""
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
        "commands": array_rows(program.commands),
        "weights": array_rows(program.weights),
    }
    (folder / "src").mkdir(exist_ok=True)
    for ending in ("h", "c"):
        write_text(folder / "src" / f"{stem}_npu.{ending}", templates("ethosu").get_template(f"npu.{ending}.j2").render(values))


def _ports(request: ExportRequest, program: Program) -> list[dict[str, object]]:
    """The words of the header on each input and output."""
    graph, found = request.graph, []
    for kind, names, offsets in (("INPUT", graph.inputs, program.inputs), ("OUTPUT", graph.outputs, program.outputs)):
        for number, (name, offset) in enumerate(zip(names, offsets, strict=True)):
            scale, zero = int8_grid(graph.type(name))
            shape = channels_last(graph.shape(name))[1:]
            label = f"{kind}_{number}" if len(names) > 1 else kind
            size = {"shape": " x ".join(map(str, shape)), "bytes": prod(shape), "offset": offset}
            found.append({"name": name, "label": label, "scale": f"{scale:.9g}", "zero": zero, **size})
    return found


def readme(request: ExportRequest, compiled: Compiled, stem: str) -> str:
    """Its text: what each file is for, and what Vela estimates."""
    graph, accelerator = request.graph, request.parameters["Accelerator"]
    cpu = [code for code in compiled.codes if code != NPU]
    lines = [
        f"# {graph.name} for the {accelerator}",
        "",
        "| Estimated by Vela | |",
        "|---|---|",
        f"| cycles of an inference | {compiled.cycles:,} |",
        f"| RAM | {compiled.ram:,} bytes |",
        f"| flash | {compiled.flash:,} bytes |",
        f"| operators left to the CPU | {compiled.left}{': ' + ', '.join(cpu) if cpu else ''} |",
        "",
        "All figures of Vela are in `statistics/vela.csv`.",
        "",
        "| File | For |",
        "|---|---|",
        f"| `{stem}.tflite` | LiteRT; input of Vela |",
        f"| `{stem}_vela.tflite` | TFLite Micro with the driver of the NPU |",
    ]
    if request.parameters["ModelArray"]:
        lines.append("| `model_data.c`, `model_operators.h` | the same as an array, and its operators |")
    if compiled.program is not None:
        name = f"{identifier(graph.name).lower()}_npu"
        lines += [
            f"| `src/{name}.c` | the driver of the NPU alone, without TFLite Micro |",
            "",
            "```c",
            f'#include "{name}.h"',
            "",
            f"static uint8_t arena[{identifier(graph.name).upper()}_NPU_ARENA_BYTES] __attribute__((aligned(16)));",
            "/* write the input into the arena, run, read the output from it: the header has the places */",
            f"int error = {name}_run(&driver, arena{', fast' if compiled.program.fast else ''});",
            "```",
        ]
    lines += ["", "Scores of n2d2py are those of TFLite's reference kernels, whose integers the NPU computes."]
    return "\n".join(lines) + "\n"
