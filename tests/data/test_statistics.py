"""StimuliData: statistics at a point of the pipeline, and what refers to them."""

import numpy as np
import pytest
from support.errors import error_line
from support.tables import every

from n2d2py import log
from n2d2py.data import build_provider, pipelines
from n2d2py.data.pipelines import compute_statistics
from n2d2py.data.transformations.values import AffineTransformation, read_matrix, write_matrix
from n2d2py.errors import InternalError

DATABASE = (
    "[database]\nType=Numpy_Database\nDataPath=d.npz\nLearn=0.5\nRandomPartitioning=0\n"
    "PerLabelPartitioning=0\n[sp]\nSizeX=3\nSizeY=2\n"
)
AFFINE = (
    "[sp.Transformation-z]\nType=RangeAffineTransformation\nFirstOperator=Minus\n"
    "FirstValue=[sp.StimuliData-raw]_GlobalValue.mean\nSecondOperator=Divides\n"
    "SecondValue=[sp.StimuliData-raw]_GlobalValue.stdDev\n"
)


@pytest.fixture
def images(tmp_path):
    x = np.random.RandomState(3).randint(0, 256, (40, 2, 3)).astype(np.uint8)
    np.savez(tmp_path / "d.npz", x=x, y=np.arange(40) % 2)
    return x.astype(np.float64)


def test_of_images_of_one_size():
    images = [np.random.RandomState(seed).normal(1e6, 1e-2, (4, 5, 3)) for seed in range(7)]
    found = compute_statistics(iter(images), True, True)
    every = np.stack(images)
    assert (found.count, found.smallest, found.largest) == (7, (5, 4, 3), (5, 4, 3))
    assert (found.minimum, found.maximum) == (every.min(), every.max())
    np.testing.assert_allclose([found.mean, found.deviation], [every.mean(), every.std()], rtol=1e-6)
    np.testing.assert_allclose(found.mean_data, every.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.deviation_data, every.std(axis=0), rtol=1e-5)


def test_of_images_of_different_sizes_and_of_none():
    images = [np.full((2, 3, 1), 1, np.uint8), np.full((1, 4, 1), 4, np.uint8)]
    found = compute_statistics(images, True, True)
    assert (found.mean, found.mean_data, found.deviation_data) == (2.2, None, None)
    assert str(found) == (
        f"2 stimuli, 3x1x1 to 4x2x1 (width, height, channels), values 1 to 4, mean 2.2, standard deviation {np.sqrt(2.16):g}"
    )
    assert compute_statistics([]) is None


def test_normalization_by_the_learning_set(ini, images):
    provider = build_provider(ini(DATABASE + "[sp.StimuliData-raw]\nApplyTo=LearnOnly\nLogSizeRange=1\n" + AFFINE))
    learn = np.concatenate([x for x, _, _ in provider.stimuli("Learn").batches(8)])
    np.testing.assert_allclose([learn.mean(), learn.std()], [0, 1], atol=1e-6)
    seen = provider.pipelines.statistics["sp.StimuliData-raw"]
    assert (seen.count, seen.minimum, seen.maximum) == (20, images[:20].min(), images[:20].max())
    expected = (images[20] - images[:20].mean()) / images[:20].std()
    np.testing.assert_allclose(provider.stimuli("Test")[0][0], expected, rtol=1e-5)


def test_it_looks_at_its_point_of_the_pipeline(ini, images):
    double = "[sp.Transformation-{}]\nType=RangeAffineTransformation\nFirstOperator=Multiplies\nFirstValue=2\n"
    document = ini(
        DATABASE
        + double.format("a")
        + "[sp.StimuliData-raw]\nApplyTo=TestOnly\n"
        + double.format("b")
        + "[x]\nA=[sp.StimuliData-raw]_GlobalValue.maxVal\n"
        "B=[sp.StimuliData-raw]_GlobalValue.minVal\n"
    )
    build_provider(document)
    assert document.section("x").text("A") == str(2 * images[20:].max())
    assert document.section("x").text("B") == str(2 * images[20:].min())


