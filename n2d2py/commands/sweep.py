"""Try networks, export parameters and options, and show the best trade-offs.

    n2d2py-sweep SWEEP.ini [-o DIR] [-workers N | -cluster ADDRESS]

SWEEP.ini has a section [sweep] with Network, Options, Objectives, Sampler, Trials and Seed, and sections [parameters] and
[options] with the values to try: docs/how-to/sweep.md. Each finished setting is a file DIR/settings/NNNN/result.json, and a
sweep that was stopped continues after them. DIR/sweep.csv holds the table, DIR/sweep.svg the plot. The result is the same for
every number of workers; a time is best measured with one.
"""

import argparse
import csv
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from n2d2py import log
from n2d2py.errors import ErrorList, Location, N2D2Error, suggest
from n2d2py.executor import Executor, add_options, of_options
from n2d2py.exports.registry import installed_targets, known_parameters
from n2d2py.figures import Svg
from n2d2py.files import json_text, write_text
from n2d2py.ini import REQUIRED, Key, Kind, Schema, Section, load_document
from n2d2py.targets.table import text_table

Summary = Mapping[str, Any]


def _last(values: Mapping[str, float | None]) -> float | None:
    """Return the figure of the compiled export, or of the simulated one if it was not built."""
    return values.get("simulated") if values.get("compiled") is None else values["compiled"]


@dataclass(frozen=True)
class Objective:
    """A figure of the summary of an export: 1 as `sign` where more is better, -1 where less is; an option that measures it."""

    title: str
    sign: int
    value: Callable[[Summary], float | None]
    option: str = ""


OBJECTIVES = {
    "score": Objective("score %", 1, lambda summary: _last(summary["scores"]), "-test"),
    "agreement": Objective("as float %", 1, lambda summary: _last(summary.get("agreement", {})), "-test"),
    "arena": Objective("arena B", -1, lambda summary: summary["arena_bytes"]),
    "weights": Objective("weights B", -1, lambda summary: summary["packed_weights_bytes"]),
    "stack": Objective("stack B", -1, lambda summary: summary["memory"]["stack"], "-latency"),
    "code": Objective("code B", -1, lambda summary: summary["memory"]["code"], "-latency"),
    "time": Objective("time us", -1, lambda summary: summary.get("latency", {}).get("least_us"), "-latency"),
}
_REMARKS = ("W102", "W109", "W801")  # warnings of parameters without effect and of missing build tools
_BATCH = 8  # settings that Optuna proposes before it hears of results, whatever the number of workers
_SWEEP = Schema(
    "sweep",
    (
        Key("Network", Kind.STRING, REQUIRED, "INI, ONNX or TFLite files, relative to the folder of the sweep file."),
        Key("Options", Kind.STRING, "-seed 1 -calib -1 -db-export 100 -test", "Options of n2d2py for every trial."),
        Key("Objectives", Kind.STRINGS, ("score", "arena"), f"Metrics to optimize: {', '.join(OBJECTIVES)}."),
        Key("Sampler", Kind.ENUM, "grid", "grid: every combination. optuna: Trials proposals of Optuna.", ("grid", "optuna")),
        Key("Trials", Kind.UINT, 50, "Number of combinations that Optuna proposes.", minimum=1),
        Key("Seed", Kind.UINT, 0, "Seed of Optuna."),
    ),
)


@dataclass(frozen=True)
class Sweep:
    """Values to try, by name of export parameters and of options, those with a dash; `options` go to every run."""

    networks: tuple[Path, ...]
    options: tuple[str, ...]
    tried: Mapping[str, tuple[str, ...]]
    objectives: tuple[str, ...]
    sampler: str = "grid"
    trials: int = 50
    seed: int = 0


@dataclass(frozen=True)
class Setting:
    """One setting: values by name as in `Sweep.tried`; its files are in `folder`."""

    network: Path
    options: tuple[str, ...]
    values: tuple[tuple[str, str], ...]
    folder: Path

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.values)

    @property
    def key(self) -> dict[str, Any]:
        """Conditions of a result, as JSON data."""
        return {"network": self.network.name, "options": list(self.options), "values": dict(self.values)}


@dataclass(frozen=True)
class Outcome:
    """Figures by objective, or why there are none; `remarks` are the warnings of parameters without effect."""

    figures: Mapping[str, float]
    problem: str = ""
    remarks: tuple[str, ...] = ()


