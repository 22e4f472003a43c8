"""Features of sounds: the definition against the published formulas in float64 and their libraries, the kernels against the definition."""

import re
from functools import reduce

import numpy as np
import pytest
from support.audio_cases import audio_cases, program, read_wav, sounds
from support.kernel_harness import ROOT, each_compiler, printed_by
from support.post_cases import printing
from support.programs import need, run_command

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.audio import AudioSource, log2_fixed, read_audio
from n2d2py.errors import N2D2Error
from n2d2py.exports.cpp.conversion import AudioView


@each_compiler(80, 120)
def test_kernels_on_this_machine(compiler, count, tmp_path):
    cases = audio_cases(count, seed=count)
    printed = printed_by(program(cases, "std::fputs(text, stdout)"), compiler, tmp_path)
    wanted = [case.wanted for case in cases]
    assert printed == wanted and len(set(wanted)) > count * 0.6


def energies(source: AudioSource, samples: np.ndarray, frames: int, area: bool, slaney: bool) -> np.ndarray:
    """Energies (frames, mels) as librosa and torchaudio document them, in float64: written without the definition."""
    at = np.arange(source.window)
    taper = 0.5 - 0.5 * np.cos(2 * np.pi * at / source.window)
    parts = np.stack([samples[t * source.hop :][: source.window] for t in range(frames)]) / 32768
    power = abs(np.fft.rfft(parts * taper, source.fft)) ** 2

    def mel(f):
        log = 15 + np.log(np.maximum(f, 1) / 1000) / (np.log(6.4) / 27)
        return np.where(f < 1000, f / (200 / 3), log) if slaney else 2595 * np.log10(1 + f / 700)

    fine = np.linspace(0, source.rate / 2, 400001)
    edges = np.interp(np.linspace(mel(np.float64(source.low)), mel(np.float64(source.high)), source.mels + 2), mel(fine), fine)
    hertz, bands = np.arange(source.fft // 2 + 1) * source.rate / source.fft, []
    for low, centre, high in zip(edges, edges[1:], edges[2:], strict=False):
        band = np.interp(hertz, [low, centre, high], [0, 1, 0], left=0, right=0)
        bands.append(band * 2 / (high - low) if area else band)
    return power @ np.array(bands).T


def formula(source: AudioSource, samples: np.ndarray, frames: int, area: bool, slaney: bool) -> np.ndarray:
    """dB (frames, mels)."""
    return 10 * np.log10(np.maximum(energies(source, samples, frames, area, slaney), 1e-10))


@pytest.mark.parametrize(
    "text, area",
    [
        ("log_mel:mels=40", True),
        ("log_mel:preset=torchaudio,mels=64,low=20,high=7600,fft=1024", False),
        ("log_mel:rate=8000,window=256,hop=128,mels=20", True),
    ],
)
def test_formulas(text, area):
    """Noise differs by less than 0.1 dB. Of other sounds bands within 40 dB of the loudest one of their frame differ by less than 0.6 dB,
    as the transform has 16 bits."""
    source = read_audio(text)
    for kind, samples in sounds(20, 8000, seed=3):
        wanted = formula(source, samples, 10, area, slaney=area)
        error = abs(source.real(source.convert(samples, 10)) - wanted)
        loud = wanted > wanted.max(1, keepdims=True) - 40
        assert error[loud].max() < (0.1 if kind in ("silence", "noise", "faint noise", "full scale", "impulse") else 0.6), kind


@pytest.mark.parametrize("text", ["log_mel:mels=40", "mfcc:preset=kaldi", "log_mel:preset=tflm"])
@pytest.mark.parametrize("scale, zero, signed", [(0.003, 12, True), (None, 0, True), (0.0007, 40000, False)])
def test_stored_values_of_16_bits(text, scale, zero, signed, tmp_path):
    """In C++ those of float32 in NumPy, also where every fourth feature is a tie."""
    source, features = read_audio(text), np.arange(-150000, 150000)
    kind = NumType(16, signed, scale=scale or float(source.step) * 4, zero_point=zero)
    value = AudioView(source, (1, 5, source.features), kind).value
    text = f"""{printing("audio/input", "std::fputs(text, stdout)")}
int main() {{
    typedef std::{kind.dtype}_t Value;
    std::uint32_t sum = 0;
    for (std::int32_t feature = -150000; feature < 150000; ++feature)
        sum = sum * 31 + static_cast<std::uint16_t>({value});
    number(sum);
}}
"""
    wanted = reduce(
        lambda total, one: total * 31 + (one & 0xFFFF) & 0xFFFFFFFF, kind.quantize(source.real(features)).tolist(), 0
    )
    assert printed_by(text, "g++", tmp_path) == [str(wanted)]


@pytest.mark.parametrize("voice", ["en", "en+f3", "de+m4", "en+whisper"])
@pytest.mark.parametrize("peak", [32000, 300])
def test_speech(voice, peak, tmp_path):
    """Differs by less than 0.2 % of the range on average, of 999 values in 1000 by less than 5 %: bands 60 dB below the loudest."""
    need("espeak-ng")
    words = "She sells sea shells at the shore; seven fast trains stop, go left, yes, no."
    run_command("espeak-ng", "-v", voice, "-w", "speech.wav", words, cwd=tmp_path)
    samples = read_wav(tmp_path / "speech.wav").astype(float)
    samples = np.rint(samples * peak / abs(samples).max()).astype(np.int16)
    source = read_audio("log_mel:rate=22050,mels=40")
    frames = (len(samples) - source.window) // source.hop + 1
    wanted = formula(source, samples, frames, True, slaney=True)
    error = abs(source.real(source.convert(samples, frames)) - wanted) / np.ptp(wanted)
    assert error.mean() < 0.002 and np.quantile(error, 0.999) < 0.05


@pytest.mark.parametrize(
    "gain, bias, power, seconds", [(0.98, 2, 0.5, 0.4), (0.8, 10, 0.25, 0.06), (1, 0, 1, 0.01), (0, 1, 0.5, 2)]
)
def test_energy_normalization(gain, bias, power, seconds):
    """By the formula of librosa.pcen for energies times 2^31, in float64."""
    source = read_audio(f"pcen:mels=20,gain={gain},bias={bias},power={power},time_constant={seconds}")
    lag = seconds * 50
    share = (np.sqrt(1 + 4 * lag**2) - 1) / (2 * lag**2)
    for kind, samples in sounds(20, 16000, seed=6):
        scaled, smooth, wanted = energies(source, samples, 45, True, True) * 2**31, np.ones(20), []
        for energy in scaled:
            smooth = smooth + share * (energy - smooth)
            wanted.append((energy / (1e-6 + smooth) ** gain + bias) ** power - bias**power)
        wanted = np.minimum(wanted, 4096)
        error = abs(source.real(source.convert(samples, 45)) - wanted)
        if kind in ("silence", "noise", "faint noise", "full scale", "impulse"):
            assert error.max() <= max(0.01 * np.ptp(wanted), 1 / 4096), kind
        if kind == "voice":
            assert error.mean() < 0.03 * np.ptp(wanted) and np.ptp(wanted) > 1


def test_rows_of_the_page():
    """The options of docs/how-to/my_preprocessing.md for sounds, by the formula of the library that a row names."""
    part = (ROOT / "docs" / "how-to" / "my_preprocessing.md").read_text().partition("## Sounds\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\S+?):? .*\| `-audio (.+)` \|$|^\| (microWakeWord) \| `-audio (.+)` \|$", part, re.MULTILINE)
    found = {first or other: read_audio(text or more) for first, text, other, more in rows}
    assert list(found) == ["librosa", "PCEN", "torchaudio", "Kaldi", "TFLite", "microWakeWord"]
    kaldi, pcen = found.pop("Kaldi"), found.pop("PCEN")  # test_kaldi, test_energy_normalization
    assert (kaldi, pcen) == (read_audio("log_mel:preset=kaldi"), read_audio("pcen:mels=40"))
    for _, samples in ((kind, sound) for kind, sound in sounds(20, 16000, seed=9) if kind == "noise"):
        for name, source in found.items():
            if name in ("librosa", "torchaudio"):
                wanted = formula(source, samples, 10, name == "librosa", name == "librosa")
                assert abs(source.real(source.convert(samples, 10)) - wanted).max() < 0.05, name
            else:
                wanted = front_end(samples, 40, source.hop)
                assert abs(source.real(source.convert(samples, 40)) - wanted).mean() < 0.01 * np.ptp(wanted), name


def test_cosine_transform():
    """Of MFCC: the orthonormal type II of the same bands, within the rounding of 40 bands."""
    bands, cosines = read_audio("log_mel:mels=40"), read_audio("mfcc:mels=40,coefficients=10")
    order, band = np.arange(10)[:, None], np.arange(40)
    matrix = np.cos(np.pi * order * (band + 0.5) / 40) * np.sqrt(np.where(order, 2, 1) / 40)
    for _, samples in sounds(10, 8000, seed=4):
        levels = bands.convert(samples, 10)
        assert abs(cosines.convert(samples, 10) - levels @ matrix.T).max() < 16


@pytest.mark.parametrize("kind", ["log_mel", "mfcc"])
def test_kaldi(kind):
    """kaldi-native-fbank, the code of Kaldi, with its defaults: within 1.5 % of the range of noise, 3 % of voices on average."""
    kaldi = pytest.importorskip("kaldi_native_fbank")
    source = read_audio(f"{kind}:preset=kaldi")
    options = kaldi.FbankOptions() if kind == "log_mel" else kaldi.MfccOptions()
    options.frame_opts.dither, options.use_energy = 0, False
    for name, samples in sounds(20, 8000, seed=5):
        if name not in ("noise", "voice", "faint noise"):
            continue
        judge = (kaldi.OnlineFbank if kind == "log_mel" else kaldi.OnlineMfcc)(options)
        judge.accept_waveform(16000, samples.astype(float).tolist())
        wanted = np.array([judge.get_frame(index) for index in range(judge.num_frames_ready)])
        error = abs(source.real(source.convert(samples, len(wanted))) - wanted)
        if name == "voice":  # bands more than 60 dB below the loudest
            assert error.mean() < 0.03 * np.ptp(wanted)
        else:
            assert error.max() < 0.015 * np.ptp(wanted)


@pytest.mark.parametrize("kind", ["log_mel", "mfcc", "pcen"])
def test_librosa(kind):
    librosa = pytest.importorskip("librosa")
    source = read_audio(f"{kind}:mels=40,window=512")
    for name, samples in sounds(20, 8000, seed=6):
        if name not in ("noise", "voice", "faint noise"):
            continue
        common = {"n_fft": 512, "hop_length": source.hop, "center": False, "n_mels": 40}
        mel = librosa.feature.melspectrogram(y=samples / 32768, sr=16000, **common)
        decibel = librosa.power_to_db(mel, top_db=None)
        pcen = librosa.pcen(mel * 2**31, sr=16000, hop_length=source.hop)
        wanted = {"log_mel": decibel, "mfcc": librosa.feature.mfcc(S=decibel), "pcen": pcen}[kind].T
        error = abs(source.real(source.convert(samples, len(wanted))) - wanted)
        if name == "voice":
            assert error.mean() < 0.03 * np.ptp(wanted)
        else:
            assert error.max() < 0.015 * np.ptp(wanted)


@pytest.mark.parametrize("window", [1, 2, 4])
def test_deltas(window):
    """Slopes of straight lines through 2 * window + 1 frames, by least squares; the first and the last frame repeat."""
    source = read_audio(f"mfcc:mels=20,coefficients=5,deltas=2,delta_window={window}")
    for _, samples in sounds(10, 8000, seed=8):
        features = source.convert(samples, 12)
        static, slopes, second = np.split(features, 3, axis=1)
        for values, found in ((static, slopes), (slopes, second)):
            padded = np.pad(values, ((window, window), (0, 0)), "edge").astype(np.float64)
            lines = [np.polyfit(np.arange(-window, window + 1), padded[t : t + 2 * window + 1], 1)[0] for t in range(12)]
            assert abs(found - np.array(lines)).max() < 0.51


def test_librosa_deltas():
    librosa = pytest.importorskip("librosa")
    source = read_audio("log_mel:mels=20,deltas=1,delta_window=4")
    for _, samples in sounds(10, 16000, seed=8):
        features = source.convert(samples, 40)
        wanted = librosa.feature.delta(features[:, :20].astype(float).T, width=9, mode="nearest").T
        assert abs(features[:, 20:] - wanted).max() < 0.51


@pytest.mark.parametrize("factor", [2, 3, 6])
def test_sounds_of_a_higher_rate(factor):
    """A tone has the features that it has at the lower rate, within 0.2 dB; one above the band vanishes."""
    low, high = read_audio("log_mel:rate=8000,mels=20"), read_audio(f"log_mel:rate=8000,mels=20,input_rate={8000 * factor}")
    time = np.arange(16000 * factor) / (8000 * factor)
    for pitch in (440, 1000, 3000):
        sound = np.rint(10000 * np.sin(2 * np.pi * pitch * time)).astype(np.int16)
        wanted, found = low.convert(sound[::factor], 20), high.convert(sound, 20)
        loud = wanted > wanted.max() - 40 / low.step
        assert abs(low.real(found - wanted))[1:][loud[1:]].max() < 0.2
    pitch = {2: 6500, 3: 8900, 6: 20900}[factor]
    above = np.rint(10000 * np.sin(2 * np.pi * pitch * time)).astype(np.int16)
    assert low.real(high.convert(above, 20))[1:].max() < low.real(wanted).max() - 50
    assert high.convert(np.zeros(0, np.int16), 3).tolist() == low.convert(np.zeros(0, np.int16), 3).tolist()


def front_end(samples: np.ndarray, frames: int, hop: int) -> np.ndarray:
    """Features of TFLite Micro's front end by its published steps, in float64: windows of 30 ms, 40 bands from 125 to 7500 Hz."""
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * (np.arange(480) + 0.5) / 480)
    ends = np.linspace(np.log1p(125 / 700), np.log1p(7500 / 700), 42)
    at = np.log1p(np.arange(257) * 31.25 / 700)
    bands = np.array([np.interp(at, ends[band : band + 3], [0, 1, 0], 0, 0) for band in range(40)])
    noise, smoothing, made = np.zeros(40), np.where(np.arange(40) % 2, 0.06, 0.025), []
    for frame in range(frames):
        power = abs(np.fft.rfft(samples[hop * frame : hop * frame + 480] * hann, 512) / 512) ** 2
        level = np.sqrt(4096 * bands @ power)
        noise += smoothing * (level - noise)
        ratio = 8 * np.maximum(level - noise, 0.05 * level) / (8 * noise + 80) ** 0.95
        shrunk = np.floor(64 * np.where(ratio < 2, ratio**2 / 4, ratio - 1))
        made.append(np.log(np.maximum(8 * shrunk, 1)))
    return np.array(made) * 64 * 10 / 256


