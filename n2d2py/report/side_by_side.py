"""Two exports side by side: their figures, options that differ, and every layer of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from n2d2py.report.overview import short_time
from n2d2py.report.page import rendered
from n2d2py.report.text import decimal, grouped, short_bytes, short_count

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
        """From the JSON data.

        Raises:
            KeyError, TypeError, AttributeError: where a figure is missing or no figure.
        """
        memory, scores, latency = summary["memory"], summary["scores"], summary.get("latency", {})
        errors = summary.get("mse", {})
        values = {
            **{f"score {label}": _number(score) for label, score in scores.items()},
            **{f"MSE {label}": _number(error) for label, error in errors.items()},
            "RAM": _number(memory["ram"]),
            "arena": _number(memory["arena"]),
            "stack": _number(memory["stack"]),
            "flash": _number(memory["flash"]),
            "code": _number(memory["code"]),
            "constants": _number(memory["constants"]),
            "latency": _number(latency.get("median_us")),
            "MACs": _number(summary["macs"]),
            "parameters": _number(summary["parameters"]),
            "layers": _number(summary["layers"]),
        }
        sources = {"memory": str(memory["source"]), "latency": str(latency.get("source", ""))}
        options = {**manifest.get("options", {}), **manifest.get("parameters", {})}
        # older versions have no bytes after packing
        rows = {str(row["layer"]): {"flash_bytes": row.get("parameter_bytes"), **row} for row in summary["table"]}
        return SummarizedRun(title, values, rows, options, sources)


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
    return [
        _figure(name, [run.values.get(name) for run in runs])
        for name in names
        if any(run.values.get(name) is not None for run in runs)
    ]


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
    columns = [
        one
        for one in _LAYER_FIGURES
        if any(row.get(one[1]) is not None for run in (first, second) for row in run.layers.values())
    ]
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
