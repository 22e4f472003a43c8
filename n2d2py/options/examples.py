"""The options that most people use, each with an example."""

from __future__ import annotations

COMMON = {
    "describe": "n2d2py net.onnx -describe",
    "export": "n2d2py net.onnx -export CPP -calib-data images/",
    "calib-data": "n2d2py net.onnx -export CPP -calib-data images/ -calib 200",
    "labels": "n2d2py net.onnx -export CPP -calib-data images/ -labels labels.csv -test",
    "mean": "n2d2py net.onnx -export CPP -calib-data images/ -mean 0.5,0.5,0.5 -std 0.5,0.5,0.5",
    "calib": "n2d2py net.ini -export CPP -calib 200",
    "nbbits": "n2d2py net.onnx -export CPP -nbbits -32",
    "test": "n2d2py net.onnx -export CPP -calib-data images/ -test",
    "quality": "n2d2py net.onnx -export CPP -calib-data images/ -quality best",
    "ram-budget": "n2d2py net.onnx -export CPP_MCU -calib-data images/ -ram-budget 65536",
    "export-parameters": "n2d2py net.onnx -export CPP -calib-data images/ -export-parameters low_memory",
    "o": "n2d2py net.onnx -export CPP -calib-data images/ -o build",
}
"""Options that `-h` shows, in this order -> an example."""