def test_tflite_micro_by_its_formula():
    """Noise differs by less than 1 % of the range on average; louder sounds by more, as the gain has few bits for them."""
    for name, samples in sounds(20, 16000, seed=7):
        if name == "noise":
            source = read_audio("log_mel:preset=tflm,hop=10ms")
            wanted = front_end(samples, 98, 160)
            error = abs(source.real(source.convert(samples, 98)) - wanted)
            assert error.mean() < 0.01 * np.ptp(wanted), name


def test_tflite_micro_by_its_code():
    """pymicro-features, the code of TFLite Micro: the same integers but for bands of hardly any energy next to loud tones."""
    judge = pytest.importorskip("pymicro_features")
    source = read_audio("log_mel:preset=tflm,hop=10ms")
    for name, samples in sounds(20, 16000, seed=3):
        front, data, wanted = judge.MicroFrontend(), samples.astype("<i2").tobytes(), []
        for at in range(0, len(data), 320):
            wanted += [made] if (made := front.process_samples(data[at : at + 320]).features) else []
        error = abs(source.real(source.convert(samples, len(wanted))) - np.array(wanted))
        assert error.mean() < 0.01 * 26, name
        if name not in ("tone", "chirp", "clipping", "voice"):
            assert (error > 0.01).mean() < 0.01, name


