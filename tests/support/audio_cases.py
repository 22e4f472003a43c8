"""Sounds through `kernels/n2d2/audio` in one program, in pieces of many sizes, which prints a checksum of all frames of each sound."""

import wave
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.audio import AudioSource, read_audio
from n2d2py.exports.cpp.conversion import AudioView
from support.onnx_models import text_model
from support.post_cases import printing

SPECS = (
    "log_mel:mels=40",
    "mfcc:mels=40,coefficients=10,window=40ms",
    "mfcc:preset=kaldi",
    "log_mel:preset=torchaudio,rate=8000,window=64,hop=100,fft=64,mels=8,window_type=hamming",
    "log_mel:preset=kaldi,window=33,hop=20,fft=64,mels=3",
    "log_mel:preset=tflm",
    "pcen:mels=40",
    "pcen:preset=kaldi,rate=8000,window=33,hop=20,fft=64,mels=3,gain=0.5,bias=0,power=0.25,time_constant=0.001,eps=10",
    "log_mel:preset=tflm,rate=8000,window=50,hop=20,fft=64,mels=4",
    "mfcc:mels=20,coefficients=7,window=20ms,hop=5ms,deltas=2,delta_window=1",
    "log_mel:rate=8000,input_rate=48000,window=16,hop=16,fft=32,mels=3,deltas=1,delta_window=4",
    "log_mel:preset=tflm,rate=8000,window=50,hop=20,fft=64,mels=4,input_rate=16000",
)
KINDS = ("silence", "constant", "full scale", "clipping", "impulse", "noise", "faint noise", "chirp", "voice", "tone")


def sounds(count: int, length: int, seed: int) -> Iterator[tuple[str, np.ndarray]]:
    """Kinds and samples (length,) of sounds, int16."""
    rng = np.random.default_rng(seed)
    time = np.arange(length) / 16000
    for number in range(count):
        kind, pitch = KINDS[number % len(KINDS)], rng.uniform(80, 2000)
        turns = np.cumsum(pitch * (1 + 0.2 * np.sin(18 * time))) / 16000
        real = {
            "silence": lambda: 0 * time,
            "constant": lambda: np.full(length, rng.choice([-32768, 32767, 1, -1])),
            "full scale": lambda: np.where(rng.integers(0, 2, length), 32767, -32768),
            "clipping": lambda: 100000 * np.sin(2 * np.pi * pitch * time),
            "impulse": lambda: 32767.0 * (np.arange(length) == rng.integers(length)),
            "noise": lambda: rng.normal(0, 3000, length),
            "faint noise": lambda: rng.normal(0, 1, length),
            "chirp": lambda: 20000 * np.sin(2 * np.pi * pitch * time * (1 + time)),
            "voice": lambda: 3000 * sum(np.sin(2 * np.pi * k * turns) / k for k in range(1, 9)) + rng.normal(0, 3, length),
            "tone": lambda: 32767 * np.sin(2 * np.pi * pitch * time),
        }[kind]()
        yield kind, np.clip(np.rint(real), -32768, 32767).astype(np.int16)


@dataclass(frozen=True)
class AudioCase:
    """A sound in a source; the program gets it in `piece` samples at a time."""

    source: AudioSource
    samples: np.ndarray
    piece: int

    @property
    def wanted(self) -> str:
        """Line that the program prints: of the 8-bit values of the last frames."""
        made = KIND.quantize(self.source.real(self.source.latest(self.samples, FRAMES)))
        return str(zlib.crc32(made.tobytes()))


KIND = NumType(8, False, scale=0.75, zero_point=150)
FRAMES = 5


