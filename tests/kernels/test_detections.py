"""Detections: the definition against float64 and by hand, the kernel against the definition."""

from dataclasses import replace

import numpy as np
from support.detection_cases import DetectionCase, Found, detection_cases, program, reference
from support.kernel_harness import each_compiler, printed_by

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.detections import STEP, BoxDecoder, half_grown
from n2d2py.arithmetic.fixed_scale import ONE, FixedScale


def in_float64(case: DetectionCase) -> list[Found]:
    """`reference` of the real values of a case."""
    d, (kind, score_kind) = case.decoder, case.kinds
    return reference(d, kind.dequantize(case.boxes), score_kind.dequantize(case.scores))


def test_the_definition_is_that_of_the_detectors():
    """In 16 bits without ties: the same boxes and classes, edges within 1/16 pixel, scores within 0.0002."""
    checked = 0
    for case in detection_cases(96, seed=5):
        if case.kinds[0].bits != 16 or not (case.decoder.detect(case.boxes, case.scores)[:, 1] < ONE).all():
            continue
        found, wanted = case.decoder.detect(case.boxes, case.scores), in_float64(case)
        scores = np.array([score for _, score, _ in wanted])
        if len(scores) > 1 and np.diff(scores).max() > -1e-3:
            continue  # the order is not clear
        assert found[:, 0].tolist() == [label for label, _, _ in wanted]
        assert abs(found[:, 1] / ONE - scores).max(initial=0) < 2e-4
        assert abs(found[:, 2:] / 16 - np.array([box for _, _, box in wanted]).reshape(-1, 4)).max(initial=0) < 1 / 16
        checked += len(found)
    assert checked > 20


def test_sizes_grow_exponentially():
    """Of 1,000 pixels within 0.02 % and half a step."""
    growth = np.arange(-6 * STEP, 6 * STEP + 1)
    wanted = 8000 * np.exp(growth / STEP)
    assert (abs(half_grown(np.int64(16000), growth) - wanted) <= 0.5 + wanted * 2e-4).all()
    assert half_grown(np.int64(16), np.array([0, STEP])).tolist() == [8, 22]


def test_detections_by_hand():
    """Steps of half a pixel and 1/100: two boxes that overlap by 4/12, one of another class, one below the threshold."""
    kind, scores = NumType(8, signed=False, scale=0.5), NumType(8, signed=False, scale=0.01)
    decoder = BoxDecoder(4, 2, 20, 10, *[FixedScale.of(kind, 8)] * 2, FixedScale.of(scores, ONE), threshold=ONE // 4)
    boxes = np.array([[8, 8, 8, 4], [12, 8, 8, 4], [8, 8, 8, 4], [40, 8, 8, 4]], np.uint8)
    values = np.array([[90, 10], [80, 20], [0, 50], [25, 1]], np.uint8)
    box = [2 * 16, 3 * 16, 6 * 16, 5 * 16]
    first, other = [0, 58982, *box], [1, 32768, *box]
    second = [0, 52429, 4 * 16, 3 * 16, 8 * 16, 5 * 16]
    strict = replace(decoder, overlap=ONE * 3 // 10)
    assert decoder.detect(boxes, values).tolist() == [first, second, other]
    assert strict.detect(boxes, values).tolist() == [first, other]
    assert replace(strict, most=1).detect(boxes, values).tolist() == [first]
    lower = replace(decoder, threshold=ONE // 5)  # the last box, cut to the image: 18 to 20
    assert lower.detect(boxes, values)[-1].tolist() == [0, 16384, 18 * 16, 3 * 16, 20 * 16, 5 * 16]


@each_compiler(50, 96)
def test_kernels_on_this_machine(compiler, count, tmp_path):
    cases = list(detection_cases(count, seed=count))
    printed = printed_by(program(cases, "std::fputs(text, stdout)"), compiler, tmp_path)
    wanted = [case.wanted for case in cases]
    assert list(map(int, printed)) == [value for values in wanted for value in values]
    assert {0, 1, 5} <= {values[0] for values in wanted} and max(values[0] for values in wanted) > 32
