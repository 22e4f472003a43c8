"""Golden records: the C++ of one layer of each kernel form, and the layers of each network of the repository after fusion.

`bin/records` writes them again, `bin/records --diff` only shows what would change. Results are not recorded: outside referees and
the kernel sweeps judge those.
"""

import difflib
import sys
import tempfile
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from zlib import crc32

from n2d2py import log
from n2d2py.contracts.cpp.code import LayerCode
from n2d2py.contracts.cpp.identifiers import Identifiers
from n2d2py.contracts.cpp.layer import ExportChoices, layer_code
from n2d2py.graph import Graph
from n2d2py.options import read_command
from n2d2py.pipeline import load_network
from n2d2py.stages.fuse import fuse_stage
from support import array_cases, attention_cases, kernel_cases, kernel_interpolation, recurrent_cases
from support.attention_cases import masked_softmaxes, products, softmaxes, sums
from support.kernel_cases import Sweep
from support.kernel_elements import element_cases, vector_size_cases
from support.kernel_harness import Case
from support.kernel_lines import line_cases
from support.kernel_numbers import conversion_cases
from support.kernel_overlaps import overlapping_cases
from support.kernel_packed import few_bits, half_cases
from support.kernel_quantized_layers import quantized_cases
from support.kernel_resampling import resampling_cases
from support.kernel_residual import residual_cases

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "golden"
NETWORKS = [path for path in sorted((ROOT / "models").glob("*.ini")) if "${N2D2_" not in path.read_text(encoding="utf-8")]


def swept_cases() -> Iterator[Case]:
    """Yield the cases of all kernel sweeps, in integers and in real numbers."""
    made: Iterable[Iterable[Case]] = (
        kernel_cases.convolutions(Sweep(1), 66),
        kernel_cases.fully_connected(Sweep(1)),
        kernel_cases.pools(Sweep(1)),
        kernel_cases.pointwise(Sweep(1)),
        kernel_cases.moves(Sweep(1)),
        kernel_cases.floats(Sweep(1)),
        kernel_cases.packed_channels(Sweep(1)),
        array_cases.everything(1),
        *(cases(1) for cases in (products, sums, softmaxes, masked_softmaxes, attention_cases.norms)),
        recurrent_cases.everything(1, 3),
        line_cases(5),
        overlapping_cases(3),
        conversion_cases(1),
        half_cases(1),
        element_cases(1),
        kernel_interpolation.cases(Sweep(1)),
        resampling_cases(1),
        few_bits(1),
        quantized_cases(1),
        residual_cases(1),
        vector_size_cases(1),
    )
    return chain.from_iterable(made)


def layer_records() -> dict[str, str]:
    """Return, by kernel form, the text of the first layer of the kernel sweeps that has this form."""
    found: dict[str, str] = {}
    for case in swept_cases():
        code = _code(case)
        found.setdefault(kernel_form(case, code), _layer_text(case, code))
    return dict(sorted(found.items()))


def kernel_form(case: Case, code: LayerCode) -> str:
    """Return the name of the form: the kernel or its header, and the forms of the weights."""
    kernel = code.selection.kernel.name or f"portable {Path(code.headers[0]).stem}"
    winograd = code.winograd is not None and bool(code.winograd.sets)
    return f"{case.node.op.kind}, {kernel}{', Winograd' * winograd}{', packed weights' * (code.selection.storage is not None)}"


def _code(case: Case) -> LayerCode:
    return layer_code(case.node, case.graph, case.plan, Identifiers(case.graph), ExportChoices(prepacks_weights=case.prepacks))


def _layer_text(case: Case, code: LayerCode) -> str:
    arrays = (f"{each.ctype} {each.name}[{each.values.size}] {crc32(each.values.tobytes()):08x}" for each in code.constants)
    lines = (str(case.node.op), *code.headers, code.config, code.statement, *arrays)
    return "\n".join(line.rstrip() for text in lines for line in text.splitlines())


def network_record(path: Path) -> str:
    """Return the layers of a network with drawn weights after fusion: a line each."""
    log.setup(quiet=True)
    with tempfile.TemporaryDirectory() as folder:
        words = [str(path), "-export", "CPP", "-seed", "1", "-w", "/dev/null", "-o", folder]
        fused, _ = fuse_stage(load_network(*read_command(words)), integer=True)
    return "\n".join(_node_lines(fused.graph))


def _node_lines(graph: Graph) -> Iterator[str]:
    for node in graph.nodes:
        made = ", ".join(f"{name} {'x'.join(map(str, graph.shape(name)[1:]))}" for name in node.outputs)
        params = " ".join(f"{role} {'x'.join(map(str, array.shape))}" for role, array in node.params.items())
        yield f"{made} = {node.op}({', '.join(node.inputs)}) {params} {f'then {node.activation}' if node.activation else ''}".rstrip()
    yield f"outputs {', '.join(graph.outputs)}"


def records() -> Iterator[tuple[Path, str]]:
    """Yield every file of records with its content of today."""
    layers = "\n\n".join(f"== {form}\n{text}" for form, text in layer_records().items())
    yield FOLDER / "layers.txt", f"{layers}\n"
    for path in NETWORKS:
        yield FOLDER / "networks" / f"{path.stem}.txt", f"{network_record(path)}\n"


def difference(path: Path, text: str) -> str:
    """Return the unified difference between a file of records and its content of today; "" if there is none."""
    kept = path.read_text(encoding="utf-8") if path.exists() else ""
    name = path.relative_to(ROOT).as_posix()
    return "".join(difflib.unified_diff(kept.splitlines(True), text.splitlines(True), f"{name} (kept)", f"{name} (today)"))


def main(words: list[str]) -> int:
    """Write all records, or with --diff print the differences; return 1 if there are some."""
    if words not in ([], ["--diff"]):
        print("usage: bin/records [--diff]", file=sys.stderr)
        return 2
    differs = False
    for path, text in records():
        found = difference(path, text)
        differs |= bool(found)
        if words:
            print(found, end="")
        elif found:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"{path.relative_to(ROOT)} written")
    return int(differs and bool(words))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
