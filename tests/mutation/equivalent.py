"""Mutants that no test can tell from the original, each with the reason: what they change makes no difference to any result.

They are known by file, function, original text and mutated text, so that lines may move.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mutants import Mutant

__all__ = ["EQUIVALENT", "ONE_INPUT", "ONE_INPUT_LAYERS", "SIZES_OF_WORK", "Equivalent", "reason_of"]


@dataclass(frozen=True)
class Equivalent:
    """A mutant and why it is equivalent."""

    file: str
    function: str
    original: str
    mutated: str
    reason: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """As `mutants.Mutant.key`."""
        return self.file, self.function, self.original, self.mutated


SIZES_OF_WORK: dict[tuple[str, str], str] = {
    (
        "n2d2py/frontend/onnx/skeleton.py",
        "_HEAVY",
    ): "Larger constants are left out of what shapes are inferred from, to save time.",
    ("n2d2py/operators/pool/ini.py", "_AT_ONCE"): "A maximum of maxima is the maximum, however many are taken together.",
    ("n2d2py/quant/histogram.py", "_BLOCK"): "Values are counted block by block, and counts are added.",
    ("n2d2py/quant/isolation.py", "_ELEMENTS"): "Stimuli run in batches that fit the memory; no result depends on their size.",
    (
        "n2d2py/quant/statistics.py",
        "_BATCH_ELEMENTS",
    ): "Stimuli run in batches that fit the memory; no result depends on their size.",
}
"""Constants, by file and name, that say how much is done at once: no mutant of theirs changes a result."""


ONE_INPUT: frozenset[str] = frozenset(
    f"n2d2py/operators/{name}.py"
    for folder, names in (
        (
            "",
            "add_constants affine batchnorm channels_last convert depth_to_space identity "
            "index_select lrn normalize packed_channels padding reshape softmax transpose",
        ),
        ("activation/", "integer emitter op cpp"),
        ("arrays/", "topk"),
        ("arrays/index_select/", "emitter op"),
        ("arrays/interpolate/", "emitter op"),
        ("arrays/norm/", "integer emitter op cpp"),
        ("arrays/reduce/", "emitter op cpp"),
        ("deconv/", "emitter memory op cpp"),
        ("fc/", "emitter op"),
        ("pool/", "integer emitter memory op cpp"),
        ("quantize/", "integer emitter"),
        ("resize/", "integer emitter memory op"),
    )
    for name in (folder + each for each in names.split())
)
"""Files of operators that have one input, which is the first and the last; `test_mutation_runner.py` looks that none reads a second."""
_OF_ONE_INPUT = "Its operator has one input, which is the first and the last."

ONE_INPUT_LAYERS: dict[tuple[str, str], str] = {
    ("n2d2py/passes/drop_softmax.py", "node"): "a Softmax",
    ("n2d2py/passes/fuse_activation.py", "node"): "an Activation",
    ("n2d2py/passes/fuse_activation.py", "reader"): "an Activation, or what moves single values: Reshape, Transpose, Pool",
    ("n2d2py/passes/fuse_padding.py", "node"): "a Padding",
    ("n2d2py/passes/lift_channels.py", "producer"): "a Reshape",
    ("n2d2py/passes/magnitude.py", "node"): "an Activation",
    ("n2d2py/passes/masked_softmax.py", "condition"): "a map by IsNaN",
    ("n2d2py/passes/masked_softmax.py", "softmax"): "an ArraySoftmax",
    ("n2d2py/passes/move_transpose.py", "node"): "a Transpose",
    ("n2d2py/passes/product_views.py", "producer"): "an ArrayIndexSelect, or a map that scales and shifts its only input",
    ("n2d2py/passes/quantized.py", "first"): "a Quantize",
    ("n2d2py/passes/quantized.py", "node"): "a Quantize or an Activation",
    ("n2d2py/passes/remove_layout.py", "before"): "a Reshape or a Transpose",
    ("n2d2py/passes/remove_layout.py", "node"): "a Reshape or a Transpose",
    ("n2d2py/passes/softplus_tail.py", "condition"): "a map by Greater of one input and a constant",
    ("n2d2py/passes/softplus_tail.py", "value"): "a Softplus",
    ("n2d2py/passes/spelled_norm.py", "below"): "a map by Reciprocal, or by Div of a constant by one input",
    ("n2d2py/passes/spelled_norm.py", "mean"): "an ArrayReduce",
    ("n2d2py/passes/spelled_norm.py", "root"): "a map by Sqrt",
    ("n2d2py/passes/spelled_norm.py", "variance"): "an ArrayReduce",
    (
        "n2d2py/operators/elemwise/idioms.py",
        "producer",
    ): "an Affine or an Activation, or a map that scales and shifts its only input",
}
"""Layers by file and name in it: where their first input is read, they are known to be of a kind that has one."""


EQUIVALENT: tuple[Equivalent, ...] = (
    Equivalent(
        "n2d2py/quant/rounding.py",
        "descend",
        "change.any()",
        "True",
        "Only time is saved: a change of 0 everywhere moves nothing, and sweeps that move nothing end where they began.",
    ),
    # searches that end at what is known to be the least
    *(
        Equivalent(f"n2d2py/memory/{file}", function, text, mutated, reason)
        for file, function, text, others, reason in (
            (
                "relax.py",
                "relax",
                "cost == fitter.least",
                ("False",),
                "Only time is saved: no placement in the arena costs less than `least`, so what is tried further is not better.",
            ),
            (
                "search.py",
                "improve",
                "best.bytes <= packing.bound",
                ("best.bytes < packing.bound", "False"),
                "Only time is saved: no placement has fewer bytes than the bound, and of equal ones the first stays.",
            ),
            (
                "search.py",
                "_starts",
                "made[-1][2].bytes <= packing.bound",
                ("made[-1][2].bytes < packing.bound", "False"),
                "Only time is saved: no placement has fewer bytes than the bound, and of equal ones the first is taken.",
            ),
            (
                "search.py",
                "best_packing",
                "other.bound < best.bytes",
                ("other.bound <= best.bytes", "True"),
                "Only time is saved: no placement has fewer bytes than its bound, and only one with fewer is taken.",
            ),
            (
                "stream.py",
                "StreamPlanner._packed",
                "packing.bound >= best[1].bytes",
                ("packing.bound > best[1].bytes",),
                "Only time is saved: no placement has fewer bytes than its bound, and only one with fewer is taken.",
            ),
        )
        for mutated in others
    ),
    Equivalent(
        "n2d2py/quant/equalize.py",
        "_balance",
        "np.minimum(r1, r2) > 1e-09",
        "np.minimum(r1, r2) >= 1e-09",
        "The largest weights are numbers of 32 bits, none of which is 1e-9.",
    ),
    # how an output may lie over an input: by the kind of access, or by whether both have one shape
    *(
        Equivalent(
            f"n2d2py/memory/{file}",
            function,
            f"op.access.over({source}, output)",
            f"op.access.over(output, {source})",
            "It is said by the kind of access alone, or by whether both shapes are the same.",
        )
        for file, function, source in (
            ("generate.py", "Generation._shared", "tensor"),
            ("overlap.py", "reach", "source"),
            ("packing.py", "Packing._same_place", "source"),
            ("rows.py", "lines_read", "source"),
            ("rows.py", "streamable", "problem.tensors[name]"),
        )
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
    Equivalent(
        "n2d2py/quant/statistics.py",
        "batch_size",
        "min(64, _BATCH_ELEMENTS // max(total, 1))",
        "min(65, _BATCH_ELEMENTS // max(total, 1))",
        "Stimuli run in batches that fit the memory; no result depends on their size.",
    ),
    Equivalent(
        "n2d2py/frontend/ini/network.py",
        "_ordered",
        "sorted(layers, key=lambda layer: layer.level or 0)",
        "sorted(layers, key=lambda layer: layer.level or 1)",
        "Levels count from 1, so what stands for none is never taken.",
    ),
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
        "n2d2py/memory/case.py",
        "Case.__init__",
        "op['inputs'][0] in self.outside",
        "op['inputs'][-1] in self.outside",
        "A reshape has one input, which is the first and the last.",
    ),
    Equivalent(
        "n2d2py/memory/case.py",
        "Case.__init__",
        "self.outside.add(op['inputs'][0])",
        "self.outside.add(op['inputs'][-1])",
        "A reshape has one input, which is the first and the last.",
    ),
    Equivalent(
        "n2d2py/memory/modes.py",
        "budget_curve",
        "budget >= points[-1][0]",
        "budget >= points[-0][0]",
        "Only time is saved: a budget that the last point keeps gives that point again, and points that are not smaller are left out.",
    ),
    Equivalent(
        "n2d2py/operators/unpool.py",
        "Unpool._positions",
        "-np.inf if z.dtype.kind == 'f' else int(z.min()) - 1",
        "-np.inf if z.dtype.kind == 'f' else int(z.min()) - 2",
        "Either is below all values.",
    ),
    Equivalent(
        "n2d2py/quant/correct.py",
        "_corrected",
        "found is None or judged is None",
        "found is None and judged is None",
        "Both are the errors of one layer on other stimuli, and it depends on the layer whether there are any.",
    ),
    Equivalent(
        "n2d2py/quant/correct.py",
        "_corrected",
        "found is None or judged is None",
        "judged is None",
        "Both are the errors of one layer on other stimuli, and it depends on the layer whether there are any.",
    ),
    Equivalent(
        "n2d2py/quant/correct.py",
        "_corrected",
        "found is None or judged is None",
        "found is None",
        "Both are the errors of one layer on other stimuli, and it depends on the layer whether there are any.",
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
        "n2d2py/operators/elemwise/op.py",
        "ElemWise.run",
        "inputs[0].dtype.type",
        "inputs[-1].dtype.type",
        "Real numbers of one run have one type.",
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
        "n2d2py/passes/spelled_norm.py",
        "_lines",
        "graph.producer(added.inputs[0])",
        "graph.producer(added.inputs[-1])",
        "What scales and shifts has one input, which is the first and the last.",
    ),
    Equivalent(
        "n2d2py/quant/weighted.py",
        "WeightedQuantizer.prequantized",
        "constant.any()",
        "True",
        "Only time is saved: where no output is constant all values stay as they are.",
    ),
    Equivalent(
        "n2d2py/quant/channels.py",
        "_factors",
        "widest <= 0",
        "widest < 0",
        "Where the largest value is 0 all factors are 1, whose expected error is the first, and the first candidate is none.",
    ),
    Equivalent(
        "n2d2py/quant/level_counts.py",
        "LevelCounts",
        "-2 ** 62",
        "-2 ** 61",
        "No stored integer has more than 32 bits, so either is below all of them.",
    ),
    Equivalent(
        "n2d2py/quant/quantize.py",
        "float_graph",
        "result.verify()",
        "pass",
        "`verify` raises only where a graph was broken by a defect elsewhere.",
    ),
    Equivalent(
        "n2d2py/quant/equalize.py",
        "_balance",
        "(-1,) + (1,) * (weights.ndim - 1)",
        "(-2,) + (1,) * (weights.ndim - 1)",
        "NumPy takes every negative size as the one to be found.",
    ),
    Equivalent(
        "n2d2py/frontend/tflite/translation.py",
        "Translation.known",
        "-1 if at == tensor.axis else 1",
        "-2 if at == tensor.axis else 1",
        "NumPy takes every negative size as the one to be found.",
    ),
    Equivalent(
        "n2d2py/operators/pool_sum.py",
        "PoolSum.output_shapes",
        "self.pool.output_shapes(inputs[:1], node)[0]",
        "self.pool.output_shapes(inputs[:1], node)[-1]",
        "A pool has one output, which is the first and the last.",
    ),
    Equivalent(
        "n2d2py/frontend/ini/keys.py",
        "read_window",
        "(line, dims[0])",
        "(line, dims[-1])",
        "It is read where there is one dimension.",
    ),
    Equivalent(
        "n2d2py/memory/modes.py",
        "_streamed",
        "plan.arena_bytes <= budget or aim == 0",
        "plan.arena_bytes <= budget or aim == -1",
        "Only time is saved: an aim of 0 stays 0, and gives the same plan again.",
    ),
    Equivalent(
        "n2d2py/memory/generate.py",
        "Generation._shared",
        "windowed",
        "True",
        "Who takes it looks at dead lines for windows only; the other accesses have a rule for them all the same.",
    ),
    Equivalent(
        "n2d2py/memory/generate.py",
        "Generation._shared",
        "op.dead(tensor) if windowed else lambda y: 0",
        "op.dead(tensor) if windowed else lambda y: 1",
        "Who takes it looks at dead lines for windows only.",
    ),
    Equivalent(
        "n2d2py/memory/generate.py",
        "Generation._shared",
        "op.dead(tensor) if windowed else lambda y: 0",
        "op.dead(tensor) if windowed else lambda y: -1",
        "Who takes it looks at dead lines for windows only.",
    ),
    Equivalent(
        "n2d2py/quant/spectra.py",
        "power_layers",
        "_power_behind(graph, node.inputs[0], {})",
        "_power_behind(graph, node.inputs[-1], {})",
        "A logarithm has one input, which is the first and the last.",
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
    Equivalent(
        "n2d2py/memory/manager.py",
        "SpacePlane.limit",
        "self.form.count == 1",
        "self.form.count == 0",
        "A plane of one line is as long as its line, of which none fits where there is less room.",
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
            f"n2d2py/memory/{file}", function, unknown, "True", "What is remembered is computed again, with the same result."
        )
        for file, function, unknown in (
            ("case.py", "Case.addresses", "name not in self._places"),
            ("cut.py", "Cutter.ends", "begin not in self._ends"),
            ("cut.py", "Cutter.weigh", "(begin, end) not in self._weighed"),
            ("cut.py", "Cutter._pairs", "key not in self._ahead"),
            ("replay_lines.py", "LineReplay._line_reads", "key not in self._known"),
            ("rows.py", "KnownRows.reads", "(op.name, name) not in self._reads"),
            ("rows.py", "KnownRows.rows", "key not in self._rows"),
            ("rows.py", "Rows.ring", "n not in self._rings"),
            ("stamps.py", "Stamps._touches", "key not in self._touched"),
        )
    ),
    *(
        Equivalent(
            f"n2d2py/memory/{file}",
            function,
            text,
            text.replace("-1", "-2"),
            "Any address below 0 says that a block is not placed, and in the end all are.",
        )
        for file, function, text in (
            ("packing.py", "Packing.first_fit", "[-1] * len(self.blocks)"),
            ("packing.py", "Packing.refit", "[-1] * len(self.blocks)"),
            ("relax.py", "_Fitter.fit", "([-1] * len(order), {}, 0, 0)"),
        )
    ),
    Equivalent(
        "n2d2py/memory/search.py",
        "best_packing",
        "not possible",
        "False",
        "Only time is saved: without concatenations all of them in place are none.",
    ),
    Equivalent(
        "n2d2py/memory/packing.py",
        "Packing.moved",
        "max(order.index(p.source), order.index(p.output))",
        "min(order.index(p.source), order.index(p.output))",
        "A block is placed by those before it in the order: between the first and the second of a pair nothing is placed elsewhere.",
    ),
)


def reason_of(mutant: Mutant) -> str:
    """Why a mutant is equivalent; empty where it is not known to be."""
    sizes = next((SIZES_OF_WORK[mutant.file, name] for name in mutant.names if (mutant.file, name) in SIZES_OF_WORK), "")
    return _REASONS.get(mutant.key) or sizes or (_OF_ONE_INPUT if _takes_the_last_input(mutant) else _of_one_input(mutant))


def _takes_the_last_input(mutant: Mutant) -> bool:
    """Whether the last input of an operator that has one stands in the place of the first."""
    if mutant.file not in ONE_INPUT:
        return False
    return _has_the_last(mutant, "")


def _has_the_last(mutant: Mutant, layer: str) -> bool:
    """Whether the last input stands in the place of the first, of a layer of that name where it has one."""
    first = f"{layer}.inputs[0]" if layer else "inputs[0]"
    parts = re.split(rf"(?<![\w.]){re.escape(first)}" if layer else re.escape(first), mutant.original)
    return any(
        first.join(parts[:at]) + first.replace("[0]", "[-1]") + first.join(parts[at:]) == mutant.mutated
        for at in range(1, len(parts))
    )


def _of_one_input(mutant: Mutant) -> str:
    """What a layer is whose last input stands in the place of the first, where it has one; else nothing."""
    layers = ((layer, what) for (file, layer), what in ONE_INPUT_LAYERS.items() if file == mutant.file)
    return next(
        (f"It is {what}: its one input is the first and the last." for layer, what in layers if _has_the_last(mutant, layer)),
        "",
    )


_REASONS = {entry.key: entry.reason for entry in EQUIVALENT}
