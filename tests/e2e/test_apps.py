"""-app: the programs around an export, on this machine and on boards, print what Python computes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from PIL import Image
from support.audio_cases import read_wav, sounds, write_model, write_wav
from support.board_export import compiled, need_core
from support.board_export import make as make_board
from support.browser import browser
from support.detection_cases import save_detector
from support.e2e_run import run
from support.export_build import make
from support.kernel_arm import CLANG
from support.onnx_models import text_model
from support.programs import need

import n2d2py
from n2d2py import load_export
from n2d2py.arithmetic.frame import encode
from n2d2py.cli import main
from n2d2py.runtime import ArrayError

ON_BOARDS = [
    pytest.param(kind, core, marks=[pytest.mark.slow] * (core != "cortex-m4" or kind == "sensor"))
    for kind in ("camera", "microphone", "sensor")
    for core in ("cortex-m4", "cortex-m55", "rv32imc")
]
COMMON = ["-quality", "fast", "-act-rescaling-mode", "Fixed-point-p32", "-quiet", "-o", "."]
CAMERA = ["detector.onnx", "-app", "camera", "-calib-data", "pictures", "-input-format", "yuyv", "-class-names", "names.txt"]
CAMERA += ["-post", "yolov8:threshold=0.6,iou=0.3,units=relative", *COMMON]
AUDIO = "mfcc:mels=20,coefficients=8,rate=8000,window=32ms,hop=16ms"
MICROPHONE = ["words.onnx", "-app", "microphone", "-calib-data", "sounds", "-audio", AUDIO, *COMMON]
SENSOR = ["sensor.onnx", "-app", "sensor", "-calib-data", "x.npy", *COMMON]


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """Networks and data of the three kinds."""
    folder, rng = tmp_path_factory.mktemp("apps"), np.random.default_rng(5)
    save_detector(str(folder / "detector.onnx"))
    (folder / "names.txt").write_text("cat\ndog\nbird\n")
    (folder / "pictures").mkdir()
    for index in range(6):
        coarse = Image.fromarray(rng.integers(0, 256, (6, 8, 3), np.uint8))
        coarse.resize((61, 45), Image.Resampling.BICUBIC).save(folder / "pictures" / f"{index}.ppm")
    write_model(str(folder / "words.onnx"), (1, 1, 12, 8))
    for number, (_, samples) in enumerate(sounds(20, 4000, seed=8)):
        write_wav(folder / "sounds" / f"{number}.wav", samples, 8000)
    weights = rng.normal(0, 1, (6, 4)).astype(np.float32)
    onnx.save(text_model("float[1,6] x => float[1,4] y", "y = MatMul (x, w)", {"w": weights}), folder / "sensor.onnx")
    np.save(folder / "x.npy", rng.normal(0, 3, (30, 6)).astype(np.float32))
    return folder


@pytest.fixture(autouse=True)
def inside(home, monkeypatch):
    monkeypatch.chdir(home)
    monkeypatch.setenv("CXXFLAGS", "-Werror")  # also when a library is loaded, so that it is built once


def exported(home: Path, name: str, *words: str) -> Path:
    """The folder of an export, written once."""
    place = home / name
    place.mkdir(exist_ok=True)
    return next(place.glob("export_*"), None) or run(*words, "-o", str(place), out=place)


def app(folder: Path, *words: str, given: bytes = b"", status: int = 0, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run([folder / "bin" / "app", *words], input=given, env=environment, capture_output=True, check=False)
    assert done.returncode == status, done.stderr
    return done.stdout.decode() if status == 0 else done.stderr.decode()


def built(home: Path, name: str, *words: str) -> Path:
    need("g++", "make")
    folder = exported(home, name, *words, "-export", "CPP")
    make(folder, "lib", "app")
    return folder


def number(value: float, decimals: int) -> str:
    """Rounded half up."""
    return f"{np.floor(value * 10**decimals + 0.5) / 10**decimals:.{decimals}f}"


def detected(folder: Path, picture: Path) -> str:
    """The lines of a picture as a YUYV frame, by the library."""
    export, pixels = load_export(folder), np.asarray(Image.open(picture))
    frame = encode(pixels, "yuyv")
    (found,) = export.detect(export.from_frame(frame, pixels.shape[1]), pixels.shape[1::-1])
    assert export.pipeline(pixels) == found
    lines = [[one.name, number(one.score, 3), *(number(x, 1) for x in (one.x0, one.y0, one.x1, one.y1))] for one in found]
    return "".join(" ".join(line) + "\n" for line in lines) or "no detection\n"


def test_pictures_with_boxes(home):
    """Lines for pictures and for frames without a header; the boxes are drawn around what the lines say."""
    folder = built(home, "camera", *CAMERA)
    pictures = sorted(Path("pictures").iterdir())
    wanted = [detected(folder, picture) for picture in pictures]
    assert len(set(wanted)) > 1
    with pytest.raises(ArrayError, match="the image has shape"):
        load_export(folder).pipeline(np.zeros((9, 9, 4), np.uint8))
    assert [app(folder, str(picture)) for picture in pictures] == wanted
    frames = b"".join(encode(np.asarray(Image.open(picture)), "yuyv").tobytes() for picture in pictures)
    assert app(folder, "-", "61x45", given=frames) == "".join(wanted)
    at = max(range(6), key=lambda index: len(wanted[index]))
    assert app(folder, str(pictures[at]), "-draw", "boxes.ppm") == wanted[at]
    before, after = (np.asarray(Image.open(path)).astype(int) for path in (pictures[at], "boxes.ppm"))
    drawn = np.zeros((45, 61), bool)
    for line in wanted[at].splitlines():
        x0, y0, x1, y1 = (float(word) for word in line.split()[2:])
        left, top, right, bottom = int(x0), int(y0), int(x1 - 0.06), int(y1 - 0.06)
        drawn[[top, bottom], left : right + 1] = drawn[top : bottom + 1, [left, right]] = True
    assert (after[drawn] == (255, 48, 48)).all() and (after[~drawn] == before[~drawn]).all()


FAKE_CAMERA = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/videodev2.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
/* /dev/video7: a V4L2 camera whose frames are those of frames.yuyv, 61x45, in rows of 128 bytes. */
enum { CAMERA = 77, BUFFERS = 2 };
static unsigned char* memory[BUFFERS];
static int queue[8], first, last, file;
int open(const char* path, int flags, ...) {
    int (*real)(const char*, int, ...) = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, "open");
    if (strcmp(path, "/dev/video7"))
        return real(path, flags);
    file = real("frames.yuyv", O_RDONLY);
    return CAMERA;
}
void* mmap(void* at, size_t bytes, int protection, int flags, int device, off_t offset) {
    void* (*real)(void*, size_t, int, int, int, off_t) = (void* (*)(void*, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
    return device == CAMERA ? memory[offset / 65536] : real(at, bytes, protection, flags, device, offset);
}
int ioctl(int device, unsigned long request, ...) {
    va_list list;
    va_start(list, request);
    void* const argument = va_arg(list, void*);
    va_end(list);
    struct v4l2_buffer* const buffer = argument;
    if (request == VIDIOC_S_FMT) {
        struct v4l2_format* const format = argument;
        format->fmt.pix.pixelformat = V4L2_PIX_FMT_YUYV;
        format->fmt.pix.width = 61;
        format->fmt.pix.height = 45;
        format->fmt.pix.bytesperline = 128;
    } else if (request == VIDIOC_REQBUFS) {
        struct v4l2_requestbuffers* const wanted = argument;
        static unsigned char all[BUFFERS][128 * 45];
        wanted->count = BUFFERS;
        for (int i = 0; i < BUFFERS; ++i)
            memory[i] = all[i];
    } else if (request == VIDIOC_QUERYBUF) {
        buffer->length = 128 * 45;
        buffer->m.offset = 65536 * buffer->index;
    } else if (request == VIDIOC_QBUF) {
        queue[last++ % 8] = (int)buffer->index;
    } else if (request == VIDIOC_DQBUF) {
        buffer->index = (unsigned)queue[first++ % 8];
        for (int y = 0; y < 45; ++y)
            if (first > last || read(file, memory[buffer->index] + 128 * y, 124) != 124)
                return -1;
    }
    return 0;
}
"""


