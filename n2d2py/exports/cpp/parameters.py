"""The export parameters of the C++ export."""

import re
from dataclasses import dataclass

from n2d2py.contracts.cpp.identifiers import KEYWORDS
from n2d2py.ini import Key, Kind, Schema, Unreadable, parameter
from n2d2py.memory.settings import Settings

WEIGHTS_FORMATS = ("auto", "text", "string", "binary")

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _check_namespace(text: str) -> None:
    reserved = text in KEYWORDS or "__" in text or re.match(r"_[A-Z]", text)
    if text and (reserved or _IDENTIFIER.fullmatch(text) is None):
        remedy = "use letters, digits and _, starting with a letter, and avoid C++ keywords"
        raise Unreadable(f"Namespace={text[:40]} is not a C++ identifier", remedy, "E122")


_TEXTS = """
WeightsFormat: Storage of weights. text: numbers. string: string literals, which compile faster. binary: files that the
    assembler includes. auto: chosen by size, files from 64 KiB.
WeightsFile: Write the weights to a separate file, dnn/parameters/weights.bin. The program maps or reads the file, or has it
    in flash, and passes it to <namespace>_load_weights before the first inference.
PackWeights: Pack 1-, 2- and 4-bit weights into bytes and unpack them before multiplication. 0: one byte per weight.
PrepackWeights: Unpack packed weights once into static memory if they are rarely reused in an inference, as in fully
    connected layers. The report lists the size. Limit per layer: 512 KB. 0: unpack in each inference.
Winograd: Use Winograd for 8-bit 3x3 convolutions where it is faster. 0: store no transformed weights, which take 8 times
    the memory. Weights are then transformed on the stack, which is slower for small feature maps.
SmallCode: Compile for size (-Os), with tiles of one size per layer where possible, kernels that layers share and one copy
    of the weights. Winograd kernels transform them on the stack, a panel of 16 outputs at a time.
SIMD: auto: add constants in the order of the SIMD kernels. They are compiled if the compiler's target supports them. none:
    portable kernels only.
RuntimeDispatch: Compile the layers for several instruction sets of one CPU family and select one at startup
    (docs/explanation/instruction_sets.md): x86, or 64-bit ARM with Linux. The environment variable N2D2_ISA overrides the
    choice. Weights are stored in each order that a set reads.
"""


@dataclass(frozen=True)
class CppParameters(Settings, texts=_TEXTS):
    """The export parameters of CPP. `namespace` is "" for the name of the model."""

    openmp: bool = parameter("OpenMP", Kind.BOOL, True, "Build the project with OpenMP.")
    namespace: str = parameter(
        "Namespace", Kind.STRING, "", "C++ namespace of the model. Default: its name.", check=_check_namespace
    )
    weights_format: str = parameter("WeightsFormat", Kind.ENUM, "auto", choices=WEIGHTS_FORMATS)
    weights_file: bool = parameter("WeightsFile", Kind.BOOL, False)
    pack_weights: bool = parameter("PackWeights", Kind.BOOL, True)
    prepack_weights: bool = parameter("PrepackWeights", Kind.BOOL, True)
    winograd: bool = parameter("Winograd", Kind.BOOL, True)
    small_code: bool = parameter("SmallCode", Kind.BOOL, False)
    simd: str = parameter("SIMD", Kind.ENUM, "auto", choices=("auto", "none"))
    runtime_dispatch: bool = parameter("RuntimeDispatch", Kind.BOOL, False)

    @property
    def portable(self) -> bool:
        """True if all layers have the portable kernel only."""
        return self.simd == "none"

    @property
    def trades_flash(self) -> bool:
        """True if kernels may have larger constants to be faster."""
        return False


LAYER_PARAMETERS = Schema(
    "export parameters of a layer of CPP",
    (Key("Tile", Kind.STRING, "", "Tile sizes of a convolution by instruction set, from `-tune`. Other layers raise E705."),),
)
