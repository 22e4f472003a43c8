"""ONNX export: a QDQ model with the tool's integers, for any ONNX runtime."""
