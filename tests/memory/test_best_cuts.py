"""Cuts into segments and strips against plain searches: the least peak, the fewest streamed layers, what is computed twice.

The modules are `n2d2py.memory.cut`, `n2d2py.memory.strips` and `n2d2py.memory.strip_search`.
"""

from functools import cache
from itertools import pairwise

from support.memory_graphs import FAMILIES, settings_of, strip_chain
from support.memory_networks import Net
from support.memory_strips import with_strips
from support.tables import every

from n2d2py.memory.access import TensorSpec, Window
from n2d2py.memory.buffers import Buffers
from n2d2py.memory.cut import Cutter
from n2d2py.memory.settings import Settings
from n2d2py.memory.strip_search import StripPoint, StripSearch, cuts_of, multiply_accumulates, segment_columns
from n2d2py.memory.strips import SegmentCut, read_columns, window_columns

_OUTSIDE = Settings(include_input=False, clock="op", buffer_alignment=4)


def _cutter(family: str, seed: int) -> Cutter:
    buffers = Buffers(FAMILIES[family](seed + 900), settings_of(seed + 900), ())
    ops = [op for op in buffers.order() if op.name not in buffers.views]
    return Cutter(buffers, ops, lambda size: -(-size // 4) * 4)


def _plain_search(cutter: Cutter, budget: int) -> tuple[int, int]:
    """(bytes of the largest segment, streamed layers) of the best cut, over all cuts."""

    @cache
    def least(begin: int) -> int:
        if begin == len(cutter.ops):
            return budget
        return min(max(cutter.weigh(begin, end).bytes, least(end)) for end in cutter.ends(begin))

    limit = least(0)

    @cache
    def streamed(begin: int) -> int:
        if begin == len(cutter.ops):
            return 0
        fitting = (end for end in cutter.ends(begin) if cutter.weigh(begin, end).bytes <= limit and least(end) <= limit)
        return min(streamed(end) + (end - begin if end > begin + 1 else 0) for end in fitting)

    return limit, streamed(0)


@every("seed", range(6))
@every("family", ["mixed", "by_lines", "joined", "several", "packed"])
def test_the_best_cut_is_that_of_a_plain_search(family, seed):
    for budget in (0, 1, 2):
        cutter = _cutter(family, seed)
        if budget:
            peak, most = (_plain_search(cutter, each)[0] for each in (0, 10**9))
            whole = max(cutter.weigh(at, at + 1).bytes for at in range(len(cutter.ops)))
            budget = peak + (min(most, whole) - peak) * budget // 2
        segments = cutter.cut(budget)
        assert [segment.begin for segment in segments] == [0, *(segment.end for segment in segments[:-1])]
        assert segments[-1].end == len(cutter.ops)
        limit, streamed = _plain_search(cutter, budget)
        assert max(segment.bytes for segment in segments) <= limit
        assert sum(each.end - each.begin for each in segments if each.end > each.begin + 1) == streamed
        for begin in range(len(cutter.ops)):
            for end, least in zip(cutter.ends(begin), cutter.at_least(begin), strict=True):
                held = max(cutter.crossing[begin], cutter.crossing[end])
                assert least <= cutter.weigh(begin, end).bytes and (least >= held if end > begin + 1 else least == 0)


@every("seed", range(12))
def test_points_of_the_curve_hold_less_and_compute_more(seed):
    """What they compute twice is what their problem in strips computes more; the first one is no worse than a cut without strips."""
    problem = strip_chain(seed + 900)
    search = StripSearch(problem, _OUTSIDE)
    buffers = Buffers(problem, _OUTSIDE, ())
    ops = [op for op in buffers.order() if op.name not in buffers.views]
    whole = _plain_search(Cutter(buffers, ops, lambda size: -(-size // 4) * 4), 0)[0]
    points = search.curve(search.work)
    assert points and points[0].extra <= 0 and points[0].bytes <= whole
    for before, after in pairwise(points):
        assert after.bytes < before.bytes and after.extra > before.extra
    for point in points:
        for each in (point, *search.other_widths(point)[:3]):
            narrow = with_strips(problem, each.cuts)
            assert multiply_accumulates(narrow) - multiply_accumulates(problem) == each.repeated_work
            _look_at_strips(problem, each)
    for most in (0, search.work // 50, search.work // 5):
        assert search.curve(most) == [] or search.curve(most)[-1] == next(p for p in reversed(points) if p.extra <= most)


def _look_at_strips(problem, point: StripPoint) -> None:
    """The strips of each cut have the columns of its last output once, and each reads those that it needs."""
    known = {op.name: op for op in problem.ops}
    for cut in point.cuts:
        if cut.slices:
            continue
        ops = [known[name] for name in cut.ops]
        last = ops[-1].output
        assert [x for strip in cut.strips for x in range(*strip[last])] == list(range(problem.tensors[last].width))
        for strip in cut.strips:
            assert strip == segment_columns(ops, problem.tensors, strip[last])


def test_a_layer_alone_is_a_point():
    for layers in (1, 2, 3):
        net = Net(4, 4, 2)
        x = net.input
        for _ in range(layers):
            x = net.conv(x, 2, 1)
        (first, *_) = StripSearch(net.done(), _OUTSIDE).curve(0)
        assert first.extra == 0


def test_strips_of_a_layer_that_halves_the_columns():
    """Other widths are those of what the segment leaves."""
    net = Net(12, 24, 2)
    net.pool(net.conv(net.conv(net.input, 8, 3), 8, 3), 2, 2)
    problem = net.done()
    for count in (2, 3, 4):
        cut = SegmentCut(
            tuple(op.name for op in problem.ops),
            tuple(segment_columns(problem.ops, problem.tensors, each) for each in cuts_of(12, count)),
        )
        found = StripSearch(problem, _OUTSIDE).other_widths(StripPoint(0, 10**9, (cut,)))
        assert found
        for point in found:
            _look_at_strips(problem, point)


@every("before", range(3))
@every("after", range(3))
def test_what_is_left_over_widens_the_outermost_ranges(before, after):
    """Of even ranges, the last one first, then the first one, and so on inwards."""
    for width in range(before + after, 30):
        for count in range(1, 9):
            sizes = [stop - first for first, stop in cuts_of(width, count, before, after)]
            sizes[0] -= before
            sizes[-1] -= after
            rest = (width - before - after) % count
            wider = {*range(rest // 2), *range(count - (rest - rest // 2), count)}
            assert len(sizes) == count and sum(sizes) == width - before - after
            assert {at for at, size in enumerate(sizes) if size > min(sizes)} == (wider if rest else set())
            assert max(sizes) - min(sizes) == (1 if rest else 0)


@every(("kernel", "stride", "dilation"), [(1, 1, 1), (2, 1, 1), (3, 2, 1), (2, 1, 3), (1, 3, 1)])
def test_columns_in_the_padding_read_one_of_the_image(kernel, stride, dilation):
    """Windows that lie beside the image read none of it: one column, of the image, stands for them."""
    window, width = Window((1, kernel), (1, stride), (0, 5, 0, 5), (1, dilation)), 4
    outputs = (width + 10 - (kernel - 1) * dilation - 1) // stride + 1
    for first in range(outputs):
        for stop in range(first + 1, outputs + 1):
            covered = window_columns(window, (first, stop))
            taps = [x * stride - 5 + k * dilation for x in range(first, stop) for k in range(kernel)]
            assert covered == (min(taps), max(taps) + 1)
            begin, end = read_columns(window, (first, stop), width)
            inside = range(max(covered[0], 0), min(covered[1], width))
            assert 0 <= begin < end <= width and (not inside or (begin, end) == (inside[0], inside[-1] + 1))
            assert inside or (begin, end) == ((0, 1) if covered[1] <= 0 else (width - 1, width))


def _weighed(make, **options) -> list[int]:
    """The bytes that live while each layer runs alone, in a network of images of 4 x 4 x 2 bytes."""
    net = Net(4, 4, 2)
    make(net)
    buffers = Buffers(net.done(), Settings(clock="op", **options), ())
    ops = [op for op in buffers.order() if op.name not in buffers.views]
    cutter = Cutter(buffers, ops, lambda size: size)
    return [cutter.weigh(at, at + 1).bytes for at in range(len(ops))]


def test_layers_alone_hold_what_they_read_and_write_less_what_they_overlap():
    """Element by element all of the input is saved, of two that die one; what reads its input to the end saves nothing."""
    assert _weighed(lambda net: net.ew(net.input)) == [32]
    assert _weighed(lambda net: net.ew(net.ew(net.input))) == [32, 32]
    assert _weighed(lambda net: net.add(net.conv(net.input, 2, 1), net.input)) == [64, 64]
    assert _weighed(lambda net: net.fc(net.input, 5)) == [37]
    assert _weighed(lambda net: net.ew(net.input), optimize_buffer=False) == [64]
    assert _weighed(lambda net: net.add(net.ew(net.input), net.conv(net.input, 2, 1)))[2:] == [64]


def _fewest_bytes(reads: list[range], source: tuple[int, int], output: tuple[int, int]) -> int:
    """Of an input and an output, lines and bytes of each, that lie over each other as far as they can: every distance is tried, in both
    directions, line after line: no line is stored over one that is read then or later."""
    (lines, line), (_, out) = source, output
    best = lines * line + len(reads) * out
    for order in (range(len(reads)), range(len(reads) - 1, -1, -1)):
        needed = {i: max((at for at, y in enumerate(order) if i in reads[y]), default=-1) for i in range(lines)}
        for distance in range(-len(reads) * out, lines * line + 1):
            safe = all(
                needed[i] < at or distance + (y + 1) * out <= i * line or (i + 1) * line <= distance + y * out
                for at, y in enumerate(order)
                for i in range(lines)
            )
            if safe:
                best = min(best, max(lines * line, distance + len(reads) * out) - min(0, distance))
    return best


@every("kernel", [1, 2, 3])
@every("stride", [1, 2])
@every("channels", [1, 2, 3, 6])
def test_a_window_lies_over_its_input_as_far_as_it_can(kernel, stride, channels):
    for pads in ((0, 0, 0, 0), (kernel - 1, 0, 0, 0), (0, 0, kernel - 1, 0)):
        (found,) = _weighed(lambda net, pads=pads: net.conv(net.input, channels, kernel, stride, pads))
        window = Window((kernel, kernel), (stride, stride), pads)
        height, width = ((4 + pads[at] + pads[at + 2] - kernel) // stride + 1 for at in (0, 1))
        reads = window.reads([0], TensorSpec("x", 4, 4, 2), height)
        assert found == _fewest_bytes(reads, (4, 8), (height, width * channels))
