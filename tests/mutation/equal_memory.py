"""Mutants of n2d2py/memory that no test can tell from the original: see `equivalent.py`."""

from __future__ import annotations

from entry import Equivalent

__all__ = ["EQUIVALENT"]

EQUIVALENT: tuple[Equivalent, ...] = (
    Equivalent(
        "n2d2py/memory/optimal.py",
        "solve",
        "j < i",
        "j >= i",
        "Neighbours know each other, by the same pair, and no block itself: either half of them is all.",
    ),
    Equivalent(
        "n2d2py/memory/case.py",
        "Case.__init__",
        "op['inputs'][0] in self.outside",
        "op['inputs'][-1] in self.outside",
        "A reshape has one input, which is the first and the last.",
    ),
    Equivalent(
        "n2d2py/memory/case.py",
        "Case.__init__",
        "self.outside.add(op['inputs'][0])",
        "self.outside.add(op['inputs'][-1])",
        "A reshape has one input, which is the first and the last.",
    ),
    Equivalent(
        "n2d2py/memory/modes.py",
        "budget_curve",
        "budget >= points[-1][0]",
        "budget >= points[-0][0]",
        "Only time is saved: a budget that the last point keeps gives that point again, and points that are not smaller are left out.",
    ),
    Equivalent(
        "n2d2py/memory/modes.py",
        "_streamed",
        "plan.arena_bytes <= budget or aim == 0",
        "plan.arena_bytes <= budget or aim == -1",
        "Only time is saved: an aim of 0 stays 0, and gives the same plan again.",
    ),
    Equivalent(
        "n2d2py/memory/generate.py",
        "Generation._shared",
        "windowed",
        "True",
        "Who takes it looks at dead lines for windows only; the other accesses have a rule for them all the same.",
    ),
    Equivalent(
        "n2d2py/memory/generate.py",
        "Generation._shared",
        "op.dead(tensor) if windowed else lambda y: 0",
        "op.dead(tensor) if windowed else lambda y: 1",
        "Who takes it looks at dead lines for windows only.",
    ),
    Equivalent(
        "n2d2py/memory/generate.py",
        "Generation._shared",
        "op.dead(tensor) if windowed else lambda y: 0",
        "op.dead(tensor) if windowed else lambda y: -1",
        "Who takes it looks at dead lines for windows only.",
    ),
    Equivalent(
        "n2d2py/memory/manager.py",
        "SpacePlane.limit",
        "self.form.count == 1",
        "self.form.count == 0",
        "A plane of one line is as long as its line, of which none fits where there is less room.",
    ),
    *(
        Equivalent(
            f"n2d2py/memory/{file}", function, unknown, "True", "What is remembered is computed again, with the same result."
        )
        for file, function, unknown in (
            ("case.py", "Case.addresses", "name not in self._places"),
            ("cut.py", "Cutter.ends", "begin not in self._ends"),
            ("cut.py", "Cutter.weigh", "(begin, end) not in self._weighed"),
            ("cut.py", "Cutter._pairs", "key not in self._ahead"),
            ("replay_lines.py", "LineReplay._line_reads", "key not in self._known"),
            ("rows.py", "KnownRows.reads", "(op.name, name) not in self._reads"),
            ("rows.py", "KnownRows.rows", "key not in self._rows"),
            ("rows.py", "Rows.ring", "n not in self._rings"),
            ("stamps.py", "Stamps._touches", "key not in self._touched"),
        )
    ),
    *(
        Equivalent(
            f"n2d2py/memory/{file}",
            function,
            text,
            text.replace("-1", "-2"),
            "Any address below 0 says that a block is not placed, and in the end all are.",
        )
        for file, function, text in (
            ("packing.py", "Packing.first_fit", "[-1] * len(self.blocks)"),
            ("packing.py", "Packing.refit", "[-1] * len(self.blocks)"),
            ("relax.py", "_Fitter.fit", "([-1] * len(order), {}, 0, 0)"),
        )
    ),
    Equivalent(
        "n2d2py/memory/search.py",
        "best_packing",
        "not possible",
        "False",
        "Only time is saved: without concatenations all of them in place are none.",
    ),
    Equivalent(
        "n2d2py/memory/packing.py",
        "Packing.moved",
        "max(order.index(p.source), order.index(p.output))",
        "min(order.index(p.source), order.index(p.output))",
        "A block is placed by those before it in the order: between the first and the second of a pair nothing is placed elsewhere.",
    ),
    # searches that end at what is known to be the least
    *(
        Equivalent(f"n2d2py/memory/{file}", function, text, mutated, reason)
        for file, function, text, others, reason in (
            (
                "relax.py",
                "relax",
                "cost == fitter.least",
                ("False",),
                "Only time is saved: no placement in the arena costs less than `least`, so what is tried further is not better.",
            ),
            (
                "search.py",
                "improve",
                "best.bytes <= packing.bound",
                ("best.bytes < packing.bound", "False"),
                "Only time is saved: no placement has fewer bytes than the bound, and of equal ones the first stays.",
            ),
            (
                "search.py",
                "_starts",
                "made[-1][2].bytes <= packing.bound",
                ("made[-1][2].bytes < packing.bound", "False"),
                "Only time is saved: no placement has fewer bytes than the bound, and of equal ones the first is taken.",
            ),
            (
                "search.py",
                "best_packing",
                "other.bound < best.bytes",
                ("other.bound <= best.bytes", "True"),
                "Only time is saved: no placement has fewer bytes than its bound, and only one with fewer is taken.",
            ),
            (
                "stream.py",
                "StreamPlanner._packed",
                "packing.bound >= best[1].bytes",
                ("packing.bound > best[1].bytes",),
                "Only time is saved: no placement has fewer bytes than its bound, and only one with fewer is taken.",
            ),
        )
        for mutated in others
    ),
    # how an output may lie over an input: by the kind of access, or by whether both have one shape
    *(
        Equivalent(
            f"n2d2py/memory/{file}",
            function,
            f"op.access.over({source}, output)",
            f"op.access.over(output, {source})",
            "It is said by the kind of access alone, or by whether both shapes are the same.",
        )
        for file, function, source in (
            ("generate.py", "Generation._shared", "tensor"),
            ("overlap.py", "reach", "source"),
            ("packing.py", "Packing._same_place", "source"),
            ("rows.py", "lines_read", "source"),
            ("rows.py", "streamable", "problem.tensors[name]"),
        )
    ),
    # what a legend shows of a mark
    *(
        Equivalent(
            "n2d2py/memory/picture.py",
            "plan_figure",
            text,
            text.replace("(0, 0), 1, 1", form),
            "A legend draws a mark in its own place and size, with the colours, lines and hatch of the rectangle that it is given.",
        )
        for text in (
            "Rectangle((0, 0), 1, 1, facecolor='white', edgecolor='black', hatch=hatch, label=label)",
            "Rectangle((0, 0), 1, 1, facecolor='none', edgecolor='red', linestyle=':', label='scratch')",
        )
        for form in (
            *("(1, 0), 1, 1", "(-1, 0), 1, 1", "(0, 1), 1, 1", "(0, -1), 1, 1"),
            *("(0, 0), 2, 1", "(0, 0), 0, 1", "(0, 0), 1, 2", "(0, 0), 1, 0"),
        )
    ),
    Equivalent(
        "n2d2py/memory/relax.py",
        "_State._critical",
        "not chosen or rng.random() < 0.2",
        "not chosen or rng.random() <= 0.2",
        "`random()` gives multiples of 2^-53, and the double nearest to 0.2 is none.",
    ),
    Equivalent(
        "n2d2py/memory/cut.py",
        "_gain",
        "over[0].output",
        "over[-1].output",
        "All are distances of one output, y, whose bytes are in each of them.",
    ),
    Equivalent(
        "n2d2py/memory/strip_search.py",
        "StripSearch.__init__",
        "range(2, len(self._ops) + 1)",
        "range(1, len(self._ops) + 1)",
        "Strips and slices are of two operators at least: nothing is added for an end behind the first one.",
    ),
    *(
        Equivalent(
            "n2d2py/memory/manager.py",
            function,
            f"_meet({first}, {second})",
            f"_meet({second}, {first})",
            "Whether ranges of two lists share a byte does not depend on which list is the first.",
        )
        for function, first, second in (
            ("Share.safe", "self.source.intervals", "self.output.intervals"),
            ("Share._safe_lines", "[(begin, begin + output.form.line)]", "live"),
            ("Share._in_step", "[(into, into + output.form.line)]", "[(own, own + source.form.line)]"),
        )
    ),
    *(
        Equivalent(
            f"n2d2py/memory/{file}",
            function,
            "break",
            "continue",
            "Only time is saved: the ranges are sorted, so that all later ones begin there or further, and leave the address as it is.",
        )
        for file, function in (
            ("placement.py", "_lowest_gap"),
            ("packing.py", "Packing._lowest"),
            ("relax.py", "_Fitter._lowest"),
        )
    ),
)
