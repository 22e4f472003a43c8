"""The name of the file of an ONNX export."""

from __future__ import annotations

from n2d2py.files.names import file_names


def model_file(network: str) -> str:
    """The name of the model's file."""
    name = network or "network"
    return f"{file_names([name])[name]}.onnx"
