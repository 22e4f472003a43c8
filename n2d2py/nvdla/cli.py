"""The command `n2d2py-nvdla`: looks into loadables."""
from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Sequence

from n2d2py import __version__, log
from n2d2py.errors import N2D2Error
from n2d2py.nvdla.dump import dump, dump_text
from n2d2py.nvdla.loadable import read_loadable
from n2d2py.nvdla.program import Program

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="n2d2py-nvdla", description="Looks into NVDLA loadables.")
    parser.add_argument("--version", action="version", version=f"n2d2py {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    shown = commands.add_parser("dump", help="print the tables, tasks, descriptors and dependency graph of a file")
    _common(shown)
    shown.add_argument("--json", action="store_true", help="as JSON")
    shown.set_defaults(run=_dump)
    return parser


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


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command line `words`; the exit status: 0, 1 for an error, 2 for a wrong command line."""
    log.setup()
    try:
        arguments = _parser().parse_args(words)
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
        log.report_error(N2D2Error("E902", f"it cannot be read or written: {error.strerror or error}",
                                   where=str(error.filename) if error.filename else None,
                                   remedy="check the path, its permissions and the free space"))
        return 1


if __name__ == "__main__":
    sys.exit(main())
