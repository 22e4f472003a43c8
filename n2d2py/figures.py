"""Drawings: SVG text, element by element; colours come from style classes so that a page can restyle them."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from html import escape
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from n2d2py.files import write_text

STYLE = """
svg{font-family:system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
.bars{fill:#5b7fb5}.kept{fill:#5b7fb5;opacity:.13}.axis{stroke:#8a94a3;stroke-width:1}
.threshold{stroke:#d1443c;stroke-width:1.6}.candidate{stroke-width:2.2;fill:none}
.c0{stroke:#8a94a3}.c1{stroke:#d98a1f}.c2{stroke:#7b57b8}.c3{stroke:#2f9275}
.tick{font-size:9.5px;fill:#6b7585}.title{font-size:13px;font-weight:600;fill:#1d2530}
.note{font-size:11px;fill:#d1443c}
.box{fill:#fff;stroke:#aab4c2;stroke-width:1}.name{font-size:11px;font-weight:600;fill:#1d2530}
.info{font-size:10px;fill:#4b5666}.edge{fill:none;stroke:#8a94a3;stroke-width:1.3}.arrow{fill:#8a94a3}
.end{fill:#eef1f5;stroke:#8a94a3;stroke-width:1}
.k-conv{fill:#3f6fb5}
.k-dw{fill:#2f9275}.k-fc{fill:#7b57b8}.k-pool{fill:#d98a1f}.k-join{fill:#c4517f}.k-other{fill:#8a94a3}
"""
"""Light colours of all plots; the report's page holds its own, dark ones included."""
_CHART = """
.grid{stroke:#dde2e9;stroke-width:1}.line{fill:none;stroke:#5b7fb5;stroke-width:1.4}
.bars.weak{fill:#d1443c}.alone{stroke:#1d2530;stroke-width:1.4}
"""
_STYLES = {
    "memory": """
.grid{stroke:#dde2e9;stroke-width:1}.tag{font-size:9.5px;fill:#1d2530}
.buffer{fill-opacity:.72;stroke:#fff;stroke-width:.8}.buffer.wrapped{stroke:#1d2530;stroke-dasharray:3 2}
.scratch{fill:none;stroke:#d1443c;stroke-dasharray:2 2}
.h0{fill:#4a7cc4}.h1{fill:#d98a1f}.h2{fill:#2f9d7c}.h3{fill:#cf5c8b}.h4{fill:#9070cf}.h5{fill:#5aa5b8}.h6{fill:#b0913a}.h7{fill:#8a94a3}
""",
    "confusion": """
.frame{fill:none;stroke:#aab4c2}.hit{fill:#5b7fb5}.miss{fill:#d1443c}
.s1{fill-opacity:.22}.s2{fill-opacity:.38}.s3{fill-opacity:.55}.s4{fill-opacity:.75}.s5{fill-opacity:.95}
.count{font-size:10px;fill:#1d2530}.count.on4,.count.on5{fill:#fff}
""",
    "sqnr": _CHART,
    "chart": _CHART,
}
"""Further ones, of a kind of plot alone."""


def _escaped(text: str) -> str:
    """As XML holds it, which has no control characters and no halves of pairs."""
    return escape(re.sub(r"[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]", "\ufffd", text))


def number(value: float) -> str:
    """Return a coordinate with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")


def outline(edges: Iterable[float], levels: Iterable[float], bottom: float) -> str:
    """Return the path over bars between neighboring edges; runs of equal height are one segment."""
    first, *ends = edges
    path = f"M{number(first)} {number(bottom)}"
    for level, steps in groupby(zip(map(number, levels), ends, strict=True), key=itemgetter(0)):
        *_, (_, end) = steps
        path += f"V{level}H{number(end)}"
    return f"{path}V{number(bottom)}"


class Drawing(str):
    """SVG text, which a notebook shows."""

    __slots__ = ()

    def save(self, path: str | Path) -> None:
        """Write the file, .svg."""
        write_text(Path(path), f"{self}\n")

    def _repr_svg_(self) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"<drawing of {len(self):,} characters of SVG>"


class Svg:
    """Collects the elements of one plot of `width` x `height` pixels."""

    def __init__(self, width: float, height: float, kind: str, *, standalone: bool, title: str = ""):
        """`title` names a plot with links in it; without, it is one image for those who do not see it."""
        size = f'width="{number(width)}" height="{number(height)}"'
        box = f'viewBox="0 0 {number(width)} {number(height)}"'
        role = f'role="group" aria-label="{_escaped(title)}"' if title else 'role="img"'
        self._parts = [f'<svg xmlns="http://www.w3.org/2000/svg" class="{kind}" {box} {size} {role}>']
        if standalone:
            style = STYLE + _STYLES.get(kind, "")
            self._parts.append(f'<style>{style.strip()}</style><rect width="100%" height="100%" fill="#fff"/>')

    @contextmanager
    def link(self, target: str, mark: str, layer: int, title: str) -> Iterator[None]:
        """Link the shapes drawn inside to the element `target` of the page; they are themselves its element `mark`."""
        named = f' id="{mark}"' if mark else ""
        self._parts.append(f'<a href="#{target}"{named} data-layer="{layer}" aria-label="{_escaped(title)}">')
        yield
        self._parts.append("</a>")

    def rect(self, x: float, y: float, width: float, height: float, style: str, radius: float = 0, title: str = "") -> None:
        """Add a rectangle; `title` is shown when the pointer rests on it."""
        rounded = f' rx="{number(radius)}"' if radius else ""
        place = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
        self._element(f'rect class="{style}" {place}{rounded}', title)

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str, title: str = "") -> None:
        """Add a straight line."""
        self._element(f'line class="{style}" x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"', title)

    def path(self, d: str, style: str, title: str = "") -> None:
        """Add a path in SVG's path language."""
        self._element(f'path class="{style}" d="{d}"', title)

    def polyline(self, points: Iterable[tuple[float, float]], style: str) -> None:
        """Add straight lines from each point to the next."""
        self.path("M" + "L".join(f"{number(x)} {number(y)}" for x, y in points), style)

    def image(self, width: float, height: float, address: str) -> None:
        """Add an image over the rectangle from the origin."""
        self._parts.append(f'<image width="{number(width)}" height="{number(height)}" href="{address}"/>')

    def text(self, x: float, y: float, text: str, style: str, anchor: str = "middle") -> None:
        """One line of text with its baseline at y."""
        place = f'x="{number(x)}" y="{number(y)}" text-anchor="{anchor}"'
        self._parts.append(f'<text class="{style}" {place}>{_escaped(text)}</text>')

    def upright(self, x: float, y: float, text: str, style: str, anchor: str = "start") -> None:
        """One line of text that runs upwards, anchored at (x, y)."""
        place = f'transform="translate({number(x)} {number(y)}) rotate(-90)" text-anchor="{anchor}"'
        self._parts.append(f'<text class="{style}" {place}>{_escaped(text)}</text>')

    def inset(self, x: float, y: float, drawing: Drawing) -> None:
        """Add another plot, its left upper corner at (x, y)."""
        self._parts.append(drawing.replace("<svg ", f'<svg x="{number(x)}" y="{number(y)}" ', 1))

    def _element(self, opening: str, title: str) -> None:
        name = opening.split(" ", 1)[0]
        self._parts.append(f"<{opening}><title>{_escaped(title)}</title></{name}>" if title else f"<{opening}/>")

    def finish(self) -> Drawing:
        """Return the whole plot."""
        return Drawing("".join(self._parts) + "</svg>")
