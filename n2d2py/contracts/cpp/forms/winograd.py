"""Winograd forms of convolutions (`exports.cpp.winograd`), next to the direct one.

A time is that of the products of a pixel, in 16-bit products by weight: nine of the direct form are half of that in bytes.
"""

from __future__ import annotations

from n2d2py.contracts.cpp import winograd
from n2d2py.contracts.cpp.forms.contract import KernelFacts, KernelForm, Role, form
from n2d2py.contracts.cpp.isa import WINOGRAD
from n2d2py.contracts.cpp.winograd import Winograd
from n2d2py.memory.scratch import ScratchNeed


class WinogradForm(KernelForm[Winograd]):
    """A form of convolutions of 3 x 3 in integers, in tiles of four by four outputs."""

    role, kernels, which = Role.WINOGRAD, ("convolution",), WINOGRAD
    time = 36 / 16

    def note(self, facts: KernelFacts) -> str:
        """Return a clause for the report of a layer that has it, or ""."""
        return ""

    def on_stack(self, facts: KernelFacts, kept: int = 0) -> Winograd:
        """Return the form that transforms the weights of the direct one on the stack, or once, into `kept` bytes."""
        name = facts.layer.identifier
        return Winograd(name, f"{name}_weights", facts.weights, self.sets, self.sets, True, kept)

    def scratch(self, facts: KernelFacts) -> ScratchNeed | None:
        wanted = winograd.stack_scratch(facts.weights.shape[-1], facts.geometry)
        return ScratchNeed(1, 1, wanted, 4 * wanted)  # the stack has room for less


@form
class PackedWinograd(WinogradForm):
    """Packed weights that are transformed each time, on the stack, or once."""

    def considered(self, facts: KernelFacts) -> bool:
        return facts.storage is not None

    def fits(self, facts: KernelFacts) -> str | None:
        assert facts.storage is not None
        fits = self.kept(facts) > 0 or (
            facts.storage.bits <= 4 and winograd.pays_on_stack(facts.weights, facts.geometry, False)
        )
        return None if fits else "its weights are packed"

    def kept(self, facts: KernelFacts) -> int:
        """Return the bytes of the weights that are transformed once; 0 if each time is faster."""
        assert facts.storage is not None
        prepacks = facts.layer.choices.prepacks_weights
        return winograd.kept_bytes(facts.weights, facts.geometry, facts.storage) if prepacks else 0

    def pack(self, facts: KernelFacts) -> Winograd:
        return self.on_stack(facts, self.kept(facts))


@form
class StackWinograd(WinogradForm):
    """Weights of a byte that are transformed on the stack."""

    def considered(self, facts: KernelFacts) -> bool:
        return facts.storage is None

    def fits(self, facts: KernelFacts) -> str | None:
        stores = facts.layer.choices.stores_winograd
        return None if winograd.pays_on_stack(facts.weights, facts.geometry, stores) else "stored weights are faster"

    def pack(self, facts: KernelFacts) -> Winograd:
        return self.on_stack(facts)


@form
class StoredWinograd(WinogradForm):
    """Transformed weights instead of those of the direct form."""

    time = 36 / 16 + 1 / 4  # more weights are read

    def considered(self, facts: KernelFacts) -> bool:
        return facts.storage is None

    def fits(self, facts: KernelFacts) -> str | None:
        larger = None if facts.layer.choices.stores_winograd else "its weights would be larger"
        return winograd.impossible(facts.weights, facts.geometry) or larger

    def pack(self, facts: KernelFacts) -> Winograd:
        name = facts.layer.identifier
        sets = () if winograd.unprofitable(facts.weights, facts.geometry) else self.sets
        return Winograd(f"{name}_transformed", f"{name}_weights", facts.weights, sets, self.sets)

    def note(self, facts: KernelFacts) -> str:
        problem = winograd.unprofitable(facts.weights, facts.geometry)
        return f"no Winograd: {problem}" if problem else ""

    def scratch(self, facts: KernelFacts) -> ScratchNeed | None:
        if winograd.unprofitable(facts.weights, facts.geometry):
            return None
        wanted = winograd.winograd_scratch(facts.weights.shape[-1], facts.geometry)
        return ScratchNeed(1, 1, wanted, 4 * wanted)