def test_logarithms():
    """Within 1/4096 of powers of two, their neighbours and the largest number."""
    powers = [1 << bits for bits in range(1, 64)]
    values = np.array([1, *powers, *(one - 1 for one in powers), *(one + 1 for one in powers), 2**64 - 1], np.uint64)
    exact = np.array([float(np.log2(float(value))) for value in values.tolist()])
    assert abs(log2_fixed(values) / 65536 - exact).max() < 1 / 4096
    assert log2_fixed(np.array([1 << 40], np.uint64)) == 40 << 16


def test_a_full_scale_tone_by_hand():
    """cos at bin 32 of 512 under a Hann window: |X| = 512/4 in the bin and 512/8 beside it, X^2 times the area weights of Slaney."""
    source = read_audio("log_mel:window=512,mels=10,high=8000")
    samples = np.rint(32767 * np.cos(2 * np.pi * 32 * np.arange(512) / 512)).astype(np.int16)
    low, high = (15 + 27 * np.log(hertz / 1000) / np.log(6.4) for hertz in (1000.0, 8000.0))
    step = high / 11  # mel from one end of a slope to the next; 1 kHz is at 15 mel, between the ends 3 and 4
    ends = [mel * 200 / 3 if mel < 15 else 1000 * 6.4 ** ((mel - 15) / 27) for mel in step * np.arange(2, 6)]
    shares = np.array([(ends[2] - hertz) / (ends[2] - ends[1]) for hertz in (968.75, 1000, 1031.25)])
    powers = np.array([64.0, 128.0, 64.0]) ** 2
    bands = [shares @ powers * 2 / (ends[2] - ends[0]), (1 - shares) @ powers * 2 / (ends[3] - ends[1])]
    found = source.real(source.convert(samples, 1))[0, 2:4]
    assert low == 15 and abs(found - 10 * np.log10(bands)).max() < 0.01, found


