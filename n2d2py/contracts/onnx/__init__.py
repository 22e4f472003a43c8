"""Contract of ONNX nodes: how they become layers."""
