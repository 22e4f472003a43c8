"""Mutants of n2d2py/operators that no test can tell from the original: see `equivalent.py`."""

from __future__ import annotations

from entry import Equivalent

__all__ = ["EQUIVALENT", "ONE_INPUT_CONVERTERS"]

ONE_INPUT_CONVERTERS: tuple[tuple[str, str, str], ...] = (
    ("arrays/index_select/onnx.py", "_flatten", "a.value(0)"),
    ("arrays/index_select/onnx.py", "_transpose", "a.value(0)"),
    ("arrays/integers.py", "_dynamic", "a.value(0)"),
    ("arrays/map/onnx.py", "_relu", "a.const(0, a.value(0))"),
    ("arrays/map/onnx.py", "_is_inf", "(a.value(0), None)"),
    ("arrays/map/onnx.py", "_identity", "a.bind(a.value(0))"),
    ("arrays/map/onnx.py", "_gelu", "a.value(0)"),
    ("arrays/norm/onnx.py", "_mean_variance", "a.value(0)"),
    ("arrays/norm/onnx.py", "_mean_variance", "a.builder.guard_batch(a.node, 0, axis, 'normalises over')"),
    ("arrays/norm/onnx.py", "_lp", "a.value(0)"),
    ("arrays/norm/onnx.py", "_lp", "a.builder.guard_batch(a.node, 0, axis, 'normalises over')"),
    ("arrays/norm/onnx.py", "_softmax", "a.tensor(a.value(0))"),
    ("arrays/norm/onnx.py", "_hardmax", "a.value(0)"),
    ("arrays/norm/onnx.py", "_hardmax", "a.builder.guard_batch(a.node, 0, axis, 'compares')"),
    ("lrn.py", "_from_onnx_array", "(a.value(0), _settings(a.node))"),
)
"""Converters of ONNX operators that have one input, and what they say of it, by file and function."""

