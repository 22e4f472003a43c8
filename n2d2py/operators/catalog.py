"""Imports every module of this package, which registers the built-in operators."""

from importlib import import_module
from pkgutil import walk_packages

from n2d2py import operators

for _module in walk_packages(operators.__path__, operators.__name__ + "."):
    import_module(_module.name)
