"""Mutants of n2d2py/frontend that no test can tell from the original: see `equivalent.py`."""

from __future__ import annotations

from entry import Equivalent

__all__ = ["EQUIVALENT"]

EQUIVALENT: tuple[Equivalent, ...] = (
    Equivalent(
        "n2d2py/frontend/ini/network.py",
        "_ordered",
        "sorted(layers, key=lambda layer: layer.level or 0)",
        "sorted(layers, key=lambda layer: layer.level or 1)",
        "Levels count from 1, so what stands for none is never taken.",
    ),
    Equivalent(
        "n2d2py/frontend/onnx/inputs_outputs.py",
        "_constant_output",
        "ArrayMap('Right', (value.size,), ((1,), (value.size,)), (0, -1), value.kind)",
        "ArrayMap('Right', (value.size,), ((1,), (value.size,)), (0, -2), value.kind)",
        "Every negative slot stands for a constant.",
    ),
    Equivalent(
        "n2d2py/frontend/onnx/importer.py",
        "_Walk._fold",
        "proto.attribute[0].t",
        "proto.attribute[-1].t",
        "A Constant whose first attribute is `value` has no other.",
    ),
    Equivalent(
        "n2d2py/frontend/onnx/validator.py",
        "Validator._wrong_shapes",
        "max(tensors.model.proto.ir_version, 4)",
        "max(tensors.model.proto.ir_version, 5)",
        "From the fourth version on constants are no inputs; nothing of the fifth is in the models of single nodes.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/translation.py",
        "Translation.emit_many",
        "self.rounding",
        "True",
        "An empty name of a rounding is that of nodes which name none.",
    ),
    Equivalent(
        "n2d2py/frontend/onnx/skeleton.py",
        "skeleton",
        "tensor.ByteSize() > _HEAVY",
        "False",
        "Larger constants are left out of what shapes are inferred from, to save time.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/lowering.py",
        "slices",
        "taken[axis].stop if taken[axis].stop >= 0 else -2 ** 31",
        "taken[axis].stop if taken[axis].stop >= 0 else -2 ** 32",
        "Either is before the first line of every axis.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/real_operators.py",
        "_pack",
        "shapes[0][axis % rank:]",
        "shapes[-1][axis % rank:]",
        "All have one shape; others are refused.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/translation.py",
        "Translation.known",
        "-1 if at == tensor.axis else 1",
        "-2 if at == tensor.axis else 1",
        "NumPy takes every negative size as the one to be found.",
    ),
    Equivalent(
        "n2d2py/frontend/ini/keys.py",
        "read_window",
        "(line, dims[0])",
        "(line, dims[-1])",
        "It is read where there is one dimension.",
    ),
    Equivalent(
        "n2d2py/frontend/onnx/validator.py",
        "Validator._wrong_types",
        "kind not in allowed and _class(kind) not in {_class(text) for text in allowed}",
        "_class(kind) not in {_class(text) for text in allowed}",
        "A type that is allowed has a class that is.",
    ),
    *(
        Equivalent(
            "n2d2py/frontend/ini/network.py",
            "_ordered",
            "sorted(layers, key=lambda layer: layer.level or 0)",
            f"sorted(layers, key=lambda layer: layer.level{other})",
            "Levels count from 1, and all are known here: what stands for none is never taken.",
        )
        for other in ("", " or -1")
    ),
)
