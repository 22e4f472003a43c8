"""Tiles of a layer, as measured by `-tune`: the parameter `Tile` of the layer's section, `<set>:<pixels>x<panels>:<bytes>`.

Several instruction sets may stand one after the other. `bytes` are those of windows that are gathered before they are multiplied.
"""
from __future__ import annotations

import re

__all__ = ["tile_constants"]

_MACROS = {"avx512vnni": "N2D2_AVX512VNNI", "avx2": "N2D2_AVX2", "sse4": "N2D2_SSE41", "neondot": "N2D2_NEON_DOT",
           "neon": "(N2D2_NEON && !N2D2_NEON_DOT)"}
_TILE = re.compile(r"(\w+):(\d{1,2})x(\d):(\d{1,6})")
_CONSTANTS = ("TilePixels", "TilePanels", "WindowBytes")


def tile_constants(written: str) -> dict[str, str]:
    """The constants of a config, as C++ expressions, of a parameter such as "avx2:6x1:8192 neondot:4x1:24576".

    Raises:
        ValueError: with what is wrong.
    """
    tiles: dict[str, tuple[int, ...]] = {}
    for part in written.split():
        found = _TILE.fullmatch(part)
        if found is None or found[1] not in _MACROS:
            raise ValueError(f"'{part}' is no <set>:<pixels>x<panels>:<bytes>; sets: {', '.join(_MACROS)}")
        tiles[found[1]] = tuple(map(int, found.groups()[1:]))
        if not (1 <= tiles[found[1]][0] <= 24 and 1 <= tiles[found[1]][1] <= 8 and 1024 <= tiles[found[1]][2] <= 262144):
            raise ValueError(f"'{part}' is beyond 1 to 24 pixels, 1 to 8 panels, 1024 to 262144 bytes")
    if not tiles:
        raise ValueError("it is empty")
    constants = {}
    for index, name in enumerate(_CONSTANTS):
        constants[name] = "".join(f"{_MACROS[one]} ? {tile[index]} : " for one, tile in tiles.items()) + "0"
    return constants
