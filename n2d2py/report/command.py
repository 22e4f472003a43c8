"""The command `n2d2py-report`: two exports side by side: their figures, options that differ, and every layer of both."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from n2d2py import log
from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.files import write_text
from n2d2py.report.page import rendered
from n2d2py.report.summary import short_time
from n2d2py.report.text import decimal, grouped, short_bytes, short_count
from n2d2py.targets import text_table
from n2d2py.version import __version__


@dataclass(frozen=True)
class SummarizedRun:
    """An export as its summary.json and manifest.json tell of it; `values` are its figures by name, None where unknown."""

    title: str
    values: Mapping[str, float | None]
    layers: Mapping[str, Mapping[str, Any]]
    options: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def read(title: str, summary: Mapping[str, Any], manifest: Mapping[str, Any]) -> SummarizedRun:
        """From the JSON data. Raises KeyError, TypeError, AttributeError where a figure is missing or no figure."""
        memory, scores, latency = summary["memory"], summary["scores"], summary.get("latency", {})
        figures = {
            **{f"score {label}": score for label, score in scores.items()},
            **{f"MSE {label}": error for label, error in summary.get("mse", {}).items()},
            **{name: memory[name.lower()] for name in ("RAM", "arena", "stack", "flash", "code", "constants")},
            "latency": latency.get("median_us"),
            **{name: summary[name.lower()] for name in ("MACs", "parameters", "layers")},
        }
        values = {name: _number(value) for name, value in figures.items()}
        sources = {"memory": str(memory["source"]), "latency": str(latency.get("source", ""))}
        options = {**manifest.get("options", {}), **manifest.get("parameters", {})}
        return SummarizedRun(title, values, {str(row["layer"]): row for row in summary["table"]}, options, sources)


def _number(value: Any) -> float | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise TypeError(f"{value!r} is not a number")
    return value


class Figure(NamedTuple):
    """A figure of each run as text; `change` says how the last differs from the first, `verdict` whether that is better."""

    name: str
    texts: tuple[str, ...]
    change: str = ""
    verdict: str = ""


_FIGURES: dict[str, tuple[Callable[[Any], str], str]] = {
    "score": ("{:.2f}%".format, "more"),
    "MSE": (partial(decimal, digits=5), "less"),
    **dict.fromkeys(("RAM", "arena", "stack", "flash", "code", "constants"), (short_bytes, "less")),
    "latency": (short_time, "less"),
    **dict.fromkeys(("MACs", "parameters"), (short_count, "")),
    "layers": (grouped, ""),
}
"""By the first word of a figure, its format and which is better."""
_LAYER_FIGURES = (
    ("time µs", "median_us", "{:,.2f}".format, "less"),
    ("flash bytes", "flash_bytes", "{:,.0f}".format, "less"),
    ("output bytes", "activation_bytes", "{:,.0f}".format, "less"),
    ("MACs", "macs", "{:,.0f}".format, "less"),
    ("SQNR dB", "sqnr_db", "{:,.2f}".format, "more"),
)
"""Title, key in the record of a layer, format, which is better."""


def figures(runs: Sequence[SummarizedRun]) -> list[Figure]:
    """Return the figures that a run has, in a fixed order."""
    names = dict.fromkeys(name for run in runs for name in run.values)
    values = {name: [run.values.get(name) for run in runs] for name in names}
    return [
        _compared(name, each, *_FIGURES[name.split()[0]])
        for name, each in values.items()
        if any(value is not None for value in each)
    ]


def _compared(name: str, values: Sequence[float | None], form: Callable[[Any], str], better: str) -> Figure:
    """Return a figure of the runs, of which "more", "less" or neither is better."""
    texts = tuple("–" if value is None else form(value) for value in values)
    first, last = values[0], values[-1]
    if len(values) < 2 or first is None or last is None:
        return Figure(name, texts)
    if first == last:
        return Figure(name, texts, "=")
    change = f"{last - first:+.2f}" if better == "more" or not first else f"{100 * (last / first - 1):+.1f}%"
    return Figure(name, texts, change, "" if not better else "better" if (last > first) == (better == "more") else "worse")


def page(first: SummarizedRun, second: SummarizedRun) -> str:
    """Return the page of both runs."""
    layers = {name: (first.layers.get(name, {}), second.layers.get(name, {})) for name in {**first.layers, **second.layers}}
    columns = [one for one in _LAYER_FIGURES if any(row.get(one[1]) is not None for rows in layers.values() for row in rows)]
    pairs = {
        name: (
            " / ".join(dict.fromkeys(str(row["type"]) for row in rows if row)),
            [_compared(title, [_number(row.get(key)) for row in rows], form, better) for title, key, form, better in columns],
        )
        for name, rows in layers.items()
    }
    options = [
        (name, first.options.get(name, "–"), second.options.get(name, "–"))
        for name in {**first.options, **second.options}
        if first.options.get(name) != second.options.get(name)
    ]
    both = first, second
    text = rendered(
        "compare.html.j2", runs=both, figures=figures(both), columns=[one[0] for one in columns], pairs=pairs, options=options
    )
    return text if text.endswith("\n") else text + "\n"


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
    """Return the figures of an export. Raises E730 for a folder without readable figures."""
    home = folder if (folder / "summary.json").is_file() else folder / "statistics"
    try:
        summary = json.loads((home / "summary.json").read_text(encoding="utf-8"))
        manifest = home.parent / "manifest.json"
        options = json.loads(manifest.read_text(encoding="utf-8")) if manifest.is_file() else {}
        parts = [part for part in folder.resolve().parts if part != "statistics"]
        return SummarizedRun.read("/".join(parts[-2:]), summary, options)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        what = "statistics/summary.json is missing" if isinstance(error, FileNotFoundError) else "the figures cannot be read"
        remedy = "give a folder written by this version of n2d2py"
        raise N2D2Error("E730", what, where=str(folder), remedy=remedy) from error


if __name__ == "__main__":
    sys.exit(main())
