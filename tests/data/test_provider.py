"""The provider: sizes, transformations by set and order, implicit normalization, messages."""

import numpy as np
import pytest
from support.errors import error_line, error_of
from support.tables import every

from n2d2py import log
from n2d2py.data import build_provider, read_environment
from n2d2py.data.pipeline import normalize_integers
from n2d2py.data.pipelines import read_pipelines

RGB = [[[10, 20, 30], [40, 50, 60]], [[70, 80, 90], [100, 110, 255]]]
DATABASE = "[database]\nType=DIR_Database\nDataPath=data\nRandomPartitioning=0\n"
SP = "[sp]\nSizeX=2\nSizeY=2\nNbChannels=3\n"


def _provider(ini, text, database=DATABASE):
    return build_provider(ini(database + "\n" + text), seed=1)


def _only(provider, name="Test"):
    ((x, _, _),) = provider.stimuli(name).batches(4)
    return x[0]


@pytest.fixture
def image(picture):
    picture("data/a/0.png", RGB)
    return np.array(RGB, np.float32)


def test_bytes_become_blue_green_red_over_255(ini, image):
    provider = _provider(ini, SP)
    expected = (image[:, :, ::-1] / np.float32(255)).transpose(2, 0, 1)
    np.testing.assert_array_equal(_only(provider), expected)
    assert provider.shape == (3, 2, 2) and provider.value_range == (0.0, 1.0)
    assert provider.labels == ("/a",) and provider.sizes()["Test"] == 1


def test_signed_mapping(ini, image):
    provider = _provider(ini, SP + "ConfigSection=c\n[c]\nDataSignedMapping=1\n")
    expected = (image[:, :, ::-1].transpose(2, 0, 1) - 128) / 128
    np.testing.assert_array_equal(_only(provider), expected)
    assert provider.value_range == (-1.0, 127 / 128)


def test_real_data_are_not_normalized(ini, image):
    provider = _provider(
        ini,
        SP + "[sp.Transformation-rgb]\nType=ColorSpaceTransformation\n"
        "ColorSpace=RGB\n[sp.Transformation-x]\nType=RangeAffineTransformation\n"
        "FirstOperator=Minus\nFirstValue=1 2 3\n",
    )
    np.testing.assert_array_equal(_only(provider), (image - [1, 2, 3]).transpose(2, 0, 1))
    assert provider.value_range == (-3.0, 254.0)


@every(
    "dtype, value, signed, expected",
    [
        (np.uint8, 51, False, 0.2),
        (np.int8, -127, False, -1),
        (np.uint16, 65535, False, 1),
        (np.int16, 32767, False, 1),
        (np.int32, 2**31 - 1, False, 1),
        (np.uint8, 64, True, -0.5),
        (np.uint16, 49152, True, 0.5),
        (np.float32, 7.5, False, 7.5),
        (np.float32, 7.5, True, 7.5),
    ],
)
def test_normalization_of_each_type(dtype, value, signed, expected):
    result = normalize_integers(np.array([[[value]]], dtype), signed)
    assert result.dtype == np.float32 and result[0, 0, 0] == np.float32(expected)


def test_cacheable_steps_come_first_and_sets_have_their_own(ini):
    text = SP + (
        "[sp.OnTheFlyTransformation-1]\nType=FlipTransformation\nHorizontalFlip=1\n"
        "[sp.Transformation-z]\nType=RescaleTransformation\nWidth=2\nHeight=2\n"
        "[sp.Transformation-a]\nType=PadCropTransformation\nWidth=2\nHeight=2\n"
        "ApplyTo=TestOnly\n"
        "[sp.OnTheFlyTransformation-2]\nType=DistortionTransformation\n"
        "ApplyTo=LearnOnly\nElasticSigma=3\n"
        "[sp.OnTheFlyTransformation-3]\nType=FlipTransformation\nApplyTo=LearnOnly\n"
        "RandomHorizontalFlip=1\n"
    )
    document = ini(text)
    pipelines = read_pipelines(document, read_environment(document), learning=True).by_set
    kinds = {
        name: [step.transformation.type.removesuffix("Transformation") for step in pipeline.steps]
        for name, pipeline in pipelines.items()
    }
    assert kinds == {
        "Test": ["Rescale", "PadCrop", "Flip"],
        "Validation": ["Rescale", "Flip"],
        "Learn": ["Rescale", "Flip", "Distortion", "Flip"],
    }
    assert set(read_pipelines(document, read_environment(document)).by_set) == {"Test", "Validation"}
    assert log.warnings_seen() == ()


