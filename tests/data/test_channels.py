"""Transformations of channels: branches of the pipeline, side by side in the stimulus."""

import numpy as np
import pytest
from support.errors import error_line

from n2d2py.data import build_provider

RGB = [[[10, 20, 30], [40, 50, 60]], [[70, 80, 90], [100, 110, 255]]]
DATABASE = "[database]\nType=DIR_Database\nDataPath=data\nRandomPartitioning=0\n"


def _section(kind, type_name, **keys):
    lines = "".join(f"{key}={value}\n" for key, value in keys.items())
    return f"[sp.{kind}]\nType={type_name}Transformation\n{lines}"


def _extract(name, channel, **keys):
    return _section(f"ChannelTransformation-{name}", "ChannelExtraction", CSChannel=channel, **keys)


@pytest.fixture
def provide(ini, picture):
    picture("data/a/0.png", RGB)
    picture("data/b/1.png", RGB)

    def make(channels, text, database=DATABASE):
        return build_provider(ini(f"{database}[sp]\nSizeX=2\nSizeY=2\nNbChannels={channels}\n" + text))

    return make


def _first(provider):
    return np.rint(provider.stimuli("Test")[0] * 255).astype(int)


def test_each_section_without_channel_makes_one(provide):
    provider = provide(2, _extract("r", "Red") + _extract("b", "Blue"))
    red, _, blue = np.moveaxis(np.array(RGB), 2, 0)
    np.testing.assert_array_equal(_first(provider), [red, blue])


def test_channel_goes_on_with_one_and_channels_with_all(provide):
    flip = {"HorizontalFlip": 1}
    provider = provide(
        2,
        _extract("r", "Red")
        + _extract("b", "Blue")
        + _section("ChannelTransformation-2", "Flip", Channel=1, **flip)
        + _section("ChannelsTransformation-3", "Flip", VerticalFlip=1),
    )
    red, _, blue = np.moveaxis(np.array(RGB), 2, 0)
    np.testing.assert_array_equal(_first(provider), [red[::-1], blue[::-1, ::-1]])


def test_the_order_is_whole_channel_whole_on_the_fly_channel_on_the_fly(provide):
    provider = provide(
        1,
        _section("ChannelOnTheFlyTransformation-4", "RangeAffine", FirstOperator="Multiplies", FirstValue=3)
        + _section("OnTheFlyTransformation-3", "RangeAffine", FirstOperator="Plus", FirstValue=1)
        + _section("ChannelTransformation-2", "ChannelExtraction", CSChannel="Red", Channel=0)
        + _section("Transformation-1", "Flip", HorizontalFlip=1),
    )
    assert [point.title.split("(")[0] for point in provider.describe()] == [
        "as read",
        "Flip",
        "channel 0: ChannelExtraction",
        "channel 0: RangeAffine",
        "channel 0: RangeAffine",
        "channels together",
    ]
    red = np.array(RGB)[:, ::-1, 0]
    np.testing.assert_array_equal(provider.stimuli("Test")[0], [(red + 1) * 3])
    assert provider.value_range == (3.0, 768.0)


def test_a_learning_step_makes_its_channel_too(provide):
    provider = provide(4, _extract("r", "Red") + _section("ChannelTransformation-d", "Distortion", ApplyTo="LearnOnly"))
    red = np.array(RGB)[:, :, 0]
    np.testing.assert_array_equal(_first(provider)[0], red)
    np.testing.assert_array_equal(_first(provider)[1:], np.array(RGB).transpose(2, 0, 1)[::-1])


@pytest.mark.parametrize(
    "text, message",
    [
        (_section("ChannelsTransformation", "Flip"), "E417: {}:9 [sp.ChannelsTransformation]: "),
        (_extract("r", "Red", Channel=0), "E417: {}:12 [sp.ChannelTransformation-r]: Channel=0 "),
        (_extract("r", "Red") + _section("ChannelTransformation-s", "Rescale", Width=1, Height=1), "E407: {}:5 [sp]: "),
        (_extract("r", "Red") + _extract("g", "Green"), "E407: "),
    ],
)
def test_errors(provide, tmp_path, text, message):
    assert message.replace("{}", str(tmp_path / "net.ini")) in error_line(lambda: provide(1, text).stimuli("Test")[0])


def test_labels_are_filtered_in_the_sets_that_it_applies_to(provide):
    text = _section("Transformation", "LabelFilter", Labels="/b", ApplyTo="TestOnly")
    provider = provide(3, text)
    assert provider.stimuli("Test").labels.tolist() == [0, -1]
    keep = provide(3, text.replace("Only", "Only\nFilter=Keep"))
    assert keep.stimuli("Test").labels.tolist() == [-1, 1]
    merged = provide(3, text.replace("Labels=/b", "Labels=b /a\nFilter=Merge"))
    assert merged.stimuli("Test").labels.tolist() == [1, 1]
    other = provide(3, text.replace("Only", "Only\nDefaultLabel=0"))
    assert other.stimuli("Test").labels.tolist() == [0, 0]
    untouched = provide(3, text.replace("TestOnly", "LearnOnly"))
    assert untouched.stimuli("Test").labels.tolist() == [0, 1]


def test_a_label_that_is_not_there(provide, tmp_path):
    text = _section("Transformation", "LabelFilter", Labels="/c /a")
    assert error_line(lambda: provide(3, text).stimuli("Test")).startswith(
        f"N2D2-E408: {tmp_path}/net.ini:9 [sp.Transformation]: LabelFilterTransformation: label '/c' is not in the database"
    )
