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


class PackedWinograd(WinogradForm):
    """A form of packed weights, with what it is "in" for the report. The direct kernel transforms them: each time, or once."""

    tiles: str

    def enumerators(self, facts: KernelFacts) -> dict[str, int]:
        """Return the enumerators of a config; none if the form does not fit."""
        raise NotImplementedError

    def kept(self, facts: KernelFacts) -> int:
        """Return the bytes of the weights that are transformed once; 0 if each time is faster."""
        raise NotImplementedError

    def considered(self, facts: KernelFacts) -> bool:
        return facts.storage is not None

    def fits(self, facts: KernelFacts) -> str | None:
        return None if facts.once(self.enumerators) else "its weights are packed"

    def pack(self, facts: KernelFacts) -> Winograd:
        prepacked = self.kept(facts) if facts.layer.choices.prepacks_weights else 0
        return Winograd("", "", facts.weights, facts.once(self.enumerators), kept=prepacked)

    def note(self, facts: KernelFacts) -> str:
        return f"Winograd in {self.tiles} on x86 without AVX-512 VNNI"

    def scratch(self, facts: KernelFacts) -> ScratchNeed | None:
        return _gladly(winograd.byte_scratch(facts.weights.shape[-1], facts.geometry))


def _gladly(wanted: int) -> ScratchNeed:
    """Return optional scratch of a kernel that has room on the stack. The arena does not grow for it."""
    return ScratchNeed(1, 1, wanted, 4 * wanted)


@form
class ByteFours(PackedWinograd):
    """Tiles of four by four outputs in bytes, of weights that are transformed once."""

    time, tiles = 46 / 16 / 2, "bytes, tiles of four"

    def enumerators(self, facts: KernelFacts) -> dict[str, int]:
        if facts.storage is None or not (facts.layer.computed and facts.layer.choices.prepacks_weights):
            return {}
        run, wide = winograd.byte_fours(facts.weights, facts.geometry, facts.input, facts.storage)
        return {"WinogradSums": run, "WinogradWide": wide} if run and wide else {}

    def kept(self, facts: KernelFacts) -> int:
        return winograd.kept_byte_fours(facts.weights)

    def scratch(self, facts: KernelFacts) -> ScratchNeed | None:
        return _gladly(winograd.byte_scratch(facts.weights.shape[-1], facts.geometry, 4))


@form
class ByteTwos(PackedWinograd):
    """Tiles of two by two outputs in bytes."""

    time, tiles = 16 / 4 / 2, "bytes"

    def enumerators(self, facts: KernelFacts) -> dict[str, int]:
        if facts.storage is None or not facts.layer.computed:
            return {}
        run = winograd.byte_sums(facts.weights, facts.geometry, facts.input, facts.storage)
        return {"WinogradSums": run} if run else {}

    def kept(self, facts: KernelFacts) -> int:
        return winograd.kept_bytes(facts.weights, facts.geometry)


@form
class PackedFours(PackedWinograd):
    """Tiles of four by four outputs in 16 bits, of weights that are transformed on the stack, or once."""

    time, tiles = 36 / 16, "tiles of four"

    def enumerators(self, facts: KernelFacts) -> dict[str, int]:
        if facts.storage is None:
            return {}
        prepacks = facts.layer.choices.prepacks_weights and self.kept(facts) > 0
        return {"WinogradTile": 4} if prepacks or winograd.packed_fours(facts.weights, facts.geometry, facts.storage) else {}

    def kept(self, facts: KernelFacts) -> int:
        return winograd.kept_fours(facts.weights, facts.geometry, facts.storage) if facts.storage else 0

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
