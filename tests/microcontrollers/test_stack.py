"""`<net>_STACK_BYTES` against the stack that QEMU's boards paint: no inference takes more, and little is left over."""

import re

import pytest
from support.board_export import CORE_NAMES, SHARED, make

from n2d2py.exports.mcu.boards import core

NETWORKS = ("resnet8", "vww_96", "kws_dscnn", "ad_autoencoder")
FAST = [("kws_dscnn", "cortex-m4", "-O2"), ("ad_autoencoder", "rv32imc", "-O2")]
ALL = [(network, name, option) for network in NETWORKS for name in CORE_NAMES for option in ("-O2", "-Os")]
CASES = [pytest.param(*case, marks=() if case in FAST else pytest.mark.slow) for case in ALL]


@pytest.mark.skipif(not SHARED.is_dir(), reason="real models and data are not in ../shared/data")
@pytest.mark.parametrize("network, name, option", CASES)
def test_bound(network, name, option, exported):
    """Within a tenth and 64 bytes, by the header that the core's compiler reads; the files for people have the same number."""
    folder = exported(network)
    painted, printed = map(int, re.findall(r"stack (\d+) of (\d+) bytes", make(folder, name, "test", f"OPT={option}"))[0])
    written = rf"\b(\d+) bytes on [a-z0-9_, -]*\b{name}\b"
    bound, other = (int(re.findall(written, (folder / file).read_text())[0]) for file in ("README.md", "zephyr/Kconfig"))
    assert painted <= bound <= 1.1 * painted + 64 and other == bound
    assert (
        printed == bound if not core(name).cxx else printed >= bound
    )  # GCC compiles the C of cores that clang compiles C++ for
