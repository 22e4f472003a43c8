"""N2D2's shared spaces: where an output may lie over an input that dies, against loops over single bytes."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from n2d2py.memory.access import Overlay
from n2d2py.memory.manager import PlaneLayout, Share, Space, SpacePlane


def drawn(rng: random.Random) -> Share:
    """An output in the space of an input of the same elements, somewhere near it."""
    channels, element = rng.randint(1, 3), rng.choice((1, 2))
    length, count = rng.randint(1, 4), rng.randint(1, 4)
    size = rng.randint(4, 60)
    forms = [
        PlaneLayout(channels * width, channels * width + rng.choice((0, 0, 1)) * width, length, count, width)
        for width in (element, rng.choice((element, 1, 2)))
    ]
    space = Space(size, 0, 2)
    source = SpacePlane(space, forms[0], rng.randrange(size), 0, 1)
    output = SpacePlane(space, forms[1], max(0, source.start + rng.randint(-8, 8)), 1, 2)
    return Share("op", source, output, Overlay.POINTWISE, lambda y: 0)


def places(plane: SpacePlane) -> list[list[int]]:
    """The addresses of the bytes of each element, line by line, pixel by pixel: the part before the wrap from its start on, the
    rest from the first byte of the space on.
    """
    form, made = plane.form, []
    limit = plane.limit
    for at in range(0, form.bytes, form.stride):
        for element in range(0, form.size, form.element):
            bytes_ = range(at + element, at + element + form.element)
            made.append([plane.start + byte if byte < limit else byte - limit for byte in bytes_])
    return made


def lost(share: Share) -> bool:
    """Whether a store of an element hits a byte of one that is read later."""
    reads, stores = places(share.source), places(share.output)
    return any(set(stores[i]) & {byte for read in reads[i + 1 :] for byte in read} for i in range(len(stores)))


def test_pointwise_outputs_destroy_nothing_that_is_still_read():
    rng = random.Random(1)
    shares = [share for share in (drawn(rng) for _ in range(6000)) if share.source.sound and share.output.sound]
    safe = [share for share in shares if share.safe]
    assert not any(lost(share) for share in safe)
    meeting = [
        share for share in safe if {b for e in places(share.source) for b in e} & {b for e in places(share.output) for b in e}
    ]
    assert len(meeting) > 500 and sum(share.source.limit < share.source.form.bytes for share in meeting) > 50


@pytest.mark.parametrize("element", [1, 2])
def test_what_is_refused_is_what_would_be_lost(element):
    """Of dense tensors of whole lines, but for what ends inside of a line: no safe place is refused."""
    rng = random.Random(2)
    refused = 0
    for _ in range(3000):
        share = drawn(rng)
        form = replace(share.source.form, stride=share.source.form.size, element=1)
        share = replace(share, source=replace(share.source, form=form), output=replace(share.output, form=form))
        if share.source.sound and share.output.sound and not share.safe:
            refused += 1
            assert lost(share), (share.source, share.output)
    assert refused > 300


def windows(rng: random.Random) -> Share:
    """A window operator: line y of the output is stored when some leading lines of the input are dead."""
    forms = [PlaneLayout(size, size, rng.randint(1, 4), rng.randint(1, 5)) for size in (rng.randint(1, 3), rng.randint(1, 3))]
    size = rng.randint(4, 60)
    space = Space(size, 0, 2)
    dead = sorted(rng.randint(0, forms[0].count) for _ in range(forms[1].count))
    source = SpacePlane(space, forms[0], rng.randrange(size), 0, 1)
    output = SpacePlane(space, forms[1], max(0, source.start + rng.randint(-20, 20)), 1, 2)
    return Share("op", source, output, Overlay.WINDOW, dead.__getitem__)


def lines(plane: SpacePlane) -> list[set[int]]:
    each, pixels = places(plane), plane.form.length * plane.form.size // plane.form.element
    return [{byte for one in each[at : at + pixels] for byte in one} for at in range(0, len(each), pixels)]


def test_windows_are_safe_exactly_where_no_living_line_is_hit():
    rng, found = random.Random(3), []
    for _ in range(6000):
        share = windows(rng)
        if not (share.source.sound and share.output.sound):
            continue
        reads, stores = lines(share.source), lines(share.output)
        hit = any(stores[y] & set().union(*reads[share.dead(y) :]) for y in range(len(stores)))
        assert share.safe == (not hit), (share.source, share.output)
        assert not replace(share, overlay=Overlay.WHOLE).safe or not (set().union(*reads) & set().union(*stores))
        found.append(hit)
    assert 500 < sum(found) < len(found) - 500


def test_a_plane_of_one_line_never_wraps():
    """It starts at the first byte of the space where it has no room behind its start."""
    for form in (PlaneLayout(2, 2, 5, 1), PlaneLayout(2, 2, 5, 3, whole=True)):
        plane = SpacePlane(Space(40, 0, 1), form, 39, 0, 1)
        assert plane.limit == 0 and plane.intervals == [(0, form.bytes)] and plane.end == form.bytes
    wrapped = SpacePlane(Space(40, 0, 1), PlaneLayout(2, 2, 5, 3), 25, 0, 1)
    assert wrapped.limit == 10 and wrapped.intervals == [(25, 35), (0, 20)] and wrapped.end == 20


def test_a_sound_plane_stays_sound_in_a_larger_space():
    """So that of the planes of a space that grows none has to be looked at again; its start is aligned, whatever the size."""
    rng, seen = random.Random(9), 0
    while seen < 2000:
        plane = drawn(rng).output
        plane.start -= plane.start % plane.form.element
        if not plane.sound:
            continue
        seen += 1
        for _ in range(8):
            plane.space.size += rng.choice((1, 1, 2, 7))
            assert plane.sound
