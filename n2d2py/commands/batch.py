"""Exports, compiles and scores networks x export parameters x precisions, and prints one table.

    n2d2py-batch [-m NET ...] [-p PARAMS ...] [-n NBBITS ...] [-o DIR] [-workers N | -cluster ADDRESS] [-- N2D2PY OPTIONS]

Without names: LeNet.ini and MobileNet.ini of the installation, all presets of export parameters, 8 bits. A network with NET.npz
next to it runs with these weights, any other with -w /dev/null. Options after -- go to every run (-seed 1 -calib -1 -db-export
100 by default). Each export goes to DIR/<network>__<params>__<nbbits>/, its messages to run.log there; the table also to
DIR/summary.tsv. A score says on how many samples it was measured; "as float" compares the labels of the compiled export with
those of the float network on the samples of both. The exit status is 1 when a run failed; the others run all the same. An
export with files that were edited or added since is not replaced: -- -force does it.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from n2d2py.commands.cli_common import build_tools_missing, networks, parameter_files, run_tool, split_options, weights_of
from n2d2py.errors import N2D2Error
from n2d2py.executor import Executor, add_options, of_options
from n2d2py.targets import text_table

_SCORES = ("float %", "simulated %", "compiled %", "as float %")
_TITLES = ("model", "params", "bits", "arena B", "weights B", *_SCORES, "note")


def main(words: list[str] | None = None) -> int:
    """Run the command `n2d2py-batch`; return its exit status."""
    arguments, options = split_options(sys.argv[1:] if words is None else words)
    parser = argparse.ArgumentParser(
        prog="n2d2py-batch", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-m", nargs="+", default=[], metavar="NET", help="INI, ONNX or TFLite files")
    parser.add_argument("-p", nargs="+", default=[], metavar="PARAMS", help="files or presets for -export-parameters")
    parser.add_argument("-n", nargs="+", default=["8"], metavar="NBBITS", help="values for -nbbits [8]")
    parser.add_argument("-o", type=Path, default=Path("batch_export"), metavar="DIR", help="folder of the exports and logs")
    add_options(parser)
    chosen = parser.parse_args(arguments)
    executor = of_options(parser, chosen)
    models, params = networks(parser, chosen.m), parameter_files(parser, chosen.p)
    precisions = [bits for word in chosen.n for bits in word.split()]
    if missing := build_tools_missing():
        print(f"error: {missing}", file=sys.stderr)
        return 1
    options = options or ["-seed", "1", "-calib", "-1", "-db-export", "100"]
    chosen.o.mkdir(parents=True, exist_ok=True)
    output = chosen.o
    if executor != Executor():  # whose workers may be elsewhere
        output, models, params = output.resolve(), [one.resolve() for one in models], [one.resolve() for one in params]
    runs = [_Run(*one, output, options) for one in product(models, params, precisions)]
    rows: dict[int, list[str]] = {}
    try:
        for number, row in executor.run(_run, runs):
            rows[number] = row
            lines = [_TITLES, *(rows[one] for one in sorted(rows))]
            (chosen.o / "summary.tsv").write_text("".join("\t".join(one) + "\n" for one in lines), encoding="utf-8")
    except N2D2Error as error:
        print(error.line(), file=sys.stderr)
        return 1
    print(text_table(_TITLES, [rows[one] for one in sorted(rows)], left=(0, 1, 2, len(_TITLES) - 1)), end="")
    if failures := sum(bool(row[-1]) for row in rows.values()):
        print(f"error: {failures} of the runs failed", file=sys.stderr)
    return 1 if failures else 0


@dataclass(frozen=True)
class _Run:
    model: Path
    params: Path
    bits: str
    output: Path
    options: list[str]


def _run(run: _Run) -> list[str]:
    """Return the row of one run, with a note if it failed. Its messages are in its folder."""
    model, params, bits, options = run.model, run.params, run.bits, run.options
    print(f"{model.stem}, {params.stem}, {bits} bits ...", file=sys.stderr, flush=True)
    folder = run.output / f"{model.stem}__{params.stem}__{bits}"
    folder.mkdir(parents=True, exist_ok=True)
    words = [str(model), "-w", weights_of(model), "-export", "CPP", "-nbbits", bits, "-test"]
    done = run_tool([*words, "-export-parameters", str(params), "-o", str(folder), *options])
    log = folder / "run.log"
    log.write_text(done.stdout, encoding="utf-8")
    summaries = sorted(folder.glob("export_CPP_*/statistics/summary.json"), key=lambda file: file.stat().st_mtime)
    if done.returncode or not summaries:
        return [model.stem, params.stem, bits, *["-"] * (len(_TITLES) - 4), f"failed: see {log}"]
    summary = json.loads(summaries[-1].read_text(encoding="utf-8"))
    scores, samples = summary["scores"], summary["samples"]
    shown = [_percent(scores.get(kind), samples.get(kind)) for kind in ("float", "simulated", "compiled")]
    last = "compiled" if "compiled" in samples else "simulated"
    shown.append(_percent(summary.get("agreement", {}).get(last), summary.get("shared_samples", {}).get(last)))
    return [summary["network"], params.stem, bits, str(summary["arena_bytes"]), str(summary["weights_bytes"]), *shown, ""]


def _percent(value: float | None, samples: int | None) -> str:
    return "-" if value is None else f"{value:.2f} of {samples}"


if __name__ == "__main__":
    sys.exit(main())
