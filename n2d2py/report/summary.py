"""The figures of an export: `statistics/summary.json` for other programs, and the head of the page with its rankings of layers."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from n2d2py.files import finite
from n2d2py.report.comparison import loss_shares
from n2d2py.report.data import Footprint, ReportData
from n2d2py.report.in_float import float_layers_in, float_shares
from n2d2py.report.layers import LayerRow, layer_times, totals
from n2d2py.report.text import decimal, grouped, short_bytes, short_count
from n2d2py.targets import Score, agreement, common_positions

SCORE_LABELS = ("float", "simulated", "compiled")


def footprint(data: ReportData, rows: Sequence[LayerRow]) -> Footprint:
    """RAM and flash: as built, else as planned."""
    if data.built is not None:
        return data.built
    arena = sum(data.plan.used) + data.qgraph.state_bytes if data.plan is not None else None
    unpacked = sum(choice.prepacked_bytes for choice in data.kernels.values())
    return Footprint(arena, None, totals(rows).flash_bytes, None, "as planned, not built", unpacked=unpacked or None)


def summary(data: ReportData, rows: Sequence[LayerRow]) -> dict[str, Any]:
    """Network, precision, cost, scores and comparison as JSON data.

    `scores` holds top-1 percent by label, null where not run or not labelled; `mse` the same for auto-encoders, only when there
    is one. `samples`: how many each score has; `shared_samples`: how many of these the score of the float network has too,
    `agreement`: percent of them with the same label there. An SQNR without any error is null, and a figure that is not finite.
    `prepacked_weights_bytes`: static memory of weights that are unpacked once; left out where there are none. `memory` has RAM
    and flash with their parts, null where not measured; `latency` only when it was timed, `instructions` when they were
    counted; `table` a record for each layer. `in_float`: the layers that stay in floating point, and their shares.
    """
    sums, prepacked = totals(rows), sum(choice.prepacked_bytes for choice in data.kernels.values())
    others = [label for label, _ in data.scores if label not in SCORE_LABELS]  # of targets with a runner of their own
    in_float = float_layers_in(data.qgraph, data.graph)
    macs, size = float_shares(in_float)
    scores = {label: data.score(label) for label in dict.fromkeys((*SCORE_LABELS, *others))}
    result: dict[str, Any] = {
        "network": data.network,
        "nbbits": data.qgraph.bits,
        "arena_bytes": sum(data.plan.used) if data.plan is not None else None,
        **(
            {"memories": dict(zip((each.name for each in data.plan.memories), data.plan.used, strict=True))}
            if data.plan and data.plan.memories
            else {}
        ),
        **({"state_bytes": data.qgraph.state_bytes} if data.qgraph.states else {}),
        "weights_bytes": sums.parameter_bytes,
        "packed_weights_bytes": sums.flash_bytes,
        **({"prepacked_weights_bytes": prepacked} if prepacked else {}),
        "parameters": sums.parameters,
        "macs": sums.macs,
        "layers": sums.layers,
        "in_float": {"layers": [one.layer for one in in_float], "macs_percent": 100 * macs, "bytes_percent": 100 * size},
        "scores": {label: score.percent if score is not None else None for label, score in scores.items()},
    }
    known = {label: score for label, score in scores.items() if score is not None}
    result["samples"] = {label: len(score.indices) for label, score in known.items()}
    if (base := known.pop("float", None)) is not None:
        result["shared_samples"] = {label: len(common_positions(base, score)[0]) for label, score in known.items()}
        result["agreement"] = {label: agreement(base, score) for label, score in known.items()}
    if any(score is not None and score.errors is not None for score in scores.values()):
        result["mse"] = {label: score.mse if score is not None else None for label, score in scores.items()}
    names = "sqnr_db cosine max_error saturated_percent unused_percent alone_sqnr_db identical".split()
    result["compare"] = {}
    for c in data.comparisons:
        figures = c.sqnr_db, c.cosine, c.max_error, 100 * c.saturated, 100 * c.unused, c.alone_db, c.identical
        result["compare"][c.layer] = dict(zip(names, figures, strict=True))
    if data.biases is not None:
        result["bias_correction"] = data.biases.as_dict()
    memory = footprint(data, rows)
    parts = {name: value for name, value in asdict(memory).items() if name != "unpacked" or value is not None}
    result["memory"] = {**parts, "ram": memory.ram, "flash": memory.flash}
    if data.latency is not None:
        time = data.latency
        names = "median_us least_us threads inferences limit_percent source"
        figures = time.median_us, time.least_us, time.threads, time.inferences, time.bound, time.source
        result["latency"] = dict(zip(names.split(), figures, strict=True))
    if data.instructions is not None:
        result["instructions"] = dict(zip(("processor", "count", "every_input"), data.instructions, strict=True))
    result["table"] = _layers(data, rows)
    return finite(result)


def _layers(data: ReportData, rows: Sequence[LayerRow]) -> list[dict[str, Any]]:
    times, losses = layer_times(data, rows), loss_shares(data.losses)
    compared = {c.layer: c.sqnr_db for c in data.comparisons}
    found: list[dict[str, Any]] = []
    for k, row in enumerate(rows):
        time = times.get(k)
        sizes = {key: getattr(row, key) for key in ("macs", "parameter_bytes", "flash_bytes", "activation_bytes")}
        timed = {"median_us": time.median_us if time else None, "limit_percent": time.limit if time else None}
        cost = {"sqnr_db": compared.get(row.name), "loss_percent": losses.get(row.name)}
        first = {"layer": row.name, "type": row.type, "output": row.output_dims}
        found.append({**first, **sizes, **timed, **cost, "implementation": row.implementation})
    return found


@dataclass(frozen=True)
class Piece:
    """A part of a figure: its name, its value as text, its share in percent, and its colour by number."""

    name: str
    value: str
    share: float = 0.0
    hue: int = 0


@dataclass(frozen=True)
class Tile:
    """A figure: what it is made of, who says so; `alarm` when it needs attention."""

    name: str
    value: str
    note: str = ""
    source: str = ""
    parts: tuple[Piece, ...] = ()
    alarm: bool = False


@dataclass(frozen=True)
class Bar:
    """A layer in a ranking: number of its row, text next to the bar, length and mark on it in percent of the width."""

    row: int
    layer: str
    text: str
    length: float
    mark: float | None = None


def tiles(data: ReportData, rows: Sequence[LayerRow]) -> list[Tile]:
    """Return the figures in the order of the page."""
    sums, memory = totals(rows), footprint(data, rows)
    work = tuple(Piece(name, grouped(getattr(sums, name.lower()))) for name in ("MACs", "parameters", "layers"))
    tested = any(data.score(label) is not None for label in SCORE_LABELS)
    why = "not measured by the -test of this export" if tested else "not measured: add -test"
    return [
        _score(data),
        _bytes("RAM", memory.ram, memory.ram_parts("stack, at most"), memory.source, why),
        _bytes("flash", memory.flash, {"code": memory.code, "constants": memory.constants}, memory.source, why),
        _latency(data),
        Tile("work", short_count(sums.macs), "multiply-accumulates of an inference", "the typed network", work),
        *_estimate(data),
        *_identity(data),
    ]


def _estimate(data: ReportData) -> list[Tile]:
    if not data.estimate:
        return []
    source, (name, value), *others = data.estimate.items()
    return [Tile(name, value, source[1], source[0], tuple(Piece(*each) for each in others))]


def _score(data: ReportData) -> Tile:
    scores = [(label, score) for label in SCORE_LABELS if (score := data.score(label)) is not None]
    if not scores:
        return Tile("score", "–", "not run: add -test", "")
    deployed, score = scores[-1]
    parts = tuple(Piece(label, _score_text(one)) for label, one in scores)
    name, value, note = "score", _score_text(score), f"{score.stimuli} stimuli without labels"
    if score.errors is not None:
        name, auc = "mean squared error", "" if score.auc is None else f", AUC {score.auc:.4f}"
        note = f"{score.stimuli} stimuli{auc}"
    elif score.detections is not None:
        details = ", ".join(f"{key}: {text}" for key, text in score.detections.details.items())
        name, note = score.detections.metric, f"{details}, {score.stimuli} stimuli"
    elif score.top1 is not None:
        value, note = f"{score.top1:.2f}%", f"{score.correct} of {score.count}"
        note += f", top-{score.top_n} {score.topn:.2f}%" if score.topn is not None else ""
    return Tile(name, value, note, f"{deployed}, -test", parts)


def _score_text(score: Score) -> str:
    if score.errors is not None:
        return decimal(score.mse, 5) or "–"
    return "–" if score.percent is None else f"{score.percent:.2f}%"


def _bytes(name: str, total: int | None, parts: dict[str, int | None], source: str, why: str) -> Tile:
    known = {key: size for key, size in parts.items() if size is not None}
    value = short_bytes(total) if total is not None else f"≥ {short_bytes(sum(known.values()))}" if known else "–"
    missing = [key for key, size in parts.items() if size is None]
    whole = max(1, sum(known.values()))
    note = f"{grouped(total)} bytes" if total is not None else f"{' and '.join(missing)} {why}"
    pieces = [
        Piece(key, f"{grouped(size)} bytes", 100 * size / whole, hue)
        for hue, (key, size) in enumerate(parts.items())
        if size is not None
    ]
    return Tile(name, value, note, source, tuple(pieces))


def _latency(data: ReportData) -> Tile:
    time = data.latency
    if time is None and data.instructions is not None:
        core, count, bound = data.instructions
        scope = "the same for every input" if bound else "of the first stimulus; other data may take others"
        return Tile("instructions", grouped(count), f"an inference on {core}", scope)
    if time is None:
        return Tile("latency", "–", "not measured: add -latency", "")
    bound = "" if time.bound is None else f", {time.bound:.0f}% of the machine's limit"
    threads = f"{time.threads} thread{'s' if time.threads > 1 else ''}"
    source = f"{time.inferences} inferences, {threads}, {time.source}"
    return Tile("latency", short_time(time.median_us), f"median; least {short_time(time.least_us)}{bound}", source)


def short_time(microseconds: float) -> str:
    """Return a duration with three digits, in us or ms."""
    return f"{microseconds / 1000:.3g} ms" if microseconds >= 1000 else f"{microseconds:.3g} µs"


def _identity(data: ReportData) -> list[Tile]:
    tested = [c for c in data.comparisons if c.identical is not None]
    if not tested:
        return []
    wrong = [c.layer for c in tested if not c.identical]
    value, note = ("no", f"first difference in {wrong[0]}") if wrong else ("yes", f"all {len(tested)} layers")
    return [Tile("compiled = simulated", value, note, "-compare, every value of every layer", alarm=bool(wrong))]


def latency_bars(data: ReportData, rows: Sequence[LayerRow]) -> list[Bar]:
    """Return the layers by their time, the longest first; the mark is where the machine's limit would be."""
    times = layer_times(data, rows)
    total = sum(time.median_us for time in times.values()) or 1.0
    longest = max((time.median_us for time in times.values()), default=0.0) or 1.0
    bars = []
    for row, time in sorted(times.items(), key=lambda one: -one[1].median_us):
        length, limit = 100 * time.median_us / longest, time.limit
        text = f"{short_time(time.median_us)}, {100 * time.median_us / total:.0f}%"
        text += "" if limit is None else f", {limit:.0f}% of the limit"
        bars.append(Bar(row, rows[row].name, text, length, None if limit is None else length * min(limit, 100.0) / 100))
    return bars


def loss_bars(data: ReportData, rows: Sequence[LayerRow]) -> list[Bar]:
    """Return the layers by what their integers cost, the worst first."""
    numbers = {row.name: k for k, row in enumerate(rows)}
    shares = loss_shares(data.losses)
    most = max((loss.power for loss in data.losses), default=0.0) or 1.0
    return [
        Bar(numbers[loss.layer], loss.layer, f"{shares[loss.layer]:.1f}%, mostly its {loss.cause}", 100 * loss.power / most)
        for loss in data.losses
        if loss.layer in numbers
    ]
