"""Arrays, names and file lists of the C++ project."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest

from n2d2py.errors import InternalError
from n2d2py.exports.cpp.arrays import LARGE, initializer, is_string
from n2d2py.exports.cpp.headers import copy_headers, needed_headers
from n2d2py.exports.cpp.text import comment, file_stems, literal


def compiled_bytes(arrays: list[tuple[str, np.ndarray, bool]], folder, compiler: str) -> bytes:
    """The arrays as a C++11 program has them in memory, one after the other."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    lines = ["#include <cstdint>", "#include <cstdio>", "#include <limits>"]
    for index, (ctype, values, as_string) in enumerate(arrays):
        lines.append(f"const {ctype} a{index}[{values.size + as_string}] = {initializer(values, as_string)};")
    lines.append("int main() {")
    for index, (_, values, _) in enumerate(arrays):
        lines.append(f"std::fwrite(a{index}, 1, {values.nbytes}, stdout);")
    lines.append("}")
    (folder / "a.cpp").write_text("\n".join(lines))
    subprocess.run(
        [
            compiler,
            *"-std=c++11 -Wall -Wextra -Wpedantic -Wconversion -Werror -Wno-overlength-strings -o".split(),
            folder / "a",
            folder / "a.cpp",
        ],
        check=True,
    )
    return subprocess.run([folder / "a"], check=True, stdout=subprocess.PIPE).stdout


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_arrays_are_compiled_to_their_values(compiler, tmp_path):
    rng = np.random.default_rng(0)
    pairs = np.array(np.meshgrid(range(256), list(b'01789?"\\ax\n\0'))).reshape(2, -1).T.ravel().astype(np.uint8)
    limits = [np.iinfo(name) for name in ("i1", "i2", "i4", "i8")]
    arrays = [
        ("std::uint8_t", pairs, True),
        ("std::int8_t", pairs.view(np.int8), True),
        ("std::uint8_t", np.frombuffer(b"??=??/??'", np.uint8), True),
        ("std::int8_t", rng.integers(-128, 128, 70000).astype(np.int8), True),
        *((f"std::int{info.bits}_t", np.array([info.min, -1, 0, info.max], info.dtype), False) for info in limits),
        ("float", np.array([0, -0.0, 1, 0.1, 3e38, 1e-45, np.inf, 16777216], np.float32), False),
        ("float", rng.standard_normal(500).astype(np.float32), False),
        ("double", rng.standard_normal(500), False),
    ]
    assert compiled_bytes(arrays, tmp_path, compiler) == b"".join(values.tobytes() for _, values, _ in arrays)


def test_readable_arrays_wrap_at_100_columns():
    text = initializer(np.full(1000, -100, np.int8), False)
    lines = text.split("\n")
    assert (lines[0], lines[-1]) == ("{", "}")
    assert lines[1].startswith("    -100, -100,") and 95 <= len(lines[1]) <= 100
    assert max(map(len, initializer(np.arange(256).astype(np.uint8).repeat(9), True).split("\n"))) <= 100


@pytest.mark.parametrize(
    "dtype, size, form, expected",
    [
        ("i1", LARGE, "auto", False),
        ("i1", LARGE + 1, "inline", True),
        ("u1", 1, "string", True),
        ("i1", LARGE + 1, "text", False),
        ("i2", LARGE + 1, "string", False),
        ("f4", LARGE + 1, "auto", False),
    ],
)
def test_large_byte_arrays_are_strings(dtype, size, form, expected):
    assert is_string(np.zeros(size, dtype), form) is expected


def test_names_become_literals_and_comments():
    assert literal('a"\\?é') == '"a\\042\\134\\077\\303\\251"'
    assert comment("a*/b\\\nc??/é") == "a_b__c_/_"


def test_file_stems_differ_whatever_the_case():
    stems = file_stems(["conv", "Conv", "env", "ENV_2"], ["env"])
    assert stems == {"conv": "conv", "Conv": "Conv_2", "env": "env_2", "ENV_2": "ENV_2_2"}


def test_headers_in_use_are_copied_with_what_they_include(tmp_path):
    kernels = tmp_path / "kernels"
    (kernels / "n2d2" / "x86").mkdir(parents=True)
    (kernels / "n2d2" / "a.hpp").write_text('#include <cstdint>\n#  include "n2d2/b.hpp"\n// "n2d2/no.hpp"\n')
    (kernels / "n2d2" / "b.hpp").write_text('#include "n2d2/x86/c.hpp"\n')
    (kernels / "n2d2" / "x86" / "c.hpp").write_text('#include "n2d2/a.hpp"\n')
    (kernels / "n2d2" / "unused.hpp").write_text("")
    copy_headers(["n2d2/a.hpp"], kernels, tmp_path / "out")
    assert needed_headers(["n2d2/a.hpp"], kernels) == ["n2d2/a.hpp", "n2d2/b.hpp", "n2d2/x86/c.hpp"]
    assert sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.hpp")) == [
        "n2d2/a.hpp",
        "n2d2/b.hpp",
        "n2d2/x86/c.hpp",
    ]
    with pytest.raises(InternalError, match="n2d2/missing.hpp"):
        needed_headers(["n2d2/missing.hpp"], kernels)