def read_sweep(path: Path) -> Sweep:
    """Return the sweep of a file. Raise E101 to E122 for a file that is not a sweep; an ErrorList for several."""
    document = load_document(path)
    section = document.require("sweep")
    for one in document.sections:
        if one.name not in ("sweep", "parameters", "options"):
            what = f"section [{one.name}] is unknown in a sweep"
            raise N2D2Error("E122", what, where=one.location, remedy="use [sweep], [parameters] and [options]")
    values = _SWEEP.read(section)
    parameters, words = (_tried(document.section(name)) for name in ("parameters", "options"))
    text, objectives = values["Network"], tuple(values["Objectives"])
    names = [text] if (path.parent / text).is_file() else text.split()  # one file, or several
    networks = tuple((path.parent / name).resolve() for name in names)
    options, place = tuple(shlex.split(values["Options"])), section.location
    known = [key.name for key in known_parameters(*installed_targets()).keys]
    problems: list[N2D2Error] = []

    def check(fails: object, what: str, where: Location | None, remedy: str, code: str = "E122") -> None:
        if fails:
            problems.append(N2D2Error(code, what, where=where, remedy=remedy))

    for name in parameters:
        where, remedy = document.require("parameters").where(name), suggest(name, known, "see docs/export_parameters.md")
        check(name not in known, f"{name} is not an export parameter", where, remedy)
    wrong = [name for name in objectives if name not in OBJECTIVES]
    where = section.where("Objectives")
    what = f"Objectives={' '.join(objectives)} contains an unknown objective"
    check(wrong or not objectives, what, where, f"use {', '.join(OBJECTIVES)}")
    unmeasured = [name for name in objectives if name not in wrong and OBJECTIVES[name].option not in ("", *options)]
    option = OBJECTIVES[unmeasured[0]].option if unmeasured else ""
    check(unmeasured, f"{' '.join(unmeasured)} in Objectives requires {option}", where, f"add {option} to Options")
    check(not parameters and not words, "no values to try", place, "add [parameters] or [options] with values")
    what = "[parameters] excludes export-parameters in [options]"
    check(parameters and "export-parameters" in words, what, place, "use one of them")
    named, missing = section.where("Network"), [network for network in networks if not network.is_file()]
    check(missing, f"the model {' '.join(map(str, missing))} does not exist", named, "correct Network", "E101")
    several, remedy = len(networks) > 1, "use Sampler=grid, or a sweep for each network"
    check(several and values["Sampler"] == "optuna", "Sampler=optuna takes one network", named, remedy)
    ErrorList.raise_if(problems)
    tried = parameters | {f"-{name}": each for name, each in words.items()}
    return Sweep(networks, options, tried, objectives, values["Sampler"], values["Trials"], values["Seed"])


def _tried(section: Section | None) -> dict[str, tuple[str, ...]]:
    return {name: tuple(section.text(name).split()) for name in section.keys()} if section is not None else {}


def settings(sweep: Sweep, folder: Path, outcomes: Mapping[int, Outcome]) -> Iterator[list[Setting]]:
    """Yield the settings in batches. The results of a batch are in `outcomes`, by number, before the next is requested."""
    number = 0

    def setting(network: Path, chosen: Sequence[str]) -> Setting:
        nonlocal number
        number += 1
        return Setting(network, sweep.options, tuple(zip(sweep.tried, chosen, strict=True)), folder / f"{number - 1:04d}")

    if sweep.sampler == "grid":
        yield [setting(network, chosen) for network in sweep.networks for chosen in product(*sweep.tried.values())]
        return
    try:
        import optuna
    except ImportError as error:
        raise N2D2Error("E454", "Sampler=optuna requires Optuna", remedy="pip install 'n2d2py[sweep]'") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    kinds = optuna.study.StudyDirection
    directions = [kinds.MAXIMIZE if OBJECTIVES[name].sign > 0 else kinds.MINIMIZE for name in sweep.objectives]
    study = optuna.create_study(directions=directions, sampler=optuna.samplers.TPESampler(seed=sweep.seed))
    space: dict[str, optuna.distributions.BaseDistribution] = {
        name: optuna.distributions.CategoricalDistribution(values) for name, values in sweep.tried.items()
    }
    while number < sweep.trials:
        first = number
        trials = [study.ask(space) for _ in range(min(_BATCH, sweep.trials - number))]
        yield [setting(sweep.networks[0], [trial.params[name] for name in sweep.tried]) for trial in trials]
        for at, trial in enumerate(trials, first):
            outcome = outcomes[at]
            if outcome.problem:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                study.tell(trial, [outcome.figures[name] for name in sweep.objectives])


