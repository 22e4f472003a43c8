"""The functional model: executes loadables as NVIDIA's runtime, firmware and hardware do, bit for bit.

`run_program` is the whole; one module per hardware unit turns descriptors into arithmetic.
"""

from n2d2py_nvdla.model.run import Run, half_products, run_program

__all__ = ["Run", "half_products", "run_program"]
