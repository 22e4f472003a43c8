"""Post-processors through their kernels, in one C++ program that prints integers, one on a line."""

from collections.abc import Sequence

import numpy as np

from n2d2py.arithmetic import FLOAT32, NumType
from n2d2py.arithmetic.fixed_scale import FixedScale
from n2d2py.postprocessing import PostProcessor

TYPES = (
    lambda scale: NumType(8, signed=False, scale=scale, zero_point=3),
    lambda scale: NumType(8, signed=True, scale=scale, zero_point=-20),
    lambda scale: NumType(16, signed=True, scale=scale / 128),
    lambda scale: FLOAT32,
)
"""Number types for a scale of 8 bits."""


def c_type(values: np.ndarray) -> str:
    return "float" if values.dtype.kind == "f" else f"std::{values.dtype}_t"


def array(name: str, values: np.ndarray) -> str:
    """A constant array of C++."""
    names = {"nan": "NAN", "inf": "HUGE_VALF", "-inf": "-HUGE_VALF"}
    flat = values.ravel().tolist()
    texts = map(str, flat) if values.dtype.kind != "f" else (names.get(text := f"{one:.9e}", f"{text}f") for one in flat)
    return f"static const {c_type(values)} {name}[] = {{{', '.join(texts)}}};\n"


def config(name: str, post: PostProcessor, values: Sequence[np.ndarray], types: dict[str, str]) -> str:
    """The configuration of a kernel for stored outputs, and its tables."""
    kinds = {key: c_type(values[at]) for key, at in post.config.reads.items()} | types
    tables = {key: (kind, list(entries)) for key, (kind, entries) in post.config.tables.items()}
    constants = "".join(
        f"static const {kind} {key}{name}[] = {{{', '.join(map(str, entries))}}};\n"
        for key, (kind, entries) in tables.items()
        if entries
    )
    lines = [f"typedef {kind} {key};" for key, kind in kinds.items()]
    lines += [f"enum : std::int32_t {{ {', '.join(f'{key} = {value}' for key, value in post.config.constants.items())} }};"]
    lines += [_scale(key, one) for key, one in post.config.scales.items()]
    lines += [
        f"static const {kind}* {key}() {{ return {f'{key}{name}' if entries else 'nullptr'}; }}"
        for key, (kind, entries) in tables.items()
    ]
    return f"{constants}struct {name} {{\n    " + "\n    ".join(lines) + "\n};\n"


def _scale(name: str, scale: FixedScale) -> str:
    kind = "RealScale" if scale.factor else "FixedScale"
    values = repr(scale.factor) if scale.factor else f"{scale.multiplier}, {scale.shift}, {scale.zero_point}"
    return f"static n2d2::{kind} {name}() {{ return n2d2::{kind}{{{values}}}; }}"


def printing(header: str, write: str) -> str:
    """The begin of a program that includes a header and prints integers by `number`; `write` is the statement that prints `text`."""
    return f"""#include "n2d2/{header}.hpp"
#if !defined(ON_BOARD)
#include <cstdio>
#else
extern "C" {{
#include "semihosting.h"
}}
#endif
static void print(const char* text) {{ {write}; }}
static void number(std::int64_t value) {{
    char text[23] = "                     \\n";
    int at = 21;
    std::uint64_t rest = static_cast<std::uint64_t>(value < 0 ? -value : value);
    do text[--at] = static_cast<char>('0' + rest % 10);
    while (rest /= 10);
    if (value < 0)
        text[--at] = '-';
    print(text + at);
}}
"""


def program(header: str, configs: str, run: str, calls: str, write: str) -> str:
    """The C++ text: `run` defines functions that `calls` calls; `write` is the statement that prints `text`."""
    return f"{printing(header, write)}{configs}{run}\nint main() {{\n{calls}    return 0;\n}}\n"