EQUIVALENT: tuple[Equivalent, ...] = (
    Equivalent(
        "n2d2py/operators/arrays/norm/onnx.py",
        "_softmax",
        "a.builder.guard_batch(a.node, 0, axis, 'normalises over')",
        "a.builder.guard_batch(a.node, -1, axis, 'normalises over')",
        "A softmax has one input, which is the first and the last.",
    ),
    Equivalent(
        "n2d2py/operators/activation/onnx.py",
        "_prelu",
        "float(slope.flat[0])",
        "float(slope.flat[-1])",
        "It is read where all slopes are equal.",
    ),
    Equivalent(
        "n2d2py/operators/activation/onnx.py",
        "_prelu",
        "slope == slope.flat[0]",
        "slope == slope.flat[-1]",
        "All are equal to the first one exactly if all are equal to the last one.",
    ),
    Equivalent(
        "n2d2py/operators/elemwise/onnx.py",
        "_affine",
        "vector is None and source != tensor",
        "vector is None",
        "Without a transposition both axes are the same, so the second attempt gives None again and is refused alike.",
    ),
    Equivalent(
        "n2d2py/operators/elemwise/idioms.py",
        "_gate",
        "isinstance(function, Clip) and before == x and (function.low == 0) and np.isfinite(function.high) and (function.high > 0)",
        "isinstance(function, Clip) and before == x and (function.low == 0) and np.isfinite(function.high) and (function.high > -1)",
        "A limit lies at 0 or above it, and where it is 0 the gate is 0 in either form.",
    ),
    Equivalent(
        "n2d2py/operators/unpool.py",
        "Unpool._positions",
        "-np.inf if z.dtype.kind == 'f' else int(z.min()) - 1",
        "-np.inf if z.dtype.kind == 'f' else int(z.min()) - 2",
        "Either is below all values.",
    ),
    Equivalent(
        "n2d2py/operators/elemwise/op.py",
        "ElemWise.run",
        "inputs[0].dtype.type",
        "inputs[-1].dtype.type",
        "Real numbers of one run have one type.",
    ),
    Equivalent(
        "n2d2py/operators/pool_sum.py",
        "PoolSum.output_shapes",
        "self.pool.output_shapes(inputs[:1], node)[0]",
        "self.pool.output_shapes(inputs[:1], node)[-1]",
        "A pool has one output, which is the first and the last.",
    ),
    Equivalent(
        "n2d2py/operators/elemwise/idioms.py",
        "_scaling",
        "(float(weights[0]), float(bias[0]))",
        "(float(weights[0]), float(bias[-1]))",
        "It is read where all are equal.",
    ),
    Equivalent(
        "n2d2py/operators/arrays/integers.py",
        "_centred",
        "zero.dims[-1:] != (1,)",
        "zero.dims[-0:] != (1,)",
        "It decides about several zero points along one axis only, which is the last one.",
    ),
    *(
        Equivalent(
            "n2d2py/operators/arrays/conv_pool/op.py",
            "ArrayConvPool._windows",
            text,
            mutated,
            "More is padded behind the last window, where nothing is read.",
        )
        for text, mutated in (
            ("max(0, (n - 1) * s + (k - 1) * d + 1 - size - before)", "max(1, (n - 1) * s + (k - 1) * d + 1 - size - before)"),
            ("(n - 1) * s + (k - 1) * d + 1 - size - before", "(n - 1) * s + (k - 1) * d + 1 - size + before"),
            ("(n - 1) * s + (k - 1) * d + 1 - size", "(n - 1) * s + (k - 1) * d + 1 + size"),
            ("(n - 1) * s + (k - 1) * d + 1", "(n - 1) * s + (k - 1) * d + 2"),
            ("(n - 1) * s + (k - 1) * d", "(n + 1) * s + (k - 1) * d"),
            ("(n - 1) * s + (k - 1) * d", "(n - 0) * s + (k - 1) * d"),
            ("(n - 1) * s + (k - 1) * d", "(n - 1) * s + (k + 1) * d"),
            ("(n - 1) * s + (k - 1) * d", "(n - 1) * s + (k - 0) * d"),
        )
    ),
    Equivalent(
        "n2d2py/operators/arrays/values.py",
        "Arrays.reshape",
        "min(dims, default=0)",
        "min(dims, default=1)",
        "Neither 0 nor 1 is below 0.",
    ),
    Equivalent(
        "n2d2py/operators/arrays/base.py",
        "ArrayOp.typed",
        "max((len(x) for x in inputs))",
        "min((len(x) for x in inputs))",
        "All inputs of a run hold the same number of stimuli.",
    ),
    *(
        Equivalent(
            f"n2d2py/operators/{file}",
            function,
            text,
            "[-1]".join(text.rsplit("[0]", 1)),
            "It holds one number, as `graph/forms.py` says.",
        )
        for file, function, text in (
            ("add_constants.py", "AddConstants.run_integer", "int(form.multiplier[0])"),
            ("add_constants.py", "AddConstants.run_integer", "form.constant_multiplier[0]"),
            ("add_constants.py", "AddConstantsQuantizer.real_params", "form.constant_multiplier[0]"),
            ("arrays/norm/integer.py", "NormQuantizer.real_params", "int(form.fraction[0])"),
            ("arrays/norm/op.py", "ArrayNorm.run_integer", "int(form.epsilon[0])"),
            ("arrays/norm/op.py", "ArrayNorm.run_integer", "int(form.fraction[0])"),
            ("arrays/norm/op.py", "ArraySoftmax.run_integer", "int(form.numerator[0])"),
            (
                "elemwise/op.py",
                "ElemWise.run_integer",
                "reduce(np.add, (k * a for k, a in zip(m, x, strict=True))) + int(form.offset[0])",
            ),
            (
                "pool/op.py",
                "Pool.run_integer",
                "(x.astype(np.float32) - np.float32(graph.type(node.inputs[0]).zero_point)) * node.form.scales[0]",
            ),
        )
    ),
    *(
        Equivalent(
            f"n2d2py/operators/{file}",
            function,
            text,
            text.replace("len(inputs[0])", "len(inputs[-1])"),
            "All inputs of a run hold the same number of stimuli.",
        )
        for file, function, text in (
            ("arrays/concat.py", "ArrayConcat._joined", "len(inputs[0])"),
            ("arrays/concat.py", "ArrayConcat.run_integer", "self._joined(parts, node).reshape(len(inputs[0]), -1)"),
            ("arrays/recurrent/op.py", "ArrayRecurrent._stored", "(len(inputs[0]), self.hidden)"),
        )
    ),
    Equivalent(
        "n2d2py/operators/conv/op.py",
        "Conv.output_shapes",
        "(inputs[0][0], outputs, *output_extent(inputs[0][2:], extent, self.stride, self.pads, node))",
        "(inputs[-1][0], outputs, *output_extent(inputs[0][2:], extent, self.stride, self.pads, node))",
        "The shapes of a network have batch 1.",
    ),
    *(
        Equivalent(
            f"n2d2py/operators/{file}",
            function,
            text,
            text.replace("value(0)", "value(-1)").replace("a.node, 0,", "a.node, -1,"),
            "Its ONNX operators have one input in every version, which is the first and the last.",
        )
        for file, function, text in ONE_INPUT_CONVERTERS
    ),
)