def audio_cases(count: int, seed: int, length: int = 3000) -> list[AudioCase]:
    """`count` drawn sounds, each by one of SPECS, and the loudest ones."""
    rng = np.random.default_rng(seed)
    every = sounds(count, length, seed)
    return [
        AudioCase(read_audio(SPECS[number // len(KINDS) % len(SPECS)]), samples, int(rng.integers(1, 900)))
        for number, (_, samples) in enumerate(every)
    ] + [
        _resonant(read_audio("log_mel:preset=tflm"), 1000 * 2**12),  # a bin exceeds 16 bits
        _resonant(read_audio("log_mel:mels=40,window=512,window_type=hamming"), 2**15 * 2**14),
    ]


def _resonant(source: AudioSource, level: int) -> AudioCase:
    """Pairs of equal magnitude after the window, in the corners of a square, so that one bin is as large as it can be."""
    at = np.arange(source.window)
    signs = np.where(np.cos(2 * np.pi * (at // 2) / 256 - np.pi / 2 * (at % 2)) >= 0, 1, -1)
    return AudioCase(source, (signs * np.minimum(level / np.maximum(source.window_table, 1), 32767)).astype(np.int16), 480)


def program(cases: list[AudioCase], write: str, begin: str = "", end: str = "") -> str:
    """The C++ text; `write` is the statement that prints `text`, `begin` and `end` stand around each call of `push`."""
    sources = list(dict.fromkeys(case.source for case in cases))
    configs = "".join(_config(number, source) for number, source in enumerate(sources))
    data = "".join(
        f"static const std::int16_t sound{number}[] = {{ {', '.join(map(str, case.samples.tolist()))} }};\n"
        for number, case in enumerate(cases)
    )
    calls = "".join(
        f"    run<Case{sources.index(case.source)}>(sound{number}, {len(case.samples)}, {case.piece});\n"
        for number, case in enumerate(cases)
    )
    return f"""{printing("audio/input", write)}template <class Cfg> static void run(const std::int16_t* samples, int count, int piece) {{
    static n2d2::AudioInput<Cfg> audio;
    static std::uint8_t input[Cfg::Frames * (Cfg::Coefficients > 0 ? Cfg::Coefficients : Cfg::Mels) * (1 + Cfg::Deltas)];
    std::uint32_t crc = 0xFFFFFFFFu;
    audio.begin(input);
    for (int at = 0; at < count; at += piece) {{
        {begin}
        audio.push(samples + at, count - at < piece ? count - at : piece, input);
        {end}
    }}
    for (const std::uint8_t value : input) {{
        crc ^= value;
        for (int bit = 0; bit < 8; ++bit)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0u);
    }}
    number(~crc);
}}
{configs}
{data}
int main() {{
{calls}    return 0;
}}
"""


def _config(number: int, source: AudioSource) -> str:
    view = AudioView(source, (1, FRAMES, source.features), KIND)
    tables = view.tables
    arrays = "".join(f"static const {kind} {name}{number}[] = {{ {values} }};\n" for name, kind, values in tables)
    access = "".join(f"    static const {kind}& {name}(int i) {{ return {name}{number}[i]; }}\n" for name, kind, _ in tables)
    constants = ", ".join(f"{name} = {value}" for name, value in view.constants.items())
    return f"""{arrays}static const std::int32_t thresholds{number}[] = {{ {view.thresholds} }};
struct Case{number} {{
    typedef std::uint8_t Value;
    enum : int {{ {constants} }};
{access}    static Value value(std::int32_t feature) {{ return {view.value.replace("thresholds", f"thresholds{number}")}; }}
}};
"""


def write_model(path: str, shape: tuple[int, ...]) -> None:
    weights = np.random.default_rng(2).normal(0, 0.05, (int(np.prod(shape)), 10))
    ends = f"float[{','.join(map(str, shape))}] x => float[1,10] y"
    onnx.save(text_model(ends, "f = Flatten (x) y = MatMul (f, w)", {"w": weights}, opset=13), path)


def write_wav(path: Path, samples: np.ndarray, rate: int, channels: int = 1) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.astype("<i2").tobytes())


def read_wav(path: Path) -> np.ndarray:
    with wave.open(str(path)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2")
