"""The command `n2d2py-nvdla`: looks into loadables, and runs them on the functional model."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.version import __version__
from n2d2py_nvdla.check import check_program, notes
from n2d2py_nvdla.config import HardwareConfig, config, config_of, precisions_of
from n2d2py_nvdla.dump import dump, dump_text
from n2d2py_nvdla.loadable import read_loadable
from n2d2py_nvdla.model import half_products, run_program
from n2d2py_nvdla.program import EmuTask, Program
from n2d2py_nvdla.tensors import dimg, raw_text, read_input, tensor_array

EXACT_PRODUCTS = 50_000_000
"""fp16 products up to which `run` follows the multipliers by itself: about half a minute."""


Command = Callable[[Any], None]
"""Adds a command to the subparsers of the command line."""


def _parser(others: Sequence[Command]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="n2d2py-nvdla", description="Looks into NVDLA loadables, and runs them on a functional model of the accelerator."
    )
    parser.add_argument("--version", action="version", version=f"n2d2py {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    shown = commands.add_parser("dump", help="print the tables, tasks, descriptors and dependency graph of a file")
    _common(shown)
    shown.add_argument("--json", action="store_true", help="as JSON")
    shown.set_defaults(run=_dump)
    run = commands.add_parser("run", help="execute a file on the functional model")
    _common(run)
    run.add_argument("--image", type=Path, help="an image for input 0, as nvdla_runtime takes it")
    run.add_argument(
        "--input",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="an input: .npy (stored values; channels, height, width), .bin (in the hardware's layout)",
    )
    run.add_argument("--mean", type=_number, default=0.0, help="subtracted from pixels of fp16 inputs [0]")
    run.add_argument("--normalize", type=_divisor, default=1.0, help="divides pixels of fp16 inputs [1]")
    run.add_argument("--output", type=Path, help="where output 0 goes [output.dimg; nothing with --raw-output]")
    run.add_argument("--rawdump", action="store_true", help="write it as text")
    run.add_argument(
        "--raw-output",
        type=Path,
        metavar="FILE",
        help="write its bytes in the hardware's layout, and no other file but the one of --output",
    )
    run.add_argument("--config", help="hardware configuration: nv_full, nv_large, nv_small, ... [detected]")
    sums = run.add_mutually_exclusive_group()
    sums.add_argument("--fast", action="store_true", help="sum fp16 convolutions in float64: within the last bit")
    sums.add_argument(
        "--exact",
        action="store_true",
        help=f"sum them as the multipliers do, however long it takes [up to {EXACT_PRODUCTS // 10**6} million products]",
    )
    run.set_defaults(run=_run)
    checked = commands.add_parser("check", help="recompute buffers, alignments, limits and dependencies of a file")
    _common(checked)
    checked.add_argument("--config", help="hardware configuration [detected]")
    checked.set_defaults(run=_check)
    for add in others:
        add(commands)
    return parser


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text} is not a finite number")
    return value


def _divisor(text: str) -> float:
    value = _number(text)
    if value == 0:
        raise argparse.ArgumentTypeError("pixels cannot be divided by 0")
    return value


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="the loadable")
    parser.add_argument("--abi", choices=("v10", "v12"), help="structures of firmware 0.10/0.11 or 0.12 [detected]")


def _program(arguments: argparse.Namespace) -> Program:
    return Program.of(read_loadable(arguments.file), str(arguments.file), arguments.abi)


def _dump(arguments: argparse.Namespace) -> None:
    program = _program(arguments)
    if arguments.json:
        print(json.dumps(dump(program), indent=1))
    else:
        print(dump_text(program), end="")


def _check(arguments: argparse.Namespace) -> None:
    program = _program(arguments)
    chosen = config(arguments.config) if arguments.config else config_of(program)
    check_program(program, chosen)
    for note in notes(program, chosen):
        log.warning("W702", note, where=str(arguments.file), remedy="compile it again before it runs more than once")
    print(
        f"{arguments.file}: valid for {chosen.name}, firmware ABI {program.abi.name}, "
        f"{sum(1 for _ in program.dla_operations())} operations"
    )
    extensions = [
        f"{one.extension.name} ({one.extension.operator})"
        for task in program.tasks
        if isinstance(task, EmuTask)
        for one in task.operations
        if one.extension is not None
    ]
    if extensions:
        print(f"NVIDIA's runtime lacks {len(extensions)} extension operations: {', '.join(extensions)}")


def _inputs(arguments: argparse.Namespace, program: Program) -> list[np.ndarray]:
    """Return the bytes of the inputs that are given.

    Raises:
        N2D2Error: E902, E905 for files that are not what the loadable wants.
    """
    paths = ([arguments.image] if arguments.image else []) + arguments.input
    if len(paths) > len(program.inputs):
        raise N2D2Error(
            "E905",
            f"{len(paths)} inputs are given, the loadable has {len(program.inputs)}",
            where=program.name,
            remedy="leave out the others",
        )
    inputs = []
    for path, (memory, tensor) in zip(paths, program.inputs, strict=False):  # inputs that are left out are zero
        if tensor is None and path.suffix.lower() != ".bin":
            raise N2D2Error(
                "E905",
                f"the input in memory {memory} has no tensor descriptor",
                where=program.name,
                remedy="give its bytes as .bin",
            )
        data = read_input(path, tensor, arguments.mean, arguments.normalize)
        size = len(program.memories[memory])
        if len(data) != size and (tensor is None or len(data) != tensor.size):
            raise N2D2Error(
                "E905",
                f"the input {tensor.name if tensor else memory} has {size} bytes, the file {len(data)}",
                where=str(path),
                remedy="give all bytes of the tensor in the hardware's layout, or a .npy of its values",
            )
        inputs.append(data)
    return inputs


def _chosen(arguments: argparse.Namespace, program: Program) -> HardwareConfig | None:
    """Return the configuration that is asked for.

    Raises:
        N2D2Error: E907 for one that does not exist, or lacks a precision of the loadable.
    """
    if not arguments.config:
        return None
    chosen = config(arguments.config)
    if any(precision not in chosen.precisions for precision in precisions_of(program)):
        raise N2D2Error(
            "E907",
            f"{chosen.name} computes in int8 only, the loadable in other types too",
            where=program.name,
            remedy="use nv_full",
        )
    return chosen


def _run(arguments: argparse.Namespace) -> None:
    if arguments.raw_output and arguments.rawdump and not arguments.output:
        raise N2D2Error(
            "E905", "--rawdump has no file to write: --raw-output writes bytes, and no other file", remedy="add --output FILE"
        )
    program = _program(arguments)
    inputs, chosen = _inputs(arguments, program), _chosen(arguments, program)
    products = 0 if arguments.exact else half_products(program)
    exact = not arguments.fast and products <= EXACT_PRODUCTS
    if not exact and not arguments.fast:
        log.notice(
            "%d million fp16 products are summed in float64, within the last bit; --exact sums them as hardware does",
            products // 10**6,
        )
    done = run_program(program, inputs, chosen, exact=exact)
    if not done.outputs:
        log.notice("the loadable has no output")
        return
    if arguments.raw_output:
        arguments.raw_output.write_bytes(done.outputs[0].tobytes())
        log.notice("written: %s (%d bytes)", arguments.raw_output, len(done.outputs[0]))
        if not arguments.output:
            return
    tensor = program.outputs[0][1]
    if tensor is None:
        raise N2D2Error(
            "E905", "output 0 has no tensor descriptor", where=program.name, remedy="take its bytes with --raw-output"
        )
    if max(tensor.w, tensor.h, tensor.c, tensor.stride_1, tensor.stride_2, tensor.size) >= 1 << 32:
        raise N2D2Error(
            "E905",
            "output 0 has sizes beyond 32 bits, which output.dimg cannot hold",
            where=program.name,
            remedy="take its bytes with --raw-output",
        )
    path = arguments.output or Path("output.dimg")
    if arguments.rawdump:
        path.write_text(raw_text(tensor_array(tensor, done.outputs[0])), encoding="ascii")
    else:
        path.write_bytes(dimg(tensor, done.outputs[0], program.abi.name))
    log.notice("written: %s (%dx%dx%d)", path, tensor.c, tensor.h, tensor.w)


def main(words: Sequence[str] | None = None, others: Sequence[Command] = ()) -> int:
    """Run the command line `words`; the exit status: 0, 1 for an error, 2 for a wrong command line.

    `others` add commands to those for loadables; each sets `run`, a function of the parsed arguments.
    """
    log.setup()
    parser = _parser(others)
    try:
        arguments = parser.parse_args(words)
        if any("\0" in str(value) for value in vars(arguments).values()):
            parser.error("a name holds a byte of 0")
    except SystemExit as ended:
        return int(ended.code or 0)
    try:
        arguments.run(arguments)
        sys.stdout.flush()
        return 0
    except N2D2Error as error:
        log.report_error(error)
        return 1
    except BrokenPipeError:
        return 1
    except OSError as error:
        log.report_error(
            N2D2Error(
                "E902",
                f"it cannot be read or written: {error.strerror or error}",
                where=str(error.filename) if error.filename else None,
                remedy="check the path, its permissions and the free space",
            )
        )
        return 1


if __name__ == "__main__":
    sys.exit(main())
