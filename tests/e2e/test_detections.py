"""-post: outputs as detections, the same in Python, in a library and in a frame of a camera."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from PIL import Image
from support.board_export import SHARED, make, need_core
from support.detection_cases import reference, save_detector
from support.e2e_run import run
from support.onnx_models import runtime_outputs, text_model
from support.programs import need

from n2d2py import load_export
from n2d2py.arithmetic import FLOAT32
from n2d2py.arithmetic.frame import FrameSource
from n2d2py.arithmetic.pixel_formats import FORMATS
from n2d2py.cli import main
from n2d2py.graph.port import TensorInfo
from n2d2py.postprocessing import recognized
from n2d2py.reference.engine import FloatEngine
from n2d2py.runtime import ArrayError
from n2d2py.stages.load import load_stage
from n2d2py.stages.options import LoadOptions
from n2d2py.stages.score_decisions import detector_of


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.random.default_rng(1).uniform(0, 1, (24, 3, 24, 32)).astype(np.float32))
    Path("names.txt").write_text("cat\ndog\nbird\n")
    return tmp_path


WORDS = ["-calib-data", "x.npy", "-db-export", "2", "-quiet", "-o", ".", "-class-names", "names.txt"]


@pytest.mark.parametrize(
    "order, two, sigmoid, bits",
    [
        ("boxes last", False, True, 8),
        pytest.param("boxes last", True, False, 8, marks=pytest.mark.slow),
        pytest.param("boxes first", False, True, 16, marks=pytest.mark.slow),
        pytest.param("boxes first", False, False, -32, marks=pytest.mark.slow),
    ],
)
def test_a_library_detects(home, order, two, sigmoid, bits):
    need("g++", "make")
    save_detector("net.onnx", order, two, sigmoid)
    post = "yolov8:threshold=0.6,iou=0.3,units=relative" + ("" if sigmoid else ",scores=logits")
    export = load_export(run("net.onnx", "-export", "CPP", "-nbbits", str(bits), *WORDS, "-post", post, out=home))
    x, detector = np.load("x.npy"), export.post
    found, outputs = export.detect(x), export._run([export.info.inputs[0].type.quantize(x)])
    assert detector is not None and detector.decoder.overlap == int(0.3 * 65536)
    for index, each in enumerate(found):
        assert each == detector.result(detector.decode([y[index] for y in outputs]))
        assert [one.score for one in each] == sorted((one.score for one in each), reverse=True)
        assert all(one.score > 0.6 and one.name in ("cat", "dog", "bird") and one.x1 <= 32 and one.y1 <= 24 for one in each)
    assert sum(map(len, found)) > 24
    real = export(x)
    boxes, scores = real if two else ((real[:, :4], real[:, 4:]) if order == "boxes last" else np.split(real.mT, [4], 1))
    wrong = 0
    for each, box, score in zip(found, boxes, scores, strict=True):
        wanted = reference(detector.decoder, box.T * (32, 24, 32, 24), score.T)
        near = [any(one.label == w[0] and abs(w[2] - one[3:]).max() < 1 / 16 for w in wanted) for one in each]
        wrong += near.count(False) + len(wanted) - near.count(True)
    assert wrong <= 0.02 * sum(map(len, found))  # overlaps at the limit


@pytest.mark.parametrize("target", ["CPP", pytest.param("CPP_MCU", marks=pytest.mark.slow)])
def test_boxes_relative_to_anchors(home, target):
    """The heads of an SSD: C gives Python's, which are those of the formulas in float64; the export has the anchors."""
    need("g++", "make")
    save_detector("net.onnx", two=True)
    anchors = np.random.default_rng(2).uniform(0.2, 0.5, (48, 4)).astype(np.float32)
    np.save("heads.npy", anchors)
    Path("names.txt").write_text("cat\ndog\n")
    post = "ssd:anchors=heads.npy,threshold=0.55,center=1,size=1"
    folder = run("net.onnx", "-export", target, *WORDS, "-post", post, out=home)
    if target == "CPP_MCU":
        need_core("cortex-m4")
        assert "identical" in make(folder, "cortex-m4", "test")
        return
    Path("heads.npy").unlink()
    export, x = load_export(folder), np.load("x.npy")
    found, detector = export.detect(x), export.post
    outputs = export._run([export.info.inputs[0].type.quantize(x)])
    assert detector is not None and detector.decoder.classes == 2
    wrong = 0
    for index, (each, boxes, scores) in enumerate(zip(found, *export(x), strict=True)):
        assert each == detector.result(detector.decode([y[index] for y in outputs]))
        wanted = reference(detector.decoder, boxes.T, scores.T[:, 1:])
        near = [any(one.label == w[0] and abs(w[2] - one[3:]).max() < 1 / 8 for w in wanted) for one in each]
        wrong += near.count(False) + len(wanted) - near.count(True)
    assert sum(map(len, found)) > 24 and wrong <= 0.02 * sum(map(len, found))


