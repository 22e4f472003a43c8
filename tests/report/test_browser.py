"""The report of a real export in a real browser: without complaints or requests, by mouse and keyboard, on a small screen."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.browser import Browser, browser
from support.programs import needs

import n2d2py
from n2d2py.cli import main
from n2d2py.report.command import main as report

ROOT = Path(n2d2py.__file__).resolve().parents[1]
MODELS = ROOT / "models"
NAMES = [f"digit {k} <&>" for k in range(10)]

needs_compiler = needs("g++", "make")
pytestmark = needs_compiler


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> Path:
    """LeNet with class names, tested, compared, timed."""
    folder = tmp_path_factory.mktemp("exported")
    (folder / "names.txt").write_text("\n".join(NAMES) + "\n")
    words = [str(MODELS / "LeNet.ini"), "-w", str(MODELS / "LeNet.npz"), "-export", "CPP", "-calib", "50", "-o", str(folder)]
    asked = ["-test", "-compare", "-sensitivity", "-latency", "20", "-class-names", str(folder / "names.txt")]
    assert main([*words, *asked, "-quiet"]) == 0
    return folder / "export_CPP_int8" / "statistics"


@pytest.fixture(scope="module")
def window(exported):
    with browser() as one:
        yield one


@pytest.fixture
def page(window, exported) -> Browser:
    window.requests()
    window.complaints()
    window.open(exported / "report.html")
    return window


def layers(page: Browser) -> list[str]:
    """The names in the table that are shown, from the top."""
    return [one.text for one in page.finds("#layer-table tbody tr:not([hidden]) th")]


def column(page: Browser, title: str) -> list[float]:
    heads = [one.text.split(" ▲")[0].split(" ▼")[0] for one in page.finds("#layer-table thead th")]
    cells = page.finds(f"#layer-table tbody tr > :nth-child({heads.index(title) + 1})")
    return [float(cell.text.replace(",", "")) for cell in cells]


def chosen(page: Browser) -> list[str]:
    return sorted(one.get_attribute("id") for one in page.finds(".chosen[id]"))


def in_view(page: Browser, element) -> bool:
    return page.run(
        "const r = arguments[0].getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight && r.right > 0", element
    )


@pytest.mark.parametrize("width", [1280, 360])
def test_no_complaints_no_requests_no_overflow(page, exported, width):
    page.open(exported / "report.html", width, 800)
    for one in page.finds("details:not([open]) > summary"):
        page.run("arguments[0].click()", one)
    assert page.complaints() == []
    assert {url for url in page.requests() if url != "about:blank"} == {(exported / "report.html").as_uri()}
    assert page.overflow() == 0


def test_the_policy_stops_what_is_not_the_page_s_own(page):
    page.run(
        "const s = document.createElement('script'); s.textContent = 'window.foreign = 1'; document.body.append(s);"
        "const i = new Image(); i.src = 'http://127.0.0.1:9/x.png'; document.body.append(i)"
    )
    assert page.run("return window.foreign") is None
    assert any("Content Security Policy" in line for line in page.complaints())


def test_one_screen_says_what_matters(page, exported):
    summary = json.loads((exported / "summary.json").read_text())
    shown = page.run(
        "return [...document.querySelectorAll('#overview .tile, #overview h2, #overview figure')]"
        ".filter(e => e.getBoundingClientRect().bottom <= innerHeight).map(e => e.innerText).join('\\n')"
    )
    memory, median = summary["memory"], summary["latency"]["median_us"]
    for value in (
        f"{summary['scores']['compiled']:.2f}%",
        *(f"{memory[part]:,} bytes" for part in ("ram", "arena", "stack", "flash", "code", "constants")),
        f"{median / 1000:.3g} ms" if median >= 1000 else f"{median:.3g} µs",
        "Time by layer",
        "Accuracy lost by layer",
        "Misclassified",
        "digit 3 <&>",
    ):
        assert value in shown, value
    assert memory["ram"] == memory["arena"] + memory["stack"] and memory["flash"] == memory["code"] + memory["constants"]
    pictures = page.finds("#overview figure img")
    assert pictures and all(page.run("return arguments[0].complete && arguments[0].naturalWidth > 1", one) for one in pictures)


def test_the_keyboard_sorts(page):
    order = layers(page)
    head = page.find("#layer-table thead th:nth-child(4)")
    assert head.text == "MACs" and head.get_attribute("aria-sort") == "none"
    page.run("arguments[0].firstElementChild.focus()", head)
    page.press("\ue007")  # Enter
    assert head.get_attribute("aria-sort") == "descending"
    assert column(page, "MACs") == sorted(column(page, "MACs"), reverse=True)
    page.press(" ")
    assert head.get_attribute("aria-sort") == "ascending" and column(page, "MACs") == sorted(column(page, "MACs"))
    page.press("\ue004", "\ue007")  # Tab, Enter: the next column
    assert head.get_attribute("aria-sort") == "none"
    assert page.find("#layer-table thead th:nth-child(5)").get_attribute("aria-sort") == "descending"
    page.press("\ue007", "\ue007")
    assert layers(page) == order and not page.finds("#layer-table th[aria-sort$=ending]")


def test_search_shows_the_rows_with_every_word(page):
    page.find("input[data-table]").send_keys("POOL 5x5")
    assert layers(page) == ["pool2"] and page.find("#layers .found").text == "1 of 8"
    page.press("\ue00c")  # Escape
    assert len(layers(page)) == 8 and page.find("#layers .found").text == ""


def test_from_the_drawing_to_the_table_and_back(page):
    page.find("input[data-table]").send_keys("fc2")
    page.find("#node-2").click()
    row = page.find("#layer-2")
    page.until(lambda: chosen(page))
    assert row.is_displayed() and in_view(page, row)  # the search that hid it is cleared
    assert chosen(page) == ["buffer-2", "layer-2", "node-2"]
    assert page.run("return document.activeElement.textContent") == "conv2"
    detail = page.find("#detail").text
    assert "conv2" in detail and "240,000" in detail and "5x5" in detail
    page.press("\ue007")  # the name of the layer leads back to its box
    page.until(lambda: page.run("return location.hash") == "#node-2" and in_view(page, page.find("#node-2 .box")))
    page.driver.back()
    page.until(lambda: page.run("return location.hash") == "#layer-2" and in_view(page, row))
    page.press("\ue00c")
    assert chosen(page) == [] and not page.find("#detail").is_displayed()


def test_from_the_memory_map_to_the_table(page):
    page.run("document.getElementById('buffer-0').focus()")
    page.press("\ue007")
    page.until(lambda: chosen(page))
    assert in_view(page, page.find("#layer-0")) and chosen(page) == ["buffer-0", "layer-0", "node-0"]


def test_the_table_fits_a_small_screen(page, exported):
    page.open(exported / "report.html", 360, 800)
    assert (
        page.run("const t = document.querySelector('#layer-table'); return t.scrollWidth - t.closest('.scroll').clientWidth")
        <= 0
    )
    heads = [one.text for one in page.finds("#layer-table thead th") if one.is_displayed()]
    assert heads == ["layer", "flash bytes", "time µs"]
    page.find("input[data-all]").click()
    assert "why" in [one.text for one in page.finds("#layer-table thead th") if one.is_displayed()]
    assert page.overflow() == 0


def test_the_drawing_grows_and_shrinks(page):
    width = "return document.querySelector('.drawing svg').getBoundingClientRect().width"
    before = page.run(width)
    page.find("[data-zoom='1']").click()
    assert page.run(width) == pytest.approx(1.25 * before, abs=1)
    page.find("[data-zoom='-1']").click()
    assert page.run(width) == pytest.approx(before, abs=1)


def test_two_exports_side_by_side(window, exported, tmp_path, capsys):
    summary = json.loads((exported / "summary.json").read_text())
    other = tmp_path / "other" / "statistics"
    other.mkdir(parents=True)
    summary["memory"].update(ram=2 * summary["memory"]["ram"], flash=summary["memory"]["flash"] // 2)
    summary["scores"]["compiled"] -= 1.5
    summary["table"][1]["median_us"] *= 3
    (other / "summary.json").write_text(json.dumps(summary))
    assert report([str(exported.parent), str(tmp_path / "other"), "-o", str(tmp_path / "both.html")]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^score compiled +\d+\.\d\d% +\d+\.\d\d%$", printed, re.MULTILINE)
    window.requests()
    window.complaints()
    for width in (1280, 360):
        window.open(tmp_path / "both.html", width)
        rows = {row.text.split()[0]: row for row in window.finds(".figures tbody tr")}
        assert rows["RAM"].text.endswith("+100.0%") and window.finds(".figures .worse")
        assert window.find("#layer-table tbody tr:nth-child(2)").text.endswith("+200.0%") or width > 360
        assert window.overflow() == 0 and window.complaints() == []
    assert {url for url in window.requests() if url != "about:blank"} == {(tmp_path / "both.html").as_uri()}


def test_the_command_as_a_program(exported, tmp_path):
    def run(*words: str) -> subprocess.CompletedProcess:
        program = [sys.executable, "-m", "n2d2py.report.command", *words]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(program, cwd=tmp_path, text=True, capture_output=True, env=environment, timeout=60)

    one = run(str(exported.parent))
    assert one.returncode == 0 and "latency" in one.stdout and list(tmp_path.iterdir()) == []
    wrong = run(str(tmp_path), str(exported))
    assert wrong.returncode == 1 and wrong.stderr.startswith("error N2D2-E730: ") and len(wrong.stderr.splitlines()) == 1
    assert run(str(exported), str(exported), str(exported)).returncode == 2
    (tmp_path / "summary.json").write_text('{"memory": 3}')
    assert "cannot be read" in run(str(tmp_path)).stderr
