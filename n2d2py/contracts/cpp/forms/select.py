"""The choice of kernels: of each role the cheapest form that fits a layer, with its constants."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from n2d2py.arithmetic import NumType, round_up
from n2d2py.contracts.cpp.code import ChosenKernel, Selection
from n2d2py.contracts.cpp.forms.contract import HALF, CoreForm, KernelFacts, KernelForm, Role, candidates, plain, weight_type
from n2d2py.contracts.cpp.forms.lanes import stored_facts
from n2d2py.contracts.cpp.forms.panels import packed_matrix
from n2d2py.contracts.cpp.forms.winograd import UNLIMITED
from n2d2py.contracts.cpp.isa import ROW_PANELS, ROWS, RUNS, TABLES, sets_with
from n2d2py.contracts.cpp.layer import Layer, LayerScratch
from n2d2py.contracts.cpp.parts import NATIVE, REAL_NATIVE, Array, Expression, LayerForm, Stream
from n2d2py.memory.scratch import ScratchNeed

_FEW_PIXELS = 20
"""Unpacking a weight takes as long as multiplying it with so many pixels, less that of a byte; measured without a dot product of bytes."""
_MOST_PREPACKED = 524288
"""Bytes of weights that a second-level cache holds; more are read faster when packed."""


def select(facts: KernelFacts) -> Selection:
    """Return the kernels of a layer next to the portable one, with their constants.

    A part of a layer has the form of hosts only.
    """
    host, problems = _cheapest(facts, Role.HOST)
    selection = Selection("; ".join(problems), storage=facts.storage)
    if host is not None:
        kinds = f"{plain(facts.weight_type)} weights, int32 sums" if facts.layer.integer else "sums in one order"
        panels = host.pack(facts)
        reason = f"{facts.input.name} inputs, {kinds}{panels.note}"
        selection = replace(selection, reason=reason, kernel=host.kernel(facts), panels=panels)
    return _with_cores(facts, _prepacked(facts, _with_winograd(facts, selection))) if facts.whole else selection


def _cheapest(facts: KernelFacts, role: Role) -> tuple[KernelForm[Any] | None, list[str]]:
    """Return the cheapest form that fits, and what rules out those that are cheaper."""
    problems = []
    for one in candidates(facts, role):
        problem = one.fits(facts)
        if problem is None:
            return one, problems
        problems.append(problem if role is Role.WINOGRAD else f"no {one.name}: {problem}")
    return None, problems


def scratch_of(facts: KernelFacts) -> ScratchNeed | None:
    """Return the bytes that the kernels of a layer need while it runs, with room for its Winograd form where that is faster."""
    host = _cheapest(facts, Role.HOST)[0]
    need = host and host.scratch(facts)
    roomy = replace(facts, layer=replace(facts.layer, scratch=LayerScratch(UNLIMITED)))
    form = _cheapest(roomy, Role.WINOGRAD)[0] if need and _has_tiles(facts) else None
    more = form and form.scratch(roomy)
    if not need or not more:
        return need
    sizes = (max(getattr(one, size) for one in (need, more)) for size in ("form", "enough", "most"))
    return ScratchNeed(need.least, *sizes)


def _has_tiles(facts: KernelFacts) -> bool:
    return facts.layer.integer and facts.whole and facts.dense and facts.weights.shape[1:3] == (3, 3)


def _with_winograd(facts: KernelFacts, selection: Selection) -> Selection:
    if not selection.panels or not _has_tiles(facts):
        return selection
    winograd, problems = _cheapest(facts, Role.WINOGRAD)
    note = f"no Winograd: {problems[-1]}" if winograd is None else winograd.note(facts)  # type: ignore[attr-defined]
    selection = selection if winograd is None else replace(selection, winograd=winograd.pack(facts))
    return selection.noting(note) if note else selection


def _prepacked(facts: KernelFacts, selection: Selection) -> Selection:
    """Return `selection` with packed weights that are unpacked or transformed once, if that is faster than in each inference."""
    if not facts.layer.choices.prepacks_weights or facts.storage is None:
        return selection
    if selection.winograd:
        size = selection.winograd.kept
    else:
        few = facts.kernel == "fullyConnected" or math.prod(facts.layer.output_shape[2 + facts.layer.streamed :]) < _FEW_PIXELS
        element = 2 if facts.weight_type == "std::int16_t" else 1
        word = selection.panels.layout.each if selection.panels and selection.panels.layout else 1
        whole = len(facts.rows) * round_up(facts.rows.shape[1], word) * element
        size = whole if few and whole <= _MOST_PREPACKED else 0
    if not size:
        return selection
    what = "transformed" if selection.winograd else "unpacked"
    storage = replace(facts.storage, kept=size, transformed=bool(selection.winograd))
    return replace(selection, storage=storage).noting(f"{what} once, into {size:,} bytes")


def _with_cores(facts: KernelFacts, selection: Selection) -> Selection:
    """Return `selection` with the constants for microcontrollers. Of two forms of a set it uses the last, cheaper one."""
    if facts.storage is not None:
        return replace(selection, streams=(Stream("kernel of microcontrollers", (), problem="its weights are packed"),))
    streams = (_stream(one, facts) for one in reversed(candidates(facts, Role.CORE)) if isinstance(one, CoreForm))
    return replace(selection, streams=tuple(streams))


def _stream(one: CoreForm, facts: KernelFacts) -> Stream:
    problem = one.fits(facts)
    if problem is not None:
        return Stream(one.name, one.sets, problem=problem)
    return Stream(one.name, one.sets, one.pack(facts), facts=one.enumerators(facts), stack=one.stack(facts))


# Kernels whose constants have one order in all instruction sets.
def vectors(layer: Layer, *more: str) -> Selection:
    """Return the kernel of the set for a layer whose constants have the same order in all; `more`: of sets that share them."""
    if not layer.integer:
        return layer.portable
    sets = tuple(dict.fromkeys(name for which in (RUNS, *more) for name in sets_with(which)))
    return Selection("the compiler makes the sums, registers the epilogue", ChosenKernel("vectors of sums", sets, NATIVE))


def row_dots() -> Selection:
    """Return the kernel of the instruction set for products of a vector with rows of weights, which have the same order in all."""
    kernel = ChosenKernel("rows of weights", sets_with(ROWS), NATIVE)
    return Selection("a vector of inputs with some rows of weights at a time", kernel)


def row_panels(rows: np.ndarray, run: int, kind: NumType, reach: int) -> tuple[LayerForm, ...]:
    """Return the rows of a recurrent layer (R, K), `run` of them for each gate, for sets that multiply panels of 16 rows.

    Panels are those of dense layers, [ceil(K / 4)][16][4] for each gate. After them lie R 32-bit integers, what moving the
    inputs by half their range, so that none is negative, takes from the sums. `kind` is the type of the inputs, `reach` the
    largest sum: other weights than int8, and larger sums than 32 bits have, keep their rows.
    """
    if rows.dtype != np.int8 or reach >= 2**31:
        return ()
    first = -(2 ** (kind.bits - 1) if kind.signed else 0) * rows.sum(axis=1, dtype=np.int64)
    begin = (first & 0xFFFFFFFF).astype("<u4").view(np.int8)
    return (LayerForm(sets_with(ROW_PANELS), np.concatenate([packed_matrix(rows, run), begin])),)


def table(layer: Layer) -> Selection:
    """Return the kernel of the instruction set for a table from bytes to bytes."""
    if not layer.inputs[0].bits == layer.output.bits == 8:
        return layer.portable
    isa = NATIVE if layer.integer else REAL_NATIVE
    return Selection("bytes to bytes: 256 entries in registers", ChosenKernel("table in registers", sets_with(TABLES), isa))


@dataclass(frozen=True, eq=False)
class Packed:
    """Weights and bias as arrays.

    Attributes:
        facts: the enumerators FullWeights and ByteSums, what 8-bit products in 16 bits depend on, those of packed weights and
            those of the streams.
        arguments: weights and bias as arguments of a call.
    """

    types: dict[str, str]
    facts: dict[str, int]
    arguments: tuple[Array | Expression, Array]


def pack(layer: Layer, selection: Selection, weights: np.ndarray, suffix: str = "") -> Packed:
    """`weights`, in the order of the portable kernel, and the layer's bias, with the forms of the selected kernel.

    Integers are stored in the narrowest of int8, int16, int32 that holds them, halves by their bits, the bias as the
    accumulator.
    """
    panels, sum_type = selection.panels, layer.sum_type()
    ctype, stored, packed = weight_type(layer, weights), weights, panels and panels.weights
    if ctype == HALF:
        stored = np.ascontiguousarray(weights).view(np.uint16)
        packed = None if packed is None else packed.astype(np.float16).view(np.uint16)
    storage, kind = selection.storage, "std::uint16_t" if ctype == HALF else ctype
    if storage is not None:
        stored, kind = storage.rows(weights), "std::uint8_t"
        packed = None if packed is None else storage.run(packed)
    streams = [one for one in selection.streams if one.values is not None]
    order = panels.layout if panels and storage is None else None
    forms = (*selection.forms(packed), *(one.form for one in streams[::-1]))
    array = layer.array("weights" + suffix, stored, kind, forms, order)
    forms = () if panels is None else selection.forms(panels.bias, panels.signed_bias)
    bias = layer.array("bias" + suffix, layer.values("bias"), sum_type, forms)
    # Products of two bytes in 16 bits do not stand weights of -128.
    full = layer.integer and int(layer.values("weights").min(initial=0)) <= -128
    facts: dict[str, int] = {"FullWeights": full, "ByteSums": 0}
    for one in (storage, panels, selection.winograd, *streams):
        facts |= one.facts if one else {}
    facts |= stored_facts(layer) if streams else {}
    argument = Expression(f"reinterpret_cast<const {HALF}*>({{}})", (array,)) if ctype == HALF else array
    return Packed({"Weight": ctype, "Sum": sum_type}, facts, (argument, bias))
