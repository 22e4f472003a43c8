"""NVIDIA's Deep Learning Accelerator: its loadable files, its firmware's structures, and a functional model of it.

`read_loadable` and `write_loadable` are the file, `Program` is what the firmware finds in it.
"""

from n2d2py_nvdla.loadable import Loadable, parse_loadable, read_loadable, write_loadable
from n2d2py_nvdla.program import Program

__all__ = ["Loadable", "Program", "parse_loadable", "read_loadable", "write_loadable"]