MAPS = {
    "keypoints:refine=quadratic": ("float[1,4,12,16] y", "y = Sigmoid(a)"),
    "centernet:threshold=0.5,offsets=second": (
        "float[1,4,12,16] y, float[1,2,12,16] o, float[1,2,12,16] z",
        "y = Sigmoid(a)\n o = Sigmoid(b)\n z = Exp(b)",
    ),
    "segmentation": ("float[1,4,12,16] y", "y = Softmax<axis=1>(a)"),
}


@pytest.mark.parametrize("post", [*MAPS])
def test_outputs_that_are_maps(home, post, capsys):
    """The library gives the definition's results, which are near those of the formulas for the real outputs. -test needs labels."""
    need("g++", "make")
    outputs, body = MAPS[post]
    rng = np.random.default_rng(7)
    weights = {"w": rng.normal(0, 1, (4, 3, 3, 3)), "v": rng.normal(0, 0.5, (2, 3, 3, 3))}
    convolutions = "".join(f"{y} = Conv<pads=[1,1,1,1], strides=[2,2]>(x, {w})\n" for y, w in (("a", "w"), ("b", "v")))
    weights = {name: one.astype(np.float32) for name, one in weights.items()}
    onnx.save(text_model(f"float[1,3,24,32] x => {outputs}", convolutions + body, weights), "net.onnx")
    export, x = load_export(run("net.onnx", "-export", "CPP", *WORDS[:-2], "-post", post, out=home)), np.load("x.npy")
    stored = export._run([export.info.inputs[0].type.quantize(x)])
    found = export.postprocess(x)
    for one, wanted in zip(found, map(export.post.result, export.post.stored(stored)), strict=True):
        np.testing.assert_array_equal(one, wanted)
    (maps, *others) = real if isinstance(real := export(x), tuple) else (real,)
    if post == "segmentation":
        assert all(
            (np.take_along_axis(each, one[None].astype(int), 0) == each.max(0)).all()
            for one, each in zip(found, maps, strict=True)
        )
    elif others:
        assert sum(map(len, found)) > 24 and all(0 <= one.x0 < one.x1 <= 32 for each in found for one in each)
    else:
        for each, points in zip(maps, found, strict=True):
            rows, columns = np.unravel_index(each.reshape(4, -1).argmax(1), (12, 16))
            assert (abs(np.array([one.x for one in points]) - 2 * columns) <= 1.07).all() and len(points) == 4
            assert (abs(np.array([one.y for one in points]) - 2 * rows) <= 1.07).all()
    assert main(["net.onnx", "-export", "CPP", *WORDS[:-2], "-post", post, "-test", "-force"]) == 1
    printed = capsys.readouterr().err
    assert "E452" in printed and ("-labels" if "centernet" in post else "remove -test") in printed


INI = """[database]
Type=Numpy_Database
DataPath=x.npy
[sp]
Size=32 24 3
[net]
Input=sp
Type=ONNX
File=net.onnx
[net.Post]
Type=yolov8
Threshold=0.6
Units=relative
"""


def test_detections_in_a_frame(home):
    """The edges in a frame are those in the input, moved and scaled; C gives Python's."""
    need("g++", "make")
    from PIL import Image

    save_detector("net.onnx")
    rng = np.random.default_rng(4)
    Path("pictures").mkdir()
    frames = [rng.integers(0, 256, (60, 100, 3), np.uint8), rng.integers(0, 256, (31, 33, 3), np.uint8)]
    for number, pixels in enumerate(frames):
        Image.fromarray(pixels).save(f"pictures/{number}.png")
    words = ["-calib-data", "pictures", *WORDS[2:], "-input-format", "rgb", "-crop", "32x24"]
    export = load_export(run("net.onnx", "-export", "CPP", *words, "-post", "yolov8:threshold=0.5,units=relative", out=home))
    source, counted = FrameSource("rgb", crop=(32, 24)), 0
    assert export.contract.source == source
    for pixels in frames:
        size = pixels.shape[1::-1]
        x = export.from_frame(FORMATS["rgb"].encode(pixels), size[0])
        margins = [round((whole - part) / 2) for whole, part in zip(size, (32, 24), strict=True)]
        for plain, moved in zip(export.detect(x)[0], export.detect(x, size)[0], strict=True):
            assert moved.x0 - plain.x0 == moved.x1 - plain.x1 == margins[0] and moved.y0 - plain.y0 == margins[1]
            counted += 1
    assert counted > 3


