"""From an ONNX file and a folder of pictures to scores in one command, and the same from Python."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from PIL import Image
from support.errors import refused
from support.onnx_models import text_model
from support.tables import every

import n2d2py
from n2d2py import log
from n2d2py.cli import main
from n2d2py.data.preprocessing import Preprocessing, centre_crop, resize_antialiased, shorter_side
from n2d2py.errors import N2D2Error
from n2d2py.options import read_command
from n2d2py.pipeline import load_network
from n2d2py.stages.input_options import read_metadata

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="real models and data are not in ../shared/data")


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """The digits of the repository that test, as class folders of PNG of 32x32."""
    log.setup(quiet=True)
    network = load_network(*read_command([str(ROOT / "models" / "MobileNet.ini"), "-seed", "1", "-w", "/dev/null", "-test"]))
    stimuli = network.data.sets["Test"].sample_evenly(60)
    folder = tmp_path_factory.mktemp("digits")
    for x, labels, _ in stimuli.batches(60):
        for number, (picture, label) in enumerate(zip(x, labels, strict=True)):
            (folder / str(label)).mkdir(exist_ok=True)
            Image.fromarray(np.rint(picture[0] * 255).astype(np.uint8)).save(folder / str(label) / f"{number:03}.png")
    assert sorted(path.name for path in folder.iterdir()) == [str(digit) for digit in range(10)]
    return folder


def of_run(capsys, words, status=0):
    """stdout and stderr of the command."""
    assert main([str(word) for word in words]) == status
    found = capsys.readouterr()
    return found.out, found.err


def rate(text, row):
    (found,) = re.findall(rf"^{row}\s+\d+\s+([\d.]+)%", text, re.MULTILINE)
    return float(found)


@pytest.mark.slow  # the fast run has the tutorial of these commands
def test_one_command_to_scores(digits, tmp_path, capsys):
    """Class folders label the pictures, and they calibrate without -calib."""
    network = ROOT / "models" / "MobileNet.onnx"
    out, err = of_run(capsys, [network, "-export", "CPP", "-calib-data", digits, "-test", "-db-export", "10", "-o", tmp_path])
    assert "input: 32x32 gray, float 0..1 from uint8 by x/255, 60" in err
    assert "classes: 0 = 0, 1 = 1, 2 = 2" in err and "(sorted folder names)" in err
    assert "calibration: 60 " in err and "warning" not in err
    assert rate(out, "float") > 90 and rate(out, "simulated int8") > 90 and "compiled" in out
    manifest = json.loads((tmp_path / "export_CPP_int8" / "manifest.json").read_text())
    assert manifest["options"]["calib"] == 128


def test_a_wrong_range_is_found_by_the_score(digits, tmp_path, capsys):
    words = [ROOT / "models" / "MobileNet.onnx", "-test", "-calib-data", digits, "-o", tmp_path]
    out, err = of_run(capsys, [*words, "-scale", "0.000001"])
    assert "W409" in err and "-mean, -std and -scale" in err and rate(out, "float") < 40
    assert "W409" not in of_run(capsys, words)[1]


def test_the_digits_of_the_ini_give_no_warning(tmp_path, capsys):
    _, err = of_run(capsys, [ROOT / "models" / "MobileNet.ini", "-w", "/dev/null", "-test", "-nb-test", "60", "-o", tmp_path])
    assert "W4" not in err


def test_the_same_from_python(digits, tmp_path):
    options = n2d2py.LoadOptions(scale=1 / 255, class_names=tuple("zero one two three four five six seven eight nine".split()))
    net = n2d2py.load(ROOT / "models" / "MobileNet.onnx", options=options)
    scores = n2d2py.score(net, digits, folder=tmp_path)
    assert scores.float is not None and scores.float.top1 is not None and scores.float.top1 > 90
    assert scores.float.classes[:2] == ("zero", "one")
    shifted = tmp_path / "labels.csv"
    files = sorted(path.relative_to(digits).as_posix() for path in digits.rglob("*.png"))
    shifted.write_text("image,label\n" + "".join(f"{name},{(int(name[0]) + 1) % 10}\n" for name in files))
    log.setup(quiet=True)
    assert n2d2py.score(net, digits, shifted).float.top1 < 10
    assert [one.code for one in log.warnings_seen()] == ["W410"]


@pytest.fixture
def net(tmp_path, monkeypatch):
    """A network of one 1x1 convolution that gives the mean of each channel, and pictures a to f of one colour each."""
    monkeypatch.chdir(tmp_path)
    weights = np.eye(3, dtype=np.float32).reshape(3, 3, 1, 1)
    body = "c = Conv (x, w) p = GlobalAveragePool (c) y = Flatten (p)"
    model = text_model("float[1,3,4,6] x => float[1,3] y", body, {"w": weights})
    onnx.save(model, "net.onnx")
    rng = np.random.default_rng(3)
    for index, name in enumerate("abcdef"):
        path = Path("pictures") / ("red", "green", "blue")[index % 3] / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (9 + index, 14, 3), np.uint8)).save(path)
    return model


def data_of(*words):
    """The data of net.onnx with these words."""
    log.setup(quiet=True)
    return load_network(*read_command(["net.onnx", "-test", "-calib-data", *words])).data


def values(data, name="Validation"):
    return next(iter(data.sets[name].batches(99)))[0]


def test_torchvision_s_preprocessing(net):
    """Against the formulas of Resize, CenterCrop, ToTensor and Normalize, written out here."""
    mean, std = np.float64([0.485, 0.456, 0.406]), np.float64([0.229, 0.224, 0.225])
    made = data_of("pictures", "-resize", "7", "-crop", "6x4", "-mean", "0.485,0.456,0.406", "-std", "0.229,0.224,0.225")
    for name, found in zip(made.sets["Validation"].names, values(made), strict=True):
        image = Image.open(Path("pictures") / name)
        assert image.height <= image.width
        image = image.resize((7 * image.width // image.height, 7), Image.Resampling.BILINEAR)
        left, top = round((image.width - 6) / 2), round((image.height - 4) / 2)
        pixels = np.asarray(image.crop((left, top, left + 6, top + 4))) / 255
        np.testing.assert_allclose(found, ((pixels - mean) / std).transpose(2, 0, 1), atol=1e-5)
    implied = values(data_of("pictures", "-resize", "7", "-scale", "1", "-bgr"))
    plain = values(data_of("pictures", "-resize", "7", "-crop", "6x4", "-input-range", "0:255"))
    np.testing.assert_array_equal(implied, plain[:, ::-1])
    pixels = made.contract.pixels
    assert pixels is not None and pixels.order == (0, 1, 2) and made.contract.order == "RGB"
    np.testing.assert_allclose(np.float64(pixels.factors) * 255, 1 / std)
    np.testing.assert_allclose(pixels.offsets, -mean / std)


def test_antialiasing_is_a_triangle_as_wide_as_the_reduction():
    """Each output pixel of a row is the mean of its inputs, weighted by the distance from its centre."""
    row = np.random.default_rng(1).integers(0, 256, 30)
    found = resize_antialiased(np.repeat(row[None, :, None], 4, axis=0).astype(np.uint8), 10, 4)[0, :, 0]
    for place, value in enumerate(found):
        weights = np.maximum(0, 1 - np.abs((np.arange(30) + 0.5) - (place + 0.5) * 3) / 3)
        assert abs(value - (weights * row).sum() / weights.sum()) <= 1


@pytest.mark.parametrize("size, wanted", [((500, 375), (341, 256)), ((375, 500), (256, 341)), ((256, 256), (256, 256))])
def test_the_shorter_side_and_the_centre(size, wanted):
    assert shorter_side(*size, 256) == wanted
    picture = np.arange(9 * 8).reshape(9, 8, 1)
    np.testing.assert_array_equal(centre_crop(picture, 4, 4, "p"), picture[2:6, 2:6])  # 2.5 rows are rounded to even
    assert refused(r"E407.*p is 8x9, smaller than the crop 10x4", centre_crop, picture, 10, 4, "p")
    with pytest.raises(N2D2Error, match=r"E407.*7200000x100000 pixels of the image p of 144x2"):
        Preprocessing(resize=(100000,)).resize_and_crop(np.zeros((2, 144, 3), np.uint8), "p")


@every(
    "how, text",
    [
        (Preprocessing(), "float 0..1 from uint8 by x/255"),
        (Preprocessing((-1.0, 1.0)), "float -1..1 from uint8 by x/255*2-1"),
        (Preprocessing(mean=(0.5,), std=(0.5,)), "float -1..1 from uint8 by (x/255-0.5)/0.5"),
        (Preprocessing(scale=1.0, mean=(128.0,), std=(128.0,)), "float -1..0.9922 from uint8 by (x-128)/128"),
        (Preprocessing(scale=1.0), "float 0..255 from uint8 by x"),
    ],
)
def test_the_line_says_what_is_done(how, text):
    assert how.text(3) == text
    slopes, offsets = how.slopes(1)
    bytes_ = np.arange(256, dtype=np.uint8)[None]
    np.testing.assert_allclose(how.real(bytes_)[0], bytes_[0] * slopes[0] + offsets[0], atol=1e-4)


def labels(data, name="Validation"):
    return data.sets[name].labels.tolist()


def test_lists_of_labels(net):
    """By path or by name, of blanks or CSV with or without header, as numbers or names."""
    assert labels(data_of("pictures")) == [0, 0, 1, 1, 2, 2]  # blue: c f, green: b e, red: a d
    Path("list.txt").write_text("# name label\nred/a.png 2\nb.png 1\nc.png 0\nd.png 2\ne.png 1\nf.png 0\n")
    assert labels(data_of("pictures", "-labels", "list.txt")) == [0, 0, 1, 1, 2, 2]
    Path("list.csv").write_text(
        "filename,width,label\n" + "".join(f"{one}.png,9,{'xyz'[k % 3]}\n" for k, one in enumerate("abcdef"))
    )
    found = data_of("pictures", "-labels", "list.csv")
    assert labels(found) == [2, 2, 1, 1, 0, 0] and found.classes == ("x", "y", "z")
    Path("names.txt").write_text("z\ny\nx\n")
    found = data_of("pictures", "-labels", "list.csv", "-class-names", "names.txt")
    assert labels(found) == [0, 0, 1, 1, 2, 2] and found.classes == ("z", "y", "x")
    np.savez("ids.npz", targets=np.arange(6) % 3)
    assert labels(data_of("pictures", "-labels", "ids.npz")) == [0, 1, 2, 0, 1, 2]


def test_pictures_without_a_label_calibrate_only(net):
    Path("list.txt").write_text("a.png;1\nd.png;0\n")
    found = data_of("pictures", "-labels", "list.txt")
    assert labels(found, "Test") == [1, 0] and len(found.sets["Validation"]) == 6
    assert found.sets["Test"].names == ["red/a.png", "red/d.png"]


def test_folders_by_the_names_of_classes(net):
    Path("names.txt").write_text("red\ngreen\nblue\n")
    assert labels(data_of("pictures", "-class-names", "names.txt")) == [2, 2, 1, 1, 0, 0]
    Path("names.txt").write_text("first\nsecond\nthird\n")
    assert labels(data_of("pictures", "-class-names", "names.txt")) == [0, 0, 1, 1, 2, 2]


def test_numbers_as_folders_are_sorted_as_texts(tmp_path, net):
    """As torchvision's ImageFolder does: sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())."""
    for name, source in (("1", "red"), ("2", "green"), ("10", "blue")):
        shutil.copytree(f"pictures/{source}", f"numbered/{name}")
    found = data_of("numbered")
    assert found.classes == ("1", "10", "2") and labels(found) == [0, 0, 1, 1, 2, 2]
    (warning,) = log.warnings_seen()
    assert warning.code == "W412" and "'10'" in warning.line() and "-class-names" in warning.line()
    Path("names.txt").write_text("1\n2\n10\n")
    assert labels(data_of("numbered", "-class-names", "names.txt")) == [0, 0, 2, 2, 1, 1] and not log.warnings_seen()
    shutil.move("numbered/10", "numbered/3")
    data_of("numbered")
    assert not log.warnings_seen()


