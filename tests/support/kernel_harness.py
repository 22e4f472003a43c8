"""Runs many one-layer networks through the generated C++ in one program, on arenas that Python fills and checks.

A case is one layer, its planes in an arena, and the stored values of its inputs. The program reads the arena
images, runs the layers, and writes the arenas back; every byte outside the output's elements must be as before,
save those of inputs that the output lies over.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

from n2d2py.contracts.cpp.arrays import initializer
from n2d2py.contracts.cpp.code import plane_struct
from n2d2py.contracts.cpp.identifiers import Identifiers
from n2d2py.contracts.cpp.layer import ExportChoices, layer_code, scratch_needs
from n2d2py.contracts.cpp.parts import Array, LayerConfig
from n2d2py.graph import QuantGraph, QuantNode, channels, height, width
from n2d2py.memory.plan import MemoryPlan, OpPlan, Plane, Scratch
from n2d2py.memory.scratch import ALIGNMENT
from support.memory_plans import line_offset
from support.programs import need, run_command

ROOT = Path(__file__).resolve().parents[2]
WARNINGS = ["-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion", "-Werror"]
CANARY = 0xA5


POINTWISE = ("ElemWise", "Affine", "Activation", "Convert", "Quantize", "Identity", "Dropout")


@dataclass
class Case:
    """One layer to run: `inputs` by tensor name, NCHW stored values with N = 1; `exact`: floating point, too, bit for bit; `prepacks`: packed
    weights are unpacked once where that is faster.
    """

    title: str
    graph: QuantGraph
    planes: dict[str, Plane]
    inputs: dict[str, np.ndarray]
    inplace: bool = False
    exact: bool = False
    run: OpPlan = OpPlan()
    prepacks: bool = False

    @cached_property
    def plan(self) -> MemoryPlan:
        """The places of its tensors, how it runs, and behind them the scratch that its kernel asks for: by turns as little as it can do
        with, what is enough, all that it can use.
        """
        plan = MemoryPlan("case", 0, self.planes, (), {self.node.name: self.run})
        need = scratch_needs(self.graph, plan).get(self.node.name)
        if need is None or self.run.scratch is not None:
            return plan
        size = (need.least, need.form, need.enough, need.most)[len(str(self)) % 4]
        begin = -(-self.last // ALIGNMENT) * ALIGNMENT
        return replace(plan, ops={self.node.name: replace(self.run, scratch=Scratch(begin, size))})

    @property
    def last(self) -> int:
        """Where the tensors and partial results end."""
        return max([int(self.useful(name).max()) for name in self.planes] + self.kept()) + 1

    @property
    def node(self) -> QuantNode:
        return self.graph.nodes[0]

    @property
    def output(self) -> str:
        """The tensor that the layer leaves behind."""
        return self.node.output

    def element_by_element(self) -> bool:
        """Whether a pointwise layer stores each element exactly where its own operands were."""
        output = self.planes[self.node.output]
        over = [
            plane
            for plane in (self.planes[name] for name in self.node.inputs)
            if any(
                begin < other_end and other < end for begin, end in plane.intervals() for other, other_end in output.intervals()
            )
        ]
        form = [(p.offset, p.size, p.stride, p.length, p.count, p.limit, p.ring_rows, p.pitch) for p in (*over, output)]
        return self.node.op.kind in POINTWISE and len(set(form)) == 1 and output.limit is output.ring_rows is None

    def expected(self) -> np.ndarray:
        """The normative result of the layer."""
        arrays = [self.inputs[name] for name in self.node.inputs]
        if self.graph.is_integer(self.node) or self.node.op.mixes_types:
            return self.node.op.run_integer(arrays, self.node, self.graph)[0]
        result = self.sums()
        return self.node.activation(result) if self.node.activation else result

    def sums(self) -> np.ndarray:
        """The result in floating point before the activation, whose values are rounded in the order of the kernel."""
        return self.node.op.run([self.inputs[name] for name in self.node.inputs], self.node)[0]

    def positions(self, tensor: str) -> np.ndarray:
        """Arena byte offset of every element, (C, H, W)."""
        plane, shape = self.planes[tensor], self.graph.shape(tensor)
        rows = np.array([line_offset(plane, y) for y in range(height(shape))])
        size = self.graph.type(tensor).bytes
        return (
            np.arange(channels(shape))[:, None, None] * size
            + rows[None, :, None]
            + np.arange(width(shape))[None, None, :] * plane.stride
        )

    def useful(self, tensor: str) -> np.ndarray:
        """Arena offsets of the useful bytes of a tensor, flat."""
        size = self.graph.type(tensor).bytes
        return (self.positions(tensor)[..., None] + np.arange(size)).reshape(-1)

    def kept(self) -> list[int]:
        """Arena offsets of the partial results of a layer that takes its input line by line."""
        first = self.run.partial
        size = channels(self.graph.shape(self.node.output)) * 8
        return [] if first is None else list(range(first, first + size))

    @property
    def scratch(self) -> tuple[int, ...]:
        """Begin and end of the scratch that the kernel is given; () for none."""
        found = self.plan.op(self.node.name).scratch
        return () if found is None else (found.offset, found.offset + found.size)

    def arena(self) -> np.ndarray:
        """The arena before the layer runs; exactly as long as its planes and its scratch need."""
        arena = np.full(max([self.last, *self.scratch[-1:]]), CANARY, np.uint8)
        for name, array in self.inputs.items():
            dtype = self.graph.type(name).dtype
            arena[self.useful(name)] = np.ascontiguousarray(array.reshape(-1), dtype).view(np.uint8)
        return arena

    def check(self, before: np.ndarray, after: np.ndarray, tolerance: float = 1e-5) -> None:
        """Raises AssertionError, with the whole case, on a wrong element or a byte that had to stay."""
        kind, output = self.graph.type(self.output), self.output
        expected = self.expected().reshape(-1)
        found = after[self.useful(output)].view(kind.dtype)
        if self.exact:
            wrong = (found != expected) & ~((found != found) & (expected != expected))
        elif kind.is_float:
            values = expected if self.node.op.mixes_types else np.append(expected, self.sums())
            scale = max(1e-30, float(np.max(np.abs(values))))
            wrong = ~(np.abs(found - expected) <= tolerance * scale)
        else:
            assert expected.dtype == kind.dtype, (expected.dtype, kind, self)
            wrong = found != expected
        if wrong.any():
            index = int(np.flatnonzero(wrong)[0])
            where = np.unravel_index(index, self.expected().shape[1:])
            raise AssertionError(
                f"{wrong.sum()} of {wrong.size} elements differ, first at (C, H, W) = {where}: "
                f"C++ {found[index]}, Python {expected[index]}\n{self}"
            )
        changed = set(np.flatnonzero(before != after).tolist()) - set(self.useful(output).tolist()) - set(self.kept())
        changed -= set(range(*self.scratch)) if self.scratch else set()
        assert not changed, f"bytes {sorted(changed)[:8]} outside the output were written\n{self}"

    def __str__(self) -> str:
        node = self.node
        tensors = "\n".join(
            f"  {name}: {self.graph.shape(name)} {self.graph.type(name)}\n    {self.planes[name]}" for name in self.planes
        )
        params = {role: (array.shape, array.dtype, array.reshape(-1)[:8].tolist()) for role, array in node.params.items()}
        return (
            f"case '{self.title}'\n  {node.op}\n  inputs {node.inputs}, rescale {node.rescale}\n"
            f"  clamp {node.clamp}, bound {node.bound}, activation {node.activation}\n  params {params}\n{tensors}"
        )


def array_text(array: Array) -> str:
    """The declaration and the definition of a constant array."""
    head = f"const {array.ctype} {array.name}"
    text = f"alignas(64) {head}[{array.values.size}] = {initializer(array.values, False)};"
    for number, form in enumerate(reversed(array.forms), 1):
        start = "#if" if number == len(array.forms) else "#elif"
        other = "#else\n" if number == 1 else ""
        text = (
            f"{start} {form.where}\nalignas(64) {head}[{form.values.size}] = {initializer(form.values, False)};\n{other}{text}"
        )
    text = f"extern {head}[];\n{text}" + ("\n#endif" if array.forms else "")
    return f"#if {array.where}\n{text}\n#endif" if array.where else text


def source(case: Case, index: int) -> str:
    """The C++ of one case: a namespace with `run(arena)`."""
    identifiers = Identifiers(case.graph)
    code = layer_code(case.node, case.graph, case.plan, identifiers, ExportChoices(prepacks_weights=case.prepacks))
    serial = any(one.constants.get("Serial", case.inplace) for one in code.structs if isinstance(one, LayerConfig))
    assert code.streamed or serial == (case.inplace and not case.element_by_element()), f"serial is {serial}\n{case}"
    planes = "\n".join(
        plane_struct(name, case.graph.tensors[name], plane, identifiers.tensor(name)) for name, plane in case.planes.items()
    )
    arrays = "\n".join(array_text(array) for array in code.constants)
    bases = "\n".join(f"    const unsigned char* in{i} = arena;" for i in range(len(case.node.inputs) - bool(case.run.aliases)))
    includes = "\n".join(f'#include "{header}"' for header in code.headers)
    call = code.statement.replace("\n", "\n    ")
    if code.streamed:
        tensor = case.node.inputs[0] if code.run.partial else case.node.output
        lines = height(case.graph.shape(tensor))
        step = 1 + index % 2
        call = (
            f"for (int first = 0; first < {lines}; first += {step}) {{\n        const int stop = n2d2::least(first + {step}, {lines});"
            f"\n        {call}\n    }}"
        )
    return (
        f"{includes}\nnamespace case{index} {{\n{planes}\n{arrays}\n{code.config}\n"
        f"void run(unsigned char* arena);\nvoid run(unsigned char* arena) {{\n{bases}\n"
        f"    unsigned char* out = arena;\n    {call}\n}}\n}}\n"
    )


def main_source(cases: list[Case]) -> str:
    """The program: `runner IN OUT`, both files being the arenas of all cases one after the other."""
    declarations = "\n".join(f"namespace case{i} {{ void run(unsigned char* arena); }}" for i in range(len(cases)))
    entries = ",\n    ".join(f"{{case{i}::run, {case.arena().size}}}" for i, case in enumerate(cases))
    return f"""#include <cstddef>