@pytest.mark.parametrize(
    "text, what",
    [
        ("mel:mels=40", "the kind 'mel' is unknown"),
        ("log_mel:gain=0.5", "gain has no effect on log_mel; remove it, or use pcen"),
        ("pcen:preset=tflm", "tflm has no pcen"),
        ("pcen:power=0", "power=0 is below"),
        ("pcen:time_constant=0", "time_constant=0 is below"),
        ("mfcc:deltas=3", "deltas=3 is above 2"),
        ("mfcc:deltas=1,delta_window=0", "delta_window=0 is below 1"),
        ("mfcc:input_rate=44100", "input_rate=44100 is not 1 to 6 times rate=16000"),
        ("log_mel:preset=librose", "did you mean 'librosa'?"),
        ("log_mel:bands=40", "the key 'bands' is unknown"),
        ("log_mel:mels", "'mels' is not KEY=VALUE"),
        ("log_mel:mels=40,", "'' is not KEY=VALUE"),
        ("log_mel:mels=40,mels=20", "mels is given twice"),
        ("log_mel:mels=many", "mels=many is not"),
        ("log_mel:coefficients=10", "coefficients has no effect on log_mel"),
        ("mfcc:mels=8,coefficients=10", "coefficients=10 exceeds mels=8"),
        ("log_mel:fft=480", "fft=480 is not a power of two"),
        ("log_mel:fft=256", "the window of 480 samples exceeds fft=256"),
        ("log_mel:low=9000", "low=9000 and high=8000 do not bound a band"),
        ("log_mel:preset=torchaudio,mels=128", "mel band 0 lies between two bins"),
        ("log_mel:window_type=kaiser", "window_type=kaiser is not one of"),
        ("log_mel:mels=nan", "mels=nan is not"),
        ("log_mel:preemphasis=1", "preemphasis=1 is above"),
        ("mfcc:preset=tflm", "tflm has no mfcc"),
        ("log_mel:preset=tflm,preemphasis=0.9", "preemphasis has no effect with preset=tflm"),
        ("log_mel:hop=0", "hop=0 is not"),
        ("log_mel:rate=1e9", "rate=1e9 is above 48000"),
    ],
)
def test_what_is_refused(text, what):
    with pytest.raises(N2D2Error, match="E003") as caught:
        read_audio(text)
    assert what in str(caught.value)


