"""What an export may do to its constants to be faster or smaller."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ExportChoices:
    """The choices of export parameters that decide which kernels a layer may have.

    Attributes:
        packs_weights: low-bit weights are packed.
        prepacks_weights: packed weights that are multiplied few times may be unpacked once, into static memory.
        trades_flash: a kernel may be faster with larger constants.
        uses_winograd: convolutions may have a Winograd form.
        stores_winograd: weights of convolutions may be stored transformed for Winograd's form, 3.6 or 8 times as large.
    """

    packs_weights: bool = True
    prepacks_weights: bool = False
    trades_flash: bool = False
    uses_winograd: bool = True
    stores_winograd: bool = True