def run_setting(setting: Setting) -> Outcome:
    """Export one setting and write its result; one that is there is read."""
    result = setting.folder / "result.json"
    if (known := _known(setting, result)) is not None:
        return known
    shutil.rmtree(setting.folder, ignore_errors=True)
    setting.folder.mkdir(parents=True)
    weights = setting.network.with_suffix(".npz")
    words = [str(setting.network), "-w", str(weights) if weights.is_file() else "/dev/null"]
    words += [] if "-export" in setting.options else ["-export", "CPP"]
    words += [word for name, value in setting.values if name.startswith("-") for word in (name, value)]
    if lines := [f"{name} = {value}\n" for name, value in setting.values if not name.startswith("-")]:
        parameters = setting.folder / "params.ini"
        parameters.write_text("".join(lines), encoding="utf-8")
        words += ["-export-parameters", str(parameters)]
    command = [sys.executable, "-m", "n2d2py", *words, "-o", str(setting.folder), "-quiet", *setting.options]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    (setting.folder / "run.log").write_text(done.stdout, encoding="utf-8")
    outcome = _outcome(done.returncode, done.stdout, setting.folder)
    for export in setting.folder.glob("export_*"):
        shutil.rmtree(export)
    data = {"setting": setting.key, **asdict(outcome)}
    partial = result.with_suffix(".part")
    write_text(partial, json_text(data))
    os.replace(partial, result)
    return outcome


def _known(setting: Setting, result: Path) -> Outcome | None:
    """Return the outcome in a result file; None if it is missing or of another setting."""
    try:
        data = json.loads(result.read_text(encoding="utf-8"))
        return Outcome(data["figures"], data["problem"], tuple(data["remarks"])) if data["setting"] == setting.key else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _outcome(status: int, text: str, folder: Path) -> Outcome:
    summaries = list(folder.glob("export_*/statistics/summary.json"))
    if status or len(summaries) != 1:
        lines = [line for line in text.splitlines() if line.startswith("error ")] or ["error: see run.log"]
        return Outcome({}, lines[0].removeprefix("error ").replace(str(folder) + os.sep, ""))
    summary = json.loads(summaries[0].read_text(encoding="utf-8"))
    figures = {name: objective.value(summary) for name, objective in OBJECTIVES.items()}
    warnings = tuple(f"warning N2D2-{code}" for code in _REMARKS)
    lines = [line.split(": ", 2) for line in text.splitlines() if line.startswith(warnings)]
    remarks = tuple(dict.fromkeys(line[-1] for line in lines))
    return Outcome({name: value for name, value in figures.items() if value is not None}, "", remarks)


def run_sweep(sweep: Sweep, folder: Path, executor: Executor) -> list[tuple[Setting, Outcome]]:
    """All settings and their outcomes, in order. Raise E813, E814 as of the executor; E454 without Optuna where it is asked
    for."""
    outcomes: dict[int, Outcome] = {}
    tried: list[Setting] = []
    for portion in settings(sweep, folder / "settings", outcomes):
        first = len(tried)
        tried += portion
        names = {each.folder.name for each in portion}
        done = executor.run(run_setting, portion)
        for number, outcome in log.progress(done, f"settings {min(names)} to {max(names)}", total=len(portion), unit="setting"):
            lacking = [name for name in sweep.objectives if name not in outcome.figures]
            if lacking and not outcome.problem:
                outcome = replace(outcome, problem=f"the export has no {lacking[0]}")
            outcomes[first + number] = outcome
    return [(setting, outcomes[number]) for number, setting in enumerate(tried)]


def best(rows: Sequence[tuple[Setting, Outcome]], objectives: Sequence[str]) -> list[bool]:
    """Return for each row True if no other of its network is at least as good in all objectives and better in one."""
    points = [
        (setting.network, None if row.problem else [OBJECTIVES[name].sign * row.figures[name] for name in objectives])
        for setting, row in rows
    ]

    def beaten(network: Path, point: list[float]) -> bool:
        others = [other for one, other in points if one == network and other is not None and other != point]
        return any(all(a >= b for a, b in zip(other, point, strict=True)) for other in others)

    return [point is not None and not beaten(network, point) for network, point in points]


