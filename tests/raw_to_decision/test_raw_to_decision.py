"""A raw image or sound gives Python's integers after every stage of an export: input, outputs, detections in the frame."""

import chain
import pytest
from chain import compare, draw
from support.board_export import need_core
from support.programs import need

CASES = {f"{cases.model} {cases.words[1].partition(',')[0]}": cases for cases in draw(70, 20, 10, seed=3)}
FAST = ("image rgb565:", "sound mfcc", "detector yuyv")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (not name.startswith(FAST))) for name in CASES])
def test_stages(name, tmp_path):
    need("g++", "make")
    need_core("cortex-m4")
    assert compare(CASES[name], tmp_path, ("x86-64-v3",), ("cortex-m4",)) == []


def test_a_difference_is_seen(tmp_path, monkeypatch):
    """One level more in one picture."""
    need("g++", "make")
    plain, seen = chain.wanted, []

    def changed(network, raw):
        seen.append(raw)
        made = bytearray(plain(network, raw))
        made[0] ^= len(seen) == 3
        return bytes(made)

    monkeypatch.setattr(chain, "wanted", changed)
    cases = next(CASES[name] for name in CASES if name.startswith("image"))
    (line,) = compare(cases, tmp_path, ("x86-64-v3",), ())
    assert line.endswith(f"x86-64-v3: 1 of {len(cases.raw)} differ")
