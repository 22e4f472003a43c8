"""Mutants that no test can tell from the original, each with the reason: what they change makes no difference to any result.

They are known by file, function, original text and mutated text, so that lines may move; single ones stand in `equal_*.py`, by part of
the package, and rules here.
"""

from __future__ import annotations

import re

import equal_frontend
import equal_memory
import equal_operators
import equal_passes
import equal_quant
from entry import Equivalent
from mutants import Mutant

__all__ = ["EQUIVALENT", "ONE_INPUT", "ONE_INPUT_LAYERS", "SIZES_OF_WORK", "reason_of"]

SIZES_OF_WORK: dict[tuple[str, str], str] = {
    (
        "n2d2py/frontend/onnx/skeleton.py",
        "_HEAVY",
    ): "Larger constants are left out of what shapes are inferred from, to save time.",
    ("n2d2py/frontend/ini/fillers.py", "_BLOCK"): "Values are drawn one behind the other, however many at once.",
    ("n2d2py/frontend/ini/mapping.py", "_AT_ONCE"): "Each step stamps its own cell, however many at once.",
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
    (
        "n2d2py/operators/elemwise/idioms.py",
        "producer",
    ): "an Affine or an Activation, or a map that scales and shifts its only input",
}
"""Layers by file and name in it: where their first input is read, they are known to be of a kind that has one."""


EQUIVALENT: tuple[Equivalent, ...] = (
    *equal_frontend.EQUIVALENT,
    *equal_memory.EQUIVALENT,
    *equal_operators.EQUIVALENT,
    *equal_passes.EQUIVALENT,
    *equal_quant.EQUIVALENT,
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
