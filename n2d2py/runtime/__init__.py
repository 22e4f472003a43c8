"""Networks on NumPy arrays in NCHW, whatever runs them: the contracts, and the simulation of an export's integers."""

from n2d2py.runtime.base import ArrayError, LayerInfo, Network, NetworkInfo, TensorInfo
from n2d2py.runtime.runner import AT_MOST, Latency, LayerTime, Runner
from n2d2py.runtime.simulator import FloatNetwork, Simulator, load_simulator
