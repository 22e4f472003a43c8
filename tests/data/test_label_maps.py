"""Pixel-wise labels on their way through databases and transformations."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.errors import error_line, refused
from support.tables import every

from n2d2py import log
from n2d2py.data import build_provider
from n2d2py.ini import load_document

RNG = np.random.default_rng(0)
X = RNG.integers(0, 256, (4, 3, 6, 8), dtype=np.uint8)
Y = RNG.integers(-1, 5, (4, 6, 8))


def provider(text: str, size: str = "8 6 3", learning: bool = False):
    log.setup(quiet=True)
    Path("net.ini").write_text(f"[database]\nRandomPartitioning=0\n{text.replace('<size>', size)}")
    return build_provider(load_document(Path("net.ini")), learning=learning)


@pytest.fixture(autouse=True)
def arrays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("d.npz", x=X, y=Y, labels=np.array(["a", "b", "c", "d", "e"]))


NUMPY = "Type=Numpy_Database\nDataPath=d.npz\n[sp]\nSize=<size>\nCompositeStimuli=1\n"


@every(
    "steps, size, expected",
    [
        ("", "8 6 3", lambda y: y),
        ("Type=FlipTransformation\nHorizontalFlip=1", "8 6 3", lambda y: y[:, ::-1]),
        ("Type=RescaleTransformation\nWidth=16\nHeight=12", "16 12 3", lambda y: y.repeat(2, 0).repeat(2, 1)),
        ("Type=RescaleTransformation\nWidth=4\nHeight=3", "4 3 3", lambda y: y[::2, ::2]),
        ("Type=PadCropTransformation\nWidth=4\nHeight=4", "4 4 3", lambda y: y[1:5, 2:6]),
        (
            "Type=PadCropTransformation\nWidth=10\nHeight=6\nBorderType=ConstantBorder",
            "10 6 3",
            lambda y: np.pad(y, ((0, 0), (1, 1)), constant_values=-1),
        ),
        (
            "Type=PadCropTransformation\nWidth=10\nHeight=6\nBorderType=ReflectBorder",
            "10 6 3",
            lambda y: np.pad(y, ((0, 0), (1, 1)), mode="symmetric"),
        ),
        ("Type=SliceExtractionTransformation\nWidth=5\nHeight=2\nOffsetX=3\nOffsetY=1", "5 2 3", lambda y: y[1:3, 3:]),
        ("Type=RangeAffineTransformation\nFirstOperator=Divides\nFirstValue=2", "8 6 3", lambda y: y),
        ("Type=LabelFilterTransformation\nLabels=b d\nFilter=Merge", "8 6 3", lambda y: np.where(y == 3, 1, y)),
        ("Type=LabelFilterTransformation\nLabels=b\nDefaultLabel=0", "8 6 3", lambda y: np.where(y == 1, 0, y)),
    ],
)
def test_labels_move_with_the_pixels(steps, size, expected):
    found = provider(NUMPY + (f"[sp.Transformation]\n{steps}\n" if steps else ""), size).stimuli("Test")
    for position in range(4):
        np.testing.assert_array_equal(found.label_map(position), expected(Y[position]))
    assert found.take([2]).label_map(0).tolist() == expected(Y[2]).tolist()
    assert (found.labels == -1).all()


@every(
    "step, labelled",
    [
        ("Type=FlipTransformation\nRandomHorizontalFlip=1\nRandomVerticalFlip=1", 1.0),
        (
            "Type=SliceExtractionTransformation\nWidth=24\nHeight=32\nRandomOffsetX=1\n"
            "[sp.Transformation-2]\nApplyTo=NoLearn\nType=SliceExtractionTransformation\nWidth=24\nHeight=32",
            1.0,
        ),
        (
            "Type=SliceExtractionTransformation\nWidth=32\nHeight=32\nRandomRotation=1\nRandomRotationRange=-40 40\n"
            "RandomScaling=1\nRandomScalingRange=0.5 1.0",
            0.8,
        ),
        ("Type=RandomResizeCropTransformation\nWidth=32\nHeight=32\nScaleMin=0.3", 1.0),
        ("Type=DistortionTransformation\nElasticScaling=20\nRotation=20\nScaling=10", 0.8),
        ("Type=DistortionTransformation\nRotation=30\nIgnoreMissingData=0", 1.0),
    ],
)
def test_labels_move_with_the_pixels_that_are_learned(step, labelled):
    """Images that are white where the label is 1: after what is drawn, both agree but for the pixels of an edge."""
    y = np.zeros((4, 32, 32), np.int64)
    y[:, 5:20, 9:26], y[1:, 12:30, :6] = 1, 1
    np.savez("d.npz", x=(255 * y).astype(np.uint8)[:, None], y=y)
    text = (
        NUMPY.replace("DataPath", "Learn=1\nEquivLabelPartitioning=0\nDataPath")
        + f"[sp.Transformation]\nApplyTo=LearnOnly\n{step}\n"
    )
    found = provider(text, "24 32 1" if "Width=24" in step else "32 32 1", learning=True)
    assert found.draws
    drawn = [found.training_stimuli(seed, epoch) for seed in (1, 2) for epoch in (0, 1)]
    every_one = [(one[position][0], one.label_map(position)) for one in drawn if one.label_map for position in range(4)]
    x, maps = (np.stack(each) for each in zip(*every_one, strict=True))
    known = maps >= 0
    assert labelled <= known.mean() <= 1 and len(np.unique(maps, axis=0)) > 3
    assert np.mean((x > 0.5)[known] == maps[known]) > 0.94


def test_tiles_have_the_labels_of_their_part():
    found = provider(NUMPY + "[database.slicing]\nWidth=4\nHeight=3\nStrideX=4\nStrideY=3\nRandomShuffle=0\n", "4 3 3").stimuli(
        "Test"
    )
    assert len(found) == 16
    np.testing.assert_array_equal(found.label_map(1), Y[0, 3:, :4])


def test_transformations_that_labels_cannot_follow():
    step = "[sp.Transformation]\nType=ReshapeTransformation\nNbRows=8\nNbCols=6\n"
    assert refused("E407.*labels of stimulus.*8x6", lambda: provider(NUMPY + step, "6 8 3").stimuli("Test").label_map(0))


def test_label_images_of_a_folder():
    Path("images/k").mkdir(parents=True)
    Path("labels/k").mkdir(parents=True)
    for index in range(4):
        Image.fromarray(X[index].transpose(1, 2, 0)).save(f"images/k/{index}.png")
        Image.fromarray(np.where(Y[index] < 0, 255, Y[index]).astype(np.uint8)).save(f"labels/k/{index}.png")
    text = (
        "Type=DIR_Database\nDataPath=images\nLabelImagePath=labels\nLabelNames=a b c d e\n[sp]\nSize=8 6 3\n"
        "CompositeStimuli=1\n"
    )
    found = provider(text)
    for position in range(4):
        np.testing.assert_array_equal(found.stimuli("Test").label_map(position), Y[position])
    assert found.labels == ("a", "b", "c", "d", "e")
    Path("labels/k/3.png").unlink()
    assert refused("E401.*k/3.png", lambda: found.stimuli("Test").label_map(3))
    np.save("labels/k/3.npy", np.zeros((6, 8)))
    assert refused("E402.*float", lambda: found.stimuli("Test").label_map(3))


def test_composite_stimuli_without_labels_warn():
    np.savez("d.npz", x=X, y=np.arange(4))
    assert provider(NUMPY).stimuli("Test").label_map is None
    assert [warning.code for warning in log.warnings_seen()] == ["W407"]


@pytest.mark.parametrize("y", [Y[:, :5], Y[:3], Y[:, None, :, :4]])
def test_labels_of_other_sizes(y):
    np.savez("d.npz", x=X, y=y)
    assert "E414" in error_line(provider, NUMPY)


def test_bytes_of_255_are_no_labels():
    np.savez("d.npz", x=X, y=np.where(Y < 0, 255, Y).astype(np.uint8))
    np.testing.assert_array_equal(provider(NUMPY).stimuli("Test").label_map(1), Y[1])


def test_levels_of_the_stimuli():
    """QuantizationLevels: the nearest of evenly spread values."""
    config = "ConfigSection=c\n[c]\nQuantizationLevels=5\nQuantizationMin=0.0\nQuantizationMax=0.5\n"
    found = provider(NUMPY + config)
    stimulus = found.stimuli("Test")[0]
    wanted = np.clip(np.rint(X[0] / 255 / 0.125), 0, 4) * 0.125
    np.testing.assert_allclose(stimulus, wanted, atol=1e-7)
    assert found.value_range == (0.0, 0.5) and str(found.describe()[-1]).startswith("5 levels")
    assert "E417" in error_line(lambda: provider(NUMPY + config.replace("Max=0.5", "Max=0")))


def test_the_label_of_a_stimulus_for_every_pixel():
    np.savez("d.npz", x=X, y=[3, -1, 0, 2])
    found = provider(
        NUMPY.replace("CompositeStimuli=1\n", "") + "[sp.Transformation]\nType=ExpandLabelTransformation\n"
    ).stimuli("Test")
    assert found.label_map(0).tolist() == np.full((6, 8), 3).tolist()
    assert found.take([1]).label_map(0).max() == -1
