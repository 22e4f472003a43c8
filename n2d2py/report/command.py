"""The command `n2d2py-report`: two exports side by side, on a page and as a table."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from n2d2py import log
from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.files import write_text
from n2d2py.report.side_by_side import SummarizedRun, figures, page
from n2d2py.targets import text_table
from n2d2py.version import __version__


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line `words` (sys.argv without the program by default); the exit status: 0, 1 or 2 as n2d2py's."""
    log.setup()
    arguments = _parser().parse_args(words)
    if len(arguments.exports) > 2 or (arguments.o and len(arguments.exports) == 1):
        _parser().error("give one export, or two to compare; -o is for two")
    try:
        _run(arguments.exports, arguments.o)
    except N2D2Error as error:
        log.report_error(error)
        return 1
    except OSError as error:
        reason = error.strerror or str(error)
        log.report_error(N2D2Error("E012", reason, where=str(error.filename or ""), remedy="check the path"))
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    about = "The figures of an export, or of two side by side: score, RAM, flash, latency, work. Of two a page with every layer is written too."
    parser = argparse.ArgumentParser(prog="n2d2py-report", description=about)
    parser.add_argument("exports", nargs="+", type=Path, metavar="EXPORT", help="folder of an export; give one or two")
    parser.add_argument("-o", metavar="FILE", type=Path, help="write the page into FILE [report_A_B.html]")
    parser.add_argument("-v", action="version", version=f"n2d2py-report {__version__}")
    return parser


def _run(folders: Sequence[Path], file: Path | None) -> None:
    problems, runs = [], []
    for folder in folders:
        try:
            runs.append(_read(folder))
        except N2D2Error as error:
            problems.append(error)
    ErrorList.raise_if(problems)
    rows = figures(runs)
    print(text_table(["", *(run.title for run in runs)], [[row.name, *row.texts] for row in rows]), end="")
    if len(runs) == 2:
        path = file or Path(f"report_{runs[0].title}_{runs[1].title}.html".replace("/", "_"))
        write_text(path, page(runs[0], runs[1]))
        log.notice("written: %s", path)


def _read(folder: Path) -> SummarizedRun:
    """Return the figures of an export.

    Raises:
        N2D2Error: E730 for a folder without readable figures.
    """
    home = folder if (folder / "summary.json").is_file() else folder / "statistics"
    try:
        summary = json.loads((home / "summary.json").read_text(encoding="utf-8"))
        manifest = home.parent / "manifest.json"
        options = json.loads(manifest.read_text(encoding="utf-8")) if manifest.is_file() else {}
        return SummarizedRun.read(_title(folder), summary, options)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        what = "statistics/summary.json is missing" if isinstance(error, FileNotFoundError) else "the figures cannot be read"
        remedy = "give a folder written by this version of n2d2py"
        raise N2D2Error("E730", f"{what}", where=str(folder), remedy=remedy) from error


def _title(folder: Path) -> str:
    """Return the last parts of the path that tell exports apart; the folder of an export alone does not."""
    parts = [part for part in folder.resolve().parts if part != "statistics"]
    return "/".join(parts[-2:])


if __name__ == "__main__":
    sys.exit(main())