def table(sweep: Sweep, rows: Sequence[tuple[Setting, Outcome]]) -> list[list[str]]:
    """Return the titles and cells: number, network if several, values, figures, "*" for a setting that none beats, the
    problem."""
    several = len(sweep.networks) > 1
    titles = [OBJECTIVES[name].title for name in sweep.objectives]
    lines = [["number", *(["network"] if several else []), *sweep.tried, *titles, "best", "problem"]]
    for (setting, outcome), front in zip(rows, best(rows, sweep.objectives), strict=True):
        network = [setting.network.name] if several else []
        values = [value for _, value in setting.values]
        figures = [_figure(outcome.figures.get(name)) for name in sweep.objectives]
        lines.append([setting.folder.name, *network, *values, *figures, "*" if front else "", outcome.problem])
    return lines


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)


def write_results(sweep: Sweep, rows: Sequence[tuple[Setting, Outcome]], folder: Path) -> list[list[str]]:
    """Write the table, and the plot where there are two objectives; the table."""
    lines = table(sweep, rows)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    write_text(folder / "sweep.csv", text.getvalue())
    if len(sweep.objectives) >= 2 and any(not row.problem for _, row in rows):
        _draw(sweep, rows, folder / "sweep.svg")
    return lines


_SIZE, _EDGES = (720.0, 420.0), (64.0, 20.0, 700.0, 370.0)
"""Of the plot, in pixels; left, upper, right and lower edge of its axes."""


def _draw(sweep: Sweep, rows: Sequence[tuple[Setting, Outcome]], path: Path) -> None:
    """Draw the second objective to the right and the first upwards; a line joins the settings that none beats."""
    down, across = sweep.objectives[:2]
    done = [
        (setting, each.figures, front)
        for (setting, each), front in zip(rows, best(rows, sweep.objectives), strict=True)
        if not each.problem
    ]
    left, top, right, foot = _EDGES
    values = {name: [figures[name] for _, figures, _ in done] for name in (across, down)}
    lowest = {name: min(each) for name, each in values.items()}
    span = {name: (max(each) - min(each)) or 1 for name, each in values.items()}
    svg = Svg(*_SIZE, "chart", standalone=True)

    def place(share_across: float, share_down: float) -> tuple[float, float]:
        return left + 20 + share_across * (right - left - 40), foot - 20 - share_down * (foot - top - 40)

    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = place(share, share)
        svg.line(x, top, x, foot, "grid")
        svg.line(left, y, right, y, "grid")
        svg.text(x, foot + 14, f"{lowest[across] + share * span[across]:.6g}", "tick")
        svg.text(left - 5, y + 3.5, f"{lowest[down] + share * span[down]:.6g}", "tick", anchor="end")
    points = []
    for setting, figures, front in sorted(done, key=lambda one: (one[1][across], one[1][down], one[0].folder.name)):
        x, y = place(*((figures[name] - lowest[name]) / span[name] for name in (across, down)))
        svg.rect(x - 3, y - 3, 6, 6, "k-conv" if front else "k-other", 3)
        svg.text(x + 5, y - 5, setting.folder.name.lstrip("0") or "0", "tick", anchor="start")
        points += [(x, y)] * front
    svg.polyline(points, "line")
    svg.text((left + right) / 2, foot + 32, f"{OBJECTIVES[across].title}; above: {OBJECTIVES[down].title}", "info")
    svg.finish().save(path)


def main(words: list[str] | None = None) -> int:
    """Run the command `n2d2py-sweep`; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="n2d2py-sweep", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sweep", type=Path, metavar="SWEEP.ini")
    parser.add_argument("-o", type=Path, default=Path("sweep"), metavar="DIR", help="folder of the results [sweep]")
    add_options(parser)
    chosen = parser.parse_args(words)
    executor = of_options(parser, chosen)
    try:
        sweep = read_sweep(chosen.sweep)
        folder = chosen.o.resolve()
        folder.mkdir(parents=True, exist_ok=True)
        rows = run_sweep(sweep, folder, executor)
        lines = write_results(sweep, rows, folder)
    except N2D2Error as error:
        for each in error.errors:
            print(each.line(), file=sys.stderr)
        return 1
    print(text_table(lines[0], lines[1:], left=len(lines[0])), end="")
    remarks = Counter(remark for _, outcome in rows for remark in outcome.remarks)
    for remark, count in remarks.items():
        print(f"warning: {remark} ({count} of {len(rows)} settings)", file=sys.stderr)
    failed = sum(bool(outcome.problem) for _, outcome in rows)
    if failed:
        print(f"{failed} of {len(rows)} settings failed", file=sys.stderr)
    return 1 if failed == len(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
