"""`python tests/conformance/operators_page.py` writes docs/operators.md: every operator with what became of its node tests."""

import sys
from collections import Counter, defaultdict
from pathlib import Path

import onnx

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]

from support.conformance_cases import EXCLUDED, LISTED, Case, Outcome, load_cases, run_case  # noqa: E402

from n2d2py.contracts.onnx.nodes import CONVERTERS, ONNX_FUNCTIONS  # noqa: E402
from n2d2py.errors import ErrorList, N2D2Error  # noqa: E402
from n2d2py.frontend.onnx.parts import EXPANSIONS  # noqa: E402
from n2d2py.quant.types.float_fallback import float_layers, insert_conversions  # noqa: E402

__all__ = ["page"]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operators.md"


def page(outcomes: list[tuple[Case, Outcome]]) -> str:
    """The text of the page."""
    by_operator: dict[str, list[tuple[Case, Outcome]]] = defaultdict(list)
    for case, outcome in outcomes:
        by_operator[case.operator].append((case, outcome))
    reals, listed = (
        [o.state for c, o in outcomes if chosen(c)] for chosen in (lambda c: c.is_real, lambda c: c.operator in LISTED)
    )
    lines = [
        "# ONNX operators",
        "",
        "Written by `python tests/conformance/operators_page.py` from the node tests of the onnx package "
        f"{onnx.__version__} (opsets up to {onnx.defs.onnx_opset_version()}): those whose tensors are numbers or truth "
        "values of fixed sizes. Each is imported with all inputs at run time and, where that is refused, with all but one "
        "constant. A test passes when the result is right in Python; the compiled C++ is compared by "
        "`tests/conformance` (`N2D2PY_NIGHTLY=1 bin/test -m slow tests/conformance` for all of them).",
        "",
        f"- tests with floating-point tensors: {reals.count('passed')} of {len(reals)} pass "
        f"({100 * reals.count('passed') // len(reals)} %), the others are refused, {reals.count('wrong')} are wrong",
        f"- tests of the operators marked *: {listed.count('passed')} of {len(listed)} pass, "
        f"{listed.count('refused')} are refused for the reasons given",
        "- quantized operators with scales that are inputs compute with integers of fixed types; networks of static scales keep "
        "them: see [quantized models](reference/quantized_files.md)",
        "",
        "Integer export: *integers* throughout, in *floating point* between conversions (bit for bit the same in Python "
        "and C++), *fixed types* (integers and truth values, the same in every export), or *refused*; single nodes, before "
        "anything is fused. Operators without tests of their own, and those that ONNX defines by others, work as far "
        "as their parts do.",
        "",
        "| operator | passed | integer export | refused |",
        "|---|---|---|---|",
    ]
    for operator in sorted(by_operator.keys() - {""}):
        lines.append(row(operator, by_operator[operator]))
    rest = by_operator[""]
    lines += [row("(networks of several)", rest)] if rest else []
    untested = sorted({*CONVERTERS, *ONNX_FUNCTIONS, *EXPANSIONS} - by_operator.keys())
    return "\n".join([*lines, "", f"Supported without node tests here: {', '.join(untested)}.", ""])


def row(operator: str, pairs: list[tuple[Case, Outcome]]) -> str:
    """The line of an operator."""
    passed = [outcome for _, outcome in pairs if outcome.state == "passed"]
    forms = Counter(_form(outcome) for outcome in passed)
    reasons = Counter(
        EXCLUDED.get(case.name) or _reason(outcome.reason) for case, outcome in pairs if outcome.state == "refused"
    )
    texts = [f"{reason} ({count})" for reason, count in reasons.most_common(3)]
    texts += [f"{sum(reasons.values()) - sum(c for _, c in reasons.most_common(3))} others"] if len(reasons) > 3 else []
    star = " *" if operator in LISTED else ""
    return (
        f"| {operator}{star} | {len(passed)} of {len(pairs)} | {', '.join(form for form, _ in forms.most_common())} | "
        f"{'; '.join(texts)} |"
    )


def _form(outcome: Outcome) -> str:
    graph = outcome.graph
    if any(tensor.kind for tensor in graph.tensors.values()) and not any(
        not tensor.kind for name, tensor in graph.tensors.items() if name not in graph.inputs
    ):
        return "fixed types"
    try:
        insert_conversions(graph)
    except (N2D2Error, ErrorList):
        return "refused"
    return "floating point" if float_layers(graph) else "integers"


def _reason(text: str) -> str:
    """The reason of a refusal without file, node and remedy."""
    what = text.split("cannot be imported: ")[-1] if "cannot be imported: " in text else text.split(": ", 2)[-1]
    return what.split("; ")[0].replace("|", "/")


def main() -> None:
    """Writes the page."""
    PAGE.write_text(page([(case, run_case(case)) for case in load_cases()]), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
