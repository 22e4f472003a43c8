"""Floating-point reference: a Graph on ONNX Runtime or NumPy, and the user's original ONNX file."""