#include <cstdio>
#include <cstdlib>
{declarations}
struct Entry {{ void (*run)(unsigned char*); std::size_t bytes; }};
static const Entry entries[] = {{
    {entries}}};
int main(int argc, char** argv) {{
    if (argc != 3) return 2;
    std::FILE* const in = std::fopen(argv[1], "rb");
    std::FILE* const out = std::fopen(argv[2], "wb");
    if (!in || !out) return 3;
    for (const Entry& entry : entries) {{
        unsigned char* const all = static_cast<unsigned char*>(std::malloc(entry.bytes + 63));
        unsigned char* const arena = all + (64 - reinterpret_cast<std::size_t>(all) % 64) % 64;
        if (!all || std::fread(arena, 1, entry.bytes, in) != entry.bytes) return 4;
        entry.run(arena);
        if (std::fwrite(arena, 1, entry.bytes, out) != entry.bytes) return 5;
        std::free(all);
    }}
    return std::fclose(in) | std::fclose(out);
}}
"""


def compile_and_run(
    cases: list[Case], folder: Path, compiler: str = "g++", flags: tuple[str, ...] = ("-O1",), emulator: tuple[str, ...] = ()
) -> list[np.ndarray]:
    """The arenas after each case; sources have a hundred cases, and two are compiled at a time. Without the compiler the test is skipped."""
    need(compiler)
    units = 1 + len(cases) // 100
    folder.mkdir(parents=True, exist_ok=True)
    sources = [folder / "main.cpp", *(folder / f"unit{u}.cpp" for u in range(units))]
    sources[0].write_text(main_source(cases))
    for u in range(units):
        sources[1 + u].write_text("\n".join(source(case, i) for i, case in enumerate(cases) if i % units == u))

    def build(path: Path) -> None:
        run_command(
            compiler,
            *WARNINGS,
            "-Wcast-align" if "clang" in compiler else "-Wcast-align=strict",
            "-DN2D2_SCRATCH_MUST_FIT",
            *flags,
            f"-I{ROOT / 'kernels'}",
            "-c",
            path,
            "-o",
            path.with_suffix(".o"),
        )

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(build, sources))
    run_command(compiler, *flags, *(path.with_suffix(".o") for path in sources), "-o", folder / "runner")
    before = [case.arena() for case in cases]
    (folder / "in.bin").write_bytes(b"".join(arena.tobytes() for arena in before))
    run_command(*emulator, folder / "runner", folder / "in.bin", folder / "out.bin")
    after = np.frombuffer((folder / "out.bin").read_bytes(), np.uint8)
    assert after.size == sum(arena.size for arena in before)
    return np.split(after, np.cumsum([arena.size for arena in before])[:-1])


def check_all(
    cases: list[Case], folder: Path, compiler: str = "g++", flags: tuple[str, ...] = ("-O1",), emulator: tuple[str, ...] = ()
) -> None:
    """Runs the cases and checks each; the message of a failure counts the others."""
    failures = []
    for case, after in zip(cases, compile_and_run(cases, folder, compiler, flags, emulator), strict=True):
        try:
            case.check(case.arena(), after)
        except AssertionError as error:
            failures.append(str(error))
    assert not failures, f"{len(failures)} of {len(cases)} cases fail, the first:\n{failures[0]}"


def each_compiler(few: int, many: int) -> pytest.MarkDecorator:
    """Arguments `compiler` and `count` of a test: `few` cases in the fast run, `many` in each of the slow builds."""
    builds = (
        "g++ -O3 -march=native -fsanitize=address,undefined -fno-sanitize-recover",
        "clang++ -O0",
        "clang++ -O3 -march=native",
    )
    slow = [pytest.param(build, many, marks=pytest.mark.slow) for build in builds]
    return pytest.mark.parametrize("compiler, count", [("g++ -O0", few), *slow])


def printed_by(source: str, compiler: str, folder: Path) -> list[str]:
    """The words that a program prints."""
    need(compiler.split()[0])
    (folder / "main.cpp").write_text(source)
    run_command(*compiler.split(), *WARNINGS, f"-I{ROOT / 'kernels'}", "main.cpp", "-o", "main", cwd=folder)
    return run_command(folder / "main").split()