@every("keys", [("x", "y"), ("images", "labels"), ("data", "targets"), ("image", "label"), ("x_test", "y_test"), ("a", "y")])
def test_the_usual_keys_of_arrays(net, keys):
    x = np.random.default_rng(2).integers(0, 256, (5, 3, 4, 6), np.uint8)
    np.savez("data.npz", **{keys[0]: x, keys[1]: np.arange(5) % 3})
    found = data_of("data.npz", "-scale", "1/255")
    assert labels(found, "Test") == [0, 1, 2, 0, 1]
    np.testing.assert_allclose(values(found), x / 255, atol=1e-6)


def test_arrays_with_channels_last(net):
    x = np.random.default_rng(2).integers(0, 256, (5, 4, 6, 3), np.uint8)
    np.save("data.npy", x)
    np.testing.assert_allclose(values(data_of("data.npy", "-layout", "nhwc")), x.transpose(0, 3, 1, 2) / 255, atol=1e-6)


def test_metadata_say_range_colours_and_names(net):
    for key, value in {
        "Image.BitmapPixelFormat": "Bgr8",
        "Image.NominalPixelRange": "NominalRange_0_255",
        "names": "{0: 'red', 1: 'green', 2: 'blue'}",
    }.items():
        net.metadata_props.add(key=key, value=value)
    plain = values(data_of("pictures"))
    onnx.save(net, "net.onnx")
    found = data_of("pictures")
    assert found.classes == ("red", "green", "blue") and labels(found) == [2, 2, 1, 1, 0, 0]
    np.testing.assert_allclose(values(found), plain[:, ::-1] * 255, atol=1e-3)
    np.testing.assert_allclose(values(data_of("pictures", "-input-range", "0:1")), plain[:, ::-1], atol=1e-6)
    np.save("reals.npy", np.random.default_rng(1).random((4, 3, 4, 6), np.float32))
    data_of("reals.npy")
    (warning,) = log.warnings_seen()
    assert warning.code == "W411" and "0 to 255" in warning.line()
    np.save("reals.npy", 255 * np.random.default_rng(1).random((4, 3, 4, 6), np.float32))
    data_of("reals.npy")
    assert not log.warnings_seen()