def test_an_ini_detects(home, capsys):
    """A section .Post is -post; other exports say that they leave it out."""
    pytest.importorskip("onnxruntime")
    save_detector("net.onnx")
    Path("net.ini").write_text(INI)
    words = ["net.ini", "-calib", "8", "-nbbits", "8", "-db-export", "0", "-o", "."]
    assert main([*words, "-export", "ONNX"]) == 0
    assert "W704" in capsys.readouterr().err
    Path("net.ini").write_text(INI.replace("Units=", "Unit="))
    assert main([*words, "-export", "ONNX"]) == 0
    assert "Unit" in (printed := capsys.readouterr().err) and "W102" in printed
    Path("net.ini").write_text(INI.replace("yolov8", "yolov7"))
    assert main([*words, "-export", "ONNX"]) != 0
    assert "net.ini:11 [net.Post]" in capsys.readouterr().err


def test_a_board_detects(home):
    """The library of a microcontroller has the function, without floating point."""
    save_detector("net.onnx")
    folder = run("net.onnx", "-export", "CPP_MCU", *WORDS, "-post", "yolov8:units=relative,max=8", out=home)
    assert "identical" in make(folder, "cortex-m4", "test")
    assert "net_DETECTIONS = 8" in (folder / "include" / "net.h").read_text()
    assert "RealScale x()" not in (folder / "dnn" / "src" / "post.cpp").read_text()


@pytest.mark.parametrize(
    "post, code, text",
    [
        ("yolov3", "E003", "the kind 'yolov3' is unknown"),
        ("yolov8:iuo=0.5", "E003", "the key 'iuo' is unknown; did you mean 'iou'?"),
        ("yolov8:iou=2", "E003", "iou=2 is above 1"),
        ("yolov8:iou=0.3,iou=0.4", "E003", "iou is given twice"),
        ("yolov8:", "E003", "'' is not KEY=VALUE; write yolov8:KEY=VALUE,... or yolov8 alone"),
        ("yolov10:iou=0.5", "E003", "iou has no effect on yolov10"),
        ("ssd", "E003", "anchors is missing; add anchors=..."),
        ("ssd:anchors=x.npy,background=0", "E460", "the anchors x.npy are not 48x4 real numbers"),
        ("yolov5", "E460", "3 class names do not fit the output 'y' of 1x7x48"),
        ("scores", "E460", "has not one score for each class"),
        ("keypoints", "E460", "the output 'y' of 1x7x48 has no maps"),
        ("centernet", "E460", "the model has 1 outputs instead of heat maps, sizes and offsets"),
    ],
)
def test_what_is_refused(home, post, code, text, capsys):
    save_detector("net.onnx")
    assert main(["net.onnx", "-export", "CPP", *WORDS, "-post", post]) != 0
    printed = capsys.readouterr().err
    assert code in printed and text in printed


@pytest.mark.parametrize(
    "shape, names, kind",
    [
        ((1, 84, 84), (), None),
        ((1, 7, 84), (), "yolov8"),
        ((1, 7, 84), ("a", "b", "c"), "yolov8"),
        ((1, 7, 84), ("a", "b"), None),
        ((1, 84, 8), (), "yolox"),
        ((1, 252, 8), ("a", "b", "c"), "yolov5"),
        ((1, 252, 4), (), None),
        ((1, 8, 83), (), None),
    ],
)
def test_heads_that_are_recognized(shape, names, kind):
    """64x64 pixels: 64 + 16 + 4 cells."""
    ends = [[TensorInfo("t", dims, FLOAT32)] for dims in ((1, 3, 64, 64), shape)]
    assert recognized(*ends, names) == kind


@pytest.mark.parametrize(
    "shapes, names, post",
    [
        ([(1, 1917, 4), (1, 1917, 91)], (), "ssd:anchors=..."),
        ([(1, 400, 3), (1, 400, 4)], ("a", "b"), "ssd:anchors=..."),
        ([(1, 400, 3), (1, 400, 4)], ("a",), None),
        ([(1, 300, 4), (1, 300, 80)], (), None),  # a transformer
        ([(1, 84, 4), (1, 84, 80)], (), None),  # the grids of YOLO
        ([(1, 400, 4), (1, 399, 3)], (), None),
        ([(1, 80, 16, 16), (1, 2, 16, 16), (1, 2, 16, 16)], (), "centernet"),
        ([(1, 80, 16, 16), (1, 2, 16, 16), (1, 2, 8, 8)], (), None),
    ],
)
def test_heads_of_several_outputs(shapes, names, post):
    outputs = [TensorInfo(f"y{at}", shape, FLOAT32) for at, shape in enumerate(shapes)]
    assert recognized([TensorInfo("x", (1, 3, 64, 64), FLOAT32)], outputs, names) == post


