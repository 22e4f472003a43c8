"""Dilated convolutions that TensorFlow writes as SPACE_TO_BATCH_ND, a convolution, and BATCH_TO_SPACE_ND."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from n2d2py.frontend.tflite.file import TfliteFile, TfliteOperator
from n2d2py.frontend.tflite.schema import VALID

_CONVOLUTIONS = {"CONV_2D": (1, 2, 4, 5), "DEPTHWISE_CONV_2D": (1, 2, 5, 6)}
"""Option slots of strides and dilations."""
_SINGLE_VALUES = "ADD MUL SUB RELU RELU6 RELU_N1_TO_1 LOGISTIC TANH PRELU LEAKY_RELU ELU HARD_SWISH".split()
_NEW_AXIS = ("EXPAND_DIMS", "SQUEEZE", "RESHAPE")


def mark_dilations(file: TfliteFile) -> TfliteFile:
    """Return the file with the dilation of each convolution of a batch of blocks, and with open shapes around it.

    The convolution of all x[i::d] is that of x with the dilation d. Operators on single values, and a new axis of 1, may stand
    between it and the blocks.
    """
    readers: dict[int, list[TfliteOperator]] = {}
    for operator in file.operators:
        for index in operator.inputs:
            readers.setdefault(index, []).append(operator)
    dilations: dict[int, tuple[int, int]] = {}
    tensors = list(file.tensors)
    for operator in file.operators:
        chain = _find_chain(file, operator, readers) if operator.code == "SPACE_TO_BATCH_ND" else []
        block = file.tensors[operator.inputs[1]].values if chain else None
        if block is not None:
            dilation = (int(block[0]) if block.size > 1 else 1, int(block[-1]))
            dilations.update({each.index: dilation for each in chain})
        for each in chain[:-1]:
            tensors[each.output] = replace(tensors[each.output], is_open=True)
    operators = tuple(replace(one, dilation=dilations.get(one.index, one.dilation)) for one in file.operators)
    return replace(file, tensors=tuple(tensors), operators=operators)


def _find_chain(file: TfliteFile, first: TfliteOperator, readers: Mapping[int, list[TfliteOperator]]) -> list[TfliteOperator]:
    """Return the operators from a SPACE_TO_BATCH_ND to its BATCH_TO_SPACE_ND; empty if they are not a dilated convolution."""
    chain = [first]
    while chain[-1].code != "BATCH_TO_SPACE_ND":
        result = chain[-1].outputs[0]
        following = readers.get(result, [])
        if len(following) != 1 or result in file.outputs or not _commutes(file, following[0], result):
            return []
        chain.append(following[0])
    constants = [file.tensors[index].values for end in (first, chain[-1]) for index in end.inputs[1:]]
    block, *others = [values for values in constants if values is not None]
    is_dilation = sum(one.code in _CONVOLUTIONS for one in chain) == 1 and len(others) == 3 and np.array_equal(block, others[1])
    return chain if is_dilation and block.size in (1, 2) and block.min() > 0 else []


def _commutes(file: TfliteFile, operator: TfliteOperator, tensor: int) -> bool:
    """True if an operator computes the same of the samples of blocks as of the whole, with its dilation."""
    if operator.code in _CONVOLUTIONS:
        steps = [operator.option(slot, default=1) for slot in _CONVOLUTIONS[operator.code]]
        return operator.option(0, "<b") == VALID and steps == [1, 1, 1, 1]
    if operator.code in _NEW_AXIS:
        before, after = (file.tensors[index].shape for index in (tensor, operator.outputs[0]))
        return after == (*before[:1], 1, *before[1:]) or before == (*after[:1], 1, *after[1:])
    others = [file.tensors[index] for index in operator.inputs if index not in (-1, tensor)]
    wide = any(one.values is None or one.values.size not in (1, one.shape[-1]) for one in others)
    return operator.code == "BATCH_TO_SPACE_ND" or (operator.code in _SINGLE_VALUES and not wide)
