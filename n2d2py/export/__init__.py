"""The exports: what turns a planned network into a project of a target. One room per target.

`exporter(name)` finds a target, `ExportRequest` is what it is given, `ExportFolder` writes whole or not at all.
"""

from n2d2py.export.base import Exporter, ExportRequest, KernelChoice, Target, exporter, exporters, register
from n2d2py.export.replacement import read_manifest, refuse_replacement
from n2d2py.export.stimuli import Stimuli, write_stimuli
from n2d2py.export.writer import ExportFolder, Manifest

__all__ = [
    "ExportFolder",
    "ExportRequest",
    "Exporter",
    "KernelChoice",
    "Manifest",
    "Stimuli",
    "Target",
    "exporter",
    "exporters",
    "read_manifest",
    "refuse_replacement",
    "register",
    "write_stimuli",
]
