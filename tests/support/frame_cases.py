"""Frames of all formats and sizes through `kernels/n2d2/frame` in one program, which prints a checksum of each input that it makes."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from n2d2py.arithmetic.frame import FILTERS, FLIPS, FrameSource
from n2d2py.arithmetic.pixel_formats import FORMATS
from n2d2py.errors import N2D2Error
from support.post_cases import printing

_MOST_ELEMENTS = 48 * 48 * 3


@dataclass(frozen=True)
class FrameCase:
    """A frame width x height for an input `shape` (C, H, W); `padding` are bytes after each line."""

    source: FrameSource
    shape: tuple[int, int, int]
    bgr: bool
    width: int
    height: int
    padding: int

    @property
    def lines(self) -> np.ndarray:
        """The frame: any bytes."""
        layout = self.source.layout
        shape = layout.memory_rows(self.height), layout.line_bytes(self.width) + self.padding
        mixed = (np.arange(shape[0] * shape[1], dtype=np.uint64) * np.uint64(2654435761)) & np.uint64(0xFFFFFFFF)
        return ((mixed ^ mixed >> np.uint64(15)) >> np.uint64(9)).astype(np.uint8).reshape(shape)

    @property
    def wanted(self) -> str:
        """Line that the program prints."""
        try:
            made = self.source.convert(self.lines, self.width, self.shape)
        except N2D2Error:
            return "refused"
        return f"{zlib.crc32(np.ascontiguousarray(made[:, :, ::-1] if self.bgr else made).tobytes())}"

    def config(self, number: int) -> str:
        """Its configuration, and the call."""
        source, (channels, high, wide) = self.source, self.shape
        resize, crop = (*source.resize, 0, 0)[:2], (*source.crop, 0, 0)[:2]
        return f"""struct Case{number} {{
    typedef n2d2::Frame{source.format.capitalize()} Format;
    typedef n2d2::Frame{source.filter.capitalize()} Weights;
    typedef std::uint8_t Value;
    enum : int {{ Height = {high}, Width = {wide}, Channels = {channels}, BlueFirst = {int(self.bgr)},
        ResizeWidth = {resize[0]}, ResizeHeight = {resize[1]}, CropWidth = {crop[0]}, CropHeight = {crop[1]},
        Fill = {source.pad}, FillDown = {int(source.rounding == "down")}, FlipColumns = {int(source.flips[0])}, FlipRows = {int(source.flips[1])} }};
    static Value value(int, std::uint32_t byte) {{ return static_cast<Value>(byte); }}
}};
static void run{number}() {{ run<Case{number}>({self.width}, {self.height}, {self.lines.shape[1]}, {self.lines.size}); }}
"""


def frame_cases(count: int, seed: int) -> Iterator[FrameCase]:
    """`count` random cases; every filter meets every format."""
    rng = np.random.default_rng(seed)

    def draw(low: int, high: int) -> int:
        return int(rng.integers(low, high, endpoint=True))

    for number in range(count):
        form, name = list(FORMATS)[number % len(FORMATS)], FILTERS[number // len(FORMATS) % len(FILTERS)]
        most = 8 if draw(0, 4) == 0 else 340
        width, height = draw(1, most), draw(1, most)
        wide, high = draw(1, 48), draw(1, 48)
        way, pad = draw(0, 6), -1
        if way == 1:
            resize, crop = (draw(max(wide, high), 60),), ()
        elif way == 2:
            resize, crop = (draw(wide, 60), draw(high, 60)), ()
        elif way == 3:
            resize, crop = (), (draw(1, width), draw(1, height + draw(0, 1)))
        else:
            resize, crop, pad = (), (), draw(0, 255) if way > 4 else -1
        source = FrameSource(form, name, resize, crop, pad, ("nearest", "down")[way % 2], ("", "", *FLIPS)[draw(0, 4)])
        channels = 1 if draw(0, 3) == 0 else 3
        yield FrameCase(source, (channels, high, wide), channels == 3 and draw(0, 1) == 1, width, height, draw(0, 3))


def program(cases: list[FrameCase], write: str) -> str:
    """The C++ text; `write` is the statement that prints `text`."""
    most = max(case.lines.size for case in cases)
    configs = "".join(case.config(number) for number, case in enumerate(cases))
    calls = "".join(f"    run{number}();\n" for number in range(len(cases)))
    return f"""{printing("frame/input", write)}static std::uint8_t memory[{most}], input[{_MOST_ELEMENTS} + 8];
template <class Cfg> static void run(int width, int height, int stride, int bytes) {{
    static n2d2::FrameInput<Cfg> frame;
    std::uint32_t index = 0, crc = 0xFFFFFFFFu;
    const int elements = Cfg::Height * Cfg::Width * Cfg::Channels;
    for (int i = 0; i < elements + 8; ++i)
        input[i] = 0xA5;
    if (!frame.begin(width, height))
        return print("refused\\n");
    int rows = 0;
    for (; index < static_cast<std::uint32_t>(bytes); ++index) {{
        const std::uint32_t mixed = index * 2654435761u;
        memory[index] = static_cast<std::uint8_t>((mixed ^ mixed >> 15) >> 9);
    }}
    for (int y = 0; y < height; ++y) {{
        const std::uint8_t* lines[Cfg::Format::Rows];
        Cfg::Format::locate(memory, height, stride, y, lines);
        rows = frame.push(lines, input);
    }}
    for (int i = 0; i < elements; ++i) {{
        crc ^= input[i];
        for (int bit = 0; bit < 8; ++bit)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0u);
    }}
    for (int i = elements; i < elements + 8; ++i)
        rows += input[i] != 0xA5;
    if (rows != Cfg::Height)
        return print("incomplete, or beyond the end\\n");
    number(~crc);
}}
{configs}
int main() {{
{calls}    return 0;
}}
"""
