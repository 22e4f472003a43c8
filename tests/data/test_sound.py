"""WAV files: every coding, damage, folders of words, and the way from a sound to a spectrogram."""

import struct
import wave

import numpy as np
import pytest
from support.errors import error_line
from support.tables import every

from n2d2py.data import build_provider
from n2d2py.data.decode import read_stimulus
from n2d2py.data.transformations.base import Inapplicable
from n2d2py.data.transformations.spectrum import DCT, DFT, WINDOWS, Apodization, MagnitudePhase, window


def _write(path, data, bits, channels=1, rate=16000):
    """PCM by Python's own module."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, bits // 8, rate, 0, "NONE", ""))
        file.writeframes(data)
    return path


def _riff(form, data, *chunks):
    body = b"WAVE" + b"fmt " + struct.pack("<I", len(form)) + form + b"".join(chunks)
    body += b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _form(code, bits, channels=1, more=b""):
    frame = channels * bits // 8
    return struct.pack("<HHIIHH", code, channels, 16000, 16000 * frame, frame, bits) + more


@every(
    "bits, data, expected",
    [
        (8, bytes([0, 128, 255]), [-1, 0, 127 / 128]),
        (16, struct.pack("<3h", -32768, 1, 32767), [-1, 2.0**-15, 32767 / 32768]),
        (24, b"\0\0\x80\1\0\0\xff\xff\x7f\xff\xff\xff", [-1, 2.0**-23, 1 - 2.0**-23, -(2.0**-23)]),
        (32, struct.pack("<3i", -(2**31), 2**30, -1), [-1, 0.5, -(2.0**-31)]),
    ],
)
def test_integers(tmp_path, bits, data, expected):
    sound = read_stimulus(_write(tmp_path / "a.wav", data, bits))
    assert sound.dtype == np.float32 and sound.shape == (1, len(expected), 1)
    np.testing.assert_array_equal(sound.reshape(-1), np.array(expected, np.float32))


@pytest.mark.parametrize("bits, kind", [(32, "f"), (64, "d")])
def test_floating_point(tmp_path, bits, kind):
    path = tmp_path / "a.WAV"
    path.write_bytes(_riff(_form(3, bits), struct.pack(f"<3{kind}", -1.5, 0.25, 2.0)))
    assert read_stimulus(path).reshape(-1).tolist() == [-1.5, 0.25, 2.0]


def test_extensible_files_other_chunks_and_channels(tmp_path):
    path = tmp_path / "a.wav"
    more = struct.pack("<HHI", 22, 16, 3) + struct.pack("<H", 1) + bytes(14)
    path.write_bytes(
        _riff(_form(0xFFFE, 16, 2, more), struct.pack("<4h", 0, 16384, -16384, 8192), b"LIST" + struct.pack("<I", 3) + b"abc\0")
    )
    assert read_stimulus(path).tolist() == [[[0, 0.5], [-0.5, 0.25]]]


@every(
    "data, message",
    [
        (b"RIFFxxxxAVI ", "E402: a.wav is not a WAV file"),
        (_riff(_form(1, 16), bytes(8))[:-3], "E402: a.wav is truncated: 5 of 8 bytes"),
        (_riff(_form(1, 16), bytes(8))[:30], "E402: a.wav is truncated"),
        (_riff(_form(1, 16)[:10], bytes(8)), "E402"),
        (_riff(_form(1, 16), b""), "E416: a.wav"),
        (_riff(_form(2, 4), bytes(8)), "(coding 2)"),
        (_riff(_form(1, 12), bytes(8)), "E406"),
        (_riff(struct.pack("<HHIIHH", 1, 0, 1, 1, 2, 16), bytes(8)), "E402: a.wav"),
    ],
)
def test_damaged_files(tmp_path, data, message):
    path = tmp_path / "a.wav"
    path.write_bytes(data)
    assert message in error_line(lambda: read_stimulus(path, "a.wav"))
    path.unlink()
    assert "E401: a.wav cannot be read" in error_line(lambda: read_stimulus(path, "a.wav"))


# --- the example of docs/how-to/ini_data.md

SPECTROGRAM = """
[database]
Type=DIR_Database
DataPath=words
RandomPartitioning=0
ValidExtensions=wav

