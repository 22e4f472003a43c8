"""The floating-point reference: a Graph on ONNX Runtime or NumPy, and the user's ONNX file as it is."""
