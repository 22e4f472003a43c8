"""Random damage of loadables: dump, check and run answer with one line or do their work, they never crash or hang."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from functools import lru_cache

import numpy as np
import pytest
from support.nvdla_files import given, small_relu

from n2d2py.errors import N2D2Error
from n2d2py_nvdla import Loadable, Program, parse_loadable, write_loadable
from n2d2py_nvdla.check import violations
from n2d2py_nvdla.config import config_of
from n2d2py_nvdla.dump import dump, dump_text
from n2d2py_nvdla.model import run_program

TABLES = ("task_list", "memory_list", "address_list", "blobs", "tensor_desc_list", "submit_list")
NUMBERS = (0, 1, 2, 7, 255, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


@lru_cache
def files() -> list[bytes]:
    """A small file of each ABI, and the given ones where they are."""
    return [write_loadable(small_relu(abi)) for abi in ("v10", "v12")] + [path.read_bytes() for path in given()]


def in_bytes(data: bytes, random: np.random.Generator) -> bytes:
    """A cut, a wrong offset, a piece of the file elsewhere, some wrong bytes."""
    bad, kind = bytearray(data), int(random.integers(4))
    if kind == 0:
        bad = bad[: int(random.integers(1, len(bad)))]
    elif kind == 1:
        at = int(random.integers(len(bad) // 4)) * 4
        bad[at : at + 4] = int(random.choice([*NUMBERS, len(bad)])).to_bytes(4, "little")
    elif kind == 2:
        a, b = random.integers(len(bad), size=2)
        bad[a : a + 32] = bad[b : b + 32]
    for _ in range(int(random.integers(1, 8))):
        bad[int(random.integers(len(bad)))] = random.integers(256)
    return bytes(bad)


def in_meaning(data: bytes, random: np.random.Generator) -> bytes:
    """A sound file with wrong values in its tables or descriptors."""
    loadable: Loadable = parse_loadable(data)
    for _ in range(int(random.integers(1, 4))):
        if random.integers(3):
            blobs = [blob for blob in loadable.blobs if 0 < len(blob.data) < 20000]
            blob = blobs[int(random.integers(len(blobs)))]
            bad, size = bytearray(blob.data), int(random.choice([1, 2, 4]))
            at = int(random.integers(len(bad))) // size * size
            bad[at : at + size] = (int(random.choice(NUMBERS)) % (1 << 8 * size)).to_bytes(size, "little")
            blob.data = bytes(bad)
        else:
            tables = [name for name in TABLES if getattr(loadable, name)]
            rows = getattr(loadable, tables[int(random.integers(len(tables)))])
            row = rows[int(random.integers(len(rows)))]
            fields = [one for one in dataclasses.fields(row) if isinstance(getattr(row, one.name), int)]
            one = fields[int(random.integers(len(fields)))]
            bits = 8 * int(one.metadata["kind"][1]) - (one.metadata["kind"][0] == "i")
            setattr(row, one.name, int(random.choice(NUMBERS)) % (1 << bits))
    return write_loadable(loadable)


def outcome(data: bytes) -> str:
    """What comes of dumping, checking and running a file: "runs", or the code of the only error."""
    try:
        program = Program.of(parse_loadable(data, "bad.nvdla"), "bad.nvdla")
        assert dump_text(program) and json.dumps(dump(program))
        config = config_of(program)
        violations(program, config)
        run_program(program, [], config)
    except N2D2Error as error:
        assert "\n" not in error.line() and "bad.nvdla" in error.line(), error.line()
        return error.code
    return "runs"


def damaged(seed: int) -> bytes:
    random = np.random.default_rng(seed)
    data = files()[int(random.integers(len(files())))]
    return (in_bytes if seed % 2 else in_meaning)(data, random)


@pytest.mark.parametrize("first, count", [(0, 60), pytest.param(1000, 3000, marks=pytest.mark.slow)])
def test_damage(first, count):
    found = Counter(outcome(damaged(seed)) for seed in range(first, first + count))
    assert set(found) <= {"runs", "E901", "E903", "E904", "E905", "E906"}, found
    assert found["runs"] > count // 10 and found["E901"] > count // 10, found


@pytest.mark.parametrize("name", ["op_list", "surf_list", "dep_graph", "addr0"])
def test_every_byte_of_the_descriptors(name):
    for abi in ("v10", "v12"):
        data = write_loadable(small_relu(abi))
        size = len(next(blob.data for blob in parse_loadable(data).blobs if blob.name.endswith(name)))
        for at in range(0, min(size, 160), 7):
            loadable = parse_loadable(data)
            blob = next(blob for blob in loadable.blobs if blob.name.endswith(name))
            bad = bytearray(blob.data)
            bad[at] ^= 0xFF
            blob.data = bytes(bad)
            assert outcome(write_loadable(loadable)) in {"runs", "E901", "E903", "E904", "E906"}, (abi, at)
