"""Figures of matplotlib: made without a display and without pyplot, they show themselves in notebooks."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Any

from n2d2py.errors import N2D2Error

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def can_draw() -> bool:
    """True if matplotlib is installed; results that are optional are not drawn without it."""
    return find_spec("matplotlib") is not None


def new_figure(width: float, height: float, *, code: str = "E454", what: str = "the plot", **more: Any) -> Figure:
    """Return an empty figure of this size in inches, 100 dots per inch; `more` goes to `matplotlib.figure.Figure`.

    Raises:
        N2D2Error: `code` without matplotlib; `what` needs it.
    """
    try:
        return _figure_class()(figsize=(width, height), dpi=100, **more)
    except ImportError as error:
        raise N2D2Error(code, f"{what} requires matplotlib", remedy="pip install 'n2d2py[plots]'") from error


@cache
def _figure_class() -> type[Figure]:
    """Return the class, made when it is first needed: nothing else imports matplotlib."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        """A figure that a notebook shows when it is the value of a cell."""

        def __init__(self, **given: Any):
            super().__init__(**given)
            FigureCanvasAgg(self)

        def _repr_png_(self) -> bytes:
            file = BytesIO()
            self.savefig(file, format="png", bbox_inches="tight", metadata={"Software": None})
            return file.getvalue()

    return ShownFigure
