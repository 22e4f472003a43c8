"""Winograd forms of convolutions (`exports.cpp.winograd`), next to the direct one.

A time is that of the products of a pixel, in 16-bit products by weight: nine of the direct form are half of that in bytes.
"""

from __future__ import annotations

from n2d2py.contracts.cpp import winograd
from n2d2py.contracts.cpp.forms.contract import KernelFacts, KernelForm, Role, form
from n2d2py.contracts.cpp.isa import FOURS, WEIGHTS_ON_STACK, WINOGRAD, sets_with
from n2d2py.contracts.cpp.winograd import Winograd, fours_on_stack, tile_of
from n2d2py.memory.scratch import ScratchNeed


class WinogradForm(KernelForm[Winograd]):
    """A form of convolutions of 3 x 3 in integers."""

    role, kernels, which = Role.WINOGRAD, ("convolution",), WINOGRAD

    def note(self, facts: KernelFacts) -> str:
        """Return a clause for the report of a layer that has it, or ""."""
        return ""


def _gladly(wanted: int) -> ScratchNeed:
    """Return optional scratch of a kernel that has room on the stack. The arena does not grow for it."""
    return ScratchNeed(1, 1, wanted, 4 * wanted)


@form
class PackedFours(WinogradForm):
    """Tiles of four by four outputs, of packed weights that the direct kernel transforms: each time on the stack, or once."""

    time = 36 / 16

    def considered(self, facts: KernelFacts) -> bool:
        return facts.storage is not None

    def fits(self, facts: KernelFacts) -> str | None:
        assert facts.storage is not None
        fits = self.kept(facts) > 0 or winograd.packed_fours(facts.weights, facts.geometry, facts.storage)
        return None if fits else "its weights are packed"

    def kept(self, facts: KernelFacts) -> int:
        """Return the bytes of the weights that are transformed once; 0 if each time is faster."""
        assert facts.storage is not None
        prepacks = facts.layer.choices.prepacks_weights
        return winograd.kept_fours(facts.weights, facts.geometry, facts.storage) if prepacks else 0

    def pack(self, facts: KernelFacts) -> Winograd:
        return Winograd("", "", facts.weights, {"WinogradTile": 4}, kept=self.kept(facts))

    def note(self, facts: KernelFacts) -> str:
        return "Winograd in tiles of four on x86 without AVX-512 VNNI"

    def scratch(self, facts: KernelFacts) -> ScratchNeed | None:
        return _gladly(winograd.stack_scratch(facts.weights.shape[-1], facts.geometry))


@form
class StackFours(WinogradForm):
    """Tiles of four by four outputs, of bytes that are transformed on the stack."""

    which, time = WEIGHTS_ON_STACK, 36 / 16

    def considered(self, facts: KernelFacts) -> bool:
        return facts.storage is None

    def fits(self, facts: KernelFacts) -> str | None:
        stores = facts.layer.choices.stores_winograd
        return None if fours_on_stack(facts.weights, facts.geometry, stores) else "stored weights are faster"

    def pack(self, facts: KernelFacts) -> Winograd:
        name, enumerators = facts.layer.identifier, {"WinogradTile": 4, "WinogradOnStack": 1}
        return Winograd(name, f"{name}_weights", facts.weights, enumerators, self.sets, self.sets, facts.layer.streamed)

    def scratch(self, facts: KernelFacts) -> ScratchNeed | None:
        return _gladly(winograd.stack_scratch(facts.weights.shape[-1], facts.geometry))


@form
class StoredWinograd(WinogradForm):
    """Tiles of two by two, or four by four outputs, with transformed weights instead of those of the direct form."""

    def considered(self, facts: KernelFacts) -> bool:
        return facts.storage is None

    def cost(self, facts: KernelFacts) -> float:
        return 36 / 16 + 1 / 4 if tile_of(facts.weights, facts.geometry) == 4 else 16 / 4  # more weights are read

    def fits(self, facts: KernelFacts) -> str | None:
        larger = None if facts.layer.choices.stores_winograd else "its weights would be larger"
        return winograd.impossible(facts.weights, facts.geometry) or larger

    def pack(self, facts: KernelFacts) -> Winograd:
        name, tile = facts.layer.identifier, tile_of(facts.weights, facts.geometry)
        possible = self.sets if tile == 2 else (*sets_with(FOURS), *self.sets)
        used = () if winograd.unprofitable(facts.weights, facts.geometry) else possible
        enumerators = {"WinogradTile": 4} if tile == 4 else {}
        names = f"{name}_transformed", f"{name}_weights"
        return Winograd(*names, facts.weights, enumerators, used, possible, facts.layer.streamed)

    def note(self, facts: KernelFacts) -> str:
        problem = winograd.unprofitable(facts.weights, facts.geometry)
        return f"no Winograd: {problem}" if problem else ""

    def scratch(self, facts: KernelFacts) -> ScratchNeed | None:
        slow = winograd.unprofitable(facts.weights, facts.geometry)
        return None if slow else winograd.winograd_scratch(facts.weights.shape[-1], facts.geometry)
