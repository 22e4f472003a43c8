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
        "n2d2py/frontend/tflite/operators.py",
        "_bias",
        "steps[0].astype(np.float32)",
        "steps[-1].astype(np.float32)",
        "It is taken where there is one.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/operators.py",
        "_bias",
        "t.emit('DequantizeLinear', [t.constant(f'{name}_stored', values), scale], t.fresh(f'{name}_real'), axis=0)",
        "t.emit('DequantizeLinear', [t.constant(f'{name}_stored', values), scale], t.fresh(f'{name}_real'), axis=-1)",
        "A bias is an array of one axis, which is the first and the last.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/operators.py",
        "_prelu",
        "slopes.zero_point[0]",
        "slopes.zero_point[-1]",
        "Slopes of several scales are refused before.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/operators.py",
        "_prelu",
        "(slopes.values.astype(np.float32) - np.float32(slopes.zero_point[0])) * slopes.scale[0]",
        "(slopes.values.astype(np.float32) - np.float32(slopes.zero_point[0])) * slopes.scale[-1]",
        "Slopes of several scales are refused before.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/operators.py",
        "_prelu",
        "values[0] if rank > 1 else values",
        "values[-1] if rank > 1 else values",
        "The first axis has one element; others are refused before.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/operators.py",
        "_pad",
        "amounts.min(initial=0)",
        "amounts.min(initial=1)",
        "Whether one is below 0 is the same for every start that is not.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/operators.py",
        "_pad",
        "amounts.max(initial=0)",
        "amounts.max(initial=-1)",
        "Whether one is above 0 is the same for every start that is not.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/operators.py",
        "_pad",
        "(*operator.inputs, -1)",
        "(*operator.inputs, -2)",
        "Every negative index stands for an input that is left out.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/operators.py",
        "_pad",
        "np.float32(fill.zero_point[0])",
        "np.float32(fill.zero_point[-1])",
        "A value of one element has one zero point: several are those of the indexes of an axis.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/operators.py",
        "_pad",
        "(values.astype(np.float32) - np.float32(fill.zero_point[0])) * fill.scale[0]",
        "(values.astype(np.float32) - np.float32(fill.zero_point[0])) * fill.scale[-1]",
        "A value of one element has one scale: several are those of the indexes of an axis.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/operators.py",
        "_strided_slice",
        "0 if steps[axis] > 0 else -1",
        "0 if steps[axis] >= 0 else -1",
        "Steps are integers, and those of 0 are refused before.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/operators.py",
        "_strided_slice",
        "0 if steps[axis] > 0 else -1",
        "0 if steps[axis] > -1 else -1",
        "Steps are integers, and those of 0 are refused before.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/operators.py",
        "_strided_slice",
        "size if steps[axis] > 0 else -size - 1",
        "size if steps[axis] >= 0 else -size - 1",
        "Steps are integers, and those of 0 are refused before.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/operators.py",
        "_strided_slice",
        "size if steps[axis] > 0 else -size - 1",
        "size if steps[axis] > -1 else -size - 1",
        "Steps are integers, and those of 0 are refused before.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/operators.py",
        "_strided_slice",
        "size if steps[axis] > 0 else -size - 1",
        "size if steps[axis] > 0 else -size - 2",
        "Every end before the first index is the same.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/real_operators.py",
        "_reverse",
        "-size - 1 if back else size",
        "-size - 2 if back else size",
        "Every end before the first index is the same.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/real_operators.py",
        "_reverse",
        "moved_axis(axis, len(shape)) >= 0",
        "moved_axis(axis, len(shape)) >= -1",
        "An axis is 0 or more, or refused: the comparison is always true.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/real_operators.py",
        "_repeated",
        "wanted // size if size else 1",
        "wanted // size if size else 0",
        "An axis without elements has none however often it repeats.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/real_operators.py",
        "_repeated",
        "wanted // size if size else 1",
        "wanted // size if size else 2",
        "An axis without elements has none however often it repeats.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/variables.py",
        "Variables.read",
        "initial is None or initial.values is None",
        "initial is None",
        "First values are constants: the file has no others.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/variables.py",
        "Variables.read",
        "self._need_same(index, source, name)",
        "self._need_same(source, index, name)",
        "It compares both ways alike.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/variables.py",
        "Variables.outputs",
        "self._need_same(index, value, name)",
        "self._need_same(value, index, name)",
        "It compares both ways alike.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/flatbuffer.py",
        "FlatTable.__init__",
        "size < 4 or size % 2 or self._vtable + size > len(data)",
        "size < 3 or size % 2 or self._vtable + size > len(data)",
        "An odd size is refused by the condition beside it.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/file.py",
        "_tensor",
        "np.zeros(0, np.int64)",
        "np.zeros(1, np.int64)",
        "Without scales the zero points are cut to none.",
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
    Equivalent(
        "n2d2py/frontend/tflite/flatbuffer.py", "FlatTable._vector", "(0, 0)", "(1, 0)", "No element is read from there."
    ),
    *(
        Equivalent(
            "n2d2py/frontend/ini/network.py",
            "_set_levels",
            original,
            mutated,
            "Levels only order layers: they may start and grow as they like.",
        )
        for original, mutated in (
            *(
                (
                    "[(layer, 1) for layer in layers if not missing[layer.section.name]]",
                    f"[(layer, {first}) for layer in layers if not missing[layer.section.name]]",
                )
                for first in (0, 2)
            ),
            ("ready.append((child, level + 1))", "ready.append((child, level + 2))"),
        )
    ),
    Equivalent(
        "n2d2py/frontend/tflite/translation.py",
        "Translation",
        "0",
        "-1",
        "It is the number of axes that `real` fills up to where none is given: no tensor has fewer.",
    ),
    *(
        Equivalent(
            "n2d2py/frontend/tflite/sparse.py",
            "_places",
            "one.begins is None or one.indices is None",
            mutated,
            "An axis has both lists, or none.",
        )
        for mutated in ("one.begins is None and one.indices is None", "one.indices is None", "one.begins is None")
    ),
    *(
        Equivalent("n2d2py/frontend/ini/convolution.py", function, original, mutated, "Without a mapping there is one group.")
        for function, original, mutated in (
            ("read_parameters", "1 if mapping is None else as_groups(mapping)", "0 if mapping is None else as_groups(mapping)"),
            ("_weights", "mapping is None or groups is not None", "groups is not None"),
            ("_weights", "count // (groups or 1)", "count // groups"),
            ("_weights", "count // (groups or 1)", "count // (groups or 2)"),
            ("_weights", "count // (groups or 1)", "count // (groups or 0)"),
        )
    ),
    Equivalent(
        "n2d2py/frontend/ini/contract.py", "LayerContext.joined", "tensors[0]", "tensors[-1]", "It is taken where there is one."
    ),
    Equivalent(
        "n2d2py/frontend/ini/quantizers.py",
        "quantize_output",
        "float(initial[0])",
        "float(initial[-1])",
        "The document gives one value.",
    ),
    Equivalent(
        "n2d2py/frontend/ini/quantizers.py",
        "quantize_output",
        "_checked(store.load(name, role, initial, values.where('QAct')), name, role, values)[0]",
        "_checked(store.load(name, role, initial, values.where('QAct')), name, role, values)[-1]",
        "As many values are loaded as there are in the place of what is not stored: one.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/model.py",
        "_input_formula",
        "file.tensors[file.inputs[0]]",
        "file.tensors[file.inputs[-1]]",
        "It is taken where there is one.",
    ),
    *(
        Equivalent(
            f"n2d2py/frontend/tflite/{file}.py",
            function,
            original,
            original.replace("[0]", "[-1]"),
            "A tensor of several scales has been refused, or is with this operator: there is one of each.",
        )
        for file, function, original in (
            ("translation", "Translation._grid", "tensor.scale[0].astype"),
            ("translation", "Translation._grid", "tensor.zero_point[0]"),
            ("translation", "Translation._rounding", "tensor.zero_point[0]"),
            ("translation", "Translation.result", "float(tensor.scale[0])"),
            ("translation", "Translation.result", "tensor.zero_point[0]"),
            ("model", "_input_formula", "float(tensor.scale[0])"),
            ("model", "_input_formula", "tensor.zero_point[0]"),
        )
    ),
    *(
        Equivalent(
            "n2d2py/frontend/tflite/translation.py",
            "Translation.parameter",
            original,
            original.replace("[0]", "[-1]"),
            "It is taken where there is one.",
        )
        for original in ("tensor.scale[0] if single else tensor.scale.astype(np.float32)", "zero[0] if single else zero")
    ),
    Equivalent(
        "n2d2py/frontend/onnx/encodings.py",
        "_Quantizers.behind_constant",
        "weights is None or axis is None or list(weights.dims)[axis:axis + 1] != [encoding.scale.size]",
        "weights is None or list(weights.dims)[axis:axis + 1] != [encoding.scale.size]",
        "No axis is given beside one scale only, and for inputs, which have no weights.",
    ),
    Equivalent(
        "n2d2py/frontend/onnx/importer.py",
        "import_onnx",
        "_in_both(refusal, other)",
        "_in_both(other, refusal)",
        "Both readings list errors in the order of the nodes, so that equal lines stand in the same order.",
    ),
    Equivalent(
        "n2d2py/frontend/onnx/importer.py",
        "_Walk._apply",
        "prefers_arrays and converter is not None and self._as_vector(proto, converter)",
        "prefers_arrays and self._as_vector(proto, converter)",
        "It takes functions and Identity, which have a converter, and no other operator.",
    ),
    *(
        Equivalent(
            "n2d2py/frontend/onnx/expansion.py",
            "",
            "4",
            other,
            "Definitions refer to others two deep (SwiGLU to Swish, losses to losses): the third round finds nothing that it can change.",
        )
        for other in ("3", "5")
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
