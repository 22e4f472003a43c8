"""-app: the programs around an export, on this machine and on boards, print what Python computes."""

import base64
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from support.audio_cases import read_wav, sounds, write_model, write_wav
from support.board_export import compiled, need_core
from support.board_export import make as make_board
from support.browser import browser
from support.detection_cases import save_detector
from support.e2e_run import run
from support.export_build import make
from support.kernel_builds import CLANG
from support.onnx_models import text_model
from support.programs import need, run_command
from support.tables import few_fast

import n2d2py
from n2d2py import load_export
from n2d2py.arithmetic.pixel_formats import FORMATS
from n2d2py.arithmetic.sensor import read_sensor
from n2d2py.cli import main
from n2d2py.exports.mcu.boards import HARDWARE
from n2d2py.options import read_command
from n2d2py.pipeline import load_network
from n2d2py.runtime import ArrayError

ON_BOARDS = [
    pytest.param(kind, core, marks=[pytest.mark.slow] * (core != "cortex-m4" or kind in ("camera-nv12", "sensor")))
    for kind in ("camera", "camera-nv12", "microphone", "sensor")
    for core in ("cortex-m4", "cortex-m55", "rv32imc")
]
COMMON = ["-quality", "fast", "-act-rescaling-mode", "Fixed-point-p32", "-quiet", "-o", "."]
CAMERA = ["detector.onnx", "-app", "camera", "-calib-data", "pictures", "-input-format", "yuyv", "-class-names", "names.txt"]
CAMERA += ["-post", "yolov8:threshold=0.6,iou=0.3,units=relative", *COMMON]
NV12 = [word if word != "yuyv" else "nv12:pad=114,flip=horizontal" for word in CAMERA]
BAYER = [word if word != "yuyv" else "gbrg:area" for word in CAMERA]
CAMERAS = {"camera": CAMERA, "camera-nv12": NV12, "camera-gbrg": BAYER}
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
    """The lines of a picture as a frame, by the library."""
    export, pixels = load_export(folder), np.asarray(Image.open(picture))
    frame = export.contract.source.layout.encode(pixels)
    (found,) = export.detect(export.from_frame(frame, pixels.shape[1]), pixels.shape[1::-1])
    assert export.pipeline(pixels) == found
    lines = [[one.name, number(one.score, 3), *(number(x, 1) for x in (one.x0, one.y0, one.x1, one.y1))] for one in found]
    return "".join(" ".join(line) + "\n" for line in lines) or "no detection\n"


@pytest.mark.parametrize("kind", few_fast(CAMERAS, 2))
def test_pictures_with_boxes(kind, home):
    """Lines for pictures and for frames without a header; the boxes are drawn around what the lines say."""
    folder = built(home, kind, *CAMERAS[kind])
    layout = load_export(folder).contract.source.layout
    pictures = sorted(Path("pictures").iterdir())
    wanted = [detected(folder, picture) for picture in pictures]
    assert len(set(wanted)) > 1
    with pytest.raises(ArrayError, match="the image has shape"):
        load_export(folder).pipeline(np.zeros((9, 9, 4), np.uint8))
    with pytest.raises(ArrayError, match=r"the image has shape \(0, 0, 3\)"):
        load_export(folder).pipeline(np.zeros((0, 0, 3), np.uint8))
    if layout.rows > 1:
        with pytest.raises(ArrayError, match="has 1 rows|is 9x1, but the sides"):
            load_export(folder).from_frame(np.zeros((1, 10), np.uint8), 9)
    assert [app(folder, str(picture)) for picture in pictures] == wanted
    frames = b"".join(layout.encode(np.asarray(Image.open(picture))).tobytes() for picture in pictures)
    assert app(folder, "-", "61x45", given=frames) == "".join(wanted)
    assert "ends within a frame" in app(folder, "-", "61x45", given=frames[:-1], status=1)
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
    Path("frames.yuyv").write_bytes(b"".join(FORMATS["yuyv"].encode(np.asarray(Image.open(one))).tobytes() for one in pictures))
    Path("camera.c").write_text(FAKE_CAMERA)
    run_command("gcc", "-shared", "-fPIC", "-O1", "-o", "camera.so", "camera.c", "-ldl")
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
        (
            "detector.onnx",
            "pictures",
            {"input_format": "yuyv:flip=vertical", "post": CAMERA[-8]},
            np.asarray(Image.open("pictures/1.ppm")),
        ),
        ("words.onnx", "sounds", {"audio": AUDIO}, read_wav(Path("sounds/4.wav"))),
    ):
        options = n2d2py.LoadOptions(**words)
        result = n2d2py.export(model, "CPP", data=data, folder=tmp_path / data, load_options=options)
        compiled, floats = load_export(result.folder), n2d2py.load(model, options=options)
        parts = [raw[: len(raw) * n // 4] for n in (2, 4)]
        assert all(np.array_equal(result.pipeline(part), compiled.pipeline(part)) for part in parts)
        _, found, page = result.report.read_text(encoding="utf-8").partition('id="pipeline"')
        real, integers = floats.pipeline(raw), result.pipeline(raw)
        if model == "words.onnx":
            assert found and abs(real - integers).max() < 0.05 * np.ptp(real)
        else:
            picture = page.partition("base64,")[2].partition('"')[0]
            shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(picture))))  # as the camera sees it
            np.testing.assert_array_equal(shown, np.asarray(Image.open("pictures/0.ppm"))[::-1])
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


