"""The export parameters of the C++ export."""

from __future__ import annotations

import re

from n2d2py.exports.cpp.identifiers import KEYWORDS
from n2d2py.ini.kinds import Unreadable
from n2d2py.ini.schema import Key, Kind, Schema
from n2d2py.memory.parameters import MEMORY_PARAMETERS

WEIGHTS_FORMATS = ("auto", "text", "string", "binary")

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _check_namespace(text: str) -> None:
    reserved = text in KEYWORDS or "__" in text or re.match(r"_[A-Z]", text)
    if text and (reserved or _IDENTIFIER.fullmatch(text) is None):
        raise Unreadable(
            f"Namespace={text[:40]} is not a C++ identifier",
            "use letters, digits and _, not a digit first, no C++ keyword",
            "E122",
        )


PARAMETERS = MEMORY_PARAMETERS.extended(
    Key("OpenMP", Kind.BOOL, True, "build the project with OpenMP"),
    Key("Namespace", Kind.STRING, "", "C++ namespace of the network; empty: the network's name", check=_check_namespace),
    Key(
        "WeightsFormat",
        Kind.ENUM,
        "auto",
        "how weights are written: numbers (text), string literals that compile faster (string), files that the assembler reads (binary), "
        "or by size, files from 64 KiB on",
        WEIGHTS_FORMATS,
    ),
    Key(
        "WeightsFile",
        Kind.BOOL,
        False,
        "the weights are a file apart, dnn/parameters/weights.bin, which the program maps, reads or has in flash and gives to "
        "<namespace>_load_weights before the first inference",
    ),
    Key(
        "PackWeights",
        Kind.BOOL,
        True,
        "weights of 1, 2 and 4 bits are stored 8, 4 and 2 to a byte, and unpacked before they are multiplied; 0: a byte each",
    ),
    Key(
        "PrepackWeights",
        Kind.BOOL,
        True,
        "packed weights that are multiplied few times in an inference, those of fully connected layers and of few pixels, are unpacked once, into "
        "static memory (the report says how much), up to 512 KB of a layer, 2 MB of 3 x 3 ones whose inputs have 4 bits; 0: in each inference",
    ),
    Key(
        "Winograd",
        Kind.BOOL,
        True,
        "3 x 3 convolutions of bytes in Winograd's form where that is faster; 0: only where their weights do not take 3.6 or 8 times the memory: they are transformed on the stack then, slower where pixels are few",
    ),
    Key(
        "SIMD",
        Kind.ENUM,
        "auto",
        "auto: constants also in the order of the SIMD kernels, which are compiled where the compiler's target has "
        "them; none: portable kernels only",
        ("auto", "none"),
    ),
    Key(
        "RuntimeDispatch",
        Kind.BOOL,
        False,
        "the binary holds the layers for the instruction sets of its kind of processor (docs/explanation/instruction_sets.md) and chooses at "
        "start; the environment variable N2D2_ISA names one; weights are held in two orders",
    ),
    name="export parameters of CPP",
)

LAYER_PARAMETERS = Schema(
    "export parameters of a layer of CPP",
    (
        Key(
            "Tile",
            Kind.STRING,
            "",
            "tile of a convolution with SIMD kernels by instruction set, as `-tune` writes it; for other layers it is refused (E705)",
        ),
    ),
)
