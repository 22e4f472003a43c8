"""Times the tiles of every convolution of a C++ export in one build that holds them all, and keeps the best.

A tile is the parameter `Tile` of the layer's section, `<set>:<pixels>x<panels>:<bytes>`. Several instruction sets may stand one
after the other. `bytes` are those of windows that are gathered before they are multiplied. `<set>:winograd` asks for the
Winograd form of the layer, `<set>:direct` for the direct one with the tile of the kernel; a tile is one of the direct form.
"""

import json
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path

from n2d2py import log
from n2d2py.contracts.cpp.isa import exact_condition, instruction_sets
from n2d2py.errors import N2D2Error
from n2d2py.exports.cpp.build import build_error, need_make, run_make
from n2d2py.files import write_text

TUNED_FILE = "statistics/tuned.ini"
_GAIN = 0.97
"""A tile is kept when a layer takes at most this share of its time with the tile of the kernel."""


def tune_export(folder: Path, layers: list[str], tiled: Collection[str], rounds: int, command: str) -> dict[str, str]:
    """Return the parameter `Tile` of each layer of the export in `folder` that gains by one; `layers` in the order of the
    export, `tiled` those that work in tiles.

    The file TUNED_FILE is written into the folder.

    Raise E801, E802 when the export cannot be built, E808 when the program or `command` fails.
    """
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / folder.name
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("build", "bin", "lib", "statistics"))
        need_make()
        log.notice("building all tiles for -tune")
        status, printed = run_make(copy, "CXXFLAGS=-DN2D2_TUNE")
        if status:
            raise build_error(printed, remedy="check TARGET, ARCH and CXX in the environment")
        measured = _run(copy, rounds, command)
    tiles, before, after = best_tiles(measured, layers, tiled)
    log.notice(
        "tune (%s): %d of %d layers got another tile; the total of the fastest layer times is %.1f us instead of %.1f us",
        measured["isa"],
        len(tiles),
        len(layers),
        after,
        before,
    )
    path = folder / TUNED_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, tuned_text(tiles))
    return tiles


def best_tiles(measured: Mapping, layers: list[str], tiled: Collection[str]) -> tuple[dict[str, str], float, float]:
    """Tile of each layer that gains, microseconds of all layers without and with them, of what run_export -tune printed."""
    tiles: dict[str, str] = {}
    before = after = 0.0
    for layer, times in zip(layers, measured["us"], strict=True):
        best = min(range(len(times)), key=lambda i: (times[i], i))
        before += times[0]
        if best and layer in tiled and times[best] <= _GAIN * times[0]:
            pixels, panels, size = measured["tiles"][best]
            tiles[layer] = f"{measured['isa']}:" + (f"{pixels}x{panels}:{size}" if pixels else "direct")
            after += times[best]
        else:
            after += times[0]
    return tiles, before, after


def tuned_text(tiles: Mapping[str, str]) -> str:
    """Return the sections of a file of export parameters."""
    head = "; Tiles measured by -tune. Copy these sections into the file of -export-parameters.\n"
    return head + "".join(f"\n[{layer}]\nTile={tile}\n" for layer, tile in tiles.items())


def with_tiles(parameters: Mapping[str, Mapping[str, str]], tiles: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the parameters of the layers with new tiles next to those of other instruction sets."""
    merged = {layer: dict(values) for layer, values in parameters.items()}
    for layer, tile in tiles.items():
        values = merged.setdefault(layer, {})
        others = [old for old in values.get("Tile", "").split() if old.split(":")[0] != tile.split(":")[0]]
        values["Tile"] = " ".join([*others, tile])
    return merged


def _run(folder: Path, rounds: int, command: str) -> dict:
    binary = folder / "bin" / "run_export"
    words = [word.replace("{binary}", str(binary)).replace("{folder}", str(folder)) for word in shlex.split(command)]
    if str(binary) not in " ".join(words):
        words.append(str(binary))
    words += ["-tune", str(rounds)]
    try:
        done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
        measured = json.loads(done.stdout)
        if done.returncode or not all(key in measured for key in ("isa", "tiles", "us")):
            raise ValueError(f"exit status {done.returncode}")
    except (OSError, ValueError) as problem:
        what = f"-tune-command '{' '.join(words)}' failed to time the tiles: {problem}"
        remedy = "make -tune-command run {binary} with its arguments and print its output"
        raise N2D2Error("E808", what, remedy=remedy) from problem
    return measured


_TILE = re.compile(r"(\w+):(\d{1,2})x(\d):(\d{1,6})")
_FORM = re.compile(r"(\w+):(winograd|direct)")
_CONSTANTS = ("TilePixels", "TilePanels", "WindowBytes")


def winograd_choices(written: str) -> dict[str, bool]:
    """For each instruction set of a parameter that `tile_constants` takes, whether it asks for the Winograd form."""
    return {part.split(":")[0]: part.endswith(":winograd") for part in written.split()}


def tile_constants(written: str) -> dict[str, str]:
    """Return the constants of a config, as C++ expressions, of a parameter `<set>:6x1:8192 <set>:4x1:24576`; none without a
    tile. Raise ValueError with what is wrong."""
    macros = {row.name: exact_condition(row) for row in instruction_sets()}
    tiles: dict[str, tuple[int, ...]] = {}
    for part in written.split():
        match = _TILE.fullmatch(part) or _FORM.fullmatch(part)
        if match is None or match[1] not in macros:
            raise ValueError(
                f"'{part}' is no <set>:<pixels>x<panels>:<bytes>, <set>:winograd or <set>:direct; sets: {', '.join(macros)}"
            )
        if match.re is _FORM:
            tiles[match[1]] = (0, 0, 0)
            continue
        tiles[match[1]] = tuple(map(int, match.groups()[1:]))
        if not (1 <= tiles[match[1]][0] <= 24 and 1 <= tiles[match[1]][1] <= 8 and 1024 <= tiles[match[1]][2] <= 262144):
            raise ValueError(f"'{part}' is beyond 1 to 24 pixels, 1 to 8 panels, 1024 to 262144 bytes")
    if not tiles:
        raise ValueError("it is empty")
    tiles = {one: tile for one, tile in tiles.items() if tile[0]}
    constants = {}
    for index, name in enumerate(_CONSTANTS if tiles else ()):
        constants[name] = "".join(f"{macros[one]} ? {tile[index]} : " for one, tile in tiles.items()) + "0"
    return constants
