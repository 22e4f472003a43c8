"""Pages from templates: one file each, whose own style and script are the only ones that it allows."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from typing import Any

import numpy as np

from n2d2py.report.comparison import inline_picture
from n2d2py.report.text import decimal, grouped, short_bytes, short_count
from n2d2py.resources import folder, templates


def rendered(name: str, **values: Any) -> str:
    """Return the page of a template in export_templates/report.

    Its content security policy (https://www.w3.org/TR/CSP3/) names the digests of `page.css` and `page.js`: no other style
    or script runs, whatever the names in the page are, and nothing is asked of any host.
    """
    home = folder("export_templates") / "report"
    style, script = ("\n" + (home / file).read_text(encoding="utf-8") for file in ("page.css", "page.js"))
    policy = (
        f"default-src 'none'; img-src data:; style-src {_digest(style)}; script-src {_digest(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    environment = templates("report", escape=True)
    environment.filters.update(grouped=grouped, bytes=short_bytes, count=short_count, decimal=decimal)
    return environment.get_template(name).render(style=style, script=script, policy=policy, icon=_icon(), **values)


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


def _icon() -> str:
    """Return the logo next to the title: three bars."""
    image = np.full((16, 16, 3), 255, np.uint8)
    for k, top in enumerate((9, 5, 2)):
        image[top:14, 2 + 4 * k : 5 + 4 * k] = (47, 107, 189)
    return inline_picture(image)
