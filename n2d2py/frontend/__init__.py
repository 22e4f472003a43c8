"""Frontends: INI sections, ONNX and TFLite files, read into a Graph."""
