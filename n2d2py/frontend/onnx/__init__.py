"""ONNX files: read, checked, folded and turned into a Graph."""
