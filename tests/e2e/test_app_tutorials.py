"""The tutorials of applications: their commands print what the pages show, on this machine and on boards."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support import pages
from support.board_export import SHARED, need_core
from support.programs import need

pytestmark = pytest.mark.slow


def from_person_detection(folder: Path) -> None:
    for line in (SHARED / "vww" / "labels.txt").read_text().splitlines():
        name, label = line.split()
        place = folder / "images" / ("non-person", "person")[int(label)]
        place.mkdir(parents=True, exist_ok=True)
        (place / Path(name).name).symlink_to(SHARED / "vww" / name)
    (folder / "vww_96.onnx").symlink_to(SHARED / "models" / "vww_96.onnx")
    first = min((folder / "images" / "person").iterdir())
    Image.open(first).resize((320, 240)).save(folder / "photo.ppm")


def from_object_detection(folder: Path) -> None:
    (folder / "images").mkdir()
    (folder / "yolo.onnx").symlink_to(SHARED / "modern" / "yolo" / "yolo.ts.onnx")
    for number, canvas in enumerate(np.load(SHARED / "modern" / "yolo" / "calib.npy")):
        image = Image.fromarray((canvas[0].clip(0, 1) * 255).round().astype(np.uint8))
        image.save(folder / ("photo.pgm" if number == 0 else f"images/{number}.png"))


@pytest.mark.parametrize(
    "page, prepare", [("person_detection", from_person_detection), ("object_detection", from_object_detection)]
)
def test_images(page, prepare, tmp_path):
    check(page, prepare, tmp_path)


def test_keywords(tmp_path):
    need("espeak-ng")
    pytest.importorskip("torch")
    check("keywords", None, tmp_path)


def check(page, prepare, folder):
    """The last two commands run on boards."""
    for core in ("cortex-m4", "cortex-m55"):
        need_core(core)
    if prepare and not SHARED.is_dir():
        pytest.skip(f"{SHARED} is not there")
    if prepare:
        prepare(folder)
    *_, host, boards = pages.run_page(f"tutorials/{page}.md", folder)
    shown = pages.texts(f"tutorials/{page}.md")[0]
    # scores, so the order of boxes and gaps between words, depend on the training and the calibration, and these on the processor
    classes = [[line.split()[2 if page == "keywords" else 0] for line in text.splitlines()] for text in (host, shown)]
    classes = [[one for one in each if one != "none"] if page == "keywords" else sorted(each) for each in classes]
    assert classes[0] == classes[1], host
    assert boards == 2 * host
