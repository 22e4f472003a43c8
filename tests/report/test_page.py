"""The folder of a report: the same bytes every time, pictures that are well formed, a page that is complete."""

import base64
import dataclasses
import hashlib
import json
import re
import time
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import numpy as np
import pytest
from support import report_networks as networks
from support.small_graphs import Net

from n2d2py.arithmetic.sensor import read_sensor
from n2d2py.graph.inputs import InputContract, PixelMap
from n2d2py.postprocessing.results import ClassScore, Decision, Detection, KeyPoint
from n2d2py.quant.observe.worst import stimulus_picture
from n2d2py.report import InputImage, write_report
from n2d2py.report.comparison import inline_picture
from n2d2py.report.drawing import draw_memory, draw_network
from n2d2py.report.pipeline import PipelineData, PipelineSample, PipelineStage

SVG = "{http://www.w3.org/2000/svg}"
VOID = {"meta", "br", "input", "img", "link", "hr"}


class Checker(HTMLParser):
    """Collects tags, text and links; raises where elements are not closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.links, self.tags, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for key, value in attrs if key in ("href", "src")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def parsed(page: str) -> Checker:
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    return checker


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    data = networks.report_data(networks.small())
    folder = tmp_path_factory.mktemp("statistics")
    write_report(data, folder)
    return data, folder


def test_equal_data_give_equal_bytes(written, tmp_path):
    _data, folder = written
    write_report(networks.report_data(networks.small()), tmp_path)
    for path in folder.rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / path.relative_to(folder)).read_bytes(), path.name


def test_the_page_is_self_contained_and_complete(written):
    data, folder = written
    text = (folder / "report.html").read_text(encoding="utf-8")
    page = parsed(text)
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in page.links)
    assert "http" not in re.sub(r'xmlns="[^"]*"|http-equiv=', "", text) and "@import" not in text and "url(" not in text
    anchors = re.findall(r' id="([^"]*)"', text)
    assert len(anchors) == len(set(anchors))
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(anchors)
    words = " ".join(page.text)
    simulated = data.score("simulated")
    for expected in (
        f"{simulated.top1:.2f}%",
        f"{simulated.correct} of {simulated.count}",
        "24,096",
        f"{data.plan.arena_bytes:,} bytes",
        "stack not measured by the -test of this export",
        "W502: an example",
        "BatchNorm bn1 into conv1",
        "Misclassified: " + str(len(data.score("compiled").misclassified)),
    ):
        assert expected in words, expected
    assert page.tags.count("svg") >= 3 + len(data.histograms)


def test_inputs_are_shown_with_red_first(written, tmp_path):
    """A red image of a network that takes blue, green, red in -1 to 1, and its values."""
    data, _ = written
    contract = InputContract("BGR", (4, 4), PixelMap((2 / 255,) * 3, (-1.0,) * 3, (2, 1, 0)), ())
    sample = np.full((3, 4, 4), -1, np.float32)
    sample[2] = 0.6
    image = stimulus_picture(sample, contract)
    assert (image == (0, 0, 204)).all() and (contract.red_first(image) == (204, 0, 0)).all()
    assert InputContract.of(json.loads(json.dumps(contract.fields()))) == contract
    shown = InputImage("red.png", image, -1.0, 0.6)
    write_report(dataclasses.replace(data, inputs=[shown], contract=contract), tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    words = " ".join(parsed(text).text)
    assert inline_picture(contract.red_first(image)) in text
    assert "-1 to 0.6" in words and "Images: 4x4 BGR, real values -1 to 1." in words


def test_a_window_of_samples_is_drawn_by_axis():
    """A ramp and a small falling one of (2, 12): both from black to white, the first axis below, as high as a third of the width."""
    x = np.stack([np.linspace(0, 1, 12), np.linspace(0.01, 0, 12)]).astype(np.float32)
    image = stimulus_picture(x, InputContract(source=read_sensor("window:axes=2")))
    rising = np.rint(np.linspace(0, 255, 12))
    assert image.shape == (4, 12) and (image[-1] == rising).all() and (image[0] == rising[::-1]).all()


def test_only_the_style_and_the_script_of_the_page_are_allowed(written):
    _data, folder = written
    text = (folder / "report.html").read_text(encoding="utf-8")
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)
    assert "default-src &#39;none&#39;" in policy and "unsafe" not in policy
    for kind in ("style", "script"):
        (content,) = re.findall(rf"<{kind}>(.*?)</{kind}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src &#39;sha256-{digest}&#39;" in policy
    assert not re.search(r"<[^>]* (style|on[a-z]+)=", text)


def test_hostile_names_are_escaped(tmp_path):
    net = Net((2, 4, 4), name='<script>&"')
    graph = net.done(net.fc("</text><b>", net.conv("a<b/c", "x", 3, (1, 1)), 4))
    write_report(networks.report_data(graph), tmp_path)
    page = parsed((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert page.tags.count("script") == 1 and "b" not in page.tags
    ElementTree.parse(tmp_path / "graph" / "network.svg")
    assert (tmp_path / "calibration" / "outputs_histogram" / "a_b_c.dat").is_file()


def test_a_float_export_without_data_has_a_page(tmp_path):
    data = networks.report_data(
        networks.small(),
        bits=-32,
        scores=[],
        comparisons=(),
        warnings=(),
        fusion=(),
        pipeline=(),
        options={},
        plan=None,
        problem=None,
    )
    write_report(data, tmp_path)
    page = parsed((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "#calibration" not in page.links and "#memory" not in page.links and "#layers" in page.links
    assert "not run: add -test" in page.text and "float32" in page.text and "6 layers" in page.text


def test_the_pipeline_has_its_stages_and_boxes(tmp_path, written):
    """Nothing of it without one; else figures after each stage, also of silence and of an image without objects."""
    _data, folder = written
    assert 'id="pipeline"' not in (folder / "report.html").read_text(encoding="utf-8")
    stages = [PipelineStage(title, "") for title in ("Frame", "Conversion", "Network", "Decision")]
    photo, small = np.full((20, 30, 3), 90, np.uint8), np.zeros((4, 6), np.uint8)
    cat = Detection(1, "<cat>", 0.75, 3.0, 2.0, 13.0, 12.0)
    samples = [PipelineSample("a.png", photo, small, [cat]), PipelineSample("b.png", photo, small, [])]
    write_report(networks.report_data(networks.small(), stages=PipelineData(stages, samples)), tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    page, (found,) = parsed(text), re.findall(r'<rect class="found d1" ([^>]*)>', text)
    assert "#pipeline" in page.links and "<cat> 0.75" in page.text and "nothing" in page.text
    assert found == 'x="3" y="2" width="10" height="10"' and page.tags.count("image") == 6
    sounds = [PipelineSample("s.wav", np.zeros(size, np.int16), small, np.array([[0.0, 2.0]])) for size in (0, 3, 9000)]
    write_report(networks.report_data(networks.small(), stages=PipelineData(stages, sounds, ("no", "yes"))), tmp_path)
    page = parsed((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert page.text.index("yes") < page.text.index("no") and page.tags.count("image") == 3


def test_the_pipeline_ends_with_any_decision(tmp_path):
    """Key points over the image, words with the scores of the best classes, classes of pixels."""
    stages = [PipelineStage(title, "") for title in ("Input", "Network", "Decision")]
    photo = np.full((20, 40, 3), 90, np.uint8)
    scores = ClassScore(2, "left", 0.5), ClassScore(0, "", 0.25)
    decisions = ([KeyPoint(1, "elbow", 0.75, 3.0, 2.0)], Decision(2, "left", 0.5, scores), Decision(-1, "", 0.0, scores))
    samples = [PipelineSample("a.png", photo, None, one) for one in (*decisions, np.eye(4, dtype=np.uint8))]
    write_report(networks.report_data(networks.small(), stages=PipelineData(stages, samples, converted=False)), tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    page, (point,) = parsed(text), re.findall(r'<rect class="found d1" ([^>]*)>', text)
    assert point == 'x="2.5" y="1.5" width="1" height="1"' and page.tags.count("image") == 6
    assert all(word in page.text for word in ("elbow 0.75", "left", "output 0", "0.25", "none", "classes of the pixels"))
    assert "Decision(" not in text and "KeyPoint(" not in text


def test_a_difference_of_the_compiled_export_is_shown_first(tmp_path):
    data = networks.report_data(networks.small())
    wrong = data.comparisons[2].__class__("point", "point", 30.0, 1.0, 0.0, 0.0, False)
    write_report(networks.report_data(networks.small(), comparisons=[*data.comparisons[:2], wrong]), tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "first difference in point" in text and 'class="tile alarm"' in text


def boxes(root, style: str) -> list[tuple[float, float, float, float]]:
    return [
        tuple(float(e.get(k)) for k in ("x", "y", "width", "height"))
        for e in root.iter(f"{SVG}rect")
        if e.get("class") == style
    ]


def test_every_layer_is_drawn_and_no_boxes_meet():
    graph = networks.report_data(networks.large()).qgraph
    root = ElementTree.fromstring(draw_network(graph))
    drawn = boxes(root, "box")
    assert len(drawn) == len(graph.nodes) > 60
    everything = drawn + boxes(root, "end")
    for k, (x, y, w, h) in enumerate(everything):
        assert x >= 0 and x + w <= float(root.get("width")) and y + h <= float(root.get("height"))
        for other in everything[:k]:
            assert x + w <= other[0] or other[0] + other[2] <= x or y + h <= other[1] or other[1] + other[3] <= y
    edges = sum(len(node.inputs) for node in graph.nodes) + 1
    assert len([e for e in root.iter(f"{SVG}path") if e.get("class") == "edge"]) == edges


def test_the_memory_picture_draws_each_part_of_each_buffer():
    data = networks.report_data(networks.small())
    root = ElementTree.fromstring(draw_memory(data.problem, data.plan))
    views = {data.problem.op(name).output for name in data.plan.views}
    parts = sum(len(plane.intervals()) for name, plane in data.plan.planes.items() if name not in views)
    drawn = [e for e in root.iter(f"{SVG}rect") if e.get("class").startswith("buffer")]
    assert len(drawn) == parts
    heights = sorted(float(e.get("height")) for e in drawn)
    spans = sorted(
        end - begin for name, plane in data.plan.planes.items() if name not in views for begin, end in plane.intervals()
    )
    scale = (430.0 - 34.0 - 10.0) / data.plan.arena_bytes
    assert heights == pytest.approx([span * scale for span in spans], abs=0.11)


def test_a_large_network_stays_small_and_quick(tmp_path):
    data = networks.report_data(networks.large(), classes=150, stimuli=2000)
    begin = time.process_time()
    write_report(data, tmp_path)
    assert time.process_time() - begin < 12.0  # twice what is promised for one core
    assert (tmp_path / "report.html").stat().st_size < 3_000_000
