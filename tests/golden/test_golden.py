"""The golden records change on purpose only; `bin/records --diff` shows how, `bin/records` accepts it."""

import pytest
from support.records import FOLDER, NETWORKS, difference, layer_records, network_record

LARGE = {"VGG16", "ResNet-50"}


def _kept_layers() -> dict[str, str]:
    parts = (FOLDER / "layers.txt").read_text(encoding="utf-8").rstrip("\n").split("\n\n== ")
    return dict(part.removeprefix("== ").split("\n", 1) for part in parts)


def test_layers():
    kept, found = _kept_layers(), layer_records()
    assert [form for form in {**kept, **found} if kept.get(form) != found.get(form)] == []


@pytest.mark.parametrize(
    "path", [pytest.param(one, id=one.stem, marks=[pytest.mark.slow] * (one.stem in LARGE)) for one in NETWORKS]
)
def test_networks(path):
    assert difference(FOLDER / "networks" / f"{path.stem}.txt", f"{network_record(path)}\n") == ""
