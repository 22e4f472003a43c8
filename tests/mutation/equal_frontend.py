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
    *(
        Equivalent(f"n2d2py/frontend/onnx/{file}.py", function, original, mutated, reason)
        for file, function, original, others, reason in (
            (
                "layout",
                "nhwc_inputs",
                "(node.output[0] for node in reversed(graph.node) if node.op_type in _ELEMENTWISE)",
                ("(node.output[-1] for node in reversed(graph.node) if node.op_type in _ELEMENTWISE)",),
                "Element-wise operators have one output; nodes with more were refused before.",
            ),
            (
                "qoperators",
                "expand",
                "fresh(f'{proto.output[0]}_real') if result and result[0] else proto.output[0]",
                ("fresh(f'{proto.output[0]}_real') if result and result[0] else proto.output[-1]",),
                "Operators on integers have one output.",
            ),
            (
                "qoperators",
                "expand",
                "real != proto.output[0]",
                ("real != proto.output[-1]",),
                "Operators on integers have one output.",
            ),
            (
                "spectra",
                "_Parts.add",
                "self.proto.output[0]",
                ("self.proto.output[-1]",),
                "STFT and DFT have one output; nodes with more were refused before.",
            ),
            (
                "states",
                "keep_images",
                "maker.inputs[0]",
                ("maker.inputs[-1]",),
                "It is a Reshape: its one input is the first and the last.",
            ),
            (
                "states",
                "_found",
                "_agree(inputs[name].dims, shapes[same[0]])",
                ("_agree(inputs[name].dims, shapes[same[-1]])",),
                "It is read where there is one.",
            ),
            (
                "states",
                "_found",
                "pairs.append((name, same[0]))",
                ("pairs.append((name, same[-1]))",),
                "It is read where there is one.",
            ),
            (
                "states",
                "_named",
                "cuts[-1] if cuts else -1",
                ("cuts[-1] if cuts else -2", "cuts[-1] if cuts else -0"),
                "Where there is no colon, every number below 1 is refused alike.",
            ),
            (
                "states",
                "_agree",
                "zip(first, second, strict=True)",
                ("zip(second, first, strict=True)",),
                "Both sizes of a pair are asked the same.",
            ),
            (
                "stimuli_apart",
                "_moves_first_axis",
                "node.input[0] not in constants",
                ("node.input[-1] not in constants",),
                "A Transpose has one input; nodes with more were refused before.",
            ),
            (
                "stimuli_apart",
                "_is_joined",
                "together.ndim != parts[0].ndim",
                ("together.ndim != parts[1].ndim", "together.ndim != parts[-1].ndim"),
                "Both are results for one stimulus: the rank follows from the shapes of the inputs, which are the same.",
            ),
            (
                "stimuli_apart",
                "_is_joined",
                "np.concatenate(parts, axes[0])",
                ("np.concatenate(parts, axes[-1])",),
                "It is read where there is one axis.",
            ),
            (
                "stimuli_apart",
                "_session",
                "options.intra_op_num_threads = 1",
                ("pass",),
                "How many threads ONNX Runtime takes is no part of what is compared, which leaves room for the order of sums.",
            ),
            (
                "stimuli_apart",
                "_session",
                "1",
                ("2", "0"),
                "How many threads ONNX Runtime takes is no part of what is compared, which leaves room for the order of sums.",
            ),
            (
                "validation",
                "definition_version",
                "(version for version in reversed(versions) if version <= opset)",
                ("(version for version in reversed(versions) if version < opset)",),
                "Where a definition is of this very set, it was returned before.",
            ),
            (
                "tensors",
                "check_lines",
                "max(lengths, default=0)",
                ("max(lengths, default=1)", "max(lengths, default=-1)"),
                "What stands for no axis is far below the limit.",
            ),
            (
                "weight_scales",
                "weight_scales",
                "grid == grid.flat[0]",
                ("grid == grid.flat[-1]",),
                "All are the first where all are the last.",
            ),
            (
                "weight_scales",
                "weight_scales",
                "np.tile(rows[:, 0], outputs // len(rows))",
                ("np.tile(rows[:, -1], outputs // len(rows))",),
                "The scales of a row are all the same there.",
            ),
            (
                "validator",
                "Validator._wrong_shapes",
                "'uint8' if 'uint8' in allowed else allowed[0]",
                ("'uint8' if 'uint8' in allowed else allowed[-1]",),
                "It stays where float is none of the types, for whole numbers of the file: shapes are the same for all types that are taken.",
            ),
            (
                "model",
                "OnnxInput.is_open",
                "None in self.shape[1:]",
                ("None in self.shape[0:]",),
                "The first size of a shape is 1.",
            ),
            (
                "model",
                "_inputs",
                "batches[0] if len(set(batches)) == 1 else 1",
                ("batches[-1] if len(set(batches)) == 1 else 1",),
                "All are the same there.",
            ),
            (
                "model",
                "OnnxModel.place",
                "section",
                ("True",),
                "None and the empty text are no names of tensors that something else stands for: what is found for them is they themselves.",
            ),
            (
                "model",
                "_made_of",
                "kinds if len(kinds) == 1 else (0,)",
                ("kinds if len(kinds) == 1 else (1,)", "kinds if len(kinds) == 1 else (-1,)"),
                "What stands for none is neither int32 nor int64.",
            ),
        )
        for mutated in others
    ),
)