def test_words_of_recordings(home, capsys):
    """Decisions in Python are those of the program; a transcript without its first word costs one extra word."""
    names = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "_noise_"]
    (home / "digits.txt").write_text("\n".join(names))
    words = [*MICROPHONE, "-class-names", "digits.txt", "-post", "scores:average=2"]
    folder, pieces = built(home, "spoken", *words), [read_wav(file) for file in sorted(Path("sounds").glob("*.wav"))]
    export, heard = load_export(folder), []
    for number, samples in enumerate((np.concatenate(pieces), np.concatenate(pieces[::-1]))):
        write_wav(Path(f"streams/{number}.wav"), samples, 8000)
        decided = [line.split()[2] for line in app(folder, f"streams/{number}.wav").splitlines()]
        labels = [one.name for one in export.stream(samples)]
        assert decided == [name for name, before in zip(labels, ["", *labels], strict=False) if name != before]
        heard.append([name for name in decided if name != "_noise_"])
        Path(f"streams/{number}.txt").write_text("# words\n" + "\n".join(heard[-1][number:]))
    assert main([*words, "-export", "CPP", "-db-export", "0", "-test", "-streams", "streams", "-o", "scored"]) == 0
    count = sum(map(len, heard)) - 1
    printed = capsys.readouterr().out
    assert count > 4 and f"word accuracy: {100 - 100 / count:.2f}%" in printed
    rows = {
        line.split()[0]: line.split()[2:] for line in printed.partition("words:")[2].splitlines() if line[:3] in ("sim", "com")
    }
    assert rows["compiled"][-6:] == rows["simulated"][-6:]
    assert f'"{" ".join(heard[0])}" "{" ".join(heard[0])}" "0.wav"' in (
        Path("scored/export_CPP_int8/statistics/words/Words_export.dat").read_text()
    )
    Path("streams/1.txt").write_text("ten")
    for options, code in ((words, "E410"), (MICROPHONE, "E007"), (CAMERA, "E007")):
        assert main([*options, "-test", "-streams", "streams"]) != 0
        assert code in capsys.readouterr().err


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


WINDOW = "window:axes=3,hop=8,unit=0.0048/0.0048/0.01,mean=0/0/9.81,std=4"


@pytest.fixture(scope="module")
def motion(home) -> Path:
    """A model of 32 samples of 3 axes, and recordings of three classes; one is shorter than a window, one has a header."""
    rng, time = np.random.default_rng(1), np.arange(120) / 50
    for at, (name, size, rate) in enumerate((("rest", 0.1, 1), ("run", 60, 4), ("walk", 3, 2))):
        (home / "records" / name).mkdir(parents=True)
        for index in range(3):
            wave = (
                size * np.sin(2 * np.pi * rate * time[:, None] + np.arange(3) + index)
                + [0, 0, 9.81]
                + rng.normal(0, 0.2, (120, 3))
            )
            text = "".join(f"{x:.5f},{y:.5f},{z:.5f}\n" for x, y, z in wave[: 20 if at == index == 0 else None])
            (home / "records" / name / f"{index}.csv").write_text(("x,y,z\n" if index else "") + text)
    weights = {"w": rng.normal(0, 0.3, (4, 3, 5)).astype(np.float32), "f": rng.normal(0, 0.1, (112, 3)).astype(np.float32)}
    body = "c = Conv(x, w)\n r = Relu(c)\n s = Reshape(r, shape)\n y = MatMul(s, f)"
    for name, sizes, before in (("motion", "3,32", ""), ("last", "32,3", "t = Transpose<perm=[0,2,1]>(x)\n ")):
        text = before + (body.replace("(x,", "(t,") if before else body)
        model = text_model(f"float[1,{sizes}] x => float[1,3] y", text, weights | {"shape": np.array([1, 112])})
        onnx.save(model, home / f"{name}.onnx")
    return home


