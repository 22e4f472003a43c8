"""Drawn embeddings through `kernels/n2d2/embeddings.hpp`."""

from collections.abc import Iterator

import numpy as np

from n2d2py.arithmetic.embeddings import Embedder, cosine
from n2d2py.postprocessing.embeddings import EmbeddingMatcher
from support import post_cases

RUN = """template <class Cfg>
static void run(const typename Cfg::Value* values, int count) {
    std::int16_t first[Cfg::Size], vector[Cfg::Size];
    for (int n = 0; n < count; ++n) {
        n2d2::Embedder<Cfg>::run(values + n * Cfg::Size, vector);
        for (int i = 0; i < Cfg::Size; ++i) {
            first[i] = n == 0 ? vector[i] : first[i];
            number(vector[i]);
        }
        number(n2d2::Embedder<Cfg>::cosine(first, vector));
        std::int32_t score;
        number(n2d2::Embedder<Cfg>::match(vector, score));
        number(score);
    }
}
"""
Case = tuple[Embedder, np.ndarray]
"""An embedder, and stored values (calls, size)."""
SHAPES = ("drawn", "zero", "constant", "one value", "extremes", "repeated")


def embedding_cases(count: int, seed: int) -> Iterator[Case]:
    """`count` sets of vectors; each type meets each special shape, with and without references."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        size, special = int(rng.choice([2, 3, 64, 129])), SHAPES[number // 4 % len(SHAPES)]
        kind = post_cases.TYPES[number % 4](float(rng.choice([1e-4, 0.01, 3])))
        real = rng.normal(0, 50 * kind.scale, (4, size))
        values = {"zero": 0 * real, "constant": 0 * real + 7, "extremes": 1e9 * real, "repeated": real[[0, 0, 1, 0]]}
        values["one value"] = real * (np.arange(size) == number % size)
        stored = kind.quantize(values.get(special, real))
        if kind.is_float and special == "drawn":
            stored[0, 0] = np.nan
        embedder = Embedder(size, Embedder.scale(kind))
        known = tuple(embedder.embed(stored[::-1]).ravel().tolist()) if rng.integers(0, 3) else ()
        yield Embedder(size, embedder.value, known, int(rng.choice([-65536, 0, 40000]))), stored


def wanted(cases: list[Case]) -> list[int]:
    """Numbers that the program prints."""
    found: list[int] = []
    for embedder, stored in cases:
        vectors = embedder.embed(stored)
        for vector in vectors:
            found += [*vector.tolist(), int(cosine(vectors[0], vector)), *embedder.match(vector)]
    return found


def program(cases: list[Case], write: str) -> str:
    """The C++ text; `write` is the statement that prints `text`."""
    configs, calls = RUN, ""
    for number, (embedder, stored) in enumerate(cases):
        configs += post_cases.array(f"values{number}", stored)
        configs += post_cases.config(f"Case{number}", EmbeddingMatcher((), embedder), [stored], {})
        calls += f"    run<Case{number}>(values{number}, {len(stored)});\n"
    return post_cases.program("embeddings", configs, "", calls, write)