def test_sets_with_other_steps_give_other_data(ini, picture):
    picture("data/a/0.png", [[0, 255]])
    picture("data/a/1.png", [[0, 255]])
    database = DATABASE + "Validation=0.5\n"
    provider = _provider(
        ini,
        "[sp]\nSizeX=2\nSizeY=1\n[sp.Transformation]\nType=FlipTransformation\nHorizontalFlip=1\nApplyTo=NoTest\n",
        database,
    )
    assert _only(provider, "Validation").tolist() == [[[1, 0]]]
    assert _only(provider, "Test").tolist() == [[[0, 1]]]


def test_indices_choose_stimuli(ini, picture):
    for index in range(5):
        picture(f"data/a/{index}.png", [[index]])
    provider = _provider(ini, "[sp]\nSize=1 1 1\n")
    ((x, labels, names),) = provider.stimuli("Test", [3, 1]).batches(9)
    assert names == ["a/3.png", "a/1.png"] and labels.tolist() == [0, 0]
    np.testing.assert_array_equal(x.reshape(-1), np.array([3, 1], np.float32) / np.float32(255))


def test_no_known_range_for_real_data(ini, tmp_path):
    np.savez(tmp_path / "d.npz", x=np.array([[-80.0, 12.0]], np.float32), y=[0])
    provider = _provider(ini, "[sp]\nSize=2\n", "[database]\nType=Numpy_Database\nDataPath=d.npz\n")
    assert provider.shape == (2,) and provider.value_range is None
    assert _only(provider).tolist() == [-80, 12]


def test_the_range_is_known_where_a_step_bounds_it(ini, tmp_path):
    np.savez(tmp_path / "d.npz", x=np.array([[-80.0, 12.0]], np.float32), y=[0])
    provider = _provider(
        ini,
        "[sp]\nSize=2\n[sp.Transformation]\nType=NormalizeTransformation\nNormMin=-1\n",
        "[database]\nType=Numpy_Database\nDataPath=d.npz\n",
    )
    assert provider.value_range == (-1.0, 1.0) and _only(provider).tolist() == [-1, 1]


@every(
    "size, shape",
    [
        ("SizeX=3\nSizeY=2", (1, 2, 3)),
        ("SizeX=3\nSizeY=2\nNbChannels=5", (5, 2, 3)),
        ("Size=3 2 5", (5, 2, 3)),
        ("Size=3 5", (5, 1, 3)),
        ("Size=640", (640,)),
    ],
)
def test_declared_sizes(ini, size, shape):
    document = ini(f"[env]\n{size}\nBatchSize=16\n[x]\nA=[env]_SizeX [env]_NbChannels\n")
    environment = read_environment(document)
    assert (environment.shape, environment.batch_size, environment.section) == (shape, 16, "env")
    x, channels = (shape[2], shape[0]) if len(shape) == 3 else (shape[0], 1)
    assert document.section("x").text("A") == f"{x} {channels}"


def test_the_size_of_an_epoch(ini, picture):
    for index in range(4):
        picture(f"data/a/{index}.png", [[index]])
    document = ini(DATABASE + "Learn=0.75\n[sp]\nSize=1 1 1\n[x]\nA=[sp]_EpochSize\n")
    build_provider(document)
    assert document.section("x").text("A") == "3"


def test_transformation_errors_come_together(ini):
    document = ini(
        SP + "[sp.Transformation-1]\nType=CompressionNoiseTransformation\n"
        "[sp.ChannelsTransformation-2]\nType=FlipTransformation\n"
        "[sp.Transformation-3]\nType=Nothing\n"
    )
    error = error_of(lambda: read_pipelines(document, read_environment(document)))
    assert [one.code for one in error.errors] == ["E406", "E417", "E405"]


def test_a_misspelt_key_of_a_learning_step_is_a_warning(ini):
    document = ini(
        SP + "[sp.Transformation]\nType=DistortionTransformation\nApplyTo=LearnOnly\n"
        "ElasticSigmas=3\n[sp.Transform-2]\nType=FlipTransformation\n"
    )
    read_pipelines(document, read_environment(document))
    assert [one.code for one in log.warnings_seen()] == ["W102", "W403"]
    assert "did you mean [sp.Transformation]?" in log.warnings_seen()[1].line()