@pytest.mark.parametrize("name, bits", few_fast([("motion", 8), ("last", 8), ("motion", 16), ("motion", -32)]))
def test_windows_of_a_sensor(motion, name, bits):
    """C++ fills the input as Python does, which is the formula in float64; the program decides at each window, on a board too."""
    need_core("cortex-m4")
    words = [f"{name}.onnx", "-nbbits", str(bits), "-calib-data", "records", "-sensor", WINDOW, "-app", "sensor", *COMMON]
    folder = built(motion, f"{name}{bits}", *words)
    export, source, rng = load_export(folder), read_sensor(WINDOW), np.random.default_rng(2)
    rows = np.loadtxt("records/run/0.csv", delimiter=",", dtype=np.float32)
    samples = source.stored(rows)
    extremes = rng.choice([-32768, -1, 0, 1, 32767], (50, 3)).astype(np.int16)
    for given in (samples, samples[:5], samples[:0], np.zeros((40, 3), np.int16), extremes):
        window = np.concatenate([np.zeros((32, 3)), given])[-32:]
        real = (window * [0.0048, 0.0048, 0.01] - [0, 0, 9.81]) / 4
        wanted = export.info.inputs[0].type.quantize((real.T if name == "motion" else real)[None].astype(np.float32))
        for piece in (0, 1, 7, 33):
            stored = export.from_sensor(given, piece)
            assert abs(stored.astype(float) - wanted).max() <= (
                1e-6 * 4e4 if bits < 0 else 1
            )  # a tie may round to its other side
            defined = source.frames_of((3, 32)).stimulus(source.real(source.latest(given, 32)), (3, 32))
            np.testing.assert_array_equal(
                stored, export.info.inputs[0].type.quantize(defined if name == "motion" else defined.T)[None]
            )
    ends = range(32, len(samples) + 1, 8)
    assert (source.each_window(samples, 32) == [source.latest(samples[:end], 32) for end in ends]).all()
    best = [int(np.argmax(export.pipeline(samples[:end]))) for end in ends]
    printed = app(folder, given=Path("records/run/0.csv").read_bytes())
    assert [int(line.split()[0]) if line[0].isdigit() else line.split()[0] for line in printed.splitlines()] == [
        export.contract.classes[one] if export.contract.classes else one for one in best
    ]
    assert "line 3 has 2 numbers instead of 3" in app(folder, given=b"x,y,z\n1,2,3\n4,5\n", status=1)
    if bits == 8:
        samples.tofile("samples.bin")
        board = exported(motion, f"{name}_mcu", *words, "-export", "CPP_MCU")
        onboard = make_board(board, "cortex-m4", "-s", "OPT=-O0", f"INPUT={motion / 'samples.bin'}", "run_app")
        assert onboard.splitlines() == printed.splitlines()[: len(samples) // 8 - 3]


@pytest.mark.parametrize(
    "window, data, code, text",
    [
        ("window:hop=8", "records", "E003", "axes is missing"),
        ("frame:axes=3", "records", "E003", "the kind 'frame' is unknown"),
        ("window:axes=3,hop=0", "records", "E003", "hop=0 is below 1"),
        ("window:axes=3,unit=1/2", "records", "E003", "unit has 2 values, but there are 3 axes"),
        ("window:axes=3,std=0", "records", "E003", "std=0 is below"),
        ("window:axes=3,mean=inf", "records", "E003", "'inf' is not a number"),
        ("window:axes=5", "records", "E417", "-sensor makes frames of 5 features, but the input is 3x32"),
        ("window:axes=3", "pairs", "E414", "has 2 numbers in a line instead of those of 3 axes"),
        ("window:axes=3", "empty", "E402", "it holds no numbers"),
        ("window:axes=3", "x.npy", "E414", "instead of samples of 3 axes"),
    ],
)
def test_sensors_that_are_refused(motion, window, data, code, text, capsys):
    for folder, content in (("pairs", "1,2\n3,4\n"), ("empty", "x,y,z\n")):
        (motion / folder).mkdir(exist_ok=True)
        (motion / folder / "a.csv").write_text(content)
    assert main(["motion.onnx", "-export", "CPP", "-calib-data", data, "-sensor", window]) != 0
    printed = capsys.readouterr().err
    assert code in printed and text in printed


@pytest.mark.parametrize("unit, text", [("0.0001", "exceed 32768 steps"), ("100/1/1", "of axis 0"), ("0.0048", "")])
def test_steps_of_a_sensor_that_do_not_fit(motion, unit, text, capsys):
    """Accelerations to 60 in steps so small that they are clipped, or so large that they become 0 or 1."""
    load_network(*read_command(["motion.onnx", "-test", "-calib-data", "records", "-sensor", f"window:axes=3,unit={unit}"]))
    printed = capsys.readouterr().err
    assert text in printed and ("W411" in printed) == bool(text)


DECIDE = ["-post", "scores:activation=softmax,top=3,threshold=0.7,release=0.5,average=2,hold=1"]


def test_decisions_of_a_sensor(home):
    """The library and the programs, on a board too, decide what Python does; probabilities are those of float64."""
    need_core("cortex-m4")
    (home / "states.txt").write_text("idle\nwalk\nrun\nfall\n")
    words = [*SENSOR, *DECIDE, "-class-names", "states.txt"]
    folder, x = built(home, "decided", *words), np.load("x.npy")
    export = load_export(folder)
    stored, found = np.asarray(export.run_raw(export.info.inputs[0].type.quantize(x))), export.postprocess(x)
    assert found == [export.post.result(one) for one in export.post.stored([stored])]
    terms = np.exp(export.info.outputs[0].type.dequantize(stored).astype(np.float64))
    shares = terms / terms.sum(1, keepdims=True)
    means = np.concatenate([shares[:1], (shares[1:] + shares[:-1]) / 2])
    for one, mean in zip(found, means, strict=True):
        for values in ([each.score for each in one.top], mean[[each.label for each in one.top]]):
            np.testing.assert_allclose(values, np.sort(mean)[:0:-1], atol=1e-4)
    names = ["none" if one.label < 0 else one.name for one in found]
    assert {"none", "idle", "run"} <= set(names) and export.pipeline(x[:1]).label == found[0].label
    pairs = [[(one.name, one.score) for one in each.top if one.label != each.label] for each in found]
    firsts = [(name, one.score) for name, one in zip(names, found, strict=True)]
    lines = [" ".join(f"{name} {number(score, 3)}" for name, score in [a, *b]) for a, b in zip(firsts, pairs, strict=True)]
    printed = app(folder, given="".join(" ".join(map(str, row)) + "\n" for row in x.tolist()).encode())
    assert printed.splitlines() == lines
    board = exported(home, "decided_mcu", *words, "-export", "CPP_MCU")
    export.info.inputs[0].type.quantize(x).tofile("x.bin")
    assert make_board(board, "cortex-m4", "-s", "OPT=-O0", f"INPUT={home / 'x.bin'}", "run_app") == printed


@pytest.mark.parametrize("post", ["keypoints", pytest.param("segmentation", marks=pytest.mark.slow)])
def test_maps_of_a_camera(home, post):
    """Points in pixels of the frame and shares of classes, in the programs as in the library."""
    need_core("cortex-m4")
    weights = {"w": np.random.default_rng(3).normal(0, 1, (3, 3, 3, 3)).astype(np.float32)}
    body = "a = Conv<pads=[1,1,1,1], strides=[2,2]>(x, w)\n y = Sigmoid(a)"
    onnx.save(text_model("float[1,3,24,32] x => float[1,3,12,16] y", body, weights), "maps.onnx")
    words = ["maps.onnx", *CAMERA[1:9], "-crop", "32x24", "-post", post, *COMMON]
    folder, board = built(home, post, *words), exported(home, post + "_mcu", *words, "-export", "CPP_MCU")
    export, picture = load_export(folder), Path("pictures/2.ppm")
    found = export.pipeline(np.asarray(Image.open(picture)))
    if post == "keypoints":
        lines = [f"{one.name} {number(one.score, 3)} {number(one.x, 1)} {number(one.y, 1)}" for one in found]
    else:
        counts = np.bincount(found.ravel(), minlength=3)
        names = ("cat", "dog", "bird")
        lines = [
            f"{name} {number(65536 * count // 192 / 65536, 3)}" for name, count in zip(names, counts, strict=True) if count
        ]
    assert app(folder, str(picture)).splitlines() == lines
    printed = make_board(board, "cortex-m4", "-s", "OPT=-O0", f"INPUT={home / picture}", "run_app")
    assert printed.splitlines() == lines


@pytest.mark.parametrize(
    "post, code, text",
    [
        ("scores:top=5", "E460", "top=5 exceeds the 4 scores"),
        ("scores:release=0.5", "E460", "release is above the threshold"),
        ("scores:threshold=2,activation=tanh", "E003", "activation=tanh"),
        ("scores:average=0", "E003", "average=0 is below 1"),
    ],
)
def test_decisions_that_are_refused(post, code, text, capsys):
    assert main([*SENSOR, "-export", "CPP", "-post", post, "-o", "none"]) != 0
    printed = capsys.readouterr().err
    assert code in printed and text in printed and not Path("none").exists()


@pytest.mark.parametrize("kind, core", ON_BOARDS)
def test_boards_print_the_same(home, kind, core):
    """In QEMU, from a file by semihosting; compiled without warnings."""
    need_core(core)
    words = {**CAMERAS, "microphone": MICROPHONE, "sensor": SENSOR}[kind]
    host, folder = built(home, kind, *words), exported(home, kind + "_mcu", *words, "-export", "CPP_MCU")
    make_board(folder, core, "OPT=-O0", "app")
    if kind == "sensor":
        x = np.load("x.npy")
        load_export(host).info.inputs[0].type.quantize(x).tofile("x.bin")
        files = {"x.bin": app(host, given="".join(" ".join(map(str, row)) + "\n" for row in x.tolist()).encode())}
    else:
        files = {
            str(path): app(host, str(path)) for path in sorted(Path("pictures" if kind in CAMERAS else "sounds").iterdir())[:3]
        }
    for name, wanted in files.items():
        assert make_board(folder, core, "-s", "OPT=-O0", f"INPUT={home / name}", "run_app") == wanted
    assert "cannot be opened" in compiled(folder, core, "-s", "OPT=-O0", "INPUT=none", "run_app").stdout


def over_serial_line(folder: Path, program: Path, machine: str, file: str) -> str:
    """What app/host.py prints when it sends a file to a board in QEMU. The board begins again for the next one."""
    command = f"qemu-system-arm -M {machine} -nographic -monitor none -serial stdio -kernel {program}".split()
    done = subprocess.run([sys.executable, folder / "app" / "host.py", file, "--", *command], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


@pytest.mark.parametrize("kind", ["sensor", pytest.param("camera", marks=pytest.mark.slow)])
def test_boards_on_the_desk(home, kind):
    """Each is built. QEMU has the serial lines of two: that of an STM32F405 and that of an nRF51."""
    need_core("cortex-m4")
    words = {"camera": CAMERA, "sensor": SENSOR}[kind]
    folder = exported(home, kind + "_mcu", *words, "-export", "CPP_MCU")
    file = {"camera": "pictures/0.ppm", "sensor": "x.bin"}[kind]
    if kind == "sensor":
        load_export(built(home, kind, *words)).info.inputs[0].type.quantize(np.load("x.npy")).tofile(file)
    wanted = make_board(folder, "cortex-m4", "-s", f"INPUT={home / file}", "run_app")
    assert wanted.count("\n") == 30 or kind == "camera"
    for one in HARDWARE if kind == "sensor" else HARDWARE[:1]:
        need_core(one.core)
        make_board(folder, one.core, "-s", f"BOARD={one.name}", "CFLAGS=-DAPP_WIDTH=61 -Werror", "app")
        build = folder / "build" / one.core
        image = (build / f"{one.name}.bin").read_bytes()
        assert len(image) < one.flash[1] + (one.external[1] if one.external else 0) and (build / f"{one.name}.hex").is_file()
        machine = {"nucleo-f446re": "netduinoplus2 -serial null", "microbit": "microbit"}.get(one.name)
        if machine:
            assert over_serial_line(folder, build / "app.elf", machine, file) == wanted


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
    """The page computes what the program on this machine does, ignores color profiles, and asks the network for nothing."""
    need(CLANG)
    folder = built(home, "camera", *CAMERA)
    pictures = sorted(Path("pictures").iterdir())[:3]
    wanted = [app(folder, str(picture)) for picture in pictures]
    make(folder, "clean")
    make(folder, "TARGET=wasm32-simd", f"CXX={CLANG}", "OPT=-O1", "page")
    linear = PngInfo()
    linear.add(b"gAMA", (100000).to_bytes(4, "big"))
    with browser() as window:
        window.open(folder / "web" / "index.html")
        for picture, lines in zip(pictures, wanted, strict=True):
            png = home / f"{picture.stem}.png"
            Image.open(picture).save(png, pnginfo=linear)
            window.find("input").send_keys(str(png))
            window.until(lambda lines=lines: window.find("#result").text == lines.strip())
        assert window.complaints() == [] and all(url.startswith(("file:", "blob:")) for url in window.requests())
