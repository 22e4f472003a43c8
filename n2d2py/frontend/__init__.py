"""How networks are spelled: INI sections and ONNX files, read into a Graph."""
