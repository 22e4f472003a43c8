"""Tiles of a layer, as measured by `-tune`: the parameter `Tile` of the layer's section, `<set>:<pixels>x<panels>:<bytes>`.

Several instruction sets may stand one after the other. `bytes` are those of windows that are gathered before they are multiplied.
`<set>:winograd` asks for the Winograd form of the layer, `<set>:direct` for the direct one with the tile of the kernel; a tile is
one of the direct form.
"""

from __future__ import annotations

import re

from n2d2py.exports.cpp.isa import exactly, instruction_sets

_TILE = re.compile(r"(\w+):(\d{1,2})x(\d):(\d{1,6})")
_FORM = re.compile(r"(\w+):(winograd|direct)")
_CONSTANTS = ("TilePixels", "TilePanels", "WindowBytes")


def winograd_choices(written: str) -> dict[str, bool]:
    """For each instruction set of a parameter that `tile_constants` takes, whether it asks for the Winograd form."""
    return {part.split(":")[0]: part.endswith(":winograd") for part in written.split()}


def tile_constants(written: str) -> dict[str, str]:
    """The constants of a config, as C++ expressions, of a parameter `<set>:6x1:8192 <set>:4x1:24576`; none without a tile.

    Raises:
        ValueError: with what is wrong.
    """
    macros = {row.name: exactly(row) for row in instruction_sets()}
    tiles: dict[str, tuple[int, ...]] = {}
    for part in written.split():
        found = _TILE.fullmatch(part) or _FORM.fullmatch(part)
        if found is None or found[1] not in macros:
            raise ValueError(
                f"'{part}' is no <set>:<pixels>x<panels>:<bytes>, <set>:winograd or <set>:direct; sets: {', '.join(macros)}"
            )
        if found.re is _FORM:
            tiles[found[1]] = (0, 0, 0)
            continue
        tiles[found[1]] = tuple(map(int, found.groups()[1:]))
        if not (1 <= tiles[found[1]][0] <= 24 and 1 <= tiles[found[1]][1] <= 8 and 1024 <= tiles[found[1]][2] <= 262144):
            raise ValueError(f"'{part}' is beyond 1 to 24 pixels, 1 to 8 panels, 1024 to 262144 bytes")
    if not tiles:
        raise ValueError("it is empty")
    tiles = {one: tile for one, tile in tiles.items() if tile[0]}
    constants = {}
    for index, name in enumerate(_CONSTANTS if tiles else ()):
        constants[name] = "".join(f"{macros[one]} ? {tile[index]} : " for one, tile in tiles.items()) + "0"
    return constants