def test_a_gray_image_among_colours(ini, image, picture):
    picture("data/b/1.png", [[1, 2], [3, 4]])
    provider = _provider(ini, SP)
    line = error_line(lambda: list(provider.stimuli("Test").batches(1)))
    assert "b/1.png " in line and "; add a ColorSpaceTransformation" in line


def test_a_step_that_cannot_be_applied_names_step_and_stimulus(ini, image, tmp_path):
    provider = _provider(ini, SP + "[sp.Transformation]\nType=RangeAffineTransformation\nFirstOperator=Plus\nFirstValue=1 2\n")
    line = error_line(lambda: provider.stimuli("Test"))
    assert line.startswith(f"N2D2-E408: {tmp_path}/net.ini:10 [sp.Transformation]: ")
    assert "a/0.png: there are 2 values for 3 channels" in line


def test_stimuli_of_another_type_than_the_first(ini, tmp_path):
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data/0.npy", np.zeros((1, 2, 2), np.uint8))
    np.save(tmp_path / "data/1.npy", np.zeros((1, 2, 2), np.float32))
    provider = _provider(ini, "[sp]\nSize=2 2 1\n")
    line = error_line(lambda: list(provider.stimuli("Test").batches(2)))
    assert "N2D2-E415: " in line and "E415" in line


def test_a_damaged_picture_is_named_in_its_turn(ini, picture, tmp_path):
    for index in range(30):
        picture(f"data/a/{index:02}.png", np.random.RandomState(index).randint(0, 256, (8, 8)))
    path = tmp_path / "data/a/20.png"
    path.write_bytes(path.read_bytes()[:-40])
    provider = _provider(ini, "[sp]\nSize=8 8 1\n")
    batches = provider.stimuli("Test").batches(10)
    assert [len(next(batches)[0]) for _ in range(2)] == [10, 10]
    assert error_line(lambda: next(batches)).startswith("N2D2-E403: a/20.png cannot be decoded: ")
    path.write_text("this is text")
    assert "E403" in error_line(lambda: provider.stimuli("Test")[20])
    path.unlink()
    assert "N2D2-E401: a/20.png cannot be read: No such file" in error_line(lambda: provider.stimuli("Test")[20])


def test_values_that_are_not_finite(ini, tmp_path):
    np.savez(tmp_path / "d.npz", x=np.array([[1.0, np.nan]], np.float32), y=[0])
    provider = _provider(ini, "[sp]\nSize=2\n", "[database]\nType=Numpy_Database\nDataPath=d.npz\n")
    assert "E418" in error_line(lambda: _only(provider))


@pytest.mark.parametrize("size", ["SizeX=2\nSizeY=1", "SizeX=1\nSizeY=2", "Size=2", "SizeX=1\nSizeY=1\nNbChannels=2"])
def test_vectors_lie_along_the_declared_axis(ini, tmp_path, size):
    np.savez(tmp_path / "d.npz", x=np.array([[3.0, 4.0]], np.float32), y=[0])
    provider = _provider(ini, f"[sp]\n{size}\n", "[database]\nType=Numpy_Database\nDataPath=d.npz\n")
    assert _only(provider).reshape(-1).tolist() == [3, 4]
    assert _only(provider).shape == provider.shape


def test_an_empty_database_gives_no_stimuli(ini):
    provider = build_provider(ini(SP))
    assert len(provider.stimuli("Test")) == 0 and provider.value_range is None
    assert list(provider.stimuli("Test").batches(4)) == []


@pytest.mark.parametrize(
    "keys",
    [
        "Type=TrimTransformation\nNbLevels=4\nMethod=Reduce\n",
        "Type=AffineTransformation\nFirstOperator=Minus\nFirstValue=absent.bin\n",
    ],
)
def test_what_only_learning_needs_is_made_where_it_is_learned(keys, ini):
    """An export of a trained network needs neither its files nor what is not implemented."""
    text = f"[database]\nType=Random_Database\n{SP}[sp.Transformation-x]\nApplyTo=LearnOnly\n{keys}"
    build_provider(ini(text))
    assert not any(each.code == "W430" for each in log.warnings_seen())
    if "Trim" in keys:
        build_provider(ini(text), learning=True)
        assert [each.code for each in log.warnings_seen()].count("W430") == 1
    else:
        assert "absent.bin does not exist" in error_line(lambda: build_provider(ini(text), learning=True))
