"""The C++ export: a standalone C++11 project for one network."""

from n2d2py.export.base import register
from n2d2py.export.cpp.exporter import CppExporter

__all__ = ["CppExporter"]

register(CppExporter())
