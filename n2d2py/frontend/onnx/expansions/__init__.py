"""Built-in expansions; importing this package registers them."""

from n2d2py.frontend.onnx.expansions import contributed, matrices, sampling
