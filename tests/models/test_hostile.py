"""Files that mean harm are refused within a second, and none of their code is run."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
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
    with pytest.raises(N2D2Error) as caught:
        load_network(*read_command([str(path), *(options or ["-describe"])]))
    assert time.process_time() - start < 10  # far below what the input would cost unbounded
    return [one.code for one in caught.value.errors]


@every(
    "expression",
    [
        "__import__('os').system('touch hit')",
        "().__class__.__bases__[0].__subclasses__()",
        "open('hit', 'w')",
        'exec(\'open("hit", "w")\')',
        "[x for x in (1).__class__.__mro__]",
        "9 ** 9 ** 9",
        "2 ** 99999 * 1",
        "10 ** 10 ** 10",
        "'a' * 10 ** 10",
        "(lambda: 1)()",
        "1 << 10 ** 10",
        "max(*range(10 ** 10), 1)",
        "f'{open}'",
        "int.__doc__",
        "-" * 5000 + "1",
        "(" * 500 + "1" + ")" * 500,
        "1 + " * 800 + "1",
        "factorial(10 ** 6)",
    ],
)
def test_expressions(expression):
    assert codes(NET.format(f"$({expression})"))[0] == "E112"
    assert not Path("hit").exists()


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


@every(
    "template, code",
    [
        ("{% for i in range(2000000000) %}x{% endfor %}", "E120"),
        ("{% for i in range(200000000) %}x{% endfor %}", "E117"),
        ("{% for i in range(12000) %}\n[l{{i}}]\nInput=sp\n{% endfor %}", "E123"),
        ("{% for i in range(3000) %}\n[l{{i}}]\nInput=sp\nType=Dropout\nNbOutputs=1\n{% endfor %}", "E241"),
        (
            "{% for i in range(300) %}{% for j in range(300) %}{% for k in range(300) %}x{% endfor %}{% endfor %}{% endfor %}",
            "E117",
        ),
        ("{% set A %}xx{% endset %}" + "{% set A %}{{A}}{{A}}{% endset %}" * 60, "E117"),
        ("[{{SECTION_NAME}}x@t.ini.tpl]\n[{{SECTION_NAME}}y@t.ini.tpl]\n", "E117"),
        ("{% include t.ini.tpl %}", "E117"),
        ("{% include /etc/passwd %}", "E117"),
        ("{% include ../../../../../../../../../../etc/passwd %}", "E117"),
        ("[x@/etc/passwd]\n", "E117"),
        ("[x@../../../../../../../../../../etc/passwd]\n", "E117"),
        ("{% include /dev/zero %}", "E117"),
        ("{% include t.ini.tpl\0 %}", "E102"),
        ("{{().__class__}}", "E120"),
        ("{{ self._TemplateReference__context }}", "E120"),
        ("{% import os %}", "E118"),
        ("{% for i in [].__class__.mro() %}{% endfor %}", "E118"),
        ("{{ X|attr('__class__') }}", "E120"),
        ("\n" * 90_000 + "{% for i in range(5) %}" + "\n" * 90_000 + "{% endfor %}", "E117"),
    ],
)
def test_templates(template, code):
    assert codes("[sp]\nSizeX=8\nSizeY=8\n[t@t.ini.tpl]\nX=1\n", t__ini__tpl=template)[0] == code


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