def test_a_network_without_detections(home):
    need("g++", "make")
    save_detector("net.onnx")
    export = load_export(run("net.onnx", "-export", "CPP", *WORDS[:-2], out=home))
    with pytest.raises(ArrayError, match="no post-processing"):
        export.detect(np.load("x.npy"))


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="real models and data are not in ../shared/data")
def test_the_digits_of_a_trained_detector(tmp_path):
    """The kernels give Python's detections on 100 images, and nearly all of those of the float network."""

    need("g++", "make")
    folder = SHARED / "modern" / "yolo"
    (tmp_path / "names.txt").write_text("\n".join("0123456789"))
    words = ["-calib-data", str(folder / "calib.npy"), "-db-export", "0", "-quiet", "-quality", "best", "-o", str(tmp_path)]
    words += ["-post", "yolov5:threshold=0.25", "-class-names", str(tmp_path / "names.txt")]
    export = load_export(run(str(folder / "yolo.ts.onnx"), "-export", "CPP", *words, out=tmp_path))
    x = np.load(folder / "eval.npz")["x"]
    found = export.detect(x)
    detector, outputs = export.post, export._run([export.info.inputs[0].type.quantize(x)])
    assert detector is not None
    assert found == [detector.result(detector.decode([y[index] for y in outputs])) for index in range(len(x))]
    real = runtime_outputs(folder / "yolo.ts.onnx", x)[0]
    best = real[:, 4] * real[:, 5:].max(1)
    hits = 0
    for at, each in enumerate(found):
        box = best[at].argmax()
        corners = np.clip([*(real[at, :2, box] - real[at, 2:4, box] / 2), *(real[at, :2, box] + real[at, 2:4, box] / 2)], 0, 64)
        label = real[at, 5:, box].argmax()
        hits += any(one.label == label and abs(corners - np.array(one[3:])).max() < 0.5 for one in each)
    assert hits >= 95


def test_the_score_of_a_detector(home, capsys):
    """mAP of floating point is 100 % against its own detections; that of the compiled export is the simulated one."""
    need("g++", "make")
    save_detector("net.onnx")
    rng = np.random.default_rng(0)
    Path("images").mkdir()
    for name in "abcd":
        Image.fromarray(rng.integers(0, 256, (24, 32, 3), dtype=np.uint8)).save(f"images/{name}.png")
    words = ["-calib-data", "images", "-class-names", "names.txt", "-quiet", "-o", "."]
    post = ["-post", "yolov8:threshold=0.6,iou=0.3,units=relative"]
    for given in (post, ["-labels", "boxes.json"]):
        Path("boxes.json").write_text(json.dumps(of_coco({"a.png": [(0, 0, 0, 4, 4)]})))
        assert main(["net.onnx", *words, *given, "-test"]) == 1 and "E452" in capsys.readouterr().err
    network = load_stage(Path("net.onnx"), LoadOptions(class_names=("cat", "dog", "bird"), post=post[1]))
    detector = detector_of(network, network.graph)
    found = {}
    for name in "abcd":
        x = np.asarray(Image.open(f"images/{name}.png"), np.float32).transpose(2, 0, 1)[None] / 255
        y = FloatEngine(network.graph).run(x)["y"][0]
        found[f"{name}.png"] = [(one.label, one.x0, one.y0, one.x1, one.y1) for one in detector.result(detector.decode([y]))]
    assert sum(map(len, found.values())) > 4
    Path("boxes.json").write_text(json.dumps(of_coco(found)))
    folder = run("net.onnx", "-export", "CPP", *words, *post, "-labels", "boxes.json", "-test", out=home)
    scores = json.loads((folder / "statistics/summary.json").read_text())["scores"]
    assert scores["float"] == pytest.approx(100) and 20 < scores["simulated"] <= 100
    assert scores["compiled"] == scores["simulated"]


def of_coco(boxes: dict[str, list[tuple[float, ...]]]) -> dict[str, list[dict]]:
    """Annotations as those of COCO of the boxes (class, left, top, right, bottom) of images."""
    annotations = [
        {"image_id": image, "category_id": label, "bbox": [x0, y0, x1 - x0, y1 - y0]}
        for image, each in boxes.items()
        for label, x0, y0, x1, y1 in each
    ]
    categories = [{"id": label, "name": name} for label, name in enumerate(("cat", "dog", "bird"))]
    return {"images": [{"id": name, "file_name": name} for name in boxes], "annotations": annotations, "categories": categories}