def test_nothing_is_computed_that_nothing_refers_to(ini, images):
    provider = build_provider(ini(DATABASE + "[sp.StimuliData-raw]\nMeanData=1\n"))
    assert provider.pipelines.statistics == {} and log.warnings_seen() == ()


def test_the_mean_image(ini, images, tmp_path):
    provider = build_provider(
        ini(
            DATABASE + "[sp.StimuliData-m]\nApplyTo=LearnOnly\nMeanData=1\nStdDevData=1\n"
            "[sp.Transformation]\nType=AffineTransformation\nFirstOperator=Minus\n"
            "FirstValue=[sp.StimuliData-m]_MeanData\nSecondOperator=Divides\n"
            "SecondValue=[sp.StimuliData-m]_StdDevData\n"
        )
    )
    learn = images[:20]
    expected = (images[20] - learn.mean(axis=0)) / learn.std(axis=0)
    np.testing.assert_allclose(provider.stimuli("Test")[0][0], expected, rtol=1e-5)
    assert provider.value_range is None
    provider.write_statistics(tmp_path / "out")
    written = read_matrix(tmp_path / "out" / "sp.StimuliData-m" / "meanData.bin")
    np.testing.assert_allclose(written[:, :, 0], learn.mean(axis=0), rtol=1e-12)
    assert (tmp_path / "out" / "sp.StimuliData-m" / "stdDevData.bin").stat().st_size == 12 + 6 * 8


def test_no_stimuli_no_statistics(ini, images, tmp_path):
    document = ini(DATABASE.replace("Learn=0.5", "Learn=0") + "[sp.StimuliData-raw]\nApplyTo=LearnOnly\n" + AFFINE)
    assert (f"N2D2-E416: {tmp_path}/net.ini:10 [sp.StimuliData-raw]: ") in error_line(lambda: build_provider(document))


def test_a_reference_before_its_section_is_anerror_line(ini, images):
    document = ini(DATABASE + AFFINE + "[sp.StimuliData-raw]\nApplyTo=LearnOnly\n")
    assert "property '_GlobalValue.mean'" in error_line(lambda: build_provider(document))


def test_mean_data_of_different_sizes_is_a_warning(ini, picture):
    picture("p/0.png", np.zeros((2, 2), np.uint8))
    picture("p/1.png", np.ones((2, 3), np.uint8))
    document = ini(
        "[database]\nType=DIR_Database\nDataPath=p\nLabelName=a\n[sp]\nSize=1 1 1\n"
        "[sp.StimuliData-raw]\nMeanData=1\nLogRange=1\n[x]\n"
        "A=[sp.StimuliData-raw]_GlobalValue.mean\n"
    )
    build_provider(document)
    assert [one.code for one in log.warnings_seen()] == ["W102", "W406"]


# --- matrices


@every("dtype", [np.uint8, np.int16, np.int32, np.float32, np.float64])
def test_matrices_in_files(tmp_path, dtype):
    matrix = np.arange(12).reshape(2, 3, 2).astype(dtype)
    write_matrix(tmp_path / "m.bin", matrix)
    read = read_matrix(tmp_path / "m.bin")
    assert read.dtype == dtype
    np.testing.assert_array_equal(read, matrix)


def test_the_header_of_a_matrix(tmp_path):
    write_matrix(tmp_path / "m.bin", np.zeros((2, 3, 1), np.float64))
    assert (tmp_path / "m.bin").read_bytes()[:12] == bytes([2, 0, 0, 0, 3, 0, 0, 0, 6, 0, 0, 0])
    with pytest.raises(InternalError):
        write_matrix(tmp_path / "m.bin", np.zeros((2, 3, 1), complex))


