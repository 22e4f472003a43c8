"""-input-format: images as frames of a camera, with the same integers in Python and in the export."""

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from PIL import Image
from support.board_export import make
from support.e2e_run import compiled_at_once, run
from support.export_build import make as make_host
from support.onnx_models import text_model
from support.programs import need

from n2d2py import load_export, log
from n2d2py.arithmetic.pixel_formats import FORMATS
from n2d2py.cli import main
from n2d2py.options import read_command
from n2d2py.pipeline import load_network
from n2d2py.runtime import ArrayError

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
MEAN, STD = "0.4,0.5,0.45", "0.22,0.3,0.25"


@pytest.fixture
def net(tmp_path, monkeypatch) -> Path:
    """A network of an image 10 high and 14 wide, and photograph-like images of many sizes."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    weights = rng.normal(0, 0.3, (5, 3, 3, 3)).astype(np.float32)
    body = "c = Conv (x, w) p = GlobalAveragePool (c) y = Flatten (p)"
    onnx.save(text_model("float[1,3,10,14] x => float[1,5] y", body, {"w": weights}), "net.onnx")
    for index, (width, height) in enumerate(((14, 10), (40, 30), (31, 77), (9, 7), (200, 150))):
        path = Path("pictures") / "ab"[index % 2] / f"{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        coarse = Image.fromarray(rng.integers(0, 256, (6, 5, 3), np.uint8))
        coarse.resize((width, height), Image.Resampling.BICUBIC).save(path)
    return tmp_path


def frames_and_stimuli(*words: str):
    """The images as red, green, blue, and what the network gets of them."""
    log.setup(quiet=True)
    stimuli = load_network(*read_command(["net.onnx", "-test", "-calib-data", "pictures", *words])).data.sets["Validation"]
    for index, name in enumerate(stimuli.names):
        yield np.asarray(Image.open(Path("pictures") / name).convert("RGB")), stimuli[index]


WAYS = (
    ("rgb", ()),
    ("rgb565:area", ("-mean", MEAN, "-std", STD)),
    ("yuyv:nearest", ("-bgr", "-scale", "1", "-mean", "128")),
    ("gray", ("-crop", "9x7", "-input-range=-1:1")),
    ("rgba:antialias", ("-crop", "7")),
    ("bgr", ("-resize", "14")),
    ("rgb565be", ("-resize", "20x15", "-crop", "14x10")),
    ("nv12:pad=114,flip=vertical", ("-bgr",)),
    ("uyvy:flip=horizontal", ("-resize", "14")),
    ("nv21:nearest", ()),
    ("rggb:area,pad=0,round=down", ()),
    ("bggr:flip=both", ("-crop", "9x7")),
    ("grbg", ()),
    ("gbrg", ("-resize", "16")),
)


@pytest.mark.parametrize(
    "form, words, bits",
    [pytest.param(*way, 8, marks=[pytest.mark.slow] * (number not in (1, 10)), id=way[0]) for number, way in enumerate(WAYS)]
    + [pytest.param("rgb565", ("-bgr",), bits, marks=pytest.mark.slow) for bits in (16, -32)],
)
def test_an_export_takes_the_frames(form, words, bits, net):
    """Python's data, the function of the library and the example give the same; strides and odd sizes."""
    need("g++", "gcc", "make")
    options = ["-input-format", form, *words]
    common = ["-export", "CPP", "-nbbits", str(bits), "-calib-data", "pictures", "-quiet", "-o", "."]
    folder = run("net.onnx", *common, *options, out=net)
    export = load_export(folder)
    words_of = form.replace("both", "horizontal,vertical")
    kind, form = export.info.inputs[0].type, form.partition(":")[0]
    make_host(folder, "OPT=-O1", "examples")
    for pixels, real in frames_and_stimuli(*options):
        rows, columns = (-1 if key in words_of else 1 for key in ("vertical", "horizontal"))
        pixels = pixels[::rows, ::columns]  # as the camera sees them
        lines = np.pad(FORMATS[form].encode(pixels), ((0, 0), (0, 3)), constant_values=9)
        stored = export.from_frame(lines, pixels.shape[1])
        np.testing.assert_array_equal(stored[0], kind.quantize(real))
        (folder / "frame.ppm").write_bytes(b"P6 %d %d 255\n" % pixels.shape[1::-1] + pixels.tobytes())
        done = subprocess.run(
            [folder / "bin" / "camera_c", folder / "frame.ppm"], text=True, check=True, stdout=subprocess.PIPE
        )
        scores = [float(row.split()[1]) for row in done.stdout.splitlines() if row[0].isdigit()]
        wanted = export.info.outputs[0].type.dequantize(np.asarray(export.run_raw(stored)))
        np.testing.assert_allclose(scores, wanted.ravel(), rtol=1e-5)
    source = json.loads((folder / "manifest.json").read_text())["details"]["contract"]["source"]
    assert source["format"] == form


def test_frames_that_do_not_fit(net):
    need("g++", "make")
    words = ["-calib-data", "pictures", "-input-format", "rgb565", "-crop", "9x7", "-quiet", "-o", "."]
    export = compiled_at_once(run("net.onnx", "-export", "CPP", *words, out=net))
    for lines, width, problem in (
        (np.zeros((6, 40), np.uint8), 20, "image is 20x6, smaller than the crop 9x7"),
        (np.zeros((9, 39), np.uint8), 20, r"the lines have shape \(9, 39\) .* 20 pixels of rgb565 need 40 bytes"),
        (np.zeros((9, 40), np.int8), 20, "type int8"),
    ):
        with pytest.raises(ArrayError, match=problem):
            export.from_frame(lines, width)


