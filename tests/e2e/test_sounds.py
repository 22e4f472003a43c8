"""-audio: sounds as features, with the same integers in Python and in the export."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.audio_cases import KINDS, read_wav, sounds, write_model, write_wav
from support.board_export import make
from support.e2e_run import run
from support.programs import need

from n2d2py import load_export, log
from n2d2py.cli import main
from n2d2py.options import read_command
from n2d2py.pipeline import load_network
from n2d2py.runtime import ArrayError

WORDS = "mfcc:mels=20,coefficients=8,rate=8000,window=32ms,hop=16ms"


@pytest.fixture
def net(tmp_path, monkeypatch) -> Path:
    """A network of 12 frames of 8 coefficients, and sounds of ten kinds in a folder each."""
    monkeypatch.chdir(tmp_path)
    write_model("net.onnx", (1, 1, 12, 8))
    for number, (kind, samples) in enumerate(sounds(20, 3000, seed=8)):
        path = Path("sounds") / f"{number % len(KINDS)}_{kind.replace(' ', '_')}" / f"{number}.wav"
        write_wav(path, samples[: 3000 - 400 * (number % 3)], 8000)
    return tmp_path


def stimuli(*words: str):
    log.setup(quiet=True)
    return load_network(*read_command(["net.onnx", "-test", "-calib-data", *words])).data.sets["Validation"]


@pytest.mark.parametrize(
    "shape, bits, words",
    [((1, 1, 12, 8), 8, WORDS)]
    + [((1, 1, 12, 8), 8, f"{kind},mels=8,rate=8000,window=32ms,hop=16ms") for kind in ("log_mel:preset=tflm", "pcen:gain=0.9")]
    + [pytest.param((1, 1, 8, 12), bits, WORDS, marks=pytest.mark.slow) for bits in (8, 16, -32)]
    + [pytest.param(shape, bits, WORDS, marks=pytest.mark.slow) for shape, bits in (((1, 8, 1, 12), 8), ((1, 96), 16))],
)
def test_an_export_hears_the_sounds(shape, bits, words, net):
    """In pieces of any size: the input is Python's data."""
    need("g++", "make")
    write_model("net.onnx", shape)
    options = ["-calib-data", "sounds", "-audio", words]
    folder = run("net.onnx", "-export", "CPP", "-nbbits", str(bits), *options, "-quiet", "-o", ".", out=net)
    export = load_export(folder)
    kind, heard = export.info.inputs[0].type, stimuli("sounds", "-audio", words)
    assert len(heard) == 20 and heard.labels.tolist() == [number // 2 for number in range(20)]
    for index, name in enumerate(heard.names):
        samples = np.pad(read_wav(Path("sounds") / name), (0, 3000))[: 256 + 11 * 128]
        wanted = kind.quantize(heard[index])
        for piece in (0, 1 + 37 * index):
            np.testing.assert_array_equal(export.from_audio(samples, piece).ravel(), wanted.ravel())
    assert (
        json.loads((folder / "manifest.json").read_text())["details"]["contract"]["source"]["kind"] == words.partition(":")[0]
    )


INI = """DefaultModel=Frame
[database]
Type=DIR_Database
DataPath=sounds
LabelDepth=1
Learn=0.4
Validation=0.2
[sp]
SizeX=8
SizeY=12
[sp.Transformation]
Type=AudioFeaturesTransformation
Features=mfcc:rate=8000,window=32ms
Hop=16ms
Mels=20
Coefficients=8
Frames=12
[fc]
Input=sp
Type=Fc
NbOutputs=10
[fc.Target]
"""


def test_an_ini_hears_the_sounds(net, capsys):
    """The transformation gives what -audio does; an export contains it."""
    need("g++", "make")
    Path("net.ini").write_text(INI)
    words = ["net.ini", "-w", "/dev/null", "-seed", "1"]
    export = load_export(run(*words, "-export", "CPP", "-nbbits", "8", "-calib", "5", "-quiet", "-o", ".", out=net))
    data, heard = load_network(*read_command([*words, "-test"])).data, stimuli("sounds", "-audio", WORDS)
    kind, wanted = export.info.inputs[0].type, {Path(name).name: heard[at] for at, name in enumerate(heard.names)}
    for one in data.sets.values():
        for at, name in enumerate(one.names):
            np.testing.assert_array_equal(one[at], wanted[Path(name).name])
            samples = np.pad(read_wav(Path("sounds") / name), (0, 3000))[: 256 + 11 * 128]
            np.testing.assert_array_equal(export.from_audio(samples).ravel(), kind.quantize(one[at]).ravel())
    for old, new, code in (
        ("Mels=20", "Mels=2", "E003"),
        ("Hop", "Rate", "E003"),
        ("SizeX=8", "SizeX=9", "E407"),
        ("Frames=12", "Frames=0", "E1"),
    ):
        Path("net.ini").write_text(INI.replace(old, new))
        assert main([*words, "-test", "-o", "."]) != 0
        assert code in capsys.readouterr().err


def test_a_board_hears_the_sounds(net):
    """The test of the board compares the decisions of its C with Python's; 12 frames pass in less than 2 kB."""
    words = ["-calib-data", "sounds", "-audio", WORDS, "-quiet", "-o", "."]
    folder = run("net.onnx", "-export", "CPP_MCU", *words, out=net)
    assert "identical" in make(folder, "cortex-m4", "test")
    assert "uint32_t words[277]" in (folder / "include" / "net.h").read_text()


def test_samples_without_a_header_and_arrays(net):
    """A .pcm file, an int16 array and a WAV file of the same samples are the same stimulus."""
    samples = read_wav(sorted(Path("sounds").rglob("*.wav"))[5])
    Path("raw").mkdir()
    samples.tofile("raw/one.pcm")
    np.save("x.npy", samples[None])
    write_wav(Path("wav/one.wav"), samples, 8000)
    first, *others = (stimuli(data, "-audio", WORDS)[0] for data in ("wav", "raw", "x.npy"))
    assert np.ptp(first) > 10 and all((first == other).all() for other in others)


def test_sounds_that_are_none(net):
    need("g++", "make")
    export = load_export(
        run("net.onnx", "-export", "CPP", "-calib-data", "sounds", "-audio", WORDS, "-quiet", "-o", ".", out=net)
    )
    with pytest.raises(ArrayError, match="shape \\(2, 3\\)"):
        export.from_audio(np.zeros((2, 3), np.int16))
    with pytest.raises(ArrayError, match="network does not convert frames"):
        export.from_frame(np.zeros((2, 3), np.uint8), 1)
    assert (export.from_audio(np.zeros(0, np.int16)) == export.from_audio(np.zeros(2000, np.int16))).all()


@pytest.mark.parametrize(
    "data, words, code, text",
    [
        (
            "sounds",
            ["-audio", "mfcc:mels=20,coefficients=9,rate=8000"],
            "E417",
            "frames of 9 features, but the input is 1x12x8",
        ),
        ("sounds", ["-audio", "mfcc:coefs=8"], "E003", "the key 'coefs' is unknown"),
        ("sounds", ["-audio", "mfcc:mels=20,coefficients=8"], "E408", "8000 samples a second instead of 16000"),
        ("stereo", ["-audio", WORDS], "E408", "2 channels instead of one"),
        ("odd", ["-audio", WORDS], "E402", "odd.pcm has 3 bytes"),
        ("empty", ["-audio", WORDS], "E416", "empty contains no sound"),
        ("x.npy", ["-audio", WORDS], "E414", "array 2x3000 of float32 instead of sounds"),
        ("sounds", ["-audio", WORDS, "-mean", "0.5"], "E007", "-audio and -mean exclude each other"),
    ],
)
def test_what_is_refused(net, data, words, code, text, capsys):
    write_wav(Path("stereo/a.wav"), np.zeros(100), 8000, 2)
    for name in ("odd", "empty"):
        Path(name).mkdir()
    Path("odd/odd.pcm").write_bytes(b"abc")
    np.save("x.npy", np.zeros((2, 3000), np.float32))
    assert main(["net.onnx", "-test", "-calib-data", data, *words, "-o", "."]) != 0
    printed = capsys.readouterr().err
    assert code in printed and text in printed


def test_a_target_without_the_conversion(net, capsys):
    words = ["-export", "TFLite", "-calib-data", "sounds", "-audio", WORDS, "-o", "."]
    assert main(["net.onnx", *words]) == 0
    assert "W704" in (printed := capsys.readouterr().err) and "TFLite does not contain" in printed
