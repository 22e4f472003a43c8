"""The functional model: executes loadables as NVIDIA's runtime, firmware and hardware do, bit for bit.

`run_program` is the whole; one module per hardware unit turns descriptors into arithmetic.
"""
from n2d2py.nvdla.model.run import Run, run_program

__all__ = ["Run", "run_program"]
