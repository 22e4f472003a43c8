"""WAV files: samples as real numbers.

A sound is an image of one row: (1, samples, channels), float32. Integers of n bits are divided by 2^(n-1), unsigned bytes after
subtracting 128: values are in [-1, 1). Floating-point samples stay unchanged. Unlike N2D2, files may have several channels.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from n2d2py.data.text import read_bytes
from n2d2py.errors import N2D2Error

_PCM, _REAL, _EXTENSIBLE = 1, 3, 0xFFFE
_FORMAT = struct.Struct("<HHIIHH")


def read_wav(path: Path, name: str) -> np.ndarray:
    """Return the samples of a WAV file: PCM of 8, 16, 24 or 32 bits, floating point of 32 or 64.

    Raises: E401 unreadable, E402 damaged, E406 an unsupported coding, E416 empty.
    """
    data = read_bytes(path, name)
    form, sound = _find_chunks(data, name)
    code, channels, _, _, frame, bits = _FORMAT.unpack_from(form)
    if code == _EXTENSIBLE and len(form) >= 26:
        code = struct.unpack_from("<H", form, 24)[0]
    if (code, bits) not in _DECODERS:
        kind = {_PCM: "integers", _REAL: "floating-point numbers"}.get(code, f"coding {code}")
        raise N2D2Error("E406", f"{name} has unsupported {bits}-bit samples ({kind})", remedy="convert it to 16-bit PCM")
    if not channels or frame != channels * bits // 8:
        what = f"{name} declares {channels} channels of {bits} bits in {frame} bytes"
        raise N2D2Error("E402", what, remedy="write the file again")
    count = len(sound) // frame
    if not count:
        raise N2D2Error("E416", f"{name} contains no audio sample", remedy="remove the file")
    samples = _DECODERS[code, bits](sound[: count * frame])
    return samples.astype(np.float32).reshape(1, count, channels)


def read_samples(path: Path, name: str, rate: int) -> np.ndarray:
    """Return the samples (n,) of a mono sound as 16-bit integers: a WAV file, or raw little-endian samples.

    Raises: E401, E402, E406, E416 as `read_wav`; E408 another rate, or several channels.
    """
    if path.suffix.lower() != ".wav":
        data = read_bytes(path, name)
        if not data or len(data) % 2:
            raise N2D2Error("E402", f"{name} has {len(data)} bytes, which are not 16-bit samples", remedy="replace the file")
        return np.frombuffer(data, "<i2")
    samples, found = read_wav(path, name)[0], _FORMAT.unpack_from(_find_chunks(read_bytes(path, name), name)[0])[2]
    if samples.shape[1] != 1:
        raise N2D2Error("E408", f"{name} has {samples.shape[1]} channels instead of one", remedy="mix them to one")
    if found != rate:
        is_multiple = found % rate == 0 and found // rate <= 6
        remedy = f"convert the file, or {f'give input_rate={found}' if is_multiple else 'correct rate='} in -audio"
        raise N2D2Error("E408", f"{name} has {found} samples a second instead of {rate}", remedy=remedy)
    return np.clip(np.rint(samples[:, 0] * 32768), -32768, 32767).astype(np.int16)


def _find_chunks(data: bytes, name: str) -> tuple[bytes, bytes]:
    """Return the chunks `fmt ` and `data`."""
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise N2D2Error("E402", f"{name} is not a WAV file", remedy="remove or replace the file")
    chunks: dict[bytes, bytes] = {}
    position = 12
    while position + 8 <= len(data) and b"data" not in chunks:
        kind, size = data[position : position + 4], struct.unpack_from("<I", data, position + 4)[0]
        chunk = data[position + 8 : position + 8 + size]
        if len(chunk) < size:
            raise N2D2Error("E402", f"{name} is truncated: {len(chunk)} of {size} bytes", remedy="replace the file")
        chunks[kind] = chunk
        position += 8 + size + size % 2
    if len(chunks.get(b"fmt ", b"")) < _FORMAT.size or b"data" not in chunks:
        raise N2D2Error("E402", f"{name} contains no format or no audio data", remedy="replace the file")
    return chunks[b"fmt "], chunks[b"data"]


def _decode_int24(data: bytes) -> np.ndarray:
    parts = np.frombuffer(data, np.uint8).reshape(-1, 3).astype(np.int32)
    values = parts[:, 0] | parts[:, 1] << 8 | parts[:, 2] << 16
    return (values - ((values & 0x800000) << 1)) / 2.0**23


_DECODERS = {
    (_PCM, 8): lambda data: (np.frombuffer(data, np.uint8).astype(np.float64) - 128) / 128,
    (_PCM, 16): lambda data: np.frombuffer(data, "<i2") / 2.0**15,
    (_PCM, 24): _decode_int24,
    (_PCM, 32): lambda data: np.frombuffer(data, "<i4") / 2.0**31,
    (_REAL, 32): lambda data: np.frombuffer(data, "<f4"),
    (_REAL, 64): lambda data: np.frombuffer(data, "<f8"),
}
