"""Moves of flattened images become moves of channels; what takes no whole channels, or differs in size, stays."""

import numpy as np
from support.ops import Activation, Concat, IndexSelect, Reshape
from support.tables import every

from n2d2py.contracts.functions import Clip
from n2d2py.passes.layout import remove_reshape
from n2d2py.passes.lift_channels import lift_channels, merge_take


def shuffle(channels: int, groups: int, pixels: int, first: int = 0, count: int | None = None) -> IndexSelect:
    """A shuffle of the channels of a flattened image, of which `count` elements from `first` on are kept."""
    order = np.arange(channels * pixels).reshape(groups, -1, pixels).transpose(1, 0, 2).reshape(-1)
    return IndexSelect((tuple(int(i) for i in order[first:][:count]),))


def test_a_shuffle_of_channels_is_a_take(build, run, kinds):
    b = build(6, 2, 3)
    b.layer("r", Activation(Clip(0)))
    b.layer("flat", Reshape((36,)), "r")
    b.layer("s", shuffle(6, 2, 6), "flat")
    b.layer("back", Reshape((6, 2, 3)), "s")
    b.layer("last", Activation(Clip(0)), "back")
    after, _ = run(run(b.done("last"), lift_channels)[0], remove_reshape)
    after.prune()
    assert kinds(after) == [("r", "Activation"), ("s_channels", "IndexSelect"), ("last", "Activation")]
    assert after.node("s_channels").op == IndexSelect(((0, 3, 1, 4, 2, 5), None, None))


def test_halves_of_a_shuffle_are_one_take_each(build, run, kinds):
    b = build(4, 2, 2)
    b.layer("flat", Reshape((16,)))
    b.layer("s", shuffle(4, 2, 4), "flat")
    for name, half in (("a", range(8)), ("b", range(8, 16))):
        b.layer(name, IndexSelect((tuple(half),)), "s")
    b.layer("joined", Concat(), ["b", "a"])
    after, _ = run(run(b.done("joined"), lift_channels)[0], merge_take)
    after.prune()
    assert [kind for _, kind in kinds(after)] == ["IndexSelect", "IndexSelect", "Concat", "Reshape"]
    assert [n.op.indices[0] for n in after.nodes[:2]] == [(0, 2), (1, 3)] and after.node("joined_channels").op == Concat()


TAKES = {
    "all": (list(range(16)), (0, 1, 2, 3)),
    "the last two": (list(range(8, 16)), (2, 3)),
    "one twice": ([*range(4, 8), *range(4, 8)], (1, 1)),
    "the other way round": ([*range(12, 16), *range(8, 12), *range(4, 8), *range(4)], (3, 2, 1, 0)),
    "pixels the other way round": (list(range(3, -1, -1)), None),
    "from the second pixel on": (list(range(1, 5)), None),
    "two pixels of a channel, two of another": ([0, 1, 6, 7], None),
    "half a channel": ([0, 1], None),
    "a channel and a half": (list(range(6)), None),
    "a channel with a filled pixel": ([0, 1, 2, -1], None),
    "every other pixel": ([0, 2, 4, 6], None),
}


@every(("positions", "channels"), TAKES.values(), ids=TAKES)
def test_whole_channels_alone_are_lifted(build, run, positions, channels):
    """Of an image of four channels of four pixels; results are compared in each case."""
    b = build(4, 2, 2)
    b.layer("flat", Reshape((16,)))
    b.layer("t", IndexSelect((tuple(positions),)), "flat")
    after, report = run(b.done("t"), lift_channels)
    if channels is None:
        assert after.node("t").op.kind == "IndexSelect" and not report.counts
    else:
        assert after.node("t_channels").op == IndexSelect((channels, None, None)) and after.node("t").op == Reshape(
            (len(positions),)
        )
