"""The C++ form of each operator kind, a function that `n2d2py.export.cpp.layer.cpp` declares. Importing this package finds them."""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
