"""Forms of kernels: one class for each way in which the kernels of an instruction set compute a layer (`contract.KernelForm`).

Importing this package imports every module of it, which registers what it declares.
"""

from importlib import import_module
from pkgutil import walk_packages

for _module in walk_packages(__path__, __name__ + "."):
    import_module(_module.name)
