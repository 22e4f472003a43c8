"""The command `n2d2py-report`: two exports side by side: their figures, options that differ, and every layer of both."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from n2d2py import log
from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.files import write_text
from n2d2py.report.overview import short_time
from n2d2py.report.page import rendered
from n2d2py.report.text import decimal, grouped, short_bytes, short_count
from n2d2py.targets import text_table
from n2d2py.version import __version__

_LAYER_FIGURES = (
    ("time µs", "median_us", "less", 2),
    ("flash bytes", "flash_bytes", "less", 0),
    ("output bytes", "activation_bytes", "less", 0),
    ("MACs", "macs", "less", 0),
    ("SQNR dB", "sqnr_db", "more", 2),
)
"""Title, key in the record of a layer, which is better, digits after the point."""


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


@dataclass(frozen=True)
class Figure:
    """A figure of each run as text; `change` says how the last differs from the first, `verdict` whether that is better."""

    name: str
    texts: tuple[str, ...]
    change: str = ""
    verdict: str = ""


def figures(runs: Sequence[SummarizedRun]) -> list[Figure]:
    """Return the figures that a run has, in a fixed order."""
    names = dict.fromkeys(name for run in runs for name in run.values)
    values = {name: [run.values.get(name) for run in runs] for name in names}
    return [_figure(name, each) for name, each in values.items() if any(value is not None for value in each)]


def _figure(name: str, values: Sequence[float | None]) -> Figure:
    texts = tuple("–" if value is None else _text(name, value) for value in values)
    first, last = values[0], values[-1]
    if len(values) < 2 or first is None or last is None or first == last:
        return Figure(name, texts, "" if len(values) < 2 or first is None or last is None else "=")
    better = last > first if name.startswith("score") else last < first
    if name.startswith("score"):
        change = f"{last - first:+.2f} points"
    else:
        change = f"{100 * (last / first - 1):+.1f}%" if first else f"{last - first:+g}"
    return Figure(name, texts, change, "" if name in ("layers", "parameters", "MACs") else "better" if better else "worse")


def _text(name: str, value: float) -> str:
    if name.startswith("score"):
        return f"{value:.2f}%"
    if name.startswith("MSE"):
        return decimal(value, 5)
    if name == "latency":
        return short_time(value)
    if name in ("MACs", "parameters"):
        return short_count(int(value))
    return grouped(int(value)) if name == "layers" else short_bytes(int(value))


@dataclass(frozen=True)
class LayerPair:
    """A layer by its name: for each column the texts of both runs, the change and its verdict."""

    name: str
    kind: str
    cells: list[tuple[str, str, str, str]]


def page(first: SummarizedRun, second: SummarizedRun) -> str:
    """Return the page of both runs."""
    names = list(dict.fromkeys([*first.layers, *second.layers]))
    rows = [*first.layers.values(), *second.layers.values()]
    columns = [one for one in _LAYER_FIGURES if any(row.get(one[1]) is not None for row in rows)]
    options = [
        (name, first.options.get(name, "–"), second.options.get(name, "–"))
        for name in dict.fromkeys([*first.options, *second.options])
        if first.options.get(name) != second.options.get(name)
    ]
    text = rendered(
        "compare.html.j2",
        runs=(first, second),
        figures=figures((first, second)),
        columns=[one[0] for one in columns],
        pairs=[_pair(name, first.layers.get(name, {}), second.layers.get(name, {}), columns) for name in names],
        options=options,
    )
    return text if text.endswith("\n") else text + "\n"


def _pair(name: str, a: Mapping[str, Any], b: Mapping[str, Any], columns: Sequence[tuple[str, str, str, int]]) -> LayerPair:
    cells = []
    for _title, key, wanted, digits in columns:
        left, right = _number(a.get(key)), _number(b.get(key))
        texts = ["–" if value is None else f"{value:,.{digits}f}" for value in (left, right)]
        change, verdict = "", ""
        if left is not None and right is not None and left != right:
            change = f"{right - left:+.{digits}f}" if wanted == "more" or not left else f"{100 * (right / left - 1):+.1f}%"
            verdict = "better" if (right > left) == (wanted == "more") else "worse"
        cells.append((texts[0], texts[1], change, verdict))
    kinds = dict.fromkeys(str(row["type"]) for row in (a, b) if row)
    return LayerPair(name, " / ".join(kinds), cells)


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