@pytest.mark.parametrize("form", ["rgb565:area", "nv12:pad=9", pytest.param("gbrg", marks=pytest.mark.slow)])
def test_a_board_takes_the_frames(net, form):
    """The library of a microcontroller is built with them; its state for 14 columns of three channels has less than 256 bytes."""
    words = ["-calib-data", "pictures", "-input-format", form, "-quiet", "-o", "."]
    folder = run("net.onnx", "-export", "CPP_MCU", *words, out=net)
    assert "identical" in make(folder, "cortex-m4", "test")
    assert re.search(r"^frame of 320x240 +[1-9]", make(folder, "cortex-m4", "count"), re.MULTILINE)
    assert "uint32_t words[53]" in (folder / "include" / "net.h").read_text()


@pytest.mark.parametrize(
    "words, code, text",
    [
        (["-input-format", "rgb24"], "E003", "'rgb24' is unknown"),
        (["-input-format", "rgb565:cubic"], "E003", "the filter 'cubic' is unknown"),
        (["-input-format", "rgb565:"], "E003", "the filter '' is unknown"),
        (["-input-format", "nv12:area,flip=up"], "E003", "flip=up is not one of"),
        (["-input-format", "nv12:pad=256"], "E003", "pad=256 is above 255"),
        (["-input-format", "nv12:round=down"], "E003", "round has no effect without pad"),
        (["-input-format", "nv12:pad=0", "-crop", "9x7"], "E007", "pad= excludes -resize and -crop"),
        (["-input-format", "rgb", "-resize", "20x20", "-crop", "8"], "E417", "the size of the input, 14x10"),
        (["-input-format", "rgb", "-resize", "12"], "E407", "smaller than the crop 14x10"),
    ],
)
def test_what_is_refused(net, words, code, text, capsys):
    assert main(["net.onnx", "-test", "-calib-data", "pictures", *words, "-o", "."]) != 0
    printed = capsys.readouterr().err
    assert code in printed and text in printed


def test_arrays_are_no_frames(net, capsys):
    np.save("x.npy", np.zeros((2, 3, 10, 14), np.uint8))
    assert main(["net.onnx", "-export", "CPP", "-calib-data", "x.npy", "-input-format", "rgb", "-o", "."]) != 0
    assert "-input-format has no effect on the array x.npy" in capsys.readouterr().err
    assert len(FORMATS) == len({form.partition(":")[0] for form, _ in WAYS})


INI = """DefaultModel=Frame
[database]
Type=DIR_Database
DataPath=pictures
LabelDepth=1
Learn=0.4
Validation=0.2
[sp]
SizeX=14
SizeY=10
NbChannels=3
[sp.Transformation-1]
Type=RescaleTransformation
Width=14
Height=10
[sp.Transformation-2]
Type=ColorSpaceTransformation
ColorSpace=RGB
[sp.Transformation-3]
Type=RangeAffineTransformation
FirstOperator=Minus
FirstValue=123.7
SecondOperator=Divides
SecondValue=58.4
[fc]
Input=sp
Type=Fc
NbOutputs=2
[fc.Target]
"""


def test_the_transformations_of_an_ini(net, capsys):
    """One export, whose library gives Python's data; the bytes are those of an ONNX file with the same formula."""
    need("g++", "make")
    Path("net.ini").write_text(INI)
    words = ["net.ini", "-w", "/dev/null", "-seed", "1", "-input-format", "rgb565:area"]
    export = compiled_at_once(run(*words, "-export", "CPP", "-nbbits", "8", "-calib", "5", "-quiet", "-o", ".", out=net))
    data = load_network(*read_command([*words, "-test"])).data
    kind, other = export.info.inputs[0].type, ("-scale", "1", "-mean", "123.7", "-std", "58.4")
    formula = [real for _, real in frames_and_stimuli("-input-format", "rgb565:area", *other)]
    for stimuli in data.sets.values():
        for index, name in enumerate(stimuli.names):
            pixels = np.asarray(Image.open(Path("pictures") / name).convert("RGB"))
            stored = np.asarray(export.from_frame(FORMATS["rgb565"].encode(pixels), pixels.shape[1]))
            np.testing.assert_array_equal(stored[0], kind.quantize(stimuli[index]))
            assert min(abs(stimuli[index] - one).max() for one in formula) < 1e-4
    Path("net.ini").write_text(INI.replace("[fc]", "[sp.Transformation-4]\nType=FlipTransformation\nHorizontalFlip=1\n[fc]"))
    assert main([*words, "-test", "-o", "."]) != 0
    assert "E417" in (printed := capsys.readouterr().err) and "Flip" in printed
    assert main([*words[:-1], "rgb:pad=0", "-test", "-o", "."]) != 0
    assert "E417" in (printed := capsys.readouterr().err) and "pad= keeps the aspect ratio" in printed


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="real models and data are not in ../shared/data")
def test_photographs_as_frames(tmp_path, capsys):
    """The score of RGB565 frames is within half a point of that of the images, of which there are 120: equal."""
    words = [
        str(SHARED / "models/vww_96.onnx"),
        "-calib-data",
        str(SHARED / "vww/images"),
        "-labels",
        str(SHARED / "vww/labels.txt"),
    ]
    rates = []
    for more in ((), ("-input-format", "rgb565")):
        assert main([*words, *more, "-test", "-o", str(tmp_path)]) == 0
        (rate,) = re.findall(r"^float +120 +([0-9.]+)%", capsys.readouterr().out, re.MULTILINE)
        rates.append(float(rate))
    assert abs(rates[0] - rates[1]) <= 0.5 and rates[0] > 80
