"""The export parameters of the static memory, for every target whose memory the tool plans."""

from __future__ import annotations

from n2d2py.ini.schema import Key, Kind, Schema

STRATEGIES = (
    "None",
    "OptimizeMaxLifetimeMinSizeFirst",
    "OptimizeMaxLifetimeMaxSizeFirst",
    "OptimizeMaxHoleMaxLifetimeFirst",
    "OptimizeAuto",
    "OptimizeOverlap",
    "OptimizeOptimal",
    "OptimizeReorder",
    "OptimizeStream",
)

N2D2_STRATEGIES = STRATEGIES[:5]
"""Those that place as N2D2 does."""

MEMORY_PARAMETERS = Schema(
    "export parameters of the memory",
    (
        Key("IncludeInputInBuffer", Kind.BOOL, True, "the input buffer is part of the static memory and may be overwritten"),
        Key(
            "IncludeOutputInBuffer",
            Kind.ENUM,
            "auto",
            "1: the outputs are computed in the static memory and then copied to the caller; 0: layers write them straight into "
            "the caller's buffers; auto: straight where that is faster (a max pool with a sum), else in the static memory",
            ("auto", "0", "1"),
        ),
        Key("OptimizeBufferMemory", Kind.BOOL, True, "reuse memory in place and by wrapping around"),
        Key(
            "OptimizeNoBranchConcat",
            Kind.BOOL,
            True,
            "write the inputs of a concatenation directly at their place where possible",
        ),
        Key(
            "FuseResidualAdd",
            Kind.BOOL,
            True,
            "a convolution adds the other operand of a sum in its last stage, and the sum lies over that operand; not with N2D2's "
            "memory strategies, nor where layers run line by line, nor where more memory would be needed",
        ),
        Key("MemoryAlignment", Kind.UINT, 1, "bytes to which the stride of a pixel is rounded up", minimum=1, maximum=4096),
        Key(
            "BufferAlignment",
            Kind.UINT,
            16,
            "bytes to which the address of a buffer is rounded up, with OptimizeOverlap and the strategies built on it",
            minimum=1,
            maximum=4096,
        ),
        Key(
            "MemoryManagerStrategy",
            Kind.ENUM,
            "OptimizeOverlap",
            "how buffers are placed: N2D2's four orders, the smallest of N2D2's plans (OptimizeAuto), every "
            "output as far over its inputs as its kernel allows (OptimizeOverlap), the same with a solver "
            "(OptimizeOptimal, needs ortools), in the best order of the layers (OptimizeReorder), or with layers that "
            "run line by line through line buffers (OptimizeStream)",
            STRATEGIES,
        ),
        Key(
            "MemoryMode",
            Kind.ENUM,
            "auto",
            "how much speed may be given for memory: Speed (no output over an input), Balanced (OptimizeOverlap), Small "
            "(layers line by line, as few as the budget allows), Minimum (the smallest plan known); auto: "
            "MemoryManagerStrategy decides, or MemoryBudget, or Small with StreamInput",
            ("auto", "Speed", "Balanced", "Small", "Minimum"),
        ),
        Key(
            "MemoryBudget",
            Kind.INT,
            -1,
            "bytes of static memory: the fastest plan that fits, of the modes up to MemoryMode; 0: as MemoryMode=Minimum; "
            "-1: no limit",
            minimum=-1,
        ),
        Key(
            "MaxExtraMacs",
            Kind.FLOAT,
            0.0,
            "per cent of the multiply-accumulates that may be done twice, where layers run line by line, for less memory: segments "
            "of layers are then also cut into vertical strips",
            minimum=0,
            maximum=100,
        ),
        Key(
            "PackActivations",
            Kind.BOOL,
            False,
            "tensors of 1, 2 and 4 bits are held 8, 4 and 2 channels to a byte between the layers, those without which the memory would be "
            "larger; layers then read and make their lines through line buffers of bytes",
        ),
        Key(
            "StreamInput",
            Kind.BOOL,
            False,
            "the inputs arrive line by line through a function of the caller, and are in memory as a whole nowhere",
        ),
    ),
)
