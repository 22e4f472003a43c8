"""Floating-point reference: a Graph on ONNX Runtime or NumPy."""
