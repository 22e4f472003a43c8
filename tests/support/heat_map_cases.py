"""Drawn heat maps through `kernels/n2d2/heat_maps.hpp`."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from n2d2py.arithmetic.fixed_scale import LOGIT, ONE, FixedScale
from n2d2py.arithmetic.heat_maps import CenterDecoder, ClassMap, HeatMaps, PointDecoder
from n2d2py.postprocessing import PostProcessor
from n2d2py.postprocessing.heat_maps import CenterDetector, PixelClassifier, PointFinder
from support import post_cases
from support.detection_cases import FOUND

RUN = """struct Place {
    std::int32_t score, x, y;
};
template <class Cfg>
static void points(const typename Cfg::Value* maps) {
    Place found[Cfg::Count];
    n2d2::PointDecoder<Cfg>::run(maps, found);
    for (const Place& one : found) {
        number(one.score);
        number(one.x);
        number(one.y);
    }
}
template <class Cfg>
static void pixels(const typename Cfg::Value* scores) {
    std::uint8_t classes[Cfg::Rows * Cfg::Columns];
    n2d2::ClassMap<Cfg>::run(scores, classes);
    for (const std::uint8_t one : classes)
        number(one);
}
"""
Case = tuple[PostProcessor, list[np.ndarray]]
"""A post-processor, and stored outputs (C, H, W)."""
SHAPES = ("drawn", "zero", "constant", "ties", "one cell", "one line", "extremes")


def heat_map_cases(count: int, seed: int) -> Iterator[Case]:
    """`count` heat maps; each kind meets each type and each special shape."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        special = SHAPES[number // 3 % len(SHAPES)]
        rows, columns = {"one cell": (1, 1), "one line": (1, 9)}.get(special, rng.integers(2, 12, 2).tolist())
        maps, logits = int(rng.integers(1, 5)), bool(rng.integers(0, 2))
        kind = post_cases.TYPES[number // 21 % 4](8 / 100 if logits else 1 / 250)
        real = rng.normal(0, 3, (maps, rows, columns))
        special_values = {"zero": 0 * real, "constant": 0 * real + 0.7, "ties": np.round(real), "extremes": 1e9 * real}
        real = special_values.get(special, real)
        real = real if logits or special == "extremes" else 1 / (1 + np.exp(-real))
        stored = kind.quantize(real)
        if kind.is_float and special == "drawn":
            stored.ravel()[::5] = np.nan
        score = FixedScale.of(kind, LOGIT if logits else ONE)
        width, height = rng.integers(8, 300, 2).tolist()
        heat = HeatMaps(maps, columns, rows, width, height, score, logits)
        if number % 3 == 0:
            yield PointFinder((), PointDecoder(heat, str(rng.choice(["none", "quarter", "quadratic"])), logits)), [stored]
        elif number % 3 == 1:
            threshold = int(rng.integers(-ONE, ONE))
            yield PixelClassifier((), ClassMap(maps, rows, columns, FixedScale.of(kind, ONE), threshold)), [stored]
        else:
            sizes = post_cases.TYPES[0](1 / 20).quantize(rng.uniform(0, 8, (2, rows, columns)))
            offsets = post_cases.TYPES[1](1 / 100).quantize(rng.uniform(-1, 1, (2, rows, columns)))
            scales = [FixedScale.of(post_cases.TYPES[at](scale), 4096) for at, scale in ((0, 1 / 20), (1, 1 / 100))]
            most = int(rng.choice([3, 100]))
            decoder = CenterDecoder(heat, scales[0], scales[1] if logits else None, int(rng.integers(0, ONE // 2)), most)
            yield CenterDetector((), (width, height), most, decoder, 1, 2), [stored, sizes, offsets]


def wanted(cases: list[Case]) -> list[int]:
    """Numbers that the program prints."""
    found = [(post, post.decode(stored)) for post, stored in cases]
    return [value for post, one in found for value in [len(one)] * isinstance(post, CenterDetector) + one.ravel().tolist()]


def program(cases: list[Case], write: str) -> str:
    """The C++ text; `write` is the statement that prints `text`."""
    configs, calls = FOUND + RUN, ""
    for number, (post, stored) in enumerate(cases):
        names = [f"values{number}_{at}" for at in range(len(stored))]
        memory = [np.moveaxis(one, 0, -1) for one in stored]
        configs += "".join(map(post_cases.array, names, memory))
        configs += post_cases.config(f"Case{number}", post, stored, {"Detection": "Found", "Point": "Place"})
        calls += f"    {_call(post, number)}{', '.join(names)});\n"
    return post_cases.program("heat_maps", configs, "", calls, write)


def _call(post: Any, number: int) -> str:
    if isinstance(post, CenterDetector):
        return f"run<n2d2::CenterDecoder<Case{number}>>({post.most}, "
    return f"{'points' if isinstance(post, PointFinder) else 'pixels'}<Case{number}>("
