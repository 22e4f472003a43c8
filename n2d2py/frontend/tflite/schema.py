"""The format of .tflite files: the tables of a FlatBuffer, and the constants of the schema, version 3.

A FlatBuffer (https://flatbuffers.dev/internals): a table starts with the signed distance back to its vtable. The vtable has its
own size, the table's size, and for each field its distance from the start of the table, 0 if absent. Vectors, strings and
tables are stored as an unsigned distance from the position of that distance. A vector starts with its length.
"""

from __future__ import annotations

import struct

import numpy as np


class DamagedFile(ValueError):
    """A contradiction in the file."""


def read_numbers(data: bytes, kind: str, count: int, position: int) -> np.ndarray:
    """Return numbers of a NumPy type, read-only. Raise DamagedFile if they are not in the file."""
    end = position + count * np.dtype(kind).itemsize
    if not 0 <= position <= end <= len(data):
        raise DamagedFile(f"it has {len(data):,} bytes, and refers to {position:,} to {end:,}")
    return np.frombuffer(data, kind, count, position)


class FlatTable:
    """The table of the buffer `data` that starts at `position`; types of numbers are those of NumPy."""

    def __init__(self, data: bytes, position: int):
        self._data, self._at = data, position
        vtable = position - self._number("<i", position)
        self._fields = read_numbers(data, "<H", self._number("<H", vtable) // 2, vtable)[2:]

    @classmethod
    def root(cls, data: bytes) -> FlatTable:
        """Return the root table."""
        return cls(data, int.from_bytes(data[:4], "little"))

    def _number(self, kind: str, position: int) -> int:
        return int(read_numbers(self._data, kind, 1, position)[0])

    def _place(self, slot: int) -> int | None:
        """Return the position of a field; None if it is absent."""
        distance = int(self._fields[slot]) if slot < len(self._fields) else 0
        return self._at + distance if distance else None

    def _target(self, slot: int) -> int | None:
        place = self._place(slot)
        return None if place is None else place + self._number("<I", place)

    def integer(self, slot: int, kind: str = "<i", default: int = 0) -> int:
        """Return a number."""
        place = self._place(slot)
        return default if place is None else self._number(kind, place)

    def real(self, slot: int, default: float = 0.0) -> float:
        """Return a float32."""
        place = self._place(slot)
        return default if place is None else float(read_numbers(self._data, "<f", 1, place)[0])

    def flag(self, slot: int, default: bool = False) -> bool:
        """Return a Boolean."""
        return bool(self.integer(slot, "<B", int(default)))

    def has(self, slot: int) -> bool:
        """True if the field is present."""
        return self._place(slot) is not None

    def table(self, slot: int) -> FlatTable:
        """Return a table, an empty one if it is absent."""
        target = self._target(slot)
        return NO_TABLE if target is None else FlatTable(self._data, target)

    def vector(self, slot: int, kind: str) -> np.ndarray:
        """Return the numbers of a vector, read-only; empty if it is absent."""
        target = self._target(slot)
        if target is None:
            return np.empty(0, kind)
        return read_numbers(self._data, kind, self._number("<I", target), target + 4)

    def tables(self, slot: int, most: int) -> list[FlatTable]:
        """Return the tables of a vector, at most `most`."""
        distances, first = self.vector(slot, "<u4"), (self._target(slot) or 0) + 4
        if len(distances) > most:
            raise DamagedFile(f"it has {len(distances):,} consecutive tables, more than the limit of {most:,}")
        return [FlatTable(self._data, first + 4 * index + distance) for index, distance in enumerate(distances.tolist())]

    def text(self, slot: int) -> str:
        """Return a string, "" if it is absent."""
        text = self.vector(slot, "u1").tobytes()
        if (decoded := text.decode(errors="replace")).encode() != text:
            raise DamagedFile(f"its text '{decoded[:60]}' is not UTF-8")
        return decoded


NO_TABLE = FlatTable(struct.pack("<HHi", 4, 4, 4), 4)
"""A table without fields."""


# ---- constants of the schema --------------------------------------------------------------------
IDENTIFIER = b"TFL3"


def pairs(text: str) -> dict[str, str]:
    """Return the table of a text of words KEY=VALUE."""
    return dict(pair.split("=") for pair in text.split())


_TYPES = "0=float32 1=float16 2=int32 3=uint8 4=int64 6=bool 7=int16 8=complex64 9=int8 10=float64 12=uint64 15=uint32 16=uint16 17=int8"
TYPES: dict[int, np.dtype] = {int(number): np.dtype(name) for number, name in pairs(_TYPES).items()}
"""Supported types; 4-bit ones are unpacked to int8."""
INT4 = 17
_OTHER = "5=STRING 11=COMPLEX128 13=RESOURCE 14=VARIANT 18=BFLOAT16 19=INT2 20=UINT4 21=FLOAT8_E4M3FN 22=FLOAT8_E5M2"
OTHER_TYPES = {int(number): name for number, name in pairs(_OTHER).items()}
"""Types that are refused by name."""

CUSTOM = 32
OPERATORS = (
    """
    ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE EMBEDDING_LOOKUP FLOOR
    FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION LSTM
    MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS
    SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND
    TRANSPOSE MEAN SUB DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT
    LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG PADV2 GREATER GREATER_EQUAL
    LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW
    ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK REDUCE_MIN FLOOR_DIV
    REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS
    SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N GATHER_ND COS WHERE RANK ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG
    ROUND HARD_SWISH IF WHILE NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM
    BATCH_MATMUL PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG REAL COMPLEX_ABS HASHTABLE
    HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE
    BROADCAST_ARGS RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU DYNAMIC_UPDATE_SLICE RELU_0_TO_1
    UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2 UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR
    RIGHT_SHIFT
    """
).split()
"""Operator names, each at its number."""

ACTIVATIONS = ("NONE", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT")
"""Fused activations, each at its number."""
LIMITS = {"RELU": (0.0, np.inf), "RELU_N1_TO_1": (-1.0, 1.0), "RELU6": (0.0, 6.0), "RELU_0_TO_1": (0.0, 1.0)}
"""Limits of the activations that are clamps."""
SAME, VALID = 0, 1
"""Paddings."""
REFLECT = 0
"""Mode of MIRROR_PAD without the border element; 1 repeats it."""