def test_a_source_is_its_text():
    for text in ("log_mel:mels=40", "mfcc:preset=kaldi,rate=8000", "log_mel:preset=tflm", "pcen:gain=0.5"):
        assert read_audio(read_audio(text).text) == read_audio(text)
    assert read_audio("log_mel:mels=40,window=30ms") == read_audio("log_mel:mels=40,window=480")


@pytest.mark.parametrize(
    "shape, count, turned, major",
    [
        ((1, 49, 40), 49, False, True),
        ((1, 40, 49), 49, True, False),
        ((40, 1, 49), 49, True, True),
        ((40, 49), 49, True, True),
        ((49, 40), 49, False, False),
        ((1960,), 49, False, True),
        ((1, 40, 40), 40, False, True),
    ],
)
def test_frames_of_an_input(shape, count, turned, major):
    """The order in an array with channels last is that of the stimulus."""
    source = read_audio("log_mel:mels=40")
    found = source.frames_of(shape)
    assert (found.count, found.turned, found.major) == (count, turned, major)
    frames = np.arange(count * 40).reshape(count, 40)
    stored = np.moveaxis(found.stimulus(frames, shape), 0, -1).ravel()
    assert (stored.reshape((count, 40) if major else (40, count)) == (frames if major else frames.T)).all()


def test_an_input_of_another_size():
    for shape in ((1, 49, 10), (3, 49, 40), (1961,)):
        with pytest.raises(N2D2Error, match="E417.*frames of 40 features"):
            read_audio("log_mel:mels=40").frames_of(shape)
