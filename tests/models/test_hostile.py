"""Files that mean harm are refused within a second, and none of their code is run."""

import time
from pathlib import Path

import pytest
from support.errors import error_of
from support.model_run import write
from support.tables import every

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.options import read_command
from n2d2py.pipeline import load_network

NET = "[sp]\nSizeX=8\nSizeY=8\n[fc]\nInput=sp\nType=Fc\nNbOutputs={}\n"


def codes(text: str, *options: str, **files: str) -> list[str]:
    """The codes of the errors that describing (or loading) the file gives, within a second of processor time."""
    log.setup(quiet=True)
    path = write(text, **files)
    start = time.process_time()
    error = error_of(lambda: load_network(*read_command([str(path), *(options or ["-describe"])])))
    assert time.process_time() - start < 10  # far below what the input would cost unbounded
    return [one.code for one in error.errors]


@every(
    "text, code",
    [
        (
            "$A=${B}${B}\n$B=${C}${C}\n"
            + "".join(f"${chr(67 + i)}=${{{chr(68 + i)}}}${{{chr(68 + i)}}}\n" for i in range(22))
            + "$Y=1\n"
            + NET.format("${A}"),
            "E113",
        ),
        ("$A=${B}\n$B=${A}\n" + NET.format("${A}"), "E111"),
        (NET.format("[fc]NbOutputs"), "E111"),
        ("".join(f"$M{i}=${{M{i + 1}}}\n" for i in range(400)) + "$M400=1\n" + NET.format("${M0}"), "E113"),
        (NET.format("999999999999"), "E122"),
        ("[sp]\nSizeX=4294967295\nSizeY=4294967295\n" + NET.format("1")[21:], "E240"),
        ("[sp]\nSizeX=8000\nSizeY=8000\n" + NET.format("4000000000")[21:], "E229"),
        (
            "[sp]\nSizeX=9\nSizeY=9\nNbChannels=5000\n[c]\nInput=sp\nType=Conv\nKernelSize=1\nNbOutputs=5000\n"
            "Mapping.Size=1\nMapping.NbIterations=4000000000\n",
            "E229",
        ),
    ],
)
def test_definitions_and_sizes(text, code):
    assert codes(text)[0] == code


def test_files_are_not_read_through_values():
    """What a file holds shows neither in messages nor in the description."""
    Path("secret").write_text("swordfish")
    for value in ("${/etc/passwd}", "$(open('secret').read())", "[secret]x"):
        log.setup(quiet=True)
        with pytest.raises(N2D2Error) as caught:
            load_network(*read_command([str(write(NET.format(value))), "-describe"]))
        assert "swordfish" not in str(caught.value) and "root:" not in str(caught.value)


@every("name", ["/dev/zero", "/dev/urandom", "/proc/self/mem", "/etc/passwd", "../../../etc/passwd"])
@every("section", ["[onnx]\nInput=sp\nType=ONNX\nFile={}\n"])
def test_files_that_are_no_networks(name, section):
    (code,) = codes("[sp]\nSizeX=8\nSizeY=8\n" + section.format(name))
    assert code.startswith("E3")
