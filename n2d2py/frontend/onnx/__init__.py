"""Import of ONNX files: reading, checks, constant folding and conversion to a Graph."""
