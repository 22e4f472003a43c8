"""The NVDLA export: a loadable for NVIDIA's Deep Learning Accelerator."""

from n2d2py.export.base import register
from n2d2py.export.nvdla.exporter import NvdlaExporter

__all__ = ["NvdlaExporter"]

register(NvdlaExporter())
