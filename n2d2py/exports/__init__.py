"""Exports: a planned network becomes a project of a target. One folder for each target.

`find_target(name)` returns a target, `ExportRequest` is its input, `ExportFolder` writes all files or none.
"""

from n2d2py.exports.base import ExportRequest, KernelChoice, Prepared, QuantDefaults, ScoredOutput, Target
from n2d2py.exports.registry import find_target, load_params, register, target_names
from n2d2py.exports.stimuli import StoredStimuli, write_stimuli
from n2d2py.exports.writer import ExportFolder, Manifest, read_manifest, refuse_replacement, refuse_unwritable
