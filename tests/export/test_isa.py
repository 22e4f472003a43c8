"""The table of instruction sets: what is made of it, and that nothing beside it and the kernels names a set."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.export_networks import chain, request, write_export
from support.programs import run_command
from support.tables import every

from n2d2py.contracts.cpp import isa
from n2d2py.contracts.cpp.forms.contract import FORMS
from n2d2py.exports.cpp.headers import ISA_HEADERS, isa_header
from n2d2py.exports.cpp.processors import TARGETS

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "kernels"
"""What a set has, by the mark of the operator that its header binds."""


@every("header", ISA_HEADERS)
def test_headers_are_those_of_the_table(header):
    assert (KERNELS / header).read_text() == isa_header(header), "run python docs/site/generate.py"


def test_conditions_hold_for_their_sets_only():
    """Each condition is evaluated as the preprocessor would, with the macros of each set."""
    names = [row.name for row in isa.instruction_sets()]
    panels = [row.name for row in isa.instruction_sets() if isa.reads_panels(row)]
    extends = {row.name: row.extends for row in isa.instruction_sets()}
    for wanted in (
        names,
        ["avx2"],
        ["avxvnni", "avx2"],
        ["neon"],
        ["neondot", "neon"],
        ["sse4", "neondot"],
        names[1:],
        ["neoni8mm"],
        ["neoni8mm", "neon"],
    ):
        text = isa.condition(wanted)
        for name in [*names, "portable"]:
            lineage, base = {name}, extends.get(name, "")
            while base:
                lineage.add(base)
                base = extends[base]
            values = {row.macro: row.name in lineage for row in isa.instruction_sets()} | {"N2D2_PANELS": name in panels}
            python = (
                re.sub(r"\w+", lambda word, values=values: str(values[word[0]]), text)
                .replace("&&", " and ")
                .replace("||", " or ")
            )
            assert eval(python.replace("!", " not ")) == (name in wanted), (wanted, name, text)


def test_forms_name_sets_of_the_table():
    names = {row.name for row in isa.instruction_sets()}
    assert all(one.sets and set(one.sets) <= names and set(one.signed_sets) <= set(one.sets) for one in FORMS.values())


def test_nothing_else_names_an_instruction_set():
    """Python and templates take names, tags, macros and flags from the table; __ARM_FEATURE_... is a name of the compiler.

    Boards name the set of each core, and bounds of the stack are measured by set.
    """
    words = "|".join(
        {*(row.name for row in isa.instruction_sets()), "avx512", "sse41", *(row.tag for row in isa.instruction_sets())}
    )
    named = re.compile(rf"(?<![a-z])(?<!__arm_feature_)({words})(?![a-z])|-m(avx|sse4|fpu=neon)", re.IGNORECASE)
    places = [*(ROOT / "n2d2py").rglob("*.py"), *(ROOT / "export_templates").rglob("*.j2")]
    tables = ("contracts/cpp/isa.py", "exports/cpp/processors.py", "exports/mcu/boards.py", "exports/mcu/stack.py")
    exempt = {ROOT / "n2d2py" / name for name in tables}
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in places
        if path not in exempt
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if named.search(line)
    ]
    assert not found, "\n".join(found)


def test_headers_of_operators_have_no_ladder():
    """No header of an operator asks for a set; `half.hpp` asks for conversions of the compiler's target."""
    macros = re.compile(r"^#\s*(?:el)?if.*\b(" + "|".join(row.macro for row in isa.instruction_sets()) + r")\b", re.MULTILINE)
    generated = {KERNELS / header for header in ISA_HEADERS}
    found = [path.name for path in KERNELS.glob("n2d2/*.hpp") if path not in generated and macros.search(path.read_text())]
    assert found == ["half.hpp"]


def test_the_export_s_headers_are_those_of_the_kernels(tmp_path):
    folder = write_export(tmp_path / "out", request(chain(True)))
    for path in (folder / "kernels").rglob("*.hpp"):
        assert path.read_bytes() == (KERNELS / path.relative_to(folder / "kernels")).read_bytes()
    listed = run_command("make", "-s", "targets", cwd=folder)
    assert [line.split()[0] for line in listed.splitlines()] == [target.name for target in TARGETS]


CLASS = '''"""Rows from their last weight to their first."""

from n2d2py.contracts.cpp.forms.contract import KernelFacts, KernelForm, form
from n2d2py.contracts.cpp.isa import FULLY_CONNECTED
from n2d2py.contracts.cpp.parts import NATIVE, PORTABLE, chosen
from n2d2py.contracts.cpp.code import Panels


@form
class Backwards(KernelForm[Panels]):
    """Rows from their last weight to their first."""

    name, which, kernels, headers, time = "rows backwards", FULLY_CONNECTED, ("fullyConnected",), ("n2d2/backwards.hpp",), 0.1

    def fits(self, facts: KernelFacts) -> str | None:
        return None if facts.weight_type == "std::int8_t" and facts.storage is None else "its weights are no whole bytes"

    def pack(self, facts: KernelFacts) -> Panels:
        return Panels(facts.rows[:, ::-1].reshape(-1), facts.bias)

    def isa(self, facts: KernelFacts) -> str:
        return chosen(self.sets, PORTABLE).replace(NATIVE, "n2d2::Backwards")
'''

HEADER = """#ifndef N2D2_BACKWARDS_HPP
#define N2D2_BACKWARDS_HPP
#include "n2d2/fullyconnected.hpp"
namespace n2d2 {
struct Backwards {};
template <class Cfg>
struct FullyConnected<Cfg, Backwards> {
    typedef typename Cfg::Input Input;
    typedef typename Cfg::Output Output;
    enum : int { W = Input::Width, C = Input::Channels, K = Input::Height * W * C };
    static void run(const unsigned char* in, unsigned char* out, const std::int8_t* weights, const typename Cfg::Sum* bias) {
        for (int o = 0; o < static_cast<int>(Output::Channels); ++o) {
            typename Cfg::Sum sum = bias[o];
            for (int k = 0; k < static_cast<int>(K); ++k)
                sum += weights[o * K + K - 1 - k] * line<Input>(in, k / (W * C))[k / C % W * Input::Stride + k % C];
            line<Output>(out, 0)[o] = Cfg::Epilogue::apply(sum, o);
        }
    }
};
}  // namespace n2d2
#endif
"""


@pytest.mark.compiles
def test_a_form_is_a_class_and_a_header(tmp_path):
    """The export of the copy selects it for the layers that it fits, compiles it, and computes what the simulator does."""
    for name in ("n2d2py", "kernels"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("export_templates", "params", "models", "setup.cfg"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "n2d2py/contracts/cpp/forms/backwards.py").write_text(CLASS)
    (tmp_path / "kernels/n2d2/backwards.hpp").write_text(HEADER)
    words = "models/LeNet.ini -seed 1 -w models/LeNet.npz -export CPP -nbbits 8 -calib 4 -db-export 10 -compare -o out"
    command = [sys.executable, "-m", "n2d2py", *words.split()]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "N2D2PY_DATA": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    configs = [path.read_text() for path in (tmp_path / "out/export_CPP_int8/dnn/include").glob("*.hpp")]
    assert sum("n2d2/backwards.hpp" in text and "n2d2::Backwards" in text for text in configs) == 2
    assert "identical" in done.stdout + done.stderr