def test_a_v4l2_camera(home):
    """Frames of a camera that exists in a library which answers for /dev/video7."""
    need("gcc")
    folder = built(home, "camera", *CAMERA)
    pictures = sorted(Path("pictures").iterdir())
    Path("frames.yuyv").write_bytes(b"".join(encode(np.asarray(Image.open(one)), "yuyv").tobytes() for one in pictures))
    Path("camera.c").write_text(FAKE_CAMERA)
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", "camera.so", "camera.c", "-ldl"], check=True)
    environment = {"LD_PRELOAD": str(home / "camera.so")}
    wanted = "".join(detected(folder, picture) for picture in pictures)
    assert app(folder, "/dev/video7", "61x45", "6", environment=environment) == wanted
    assert "gives no frames any more" in app(folder, "/dev/video7", "61x45", "7", status=1, environment=environment)
    assert "/dev/video77: cannot be opened" in app(folder, "/dev/video77", status=1)


def heard(folder: Path, path: Path) -> str:
    """The lines of a sound, by the library: the decision after each frame, where the class changes."""
    export, samples, lines, last = load_export(folder), read_wav(path), [], -1
    for frames in range(1, (len(samples) - 256) // 128 + 2):
        end = 256 + (frames - 1) * 128
        (scores,) = export.run_raw(export.from_audio(samples[:end]))
        best, kind = int(np.argmax(scores)), export.info.outputs[0].type
        if best != last:
            value = float(kind.dequantize(scores).ravel()[best])
            lines.append(f"{end * 100 // 8000 / 100 - 0:.2f} s {best} {number(value, 3)}\n")
            last = best
    return "".join(lines)


def same_lines(got: str, wanted: str) -> bool:
    """The same texts; scores may differ by rounding in the last place."""
    pairs = [(a.split(), b.split()) for a, b in zip(got.splitlines(), wanted.splitlines(), strict=True)]
    return all(a[:-1] == b[:-1] and abs(float(a[-1]) - float(b[-1])) < 0.0011 for a, b in pairs)


def test_results_of_the_api(home, tmp_path):
    """`pipeline` in Python's integers is that of the compiled export, for images and sounds of any size; the float model takes them too."""
    need("g++", "make")
    for model, data, words, raw in (
        ("detector.onnx", "pictures", {"input_format": "yuyv", "post": CAMERA[-8]}, np.asarray(Image.open("pictures/1.ppm"))),
        ("words.onnx", "sounds", {"audio": AUDIO}, read_wav(Path("sounds/4.wav"))),
    ):
        options = n2d2py.LoadOptions(**words)
        result = n2d2py.export(model, "CPP", data=data, folder=tmp_path / data, load_options=options)
        compiled, floats = load_export(result.folder), n2d2py.load(model, options=options)
        parts = [raw[: len(raw) * n // 4] for n in (2, 4)]
        assert all(np.array_equal(result.pipeline(part), compiled.pipeline(part)) for part in parts)
        assert 'id="pipeline"' in result.report.read_text(encoding="utf-8")
        real, integers = floats.pipeline(raw), result.pipeline(raw)
        if model == "words.onnx":
            assert abs(real - integers).max() < 0.05 * np.ptp(real)
        else:
            assert integers and [one.label for one in real][:1] == [one.label for one in integers][:1]
    with pytest.raises(ArrayError, match="does not convert frames"):
        compiled.from_frame(np.zeros((2, 3), np.uint8), 1)


def test_sounds(home):
    """A line where the class changes, with the time; the same from a WAV file and from raw samples."""
    folder, files = built(home, "microphone", *MICROPHONE), [Path("sounds") / f"{number}.wav" for number in (0, 3, 7)]
    for file in files:
        printed = app(folder, str(file))
        assert same_lines(printed, heard(folder, file)) and app(folder, "-", given=read_wav(file).tobytes()) == printed
    assert len({app(folder, str(file)) for file in files}) == 3
    export, samples = load_export(folder), read_wav(files[0])
    wanted = export.info.outputs[0].type.dequantize(np.asarray(export.run_raw(export.from_audio(samples))))
    np.testing.assert_array_equal(export.pipeline(samples), wanted.reshape(1, 10))
    write_wav(Path("stereo.wav"), read_wav(files[0]), 8000, 2)
    write_wav(Path("fast.wav"), read_wav(files[0]), 16000)
    for name in ("stereo.wav", "fast.wav", "words.onnx"):
        assert "is not a WAV file" in app(folder, name, status=1)


def test_samples_of_a_sensor(home):
    folder, x = built(home, "sensor", *SENSOR), np.load("x.npy")
    text = "".join(",".join(f"{value:.9g}" for value in row) + "\n" for row in x)
    export = load_export(folder)
    best = np.argmax(np.asarray(export(x)), -1)
    printed = app(folder, given=text.encode())
    assert [int(line.split()[0]) for line in printed.splitlines()] == best.ravel().tolist() and len(set(best.ravel())) > 2
    scores = [float(line.split()[1]) for line in printed.splitlines()]
    np.testing.assert_allclose(scores, np.asarray(export(x)).max(-1).ravel(), atol=0.00051)
    assert "line 2 has 3 numbers instead of 6" in app(folder, given=b"1 2 3 4 5 6\n1;2;3\n", status=1)


@pytest.mark.parametrize("kind, core", ON_BOARDS)
def test_boards_print_the_same(home, kind, core):
    """In QEMU, from a file by semihosting; compiled without warnings."""
    need_core(core)
    words = {"camera": CAMERA, "microphone": MICROPHONE, "sensor": SENSOR}[kind]
    host, folder = built(home, kind, *words), exported(home, kind + "_mcu", *words, "-export", "CPP_MCU")
    make_board(folder, core, "OPT=-O0", "app")
    if kind == "sensor":
        x = np.load("x.npy")
        load_export(host).info.inputs[0].type.quantize(x).tofile("x.bin")
        files = {"x.bin": app(host, given="".join(" ".join(map(str, row)) + "\n" for row in x.tolist()).encode())}
    else:
        files = {
            str(path): app(host, str(path)) for path in sorted(Path("pictures" if kind == "camera" else "sounds").iterdir())[:3]
        }
    for name, wanted in files.items():
        assert make_board(folder, core, "-s", "OPT=-O0", f"INPUT={home / name}", "run_app") == wanted
    assert "cannot be opened" in compiled(folder, core, "-s", "OPT=-O0", "INPUT=none", "run_app").stdout


@pytest.mark.parametrize(
    "words, problem",
    [
        (
            ["sensor.onnx", "-export", "CPP", "-calib-data", "x.npy", "-app", "camera"],
            "give -input-format and images, or -app sensor",
        ),
        ([*MICROPHONE, "-export", "CPP", "-app", "sensor"], "the input is not that of a sensor; use -app microphone"),
        ([*SENSOR, "-export", "TFLite"], "TFLite contains no applications; use -export CPP or "),
        ([*CAMERA[:7], "-export", "CPP"], "no output has one value for each class"),
    ],
)
def test_applications_that_are_refused(words, problem, capsys):
    assert main([*words, "-o", "none"]) == 1
    printed = capsys.readouterr().err
    assert "E707" in printed and problem in printed and not Path("none").exists()


@pytest.mark.slow
def test_a_page_in_a_browser(home):
    """The page computes what the program on this machine does, and asks the network for nothing."""
    need(CLANG)
    folder = built(home, "camera", *CAMERA)
    pictures = sorted(Path("pictures").iterdir())[:3]
    wanted = [app(folder, str(picture)) for picture in pictures]
    make(folder, "clean")
    make(folder, "TARGET=wasm32-simd", f"CXX={CLANG}", "OPT=-O1", "page")
    with browser() as window:
        window.open(folder / "web" / "index.html")
        for picture, lines in zip(pictures, wanted, strict=True):
            png = home / f"{picture.stem}.png"
            Image.open(picture).save(png)
            window.find("input").send_keys(str(png))
            window.until(lambda lines=lines: window.find("#result").text == lines.strip())
        assert window.complaints() == [] and all(url.startswith(("file:", "blob:")) for url in window.requests())
