"""Running an export from Python, on NumPy arrays in NCHW: the compiled project, or its integers simulated."""

from n2d2py.runtime.base import ArrayError, LayerInfo, Network, NetworkInfo, TensorInfo
from n2d2py.runtime.export import Export, load_export
from n2d2py.runtime.runner import Runner, register_runner, runner
from n2d2py.runtime.simulator import Simulator, load_simulator

__all__ = [
    "ArrayError",
    "Export",
    "LayerInfo",
    "Network",
    "NetworkInfo",
    "Runner",
    "Simulator",
    "TensorInfo",
    "load_export",
    "load_simulator",
    "register_runner",
    "runner",
]
