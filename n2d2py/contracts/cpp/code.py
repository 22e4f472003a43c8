"""C++ code of one layer: configs, constant arrays, calls; and the struct of a plane."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from n2d2py.arithmetic.exact import LARGE, digest
from n2d2py.contracts.cpp.arrays import Storage, row_derivation, winograd_derivation
from n2d2py.contracts.cpp.identifiers import comment
from n2d2py.contracts.cpp.isa import InstructionSet, instruction_sets
from n2d2py.contracts.cpp.parts import (
    NATIVE,
    PORTABLE,
    REAL_NATIVE,
    Array,
    Call,
    Constants,
    LayerConfig,
    LayerForm,
    PanelOrder,
    Stream,
    chosen,
    substituted,
)
from n2d2py.contracts.cpp.winograd import Winograd
from n2d2py.graph import QuantNode, QuantTensor, channels, height, width
from n2d2py.memory.plan import OpPlan, Plane
from n2d2py.resources import templates


@dataclass(frozen=True)
class ChosenKernel:
    """A kernel next to the portable one.

    Attributes:
        sets: the instruction sets that it is for.
        signed_sets: those of `sets` that multiply signed bytes.
        headers: what binds it, where that is not the header of its instruction set.
        tiled: whether it multiplies panels in tiles that the parameter `Tile` chooses.
    """

    name: str = ""
    sets: tuple[str, ...] = ()
    isa: str = PORTABLE
    signed_sets: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    tiled: bool = False


@dataclass(frozen=True, eq=False)
class Panels:
    """Constants in the order of a kernel.

    Attributes:
        weights: int8, int16 or float32, flat.
        bias: float32, or int32 with what the moving of inputs by half their range adds taken out; modulo 2^32.
        order: position -> output, for all constants per output; None when it is the identity.
        signed_bias: the same for the sets that multiply bytes as signed ones, unsigned ones - 128; None where it does not
            matter.
        layout: how the weights lie to those of the portable kernel, where these are panels of rows.
    """

    weights: np.ndarray
    bias: np.ndarray
    order: np.ndarray | None = None
    signed_bias: np.ndarray | None = None
    layout: PanelOrder | None = None
    facts: Mapping[str, int] = field(default_factory=dict)
    note: str = ""

    def sorted(self, values: np.ndarray) -> np.ndarray:
        """Return the constants per output in the order of the kernel."""
        return values if self.order is None or len(values) != len(self.order) else values[self.order]


@dataclass(frozen=True, eq=False)
class Selection:
    """The kernels of a layer, or of a part of one, next to the portable one, and their constants.

    Attributes:
        kernel: that of most instruction sets.
        panels: its constants; None where they have one order in all instruction sets.
        winograd: the Winograd form next to it.
        streams: the constants for kernels of microcontrollers, or why there are none; a set takes the last one that it has.
        storage: how the weights are packed; None for a byte or more each.
    """

    reason: str
    kernel: ChosenKernel = ChosenKernel()
    panels: Panels | None = None
    winograd: Winograd | None = None
    streams: tuple[Stream, ...] = ()
    storage: Storage | None = None

    @property
    def isa(self) -> str:
        """The instruction set of a config; native where all sets have something for the layer."""
        isa, known = self.kernel.isa, set[str]()
        for stream in () if isa in (NATIVE, REAL_NATIVE) else self.streams:
            isa = chosen([name for name in stream.form.sets if name not in known], isa)
            known.update(stream.form.sets)
        return isa

    @property
    def headers(self) -> tuple[str, ...]:
        kept = ("n2d2/prepacked.hpp",) if self.storage and self.storage.kept else ()
        return (*(self.winograd.headers if self.winograd else ()), *kept, *self.kernel.headers)

    def forms(self, panels: np.ndarray | None, signed: np.ndarray | None = None) -> tuple[LayerForm, ...]:
        """Return the forms of an array: `panels` for the sets of the kernel, `signed` for sets that multiply signed bytes."""
        if panels is None:
            return ()
        first = () if signed is None else (LayerForm(self.kernel.signed_sets, signed),)
        return (*first, LayerForm(self.kernel.sets, panels))

    def per_output(self, values: np.ndarray) -> tuple[LayerForm, ...]:
        """Return the forms of an array of constants per output."""
        return () if self.panels is None else self.forms(self.panels.sorted(np.asarray(values).reshape(-1)))

    def noting(self, clause: str) -> Selection:
        """Return the same with a clause more in the report."""
        return replace(self, reason=f"{self.reason}; {clause}")


@dataclass(eq=False)
class LayerCode:
    """Code of one layer for the project generator.

    Attributes:
        run: how it runs; row by row, `calls` compute the output rows [first, stop), or accumulate these input rows where it
            has partial results.
        headers: kernel headers to include, such as "n2d2/convolution.hpp".
        structs: configs of its kernels and constants they name, defined in the network's namespace after planes and `arrays`.
        calls: statements over in0, in1, ... (const unsigned char*) and out (unsigned char*).
        selection: its kernels in addition to the portable one.
        streamed: True if it runs row by row.
        sum: the layer whose sum is fused into `calls`; "" for none.
        winograd: its Winograd form, which `winograd_sets` use instead of `calls`.
        weights: those in the order of the portable kernel, if it has any; `weight_bytes` is 0 if another layer has them.
    """

    node: QuantNode
    identifier: str
    run: OpPlan
    headers: tuple[str, ...]
    structs: tuple[LayerConfig | Constants, ...]
    calls: tuple[Call, ...]
    arrays: tuple[Array, ...]
    selection: Selection

    def __post_init__(self) -> None:
        self.streamed, self.sum = self.run.streamed, self.node.residual.layer if self.node.residual else ""
        self.winograd = self.selection.winograd
        self.winograd_sets = self.winograd.sets if self.winograd else ()
        self._used_winograd = self.winograd if self.winograd_sets else None
        self.weights = next((array for array in self.arrays if array.name == f"{self.identifier}_weights"), None)
        self.weight_bytes = self.weights.bytes if self.weights else 0

    @property
    def config(self) -> str:
        """`structs` in C++."""
        return "\n".join(each.text for each in self.structs)

    def configured(self, change: Callable[[LayerConfig], LayerConfig]) -> LayerCode:
        """Return the same layer with other configs."""
        return replace(self, structs=tuple(change(each) if isinstance(each, LayerConfig) else each for each in self.structs))

    @property
    def statement(self) -> str:
        """`calls`, or the Winograd call on instruction sets that use it, in C++. With -DN2D2_TUNE both are timed."""
        form, template = self._used_winograd, templates("cpp").get_template("layers/statement.cpp.j2")
        winograd = {"where": form.where, "winograd": form.call(self.calls[0])} if form else {"where": "", "winograd": ""}
        return template.render(direct="\n".join(map(str, self.calls)), **winograd)

    @property
    def constants(self) -> tuple[Array, ...]:
        """`arrays`, and the separate weights of the Winograd form, each under its condition."""
        form = self._used_winograd
        if form is None or form.on_stack:
            return self.arrays
        direct = f"!({form.where}) || defined(N2D2_TUNE)"
        arrays = (replace(array, where=direct) if array.name == form.direct else array for array in self.arrays)
        return (*arrays, form.array())

    @property
    def own_constants(self) -> tuple[Array, ...]:
        """`constants` without those that another layer defines."""
        return tuple(array for array in self.constants if not array.borrowed)

    @property
    def added_bytes(self) -> int:
        """Bytes of constants that the Winograd form adds."""
        form = self._used_winograd
        if form is None or form.on_stack or form.borrowed:
            return 0
        return form.bytes - next(array.bytes for array in self.arrays if array.name == form.direct)

    @property
    def added(self) -> str:
        """`added_bytes` as a C++ expression."""
        return f"({self._used_winograd.where} ? {self.added_bytes} : 0)" if self._used_winograd else "0"

    def deriving(self) -> LayerCode:
        """Return the layer with one order of its weights in the export; the build derives the others."""
        arrays = tuple(replace(array, derivation=row_derivation(array)) for array in self.arrays)
        form = self.winograd
        weights = next((array for array in arrays if form and array.name == form.direct and array.derivation), None)
        if form and weights and not form.on_stack:
            form = replace(form, derivation=winograd_derivation(form.name, weights))
        return replace(self, arrays=arrays, selection=replace(self.selection, winograd=form))

    def with_weights_apart(self) -> LayerCode:
        """Return the layer with its weights in the weights file, except those named by types of its configs."""
        hosts = {row.name for row in instruction_sets() if not row.microcontroller}

        def moved(array: Array) -> Array:
            forms = tuple(form for form in array.forms if hosts & set(form.sets))
            weights = array.name.startswith(f"{self.identifier}_weights") and not array.typed
            return replace(array, forms=forms, apart=True) if weights and len(forms) <= 1 else array

        winograd = self.winograd and replace(self.winograd, apart=True)
        return replace(self, arrays=tuple(map(moved, self.arrays)), selection=replace(self.selection, winograd=winograd))

    def choosing(self, choices: Mapping[str, bool]) -> LayerCode:
        """Return the layer with its Winograd form for exactly the instruction sets that are True."""
        if self.winograd is None:
            return self
        sets = tuple(one for one in self.winograd.possible if choices.get(one, one in self.winograd.sets))
        return replace(self, selection=replace(self.selection, winograd=replace(self.winograd, sets=sets)))

    def tiled(self, constants: Mapping[str, str]) -> LayerCode:
        """Return the layer with measured tiles (`tiles.tile_constants`), if it works in tiles."""
        if not self.selection.kernel.tiled:
            return self
        return self.configured(lambda config: replace(config, constants={**constants, **config.constants}))

    def only(self, sets: Sequence[InstructionSet]) -> LayerCode:
        """Return the layer without parts for other instruction sets."""
        names = {row.name for row in sets}
        streams = self.selection.streams[::-1]
        streamed = [name for one in streams for name in one.form.sets]
        left = tuple(dict.fromkeys(name for name in (*streamed, *self.selection.kernel.sets) if name in names))
        problems = [f"no {one.kernel}: {one.problem}" for one in streams if one.problem]
        if not left:
            code, reason = self.portable(), "; ".join(problems) or "there is no other kernel for it"
            return replace(code, selection=replace(code.selection, reason=reason))

        def kept(array: Array) -> Array:
            return replace(array, forms=tuple(form for form in array.forms if names & set(form.sets)))

        kernel = "; ".join(one.kernel for one in streams if names & set(one.form.sets))
        reason = "; ".join(["bytes, sums that are proved", *problems])
        code = self
        if not kernel:
            kernel, reason = self.selection.kernel.name, self.selection.reason
            if names - set(left):  # some have the portable kernel
                code = self.configured(lambda one: replace(one, isa=chosen(left, PORTABLE)) if one.isa == NATIVE else one)
        arrays = tuple(map(kept, self.arrays))
        known = replace(self.selection.kernel, name=kernel, sets=left)
        return replace(code, arrays=arrays, selection=replace(self.selection, kernel=known, winograd=None, reason=reason))

    def reading_copy(self, name: str, copy: str) -> LayerCode:
        """Return the same layer, whose calls read the array `name` at the address `copy`."""
        return replace(self, calls=tuple(substituted(call, {name: copy}) for call in self.calls))

    def borrowing(self, arrays: Mapping[str, Array]) -> LayerCode:
        """Return the layer with `arrays` in the place of those with these names; those of other names belong to other layers."""
        names = {name: array.name for name, array in arrays.items() if name != array.name}
        if not names:
            return self
        form = self.winograd
        if form is not None:
            name, direct = (names.get(one, one) for one in (form.name, form.direct))
            form = replace(form, name=name, direct=direct, borrowed=form.borrowed or form.name in names)
        calls, structs = (tuple(substituted(part, arrays) for part in parts) for parts in (self.calls, self.structs))
        own = (replace(one, name=names[one.name], borrowed=True) if one.name in names else one for one in self.arrays)
        selection = replace(self.selection, winograd=form)
        return replace(self, calls=calls, structs=structs, arrays=tuple(own), selection=selection)

    def interned(self, known: dict[bytes, np.ndarray]) -> LayerCode:
        """Return the layer with the arrays in `known`, by digest, for its large ones of the same bytes; adds the others."""

        def one(values: np.ndarray) -> np.ndarray:
            found = values if values.nbytes < LARGE else known.setdefault(digest(values), values)
            return found if found.dtype == values.dtype else values

        def of(array: Array) -> Array:
            forms = tuple(replace(form, values=one(form.values)) for form in array.forms)
            return replace(array, values=one(array.values), forms=forms)

        return replace(self, arrays=tuple(map(of, self.arrays)))

    def portable(self) -> LayerCode:
        """Return the layer with the portable kernel only."""
        code = self.configured(lambda config: replace(config, isa=PORTABLE))
        arrays = tuple(replace(array, forms=()) for array in self.arrays)
        selection = replace(self.selection, kernel=ChosenKernel(), reason="SIMD=none", winograd=None, streams=())
        return replace(code, arrays=arrays, selection=selection)


def plane_struct(tensor: str, quant: QuantTensor, plane: Plane, identifier: str) -> str:
    """Return the struct `<identifier>_plane` that describes the memory of a tensor to the kernels."""
    size, h = quant.type.bytes, height(quant.shape)
    lines, wrap = plane.lines_before_wrap, plane.wrap_offset
    if plane.ring_rows is not None and plane.ring_rows < h:
        lines, wrap = plane.ring_rows, plane.offset
    sizes = {
        "Height": h,
        "Width": width(quant.shape),
        "Channels": channels(quant.shape),
        "Stride": plane.stride // size,
        "Lines": lines,
    }
    sizes |= {} if plane.pitch is None else {"Pitch": plane.pitch // size}
    wrap = wrap if lines < h else plane.offset
    template = templates("cpp").get_template("layers/plane.hpp.j2")
    return template.render(tensor=comment(tensor), name=identifier, type=quant.type.cpp, sizes=sizes, plane=plane, wrap=wrap)


def share_constants(codes: Sequence[LayerCode], alike: bool, copied: Collection[str] = ()) -> list[LayerCode]:
    """Return the layers with one array for all of the same values and conditions.

    Parts of one layer, such as strips, are `alike` and share all arrays, others large ones if they have the same weights.
    Layers that read copies of the arrays `copied` keep those.
    """
    least = 0 if alike else LARGE
    weights = [_content(code.weights) for code in codes if code.weights is not None and code.weight_bytes >= least]
    if not alike and len(set(weights)) == len(weights):
        return list(codes)
    known: dict[Hashable, Array] = {}

    def shared(array: Array) -> Array:
        return array if array.bytes < least or array.name in copied else known.setdefault(_content(array), array)

    return [code.borrowing({array.name: shared(array) for array in code.constants}) for code in codes]


def _content(array: Array) -> Hashable:
    forms = tuple((form.sets, digest(form.values)) for form in array.forms)
    return array.ctype, array.where, array.typed, digest(array.values), forms
