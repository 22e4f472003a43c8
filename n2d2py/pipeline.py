"""The order of the stages: the only module that knows it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py import log
from n2d2py.data.stimuli import Stimuli
from n2d2py.errors import N2D2Error
from n2d2py.export import ExportFolder, Manifest, StoredStimuli, Target, refuse_replacement
from n2d2py.graph.describe import describe
from n2d2py.options import Arguments
from n2d2py.plugin.load import load_plugins
from n2d2py.plugin.skeleton import write_skeleton
from n2d2py.report import comparison_text, worst_text
from n2d2py.runtime import Runner
from n2d2py.stages.calibrate import STATISTICS_FILE, Calibration, calibrate_stage, calibration_folder_name, spread
from n2d2py.stages.compare import Comparison, compare_stage, refuse_differences, summary
from n2d2py.stages.export import export_request, export_stage, exported_stimuli, stored_stimuli
from n2d2py.stages.fuse import fuse_stage
from n2d2py.stages.load import Network, load_stage
from n2d2py.stages.log_outputs import write_outputs
from n2d2py.stages.memory import plan_stage
from n2d2py.stages.memory_report import memory_report
from n2d2py.stages.parameters import warn_without_effect
from n2d2py.stages.report import print_scores, report_stage
from n2d2py.stages.sensitivity import sensitivity_stage
from n2d2py.stages.settings import Settings, export_folder_name, read_settings
from n2d2py.stages.test import Scores, compiled_scores, test_stage, test_stimuli

__all__ = ["run"]


def run(arguments: Arguments) -> None:
    """Does what the command line asks for.

    Raises:
        N2D2Error: for every wrong input; nothing half-written stays behind. E812 for an export that computes other
            values than Python: by `-compare` after it is written, so that it can be looked into.
    """
    if arguments.new_operator:
        write_skeleton(arguments.new_operator, Path(arguments.network))
        return
    load_plugins(list(arguments.plugin))
    settings = read_settings(arguments)
    network = load_stage(settings)
    log.raise_on_strict()
    if arguments.describe:
        print(json.dumps(describe(network.graph), indent=1))
    elif arguments.memory_report:
        fused, _ = fuse_stage(network, integer=settings.integer)
        print(memory_report(fused.graph, arguments.nbbits, settings.params))
    elif settings.target is not None:
        _export(network, settings, settings.target)
    elif arguments.calibOnly:
        _calibrate_only(network, settings)
    elif arguments.test or arguments.log_outputs:
        _float_test(network, settings)
    elif arguments.pre_samples < 0:
        log.notice("nothing to do: add -test, -export TYPE or -describe")


def _float_test(network: Network, settings: Settings) -> None:
    """Scores the float network; its target folders are written into the output folder."""
    if settings.arguments.fuse:
        network, _ = fuse_stage(network, integer=False)
    stimuli = _required_stimuli(network, settings)
    settings.out.mkdir(parents=True, exist_ok=True)
    if settings.arguments.test:
        print_scores(test_stage(network, network.graph, None, stimuli, settings.out, settings.arguments.log_json))
    if settings.arguments.log_outputs:
        write_outputs(network.graph, None, stimuli, settings.arguments.log_outputs, settings.out, "test")


def _required_stimuli(network: Network, settings: Settings) -> Stimuli:
    stimuli = test_stimuli(network, settings)
    if stimuli is None:
        raise N2D2Error(
            "E509",
            "there are no test stimuli",
            where=str(network.files[0]),
            remedy="add a [database], or give labelled data with -calib-data FILE.npz",
        )
    return stimuli


def _calibrate_only(network: Network, settings: Settings) -> None:
    path = settings.out / calibration_folder_name(network.graph.name, settings.arguments.nbbits)
    _refuse_early(path, network, settings)
    network, report = fuse_stage(network, integer=True)
    calibration = calibrate_stage(network, settings)
    manifest = Manifest(
        "calibration", network.graph.name, settings.arguments.described(), settings.params.as_dict(), network.hashes()
    )
    with ExportFolder(path, manifest, settings.arguments.force) as folder:
        _save_statistics(calibration, folder)
        report_stage(network, calibration, None, Scores(), Comparison(), report, settings, folder)
        log.raise_on_strict()
    log.notice("written: %s", path)


def _export(network: Network, settings: Settings, target: Target[Any]) -> None:
    arguments = settings.arguments
    if arguments.tune:
        target.check_tunable(settings.params.as_dict())
    path = settings.out / export_folder_name(arguments.export, arguments.nbbits)
    _refuse_early(path, network, settings)
    network, report = fuse_stage(network, integer=settings.integer, rounding=settings.integer)
    tested = _tested_stimuli(network, settings)
    calibration = calibrate_stage(network, settings)
    tester = target.runner
    memory = plan_stage(calibration.graph, settings.params, target.adds_residuals) if target.needs_plan else None
    chosen, positions = exported_stimuli(tested, arguments.db_export)
    stored = stored_stimuli(network, calibration.graph, chosen)
    request = export_request(network, calibration.graph, memory, stored, settings)
    warn_without_effect(settings.params, target, calibration.graph)
    prepared = target.prepare(request)
    manifest = target.manifest(prepared)
    with ExportFolder(path, manifest, arguments.force) as folder:
        kernels = export_stage(target, prepared, folder)
        if arguments.tune:
            request = target.tune(prepared, folder, kernels, arguments.tune, arguments.tune_command)
            kernels = export_stage(target, target.prepare(request), folder)
        _save_statistics(calibration, folder)
        scores, compared = Scores(), Comparison()
        if tested is not None:
            scores = _simulate(network, calibration, tested, settings, folder / "statistics")
        if arguments.test or arguments.compare:
            compared = _check_compiled(
                tester, network, calibration, settings, tested, stored, positions, scores, folder, manifest
            )
        sensitivity = sensitivity_stage(calibration, settings, tested, scores, folder)
        report_stage(network, calibration, memory, scores, compared, report, settings, folder, kernels)
        log.raise_on_strict()
    if arguments.test:
        print_scores(scores)
    if arguments.compare:
        print(comparison_text(compared.layers), end="")
        print(worst_text(compared.stimuli), end="")
        print(summary(compared.layers, arguments.nbbits, tester.slack if tester is not None else 0.0))
    print(sensitivity, end="")
    log.notice("written: %s (report: %s)", path, path / "statistics" / "report.html")
    refuse_differences(compared.layers)


def _refuse_early(path: Path, network: Network, settings: Settings) -> None:
    """What ExportFolder would refuse to replace, before any work is done; it looks again and explains what cannot be read."""
    with suppress(OSError):
        refuse_replacement(path, network.graph.name, settings.arguments.force)


def _tested_stimuli(network: Network, settings: Settings) -> Stimuli | None:
    """What an export is tested with; None where that is neither there nor needed."""
    arguments = settings.arguments
    if arguments.test or arguments.compare or arguments.sensitivity or arguments.log_outputs:
        return _required_stimuli(network, settings)
    return test_stimuli(network, settings) if settings.needs_data else None


def _simulate(network: Network, calibration: Calibration, stimuli: Stimuli, settings: Settings, folder: Path) -> Scores:
    """The scores of -test in Python; writes its files and those of -log-outputs into `folder`."""
    arguments, graphs = settings.arguments, (calibration.float_graph, calibration.graph)
    scores = test_stage(network, *graphs, stimuli, folder, arguments.log_json) if arguments.test else Scores()
    if arguments.log_outputs:
        write_outputs(*graphs, stimuli, arguments.log_outputs, folder, "export")
    return scores


def _check_compiled(
    tester: type[Runner] | None,
    network: Network,
    calibration: Calibration,
    settings: Settings,
    tested: Stimuli | None,
    stored: StoredStimuli,
    positions: np.ndarray,
    scores: Scores,
    folder: Path,
    manifest: Manifest,
) -> Comparison:
    """Builds and runs the export: its scores on the exported stimuli, and the layer by layer comparison."""
    arguments = settings.arguments
    compared = spread(tested, arguments.compare) if arguments.compare and tested is not None else None
    if tester is not None and tester.missing():
        log.warning("W801", f"{tester.missing()}: the {tester.label} export is not tested", remedy=tester.remedy)
        tester = None
    with _running(tester if stored.count or compared is not None else None, folder, manifest) as project:
        if project is not None and (sizes := project.sizes()):
            log.notice("compiled: %s bytes", ", ".join(f"{name} {size:,}" for name, size in sizes.items()))
        if project is not None and arguments.test and stored.count:
            compiled_scores(network, calibration.graph, project, stored, positions, scores)
        if compared is None:
            return Comparison()
        return compare_stage(
            calibration.float_graph,
            calibration.graph,
            compared,
            project.network() if project is not None else None,
            project.slack if project else 0.0,
        )


@contextmanager
def _running(wanted: type[Runner] | None, folder: Path, manifest: Manifest) -> Iterator[Runner | None]:
    if wanted is None:
        yield None
        return
    with wanted(folder, manifest.details) as project:
        yield project


def _save_statistics(calibration: Calibration, folder: Path) -> None:
    if calibration.statistics is not None:
        path = folder / STATISTICS_FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        calibration.statistics.save(path)
