"""Sounds to the features of a network's input, in integers: the definition that `kernels/n2d2/audio` computes too.

A frame is `window` 16-bit samples, `hop` samples after the one before. Divisions by powers of two round down (`>>`);
high(a, b) is a * b >> 32.

    1. kaldi, pre-emphasis: x = s << 14, x -= mean(x) (kaldi), x[n] -= 2 high(x[n - 1], emphasis); s = x / 2^j, rounded. The sample
       before the first one is the first one; j is the least with -2^14 <= x >> j < 2^14
    2. P = power spectrum of s * window, in 32 bits with one exponent: `power_spectrum` has its steps
    3. L = log2(sum(weight * P)) - 2 shift + c     in 1/65536, of each mel band; not below the floor of the preset
    4. features in 1/4096: L, or its cosine transform
    5. deltas: (sum(n (x[t + n] - x[t - n])) + D / 2) / D, D = 2 sum(n^2), n from 1 to delta_window; the first and the last frame of
       the input repeat beyond its ends

Samples at a multiple f of the rate become y[t] = (sum(h[n] s[f t + n]) + 2^14) >> 15, clipped to 16 bits: a sinc with a Hann window
over six zeros on either side, which passes 0.99 of the band. Samples before a sound are zeros.

The preset tflm computes as TFLite Micro does: `micro_frontend` has its steps. The kind pcen normalizes the energies of each band
over time instead of step 4: `pcen` has its steps.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from n2d2py.arithmetic import micro_frontend, pcen, power_spectrum
from n2d2py.arithmetic.micro_frontend import log2_fixed
from n2d2py.arithmetic.sensor import StreamSource
from n2d2py.errors import Location
from n2d2py.ini import Key, Kind, Wrong, option_error, read_choice

WINDOWS = ("hann", "hamming", "povey")
_FRACTION = 12
_ZEROS, _PASSED = 6, 0.99
"""The filter of the resampling: zeros of the sinc on either side, and the share of the band that passes, as in torchaudio."""


@dataclass(frozen=True)
class Preset:
    """Conventions of a library, for all that keys do not say.

    Attributes:
        defaults: of the keys.
        htk: bands are equally wide on HTK's mel scale, 2595 log10(1 + f / 700), else on Slaney's.
        in_mel: triangles are straight over mel, else over frequencies.
        area: triangles are divided by half their width in Hz.
        periodic: the window is that of one more sample.
        mean: the mean of a frame is removed.
        unit: of a sample.
        decibel: features are in dB, else natural logarithms.
        floor: least energy of a band.
        lifter: of MFCC; 0 for none.
        adapts: noise is reduced and the gain controlled, as in TFLite Micro: features are whole numbers of 10/256.
    """

    defaults: Mapping[str, Any]
    htk: bool = True
    in_mel: bool = False
    area: bool = False
    periodic: bool = True
    mean: bool = False
    unit: float = 2.0**-15
    decibel: bool = True
    floor: float = 1e-10
    lifter: int = 0
    adapts: bool = False


PRESETS = {
    "librosa": Preset({"mels": 128, "coefficients": 20}, htk=False, area=True),
    "torchaudio": Preset({"mels": 128, "coefficients": 40}),
    "kaldi": Preset(
        {"mels": 23, "coefficients": 13, "window": "25ms", "hop": "10ms", "low": 20.0, "preemphasis": 0.97}
        | {"window_type": "povey"},
        in_mel=True,
        periodic=False,
        mean=True,
        unit=1.0,
        decibel=False,
        floor=2.0**-23,
        lifter=22,
    ),
    "tflm": Preset({"mels": 40, "coefficients": 1, "low": 125.0, "high": 7500.0}, in_mel=True, periodic=False, adapts=True),
}
"""librosa: `feature.melspectrogram` and `feature.mfcc` with center=False, dB without top_db. torchaudio: `MelSpectrogram` and
`MFCC` with center=False, `AmplitudeToDB`. kaldi: `torchaudio.compliance.kaldi.fbank` and `mfcc` without dither,
use_energy=False. tflm: the audio front end of TFLite Micro with its defaults, which micro_speech and microWakeWord use; log_mel
only."""


@dataclass(frozen=True)
class AudioSource(StreamSource):
    """Sounds that an application gives to a network, and their way to its input.

    Attributes:
        kind: log_mel, mfcc or pcen.
        preset: a name of PRESETS.
        rate: samples a second.
        window, hop: samples of a frame, and from one to the next.
        fft: size of the Fourier transform, a power of two.
        mels: bands between `low` and `high`, in Hz.
        coefficients: features of a frame of MFCC.
        preemphasis: from 0 to below 1.
        window_type: one of WINDOWS.
        deltas: 1 appends the slopes of the features over frames, 2 also the slopes of these.
        delta_window: frames on either side of a slope.
        input_rate: samples a second of the sounds, a multiple of `rate`; 0 for `rate`.
        gain, bias, power, time_constant, eps: of pcen, as librosa names them; the time is in seconds.
    """

    kind: str
    preset: str
    rate: int
    window: int
    hop: int
    fft: int
    mels: int
    low: float
    high: float
    coefficients: int
    preemphasis: float
    window_type: str
    deltas: int = 0
    delta_window: int = 2
    input_rate: int = 0
    gain: float = 0.98
    bias: float = 2.0
    power: float = 0.5
    time_constant: float = 0.4
    eps: float = 1e-6

    option: ClassVar = "-audio"
    stem: ClassVar = "audio"

    @property
    def size_key(self) -> str:
        return "coefficients" if self.kind == "mfcc" else "mels"

    @property
    def features(self) -> int:
        return self.static_features * (1 + self.deltas)

    @property
    def static_features(self) -> int:
        """Features of a frame without deltas."""
        return self.coefficients if self.kind == "mfcc" else self.mels

    @property
    def sound_rate(self) -> int:
        """Samples a second of the sounds."""
        return self.input_rate or self.rate

    @property
    def sound_hop(self) -> int:
        """Samples of the sounds from one frame to the next."""
        return self.hop * self.factor

    @property
    def factor(self) -> int:
        """Samples of the sound for one at `rate`."""
        return self.sound_rate // self.rate

    @property
    def step(self) -> np.float32:
        """Real value of a feature of 1."""
        if self.adapts:
            return np.float32(10 / 256)
        if self.normalization:
            return np.float32(2**-_FRACTION)
        return np.float32((10 * np.log10(2) if self._preset.decibel else np.log(2)) / 2**_FRACTION)

    @property
    def text(self) -> str:
        left_out = {*["input_rate"] * (not self.input_rate), *["deltas", "delta_window"] * (not self.deltas)}
        keys = {key.name for key in _KINDS[self.kind]} - left_out
        return f"{self.kind}:" + ",".join(f"{one.name}={getattr(self, one.name)}" for one in fields(self) if one.name in keys)

    @property
    def removes_mean(self) -> bool:
        """True if step 1 removes the mean."""
        return self._preset.mean

    @property
    def adapts(self) -> bool:
        """True if noise is reduced and the gain controlled, as in TFLite Micro."""
        return self._preset.adapts

    @cached_property
    def normalization(self) -> pcen.EnergyNormalization | None:
        """Integers of pcen; None for other kinds."""
        frames = self.time_constant * self.rate / self.hop
        parameters = self.fft, frames, self.eps, self.gain, self.bias, self.power
        return pcen.EnergyNormalization.of(*parameters) if self.kind == "pcen" else None

    @property
    def emphasis(self) -> int:
        """The pre-emphasis in 2^-31."""
        return min(round(self.preemphasis * 2**31), 2**31 - 1)

    @property
    def floor(self) -> int:
        """Least logarithm of a band, in 1/65536."""
        return pcen.SILENCE if self.normalization else round(float(np.log2(self._preset.floor)) * 65536)

    def samples(self, frames: int) -> int:
        return (self.window + (frames - 1) * self.hop - 1) * self.factor + self.reach + 1

    @property
    def _preset(self) -> Preset:
        return PRESETS[self.preset]

    @cached_property
    def window_table(self) -> np.ndarray:
        """The window (window,), in 2^-14, or in 2^-12 where the source adapts."""
        half = 0.5 if self.adapts else 0.0  # samples are in the middle of their time
        last = self.window if self._preset.periodic else self.window - 1
        time = 2 * np.pi * (np.arange(self.window) + half) / max(last + 2 * half, 1)
        hann = 0.5 - 0.5 * np.cos(time)
        values = {"hann": hann, "hamming": 0.54 - 0.46 * np.cos(time), "povey": hann**0.85}[self.window_type]
        return np.rint(values * 2 ** (12 if self.adapts else 14)).astype(np.int64)

    @property
    def _positions(self) -> tuple[np.ndarray, np.ndarray]:
        """Ends of the slopes of all bands (mels + 2,) and positions of the bins (N/2 + 1,), both in Hz or both in mel."""
        low, high = _to_mel(np.array([self.low, self.high]), self._preset.htk).tolist()
        hertz, ends = np.linspace(0, self.rate / 2, self.fft // 2 + 1), np.linspace(low, high, self.mels + 2)
        return (ends, _to_mel(hertz, True)) if self._preset.in_mel else (_to_hertz(ends, self._preset.htk), hertz)

    @cached_property
    def slopes(self) -> tuple[np.ndarray, np.ndarray]:
        """Slope of each bin, -1 without one, and its integer weight (N/2 + 1,): slope m rises in band m and falls in m - 1."""
        ends, at = self._positions
        slope = np.searchsorted(ends, at, "right") - 1
        unused = (slope < 0) | (slope > self.mels)
        unused[[0, -1]] = True  # outside the bands, or at their ends
        if self.adapts:
            unused[: int(1.5 + self.low * self.fft / self.rate)] = True
        slope[unused] = 0
        rising = np.rint((at - ends[slope]) / np.diff(ends)[slope] * self.weight_one).astype(np.int64)
        return np.where(unused, -1, slope), np.minimum(rising, self.weight_one - 1)

    @property
    def weight_one(self) -> int:
        """The integer weight of 1."""
        return 2 ** (12 if self.adapts else 15)

    @cached_property
    def weights(self) -> np.ndarray:
        """Integer weights (mels, N/2 + 1)."""
        (slope, rising), band = self.slopes, np.arange(self.mels)[:, None]
        return np.where(slope == band, rising, 0) + np.where(slope == band + 1, self.weight_one - rising, 0)

    @cached_property
    def offsets(self) -> np.ndarray:
        """The constant c of each band, in 1/65536."""
        unit, ends = self._preset.unit, self._positions[0]
        if self.normalization:  # 2^31 for samples in -1 to 1
            unit = 2.0 ** ((31 + self.normalization.bits) / 2 - 15)
        areas = 2 / (ends[2:] - ends[:-2]) if self._preset.area else np.ones(self.mels)
        logs = np.log2(areas * unit**2) + 2 * (2 + power_spectrum.later_stages(self.fft))
        return np.rint(logs * 65536).astype(np.int64)

    @cached_property
    def cosines(self) -> tuple[np.ndarray, int]:
        """Integer weights (coefficients, mels) of the orthonormal cosine transform with the lifter, and their shift."""
        order, band = np.arange(self.coefficients)[:, None], np.arange(self.mels)
        real = np.cos(np.pi * order * (2 * band + 1) / (2 * self.mels)) * np.sqrt(np.where(order, 2, 1) / self.mels)
        if lifter := self._preset.lifter:
            real *= 1 + lifter / 2 * np.sin(np.pi * order / lifter)
        shift = int(np.floor(np.log2(32767 / abs(real).max())))
        return np.rint(real * 2**shift).astype(np.int64), shift

    def stimulus(self, samples: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Return the real input of `shape`, float32, of 16-bit samples; see `convert`."""
        frames = self.frames_of(shape)
        return frames.stimulus(self.real(self.convert(samples, frames.count)), shape)

    def convert(self, samples: np.ndarray, frames: int) -> np.ndarray:
        """Return the features (frames, features) of the first frames of 16-bit samples, padded with silence at the end."""
        size = self.samples(frames)
        padded = np.pad(samples[:size], (0, max(size - len(samples), 0)))
        return self._with_deltas(self._static(self._resampled(padded), frames))

    def latest(self, samples: np.ndarray, frames: int) -> np.ndarray:
        """Return the features (frames, features) of the last whole frames of 16-bit samples, after silence if too few."""
        samples = self._resampled(samples)
        count = self._whole_frames(samples)
        first = 0 if self.adapts or self.normalization else max(count - frames, 0)
        return self._with_deltas(self._after_silence(samples[first * self.hop :], count - first, frames)[-frames:])

    def each_window(self, samples: np.ndarray, frames: int) -> np.ndarray:
        """Return the features (n, frames, features) after each `frames_between` whole frames: `latest` of the samples so far."""
        samples, step = self._resampled(samples), self.frames_between(frames)
        every = self._after_silence(samples, self._whole_frames(samples), frames)
        windows = np.lib.stride_tricks.sliding_window_view(every, frames, 0)[1 + (frames - 1) % step :: step].swapaxes(1, 2)
        return np.array([self._with_deltas(one) for one in windows]).reshape(-1, frames, self.features)

    def frames_between(self, frames: int) -> int:
        """Return the frames from one inference of a program to the next: a tenth of the input."""
        return max(1, frames // 10)

    def _whole_frames(self, samples: np.ndarray) -> int:
        return max((len(samples) - self.window) // self.hop + 1, 0)

    def _after_silence(self, samples: np.ndarray, count: int, frames: int) -> np.ndarray:
        """Return the features (frames + count, static_features): frames of silence, then those of the samples at `rate`."""
        silence = np.repeat(self._static(samples[:0], 1), frames, 0)
        return np.concatenate([silence, self._static(samples, count)]) if count else silence

    def _static(self, samples: np.ndarray, frames: int) -> np.ndarray:
        """Return the features (frames, static_features) of samples at `rate`; silence follows them."""
        size = self.window + (frames - 1) * self.hop
        padded = np.pad(samples[:size].astype(np.int64), (0, max(size - len(samples), 0)))
        return self.transform(np.lib.stride_tricks.sliding_window_view(padded, self.window)[:: self.hop])

    @property
    def reach(self) -> int:
        """Samples on either side that the filter of the resampling reads."""
        return math.ceil(_ZEROS * self.factor / _PASSED) if self.factor > 1 else 0

    @cached_property
    def taps(self) -> np.ndarray:
        """The half (reach + 1,) of the filter of the resampling, in 2^-15, from the middle on; the sum of all is 1."""
        time = np.arange(self.reach + 1) * _PASSED / self.factor
        real = np.sinc(time) * np.cos(np.minimum(time / _ZEROS, 1) * np.pi / 2) ** 2
        taps = np.rint(real / (2 * real.sum() - real[0]) * 2**15).astype(np.int64)
        taps[0] += 2**15 - (2 * taps.sum() - taps[0])
        return taps

    def _resampled(self, samples: np.ndarray) -> np.ndarray:
        """Return the samples at `rate`, as far as all samples that they depend on are there."""
        if self.factor == 1 or len(samples) <= self.reach:
            return samples if self.factor == 1 else samples[:0]
        filter_ = np.concatenate([self.taps[:0:-1], self.taps])
        padded = np.pad(samples.astype(np.int64), (self.reach, 0))
        sums = np.lib.stride_tricks.sliding_window_view(padded, len(filter_))[:: self.factor] @ filter_
        return np.clip(sums + 2**14 >> 15, -32768, 32767)

    def _with_deltas(self, features: np.ndarray) -> np.ndarray:
        """Compute step 5 for features (frames, static_features)."""
        parts, reach = [features], self.delta_window
        divisor = 2 * sum(n * n for n in range(reach + 1))
        for _ in range(self.deltas):
            padded, count = np.pad(parts[-1], ((reach, reach), (0, 0)), "edge"), len(features)
            steps = range(1, reach + 1)
            slopes = np.sum([n * (padded[reach + n :][:count] - padded[reach - n :][:count]) for n in steps], 0)
            parts.append((slopes + divisor // 2) // divisor)
        return np.concatenate(parts, 1)

    def transform(self, frames: np.ndarray) -> np.ndarray:
        """Return the features (n, features) of frames (n, window) of samples, which follow each other."""
        energies, shifts = self._energies(frames)
        if self.adapts:
            return micro_frontend.adapt(micro_frontend.square_root(energies) >> shifts.astype(np.uint64), self.fft)
        logs = np.where(energies, log2_fixed(energies) - 2 * shifts * 65536 + self.offsets, self.floor)
        if self.normalization:
            return self.normalization.apply(logs)
        levels = np.maximum(logs, self.floor) + 8 >> 16 - _FRACTION
        if self.kind != "mfcc":
            return levels
        cosines, shift = self.cosines
        return levels @ cosines.T + (1 << shift - 1) >> shift

    def real(self, features: np.ndarray) -> np.ndarray:
        return features.astype(np.float32) * self.step

    def _energies(self, frames: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute the energies (n, mels), uint64, and the shifts (n, 1) of frames (n, window)."""
        samples, shifts = frames.astype(np.int64), np.zeros((len(frames), 1), np.int64)
        if self.removes_mean or self.preemphasis:
            samples, shifts = self._emphasized(samples)
        after = self.fft - self.window
        padded = np.pad(samples, ((0, 0), (0, after))), np.pad(self.window_table, (0, after))
        if self.adapts:
            powers, more = micro_frontend.powers(*padded)
            return powers @ self.weights.T.astype(np.uint64), more
        powers, more, least = power_spectrum.powers(*padded)
        energies = power_spectrum.band_energies(powers, *self.slopes, self.mels)
        return np.maximum(energies, least).astype(np.uint64), shifts + more

    def _emphasized(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute step 1: 16-bit samples and their shifts (n, 1)."""
        x = x << 14
        if self.removes_mean:
            x = x - x.sum(1, keepdims=True) // self.window
        x = x - 2 * (self.emphasis * np.concatenate([x[:, :1], x[:, :-1]], 1) >> 32)
        less = np.maximum(-power_spectrum.headroom(x, 14), 0)
        return x + (1 << less >> 1) >> less, 14 - less


def read_audio(text: str, where: Location | None = None) -> AudioSource:
    """Return the source of KIND:KEY=VALUE,... of -audio, or of the INI section at `where`; the preset gives absent keys.

    Raises E003 for an unknown kind or key, or a value that is not possible.
    """
    wrong = option_error("-audio", text, where)
    kind, values = read_choice(text, _KINDS, wrong)
    given, preset = {name: value for name, value in values.items() if value is not None}, PRESETS[values["preset"]]
    if kind != "log_mel" and preset.adapts:
        raise wrong(f"{values['preset']} has no {kind}", "use log_mel")
    values, rate = {**_DEFAULTS, **preset.defaults, **given}, values["rate"]
    values |= {key: _samples(wrong, key, values[key], rate) for key in ("window", "hop")}
    values["high"] = given.get("high", min(values.get("high", rate / 2), rate / 2))
    values.setdefault("fft", 1 << max(values["window"] - 1, 1).bit_length())
    source = AudioSource(kind, **values)
    if problem := _problem(source):
        raise wrong(problem, "correct the value")
    return source


_KEYS = (
    Key("preset", Kind.ENUM, "librosa", choices=tuple(PRESETS)),
    Key("rate", Kind.UINT, 16000, minimum=8000, maximum=48000),
    Key("window", Kind.STRING, None),
    Key("hop", Kind.STRING, None),
    Key("fft", Kind.UINT, None, minimum=32, maximum=4096),
    Key("mels", Kind.UINT, None, minimum=1, maximum=256),
    Key("low", Kind.FLOAT, None, minimum=0),
    Key("high", Kind.FLOAT, None),
    Key("preemphasis", Kind.FLOAT, None, minimum=0, maximum=0.999),
    Key("window_type", Kind.ENUM, None, choices=WINDOWS),
    Key("deltas", Kind.UINT, None, maximum=2),
    Key("delta_window", Kind.UINT, None, minimum=1, maximum=8),
    Key("input_rate", Kind.UINT, None, maximum=48000),
)
_KINDS = {
    "log_mel": _KEYS,
    "mfcc": (*_KEYS, Key("coefficients", Kind.UINT, None, minimum=1)),
    "pcen": (
        *_KEYS,
        Key("gain", Kind.FLOAT, None, minimum=0, maximum=1),
        Key("bias", Kind.FLOAT, None, minimum=0, maximum=1000),
        Key("power", Kind.FLOAT, None, minimum=1e-6, maximum=1),
        Key("time_constant", Kind.FLOAT, None, minimum=1e-6, maximum=60),
        Key("eps", Kind.FLOAT, None, minimum=1e-30, maximum=100),
    ),
}
"""The kinds of features, each with its keys; those of the default None have a value in the preset, or depend on others."""

_DEFAULTS: Mapping[str, Any] = {"window": "30ms", "hop": "20ms", "low": 0.0, "preemphasis": 0.0, "window_type": "hann"}
KEYS = tuple(one.name for one in fields(AudioSource) if one.name != "kind")
"""Keys of -audio."""


def _samples(wrong: Wrong, key: str, text: str, rate: int) -> int:
    """Return a number of samples of at least one, from that number or from milliseconds: 25ms."""
    milliseconds = text.removesuffix("ms")
    try:
        count = round(float(milliseconds) * rate / 1000) if milliseconds != text else int(text)
    except (ValueError, OverflowError):
        count = 0
    if count < 1:
        raise wrong(f"{key}={text} is not a time in ms, or a number of samples", "give a number above 0")
    return count


def _problem(source: AudioSource) -> str:
    rates = 0, *(source.rate * factor for factor in range(1, 7))
    rules = (
        (source.fft & (source.fft - 1) == 0, f"fft={source.fft} is not a power of two"),
        (source.window <= source.fft, f"the window of {source.window} samples exceeds fft={source.fft}"),
        (not (source.adapts and source.preemphasis), f"preemphasis has no effect with preset={source.preset}"),
        (source.input_rate in rates, f"input_rate={source.input_rate} is not 1 to 6 times rate={source.rate}"),
        (source.low < source.high <= source.rate / 2, f"low={source.low:g} and high={source.high:g} do not bound a band"),
        (
            source.features <= source.mels * (1 + source.deltas),
            f"coefficients={source.coefficients} exceeds mels={source.mels}",
        ),
    )
    problem = next((text for holds, text in rules if not holds), "")
    if not problem and not (used := source.weights.any(1)).all():
        empty = int(np.flatnonzero(~used)[0])
        problem = f"mel band {empty} lies between two bins: mels={source.mels} are too many for fft={source.fft}"
    return problem


def _to_mel(hertz: np.ndarray, htk: bool) -> np.ndarray:
    if htk:
        return 2595 * np.log10(1 + hertz / 700)
    return np.where(hertz < 1000, hertz * 3 / 200, 15 + 27 * np.log(np.maximum(hertz, 1000) / 1000) / np.log(6.4))


def _to_hertz(mel: np.ndarray, htk: bool) -> np.ndarray:
    return 700 * (10 ** (mel / 2595) - 1) if htk else np.where(mel < 15, mel * 200 / 3, 1000 * 6.4 ** ((mel - 15) / 27))
