"""Networks in the styles that users of N2D2 write: each is described with the dimensions that its first lines state."""

from pathlib import Path

from support.model_run import dims, warnings
from support.tables import every

FOLDER = Path(__file__).parent / "styles"
NOT_RUN = {"detection_heads", "faster_rcnn"}
"""Networks with layers that have dimensions only."""


def stated(path: Path) -> dict[str, list[int]]:
    """The dimensions X Y C of the lines `;= layer X Y C`."""
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    return {words[1]: [int(word) for word in words[2:]] for words in map(str.split, lines) if words[:1] == [";="]}


@every("name", sorted(path.stem for path in FOLDER.glob("*.ini")))
def test_dimensions(name):
    path = FOLDER / f"{name}.ini"
    expected = stated(path)
    if name == "windows":  # the repository keeps no carriage returns
        path = Path("windows.ini")
        path.write_bytes((FOLDER / path).read_bytes().replace(b"\n", b"\r\n"))
    found = dims(path)
    assert {layer: found.get(layer) for layer in expected} == expected and len(expected) > 1
    said = [line for line in warnings() if "W108" not in line]  # keys of training and the like
    unexpected = [line for line in said if not (name in NOT_RUN and ("W226" in line or "'Operation'" in line))]
    assert unexpected == []
