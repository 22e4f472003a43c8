"""The rows of docs/how-to/my_preprocessing.md give what the library of a training gives, by its published formula in float64."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from PIL import Image
from support.onnx_models import text_model

from n2d2py import log
from n2d2py.options import read_command
from n2d2py.pipeline import load_network

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "my_preprocessing.md"
SIZES = ((96, 96), (120, 77), (77, 200), (333, 250))
LEVEL = 1 / 255


def resized(pixels: np.ndarray, width: int, height: int) -> np.ndarray:
    """Pillow, as torchvision."""
    return np.asarray(Image.fromarray(pixels).resize((width, height), Image.Resampling.BILINEAR)).astype(float)


def bilinear(pixels: np.ndarray, width: int, height: int) -> np.ndarray:
    """Two pixels a side at the centres of pixels, without antialiasing, as OpenCV and TensorFlow."""
    for axis, size in ((0, height), (1, width)):
        at = np.clip((np.arange(size) + 0.5) * pixels.shape[axis] / size - 0.5, 0, pixels.shape[axis] - 1)
        low = np.floor(at).astype(int)
        rest = np.expand_dims(at - low, (1 - axis, 2))
        high = np.minimum(low + 1, pixels.shape[axis] - 1)
        pixels = np.take(pixels, low, axis) * (1 - rest) + np.take(pixels, high, axis) * rest
    return pixels


def cropped(pixels: np.ndarray, short: int, size: int) -> np.ndarray:
    height, width = pixels.shape[:2]
    wide, high = (short, short * height // width) if width <= height else (short * width // height, short)
    top, left = round((high - size) / 2), round((wide - size) / 2)
    return resized(pixels, wide, high)[top : top + size, left : left + size]


def boxed(pixels: np.ndarray, fill: int, resize: Callable[..., np.ndarray], down: bool = False) -> np.ndarray:
    ratio = 96 / max(pixels.shape[:2])
    sides = np.array(pixels.shape[:2]) * ratio
    height, width = np.floor(sides + 1e-9).astype(int) if down else np.rint(sides).astype(int)
    image = np.full((96, 96, 3), float(fill))
    top, left = np.floor((96 - sides + 1e-9) / 2).astype(int) if down else ((96 - height) // 2, (96 - width) // 2)
    image[top : top + height, left : left + width] = resize(pixels, width, height)
    return image


def plain(pixels: np.ndarray) -> np.ndarray:
    return bilinear(pixels, 96, 96)


IMAGES: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "torchvision: `Resize": (lambda x: (cropped(x, 256, 224) / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225], 5 * LEVEL),
    "torchvision `ToTensor`": (lambda x: plain(x) / 255, LEVEL),
    "Keras `Rescaling(1/127.5": (lambda x: plain(x) / 127.5 - 1, 2 * LEVEL),
    "Keras `preprocess_input` of VGG": (lambda x: plain(x)[:, :, ::-1] - [103.939, 116.779, 123.68], 1),
    "bytes minus 128": (lambda x: plain(x) - 128, 1),
    "OpenCV": (lambda x: plain(x)[:, :, ::-1] / 255, LEVEL),
    "Ultralytics": (lambda x: boxed(x, 114, bilinear) / 255, LEVEL),
    "TensorFlow": (lambda x: boxed(x, 0, bilinear, down=True) / 255, LEVEL),
    'Edge Impulse "squash"': (lambda x: resized(x, 96, 96) / 255, LEVEL),
    'Edge Impulse "fit shortest': (lambda x: cropped(x, 96, 96) / 255, LEVEL),
    'Edge Impulse "fit longest': (lambda x: boxed(x, 0, resized) / 255, LEVEL),
}
"""By the beginning of a row: the values (H, W, C) of an image, and how far they may be."""


def rows(heading: str) -> dict[str, list[str]]:
    """The options of each row below a heading of the page."""
    part = PAGE.read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    found = re.findall(r"^\| (?!Trained|---)(.+) \| (`.+`|none) \|$", part, re.MULTILINE)
    return {title: [] if options == "none" else options.strip("`").split() for title, options in found}


@pytest.mark.parametrize("title", IMAGES)
def test_images(title, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log.setup(quiet=True)
    (options,) = (words for row, words in rows("Images").items() if row.startswith(title))
    assert len(rows("Images")) == len(IMAGES)
    rng, side = np.random.default_rng(3), 224 if "224" in options else 96
    body = "p = GlobalAveragePool (x) y = Flatten (p)"
    onnx.save(text_model(f"float[1,3,{side},{side}] x => float[1,3] y", body, {}), "net.onnx")
    Path("images").mkdir()
    for number, (width, height) in enumerate(SIZES):
        coarse = Image.fromarray(rng.integers(0, 256, (7, 9, 3), np.uint8))
        coarse.resize((width, height), Image.Resampling.BICUBIC).save(f"images/{number}.png")
    stimuli = load_network(*read_command(["net.onnx", "-test", "-calib-data", "images", *options])).data.sets["Validation"]
    wanted, most = IMAGES[title]
    for index, name in enumerate(stimuli.names):
        image = wanted(np.asarray(Image.open(Path("images") / name))).transpose(2, 0, 1)
        assert abs(stimuli[index] - image).max() <= 1.01 * most, (title, name)