def test_damaged_and_missing_matrices(tmp_path):
    (tmp_path / "m.bin").write_bytes(bytes([2, 0, 0, 0, 3, 0, 0, 0, 6, 0, 0, 0]) + bytes(47))
    assert "E402" in error_line(lambda: read_matrix(tmp_path / "m.bin"))
    assert "E401" in error_line(lambda: read_matrix(tmp_path / "n.bin"))


def _affine(operator, matrix):
    return AffineTransformation(operator, "m", matrices=(np.array(matrix)[None, :, None],))


@every(
    "operator, expected", [("Plus", [255, 14, 0]), ("Minus", [0, 6, 0]), ("Multiplies", [255, 40, 0]), ("Divides", [1, 2, 0])]
)
def test_integers_are_saturated_and_quotients_rounded(operator, expected):
    image = np.array([200, 10, 0], np.uint8)[None, :, None]
    result = _affine(operator, np.array([210, 4, 0], np.uint8)).apply(image)
    assert result.dtype == np.uint8 and result.reshape(-1).tolist() == expected


def test_a_real_matrix_makes_the_image_real():
    image = np.array([200, 10], np.uint8)[None, :, None]
    result = _affine("Multiplies", [0.5, 0.25]).apply(image)
    assert result.dtype == np.float32 and result.reshape(-1).tolist() == [100, 2.5]


def test_ranges_of_each_stimulus_in_files(ini, tmp_path):
    np.savez(tmp_path / "d.npz", x=np.arange(24, dtype=np.uint8).reshape(2, 3, 2, 2), y=[0, 1])
    text = (
        "[database]\nType=Numpy_Database\nDataPath=d.npz\nRandomPartitioning=0\n[sp]\nSize=2 2 3\n"
        "[sp.StimuliData-x]\nLogSizeRange=1\nLogValueRange=1\n"
    )
    build_provider(ini(text)).write_statistics(tmp_path / "out")
    folder = tmp_path / "out" / "sp.StimuliData-x"
    assert (folder / "sizeRange.dat").read_text() == "# width height channels\n2 2 3\n2 2 3\n"
    assert (folder / "valueRange.dat").read_text() == "# smallest largest\n0 11\n12 23\n"
    build_provider(ini(text.replace("LogValueRange=1", ""))).write_statistics(tmp_path / "other")
    assert [path.name for path in (tmp_path / "other").rglob("*.dat")] == ["sizeRange.dat"]


def test_statistics_of_many_files_are_kept(ini, picture, tmp_path, monkeypatch):
    monkeypatch.setattr("n2d2py.data.pipelines.MIN_CACHED", 3)
    for index in range(4):
        picture(f"data/a/{index}.png", np.full((2, 3), 10 * index))
    text = (
        "[database]\nType=DIR_Database\nDataPath=data\n[sp]\nSize=3 2 1\n{}[sp.StimuliData-x]\nMeanData=1\n"
        "[sp.Transformation-2]\nType=RangeAffineTransformation\nFirstOperator=Minus\n"
        "FirstValue=[sp.StimuliData-x]_GlobalValue.mean\n"
    )
    computed = []
    real = pipelines.compute_statistics
    monkeypatch.setattr(pipelines, "compute_statistics", lambda *given: computed.append(1) or real(*given))

    def built(steps=""):
        return build_provider(ini(text.format(steps)), cache=tmp_path / "out").pipelines.statistics["sp.StimuliData-x"]

    first, second = built(), built()
    assert len(computed) == 1 and (first.mean, first.count) == (15.0, 4)
    assert str(first) == str(second) and (first.mean_data == second.mean_data).all()
    assert second.deviation_data is None
    built("[sp.Transformation-1]\nType=FlipTransformation\nVerticalFlip=1\n")  # other steps before
    picture("data/a/3.png", np.full((2, 3), 90))
    assert built().mean == 30.0 and len(computed) == 3
    (tmp_path / "out/sp.StimuliData-x/statistics.npz").write_bytes(b"damaged")
    assert built().mean == 30.0 and len(computed) == 4
