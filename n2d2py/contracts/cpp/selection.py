"""The kernels of a layer next to the portable one, with their constants, as data; `forms.select` makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from n2d2py.contracts.cpp.packing import Storage
from n2d2py.contracts.cpp.parts import NATIVE, PORTABLE, REAL_NATIVE, LayerForm, PanelOrder, Stream, chosen
from n2d2py.contracts.cpp.winograd import Winograd


@dataclass(frozen=True)
class ChosenKernel:
    """A kernel next to the portable one.

    Attributes:
        name: for reports; "" for none.
        sets: the instruction sets that it is for.
        isa: the instruction set of a config.
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
        facts: the enumerators of a config that has them.
        note: for the report.
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
        reason: why these, for the report.
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
