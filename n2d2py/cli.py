"""The command `n2d2py`: parses, runs, turns every failure into one line and an exit status."""

from __future__ import annotations

import os

# Batches are spread over the cores by threads of our own; BLAS threads on top would only get in their way.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import errno
import json
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.options import Arguments, help_text, parse_arguments, run_options
from n2d2py.version import __version__

if TYPE_CHECKING:
    from n2d2py.pipeline import ExportRun
    from n2d2py.stages.load import LoadedNetwork
    from n2d2py.stages.options import RunOptions

_COMMAND_LINE = ("E002", "E003", "E004", "E005", "E006", "E007")  # codes of a wrong command line

_DEFECT = 3  # exit status of an internal error


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line `words` (sys.argv without the program by default); the exit status. 0 success, 1 an error of the
    input or the environment, 2 a wrong command line, 3 an internal error, 130 interrupted."""
    words = list(sys.argv[1:] if words is None else words)
    log.setup(quiet="-quiet" in words, verbose="-verbose" in words, strict="-strict" in words)
    try:
        _answer(parse_arguments(words))
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_stdout()
        return 1
    except (Exception, KeyboardInterrupt) as error:
        if isinstance(error, OSError):
            _flush_or_discard_stdout()
        failure, status = _explained(error)
        if status == _DEFECT and "-verbose" in words:
            traceback.print_exc()
        log.report_error(failure)
        return status
    return 0


def _explained(error: BaseException) -> tuple[N2D2Error, int]:
    """Return the one line that `error` becomes, and the exit status."""
    match error:
        case N2D2Error():
            return error, 2 if error.code in _COMMAND_LINE else 1
        case KeyboardInterrupt():
            remedy = "run the command again; the previous export is unchanged"
            return N2D2Error("E010", "the run was interrupted", remedy=remedy), 130
        case OSError():
            return _system_error(error), 1
        case MemoryError():
            remedy = "use fewer calibration or test samples, or a smaller model"
            return N2D2Error("E013", "memory is exhausted", remedy=remedy), 1
        case _:
            what = f"internal error: {type(error).__name__}: {error}"
            return N2D2Error("E099", what, remedy="run again with -verbose and report this defect of n2d2py"), _DEFECT


def _answer(arguments: Arguments) -> None:
    """Print what needs no network (-h, -v, -completion), or run the command."""
    if arguments.h or arguments.v:
        print(help_text(arguments.h) if arguments.h else f"n2d2py {__version__}")
        if arguments.h and arguments.export:
            from n2d2py.exports.registry import parameters_help

            print(parameters_help(arguments.export))
    elif arguments.completion:
        from n2d2py.completion import completion

        print(completion(arguments.completion), end="")
    else:
        run(arguments)
        log.raise_on_strict()
        if warnings := log.warnings_seen():
            kinds = ", ".join(sorted({warning.code for warning in warnings}))
            log.notice("%d warning%s (%s)", len(warnings), "s" if len(warnings) > 1 else "", kinds)


def run(arguments: Arguments) -> None:
    """Run what the command line asks for. Raise errors for every wrong input, with nothing half-written; E812 for an export
    that computes other values than Python: by `-compare` after it is written, so that it can be looked into."""
    from n2d2py import pipeline
    from n2d2py.plugin.load import load_plugins, write_skeleton
    from n2d2py.stages.train import is_first_process

    path = Path(arguments.network)
    if arguments.new_operator:
        write_skeleton(arguments.new_operator, path)
        return
    load_plugins(list(arguments.plugin))
    options = run_options(arguments)
    if options.training.wanted:
        options = pipeline.train_network(path, options)
        if options.training.find_rate or not is_first_process():
            return
    network = pipeline.load_network(path, options)
    _warn_of_parameters(arguments, network)
    if arguments.calib_reload:
        options = pipeline.reload_statistics(network, options)
    _act(arguments, network, options)


def _act(arguments: Arguments, network: LoadedNetwork, options: RunOptions) -> None:
    from n2d2py import pipeline
    from n2d2py.graph.describe import describe
    from n2d2py.report import describe_text
    from n2d2py.stages.report import print_scores

    if arguments.describe:
        layers = describe(network.graph)
        print(json.dumps(layers, indent=1) if arguments.describe == "json" else describe_text(layers, _table_width()))
    elif arguments.memory_report:
        print(pipeline.memory_table(network, options))
    elif options.calibrate_only:
        log.notice("written: %s", pipeline.calibrate_only(network, options))
    elif arguments.export:
        _print_export(pipeline.export_network(network, options))
    elif arguments.test or arguments.log_outputs:
        print_scores(pipeline.score_float(network, options))
    elif arguments.pre_samples < 0 and not options.training.wanted:
        log.notice("nothing to do: add -test, -export TYPE or -describe")


def _warn_of_parameters(arguments: Arguments, network: LoadedNetwork) -> None:
    """W011 where no export reads the parameters, and none of them is for the import of a model file."""
    is_read = arguments.export or arguments.memory_report or not arguments.export_parameters
    imports = network.document is None and any(map(network.params.is_given, ("States", "StateCalls", "Constants")))
    if not is_read and not imports:
        log.warning("W011", "-export-parameters has no effect without -export", remedy="add -export TYPE, or remove it")


def _print_export(run: ExportRun) -> None:
    """Print the results; raise E812 where compiled values are not those of Python."""
    from n2d2py.report import comparison_text, worst_text
    from n2d2py.report.bits import bits_text
    from n2d2py.stages.compare import refuse_differences, summary
    from n2d2py.stages.report import print_scores

    checked, options = run.checked, run.project.options
    if options.score.test:
        print_scores(checked.scores)
    if options.score.compare:
        print(comparison_text(checked.compared.layers, _table_width()), end="")
        print(worst_text(checked.compared.stimuli), end="")
        print(summary(checked.compared.layers, options.quantization.bits, checked.compared.slack))
    print(checked.sensitivity.text, end="")
    if run.project.quantized.search is not None:
        print(bits_text(run.project.quantized.search), end="")
    log.notice("written: %s (report: %s)", run.folder, run.folder / "statistics" / "report.html")
    refuse_differences(checked.compared.layers)


def _table_width() -> int | None:
    """Return the number of columns for a table on stdout; None, without a limit, if it is not a terminal."""
    return log.terminal_width() if sys.stdout.isatty() else None


def _flush_or_discard_stdout() -> None:
    try:
        sys.stdout.flush()
    except OSError:
        _discard_stdout()


def _discard_stdout() -> None:
    """Text that stdout could not take would be tried again, and complained about, when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _system_error(error: OSError) -> N2D2Error:
    remedy = {
        **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space or choose another folder with -o"),
        errno.EACCES: "check the permissions, or choose another folder with -o",
        errno.EEXIST: "remove the file, or choose another folder with -o",
        errno.ENOTDIR: "remove the file, or choose another folder with -o",
        errno.EROFS: "choose a writable folder with -o",
    }.get(error.errno or 0, "check the path")
    return N2D2Error("E012", error.strerror or str(error), where=str(error.filename) if error.filename else None, remedy=remedy)