@every("text", ["", "[", "{0: 'a', 2: 'b'}", "3", "__import__('os')"])
def test_names_that_are_none(text):
    assert read_metadata({"names": text}).names == ()


@every("words", [("-resize", "8"), ("-bgr",), ("-mean", "0.5"), ("-labels", "list.txt")])
def test_options_that_do_not_apply_to_arrays(net, words):
    np.save("reals.npy", np.zeros((2, 3, 4, 6), np.float32))
    Path("list.txt").write_text("a.png 1\n")
    assert refused("E417|E410", data_of, "reals.npy", *words)


def test_preparing_pictures_is_not_for_several_inputs(tmp_path, capsys):
    text = (
        '<ir_version: 8, opset_import: ["": 17]> g (float[1,3,4,4] a, float[1,3,4,4] b) => (float[1,3,4,4] y) { y = Add(a, b) }'
    )
    onnx.save(onnx.parser.parse_model(text), tmp_path / "two.onnx")
    x = np.zeros((4, 3, 4, 4), np.float32)
    np.savez(tmp_path / "x.npz", a=x, b=x)
    words = [str(tmp_path / "two.onnx"), "-calib-data", str(tmp_path / "x.npz"), "-test", "-mean", "0.5", "-bgr"]
    assert main(words) == 1
    assert "E417: -calib-data: -mean, -bgr " in capsys.readouterr().err