[sp]
SizeX=65
SizeY=10

[sp.Transformation-1-length]
Type=SliceExtractionTransformation
Width=1280
Height=1
AllowPadding=1
BorderType=ConstantBorder

[sp.Transformation-2-frames]
Type=ReshapeTransformation
NbRows=10
NbCols=128

[sp.Transformation-3-window]
Type=ApodizationTransformation
Size=128
WindowName=Hann

[sp.Transformation-4-spectrum]
Type=DFTTransformation
TwoDimensional=0

[sp.Transformation-5-polar]
Type=MagnitudePhaseTransformation
LogScale=1

[sp.Transformation-6-magnitude]
Type=ChannelExtractionTransformation
CSChannel=Blue

[sp.Transformation-7-positive]
Type=SliceExtractionTransformation
Width=65
Height=10
"""


@pytest.fixture
def words(tmp_path):
    """Sounds shorter and longer than 1280 samples."""
    samples = {}
    for name, count in (("no/0", 1500), ("yes/0", 1111), ("yes/1", 1280)):
        wavelength = 16 if name.startswith("yes") else 8
        samples[name] = np.rint(12000 * np.sin(2 * np.pi * np.arange(count) / wavelength))
        _write(tmp_path / "words" / f"{name}.wav", samples[name].astype("<i2").tobytes(), 16)
    return samples


def test_a_folder_of_words_as_spectrograms(ini, words):
    provider = build_provider(ini(SPECTROGRAM))
    assert provider.labels == ("/no", "/yes") and provider.shape == (1, 10, 65)
    ((x, labels, names),) = provider.stimuli("Test").batches(8)
    assert labels.tolist() == [0, 1, 1] and names[0] == "no/0.wav"
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(128) / 127)
    for index, name in enumerate(("no/0", "yes/0", "yes/1")):
        signal = np.zeros(1280)
        signal[: len(words[name])] = words[name][:1280] / 32768
        expected = np.log(1 + np.abs(np.fft.rfft(signal.reshape(10, 128) * hann, axis=1)))
        np.testing.assert_allclose(x[index, 0], expected, rtol=1e-5, atol=1e-5)
    assert x[0, 0].argmax(axis=1).tolist() == [16] * 10  # 128 samples / wavelength 8
    assert x[2, 0].argmax(axis=1).tolist() == [8] * 10
    assert [point.title.split("(")[0] for point in provider.describe()] == [
        "as read",
        *"SliceExtraction Reshape Apodization DFT MagnitudePhase ChannelExtraction SliceExtraction".split(),
    ]


def test_the_example_is_documented(request):
    page = (request.config.rootpath / "docs" / "how-to" / "ini_data.md").read_text()
    steps = SPECTROGRAM[SPECTROGRAM.index("[sp.Transformation-2") :]
    assert steps.strip() in page


def test_sounds_lie_along_the_declared_axis(ini, words):
    text = (
        SPECTROGRAM[: SPECTROGRAM.index("[sp]")]
        + "[sp]\nSize=1280\n"
        + SPECTROGRAM[SPECTROGRAM.index("[sp.Transformation-1") : SPECTROGRAM.index("[sp.Transformation-2")]
    )
    provider = build_provider(ini(text))
    np.testing.assert_allclose(provider.stimuli("Test")[2], words["yes/1"] / 32768, rtol=1e-6)


@every(
    "name, expected",
    [
        ("Rectangular", [1, 1, 1, 1, 1]),
        ("Hann", [0, 0.5, 1, 0.5, 0]),
        ("Hamming", [0.08, 0.54, 1, 0.54, 0.08]),
        ("Cosine", [0, 0.5**0.5, 1, 0.5**0.5, 0]),
        ("Gaussian", np.exp([-3.125, -0.78125, 0, -0.78125, -3.125])),
        ("Blackman", [0, 0.34, 1, 0.34, 0]),
        ("Kaiser", np.kaiser(5, 5.0)),
    ],
)
def test_windows_of_five_samples(name, expected):
    np.testing.assert_allclose(window(name, 5), expected, atol=1e-12)
    assert window(name, 1).tolist() == [1]


def test_the_parameters_of_windows(ini):
    assert window("Blackman", 5, 0.0)[1] == pytest.approx(0.5)
    np.testing.assert_allclose(window("Gaussian", 3, 1.0), np.exp([-0.5, 0, -0.5]))
    np.testing.assert_allclose(window("Kaiser", 7, 0.0), np.ones(7))


def _read(ini, text):
    return (
        build_provider(ini("[sp]\nSize=4\n[sp.Transformation]\nType=ApodizationTransformation\n" + text))
        .pipelines.by_set["Test"]
        .steps[0]
        .transformation
    )


def test_the_keys_of_windows(ini):
    assert _read(ini, "Size=4\nWindowName=Kaiser\nWindowName.Beta=2") == Apodization(4, "Kaiser", 2)
    assert _read(ini, "Size=4\nWindowName=Hann\nWindowName.Beta=2") == Apodization(4, "Hann")
    assert "WindowName.Sigma=0 is not positive" in error_line(_read, ini, "Size=4\nWindowName=Gaussian\nWindowName.Sigma=0")


@every("name", WINDOWS)
def test_each_row_and_channel_is_windowed(name):
    image = np.random.RandomState(1).rand(3, 8, 2).astype(np.float32)
    result = Apodization(8, name).apply(image)
    np.testing.assert_allclose(result[2, :, 1], image[2, :, 1] * window(name, 8), rtol=1e-6)
    assert result.dtype == np.float32


def test_integers_are_cut_and_ranges_hold_zero():
    result = Apodization(3, "Hamming").apply(np.full((1, 3, 1), 100, np.uint8))
    assert result.dtype == np.uint8 and result.reshape(-1).tolist() == [8, 100, 8]
    assert Apodization(3, "Hamming").map_range((10.0, 255.0)) == (0.0, 255.0)
    with pytest.raises(Inapplicable, match="the window has 4 samples, the image is 3 wide"):
        Apodization(4).apply(np.zeros((1, 3, 1)))


def test_transforms_of_rows_extend_to_fast_sizes():
    image = np.random.RandomState(2).rand(7, 11, 1)
    result = DFT(False).apply(image)
    assert result.shape == (8, 12, 2)
    expected = np.fft.fft(np.pad(image[:, :, 0], ((0, 1), (0, 1))), axis=1)
    np.testing.assert_allclose(result[:, :, 0] + 1j * result[:, :, 1], expected, atol=1e-5)
    assert DCT(False).apply(image).shape == (8, 12, 1)


def test_cosine_transforms_keep_the_energy():
    image = np.random.RandomState(3).rand(6, 10, 1)
    for two in (True, False):
        assert (DCT(two).apply(image) ** 2).sum() == pytest.approx((image**2).sum(), rel=1e-6)
    assert DCT().apply(np.ones((2, 8, 1)))[:, :, 0].round(5).tolist()[0][0] == 4


def test_magnitude_and_phase():
    image = np.array([[[3, 4], [-1, 0], [0, -2]]], np.float32)
    result = MagnitudePhase().apply(image)
    np.testing.assert_allclose(result[0], [[5, np.arctan2(4, 3)], [1, np.pi], [2, -np.pi / 2]], rtol=1e-6)
    np.testing.assert_allclose(MagnitudePhase(True).apply(image)[0, :, 0], np.log([6, 2, 3]), rtol=1e-6)


@pytest.mark.parametrize(
    "transformation, channels, message",
    [
        (DFT(), 3, "it needs one channel, the image has 3"),
        (DCT(), 2, "it needs one channel"),
        (MagnitudePhase(), 1, "it needs the real and the imaginary part"),
    ],
)
def test_numbers_of_channels(transformation, channels, message):
    with pytest.raises(Inapplicable, match=message):
        transformation.apply(np.zeros((2, 2, channels)))
