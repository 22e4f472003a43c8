"""The built-in quantizers: importing this module imports every module of this package, which registers what it declares."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from n2d2py.quant import quantizers

__all__: list[str] = []

for _module in iter_modules(quantizers.__path__, quantizers.__name__ + "."):
    import_module(_module.name)