def test_options_that_do_not_apply_to_an_ini_or_without_data():
    network = str(ROOT / "models" / "MobileNet.ini")
    log.setup(quiet=True)
    assert refused("E007: -mean .*-calib-data", read_command, [network, "-test", "-mean", "0.5"])
    with pytest.raises(N2D2Error, match="E007: -crop "):
        load_network(*read_command([network, "-test", "-calib-data", "d", "-crop", "8"]))


@pytest.mark.slow
@needs_shared
def test_resnet8_on_its_class_folders(tmp_path, capsys):
    words = [SHARED / "models" / "resnet8.onnx", "-export", "CPP", "-calib-data", SHARED / "cifar10" / "test", "-scale", "1"]
    out, err = of_run(capsys, [*words, "-test", "-nb-test", "100", "-db-export", "10", "-quality", "fast", "-o", tmp_path])
    assert "input: 32x32 RGB, float 0..255 from uint8 by x, 1000" in err
    assert "0 = airplane, 1 = automobile" in err and "calibration: 128 " in err and "W4" not in err
    assert rate(out, "float") > 65 and rate(out, "simulated int8") > 65


@needs_shared
def test_a_list_of_labels_and_the_background_class(tmp_path, capsys):
    """The labels of the list leave out the background class of the network."""
    folder = SHARED / "imagenet"
    words = [SHARED / "models" / "mobilenet_v1_0.5_160.onnx", "-test", "-calib-data", folder, "-nb-test", "60", "-o", tmp_path]
    words += ["-scale", "1", "-mean", "128", "-std", "128", "-crop", "224"]
    out, err = of_run(capsys, [*words, "-labels", folder / "eval.txt"])
    assert "W410" in err and "one class above their label" in err and rate(out, "float") < 10
    lines = (line.rsplit(" ", 1) for line in (folder / "eval.txt").read_text().splitlines())
    (tmp_path / "right.txt").write_text("".join(f"{name} {int(label) + 1}\n" for name, label in lines))
    out, err = of_run(capsys, [*words, "-labels", tmp_path / "right.txt"])
    assert "W4" not in err and rate(out, "float") > 50
