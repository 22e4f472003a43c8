// Pixels of a camera's frame in memory: each format is a structure, the twin of a row of FORMATS in n2d2py/arithmetic/pixel_formats.py.
//
// A format makes a Line of the rows of memory that the pixels of row y of a frame are in (Rows of them), and reads pixel x of a line as
// bytes: Colours 3 for red, green, blue, Colours 1 for gray. `locate` finds the rows of row y in a whole frame; `Least`: pixels of the
// smallest side.
#pragma once

#include "n2d2/env.hpp"

namespace n2d2 {

// A format whose pixels are in one row of memory.
struct FrameRow {
    enum : int { Colours = 3, Rows = 1, Least = 1 };
    struct Line {
        const std::uint8_t* row;
        Line(const std::uint8_t* const* rows, int, int) : row(rows[0]) {}
    };
    static void locate(const std::uint8_t* pixels, int, std::ptrdiff_t stride, int y, const std::uint8_t** rows) {
        rows[0] = pixels + y * stride;
    }
};

// Bytes of colours side by side, red at the position Red.
template <int Bytes, int Red, int Blue>
struct FrameBytes : FrameRow {
    static N2D2_INLINE void read(const Line& line, int x, std::uint8_t* rgb) {
        const std::uint8_t* const at = line.row + Bytes * x;
        rgb[0] = at[Red];
        rgb[1] = at[1];
        rgb[2] = at[Blue];
    }
};

typedef FrameBytes<3, 0, 2> FrameRgb;
typedef FrameBytes<3, 2, 0> FrameBgr;
typedef FrameBytes<4, 0, 2> FrameRgba;

struct FrameGray : FrameRow {
    enum : int { Colours = 1 };
    static N2D2_INLINE void read(const Line& line, int x, std::uint8_t* gray) { gray[0] = line.row[x]; }
};

// Words of 5 bits red, 6 green, 5 blue; `High`: the position of their high byte. The first bits of a colour are repeated as its last.
template <int High>
struct FrameWords : FrameRow {
    static N2D2_INLINE void read(const Line& line, int x, std::uint8_t* rgb) {
        const unsigned word = static_cast<unsigned>(line.row[2 * x + High] << 8 | line.row[2 * x + 1 - High]);
        const unsigned red = word >> 11, green = word >> 5 & 63, blue = word & 31;
        rgb[0] = static_cast<std::uint8_t>(red << 3 | red >> 2);
        rgb[1] = static_cast<std::uint8_t>(green << 2 | green >> 4);
        rgb[2] = static_cast<std::uint8_t>(blue << 3 | blue >> 2);
    }
};

typedef FrameWords<1> FrameRgb565;
typedef FrameWords<0> FrameRgb565be;

// Y, U, V of BT.601, Y from 16 to 235; factors in 1/65536.
N2D2_INLINE std::uint8_t frameByte(int value) {
    return static_cast<std::uint8_t>(value < 0 ? 0 : value >> 16 > 255 ? 255 : value >> 16);
}

N2D2_INLINE void frameYuv(int y, int u, int v, std::uint8_t* rgb) {
    const int luma = 76309 * (y - 16) + 32768;
    rgb[0] = frameByte(luma + 104597 * (v - 128));
    rgb[1] = frameByte(luma - 53279 * (v - 128) - 25675 * (u - 128));
    rgb[2] = frameByte(luma + 132201 * (u - 128));
}

// Two pixels in four bytes: Y of the first one at `Luma`, U and V between.
template <int Luma>
struct FrameYuv : FrameRow {
    static N2D2_INLINE void read(const Line& line, int x, std::uint8_t* rgb) {
        const std::uint8_t* const pair = line.row + 4 * (x >> 1);
        frameYuv(line.row[2 * x + Luma], pair[1 - Luma], pair[3 - Luma], rgb);
    }
};

typedef FrameYuv<0> FrameYuyv;
typedef FrameYuv<1> FrameUyvy;

// A row of Y and one of pairs of U and V, which two rows of pixels share; `U`: the position of U in a pair.
template <int U>
struct FrameSemiPlanar {
    enum : int { Colours = 3, Rows = 2, Least = 1 };
    struct Line {
        const std::uint8_t *luma, *chroma;
        Line(const std::uint8_t* const* rows, int, int) : luma(rows[0]), chroma(rows[1]) {}
    };
    static void locate(const std::uint8_t* pixels, int height, std::ptrdiff_t stride, int y, const std::uint8_t** rows) {
        rows[0] = pixels + y * stride;
        rows[1] = pixels + (height + y / 2) * stride;
    }
    static N2D2_INLINE void read(const Line& line, int x, std::uint8_t* rgb) {
        const std::uint8_t* const pair = line.chroma + (x & ~1);
        frameYuv(line.luma[x], pair[U], pair[1 - U], rgb);
    }
};

typedef FrameSemiPlanar<0> FrameNv12;
typedef FrameSemiPlanar<1> FrameNv21;

// One colour for each pixel, red in row RedY and column RedX of each square of two by two. A missing colour is the mean of the two or four
// nearest pixels that have it, rounded half up. The rows are that above the pixels, theirs and that below; beyond an edge they are mirrored.
template <int RedY, int RedX>
struct FrameBayer {
    enum : int { Colours = 3, Rows = 3, Least = 2 };
    struct Line {
        const std::uint8_t *above, *row, *below;
        int last, red;  // the last column; whether the row has red pixels
        Line(const std::uint8_t* const* rows, int y, int width)
            : above(rows[0]), row(rows[1]), below(rows[2]), last(width - 1), red((y & 1) == RedY) {}
    };
    static void locate(const std::uint8_t* pixels, int height, std::ptrdiff_t stride, int y, const std::uint8_t** rows) {
        rows[0] = pixels + (y > 0 ? y - 1 : 1) * stride;
        rows[1] = pixels + y * stride;
        rows[2] = pixels + (y < height - 1 ? y + 1 : y - 1) * stride;
    }
    static N2D2_INLINE void read(const Line& line, int x, std::uint8_t* rgb) {
        const int left = x > 0 ? x - 1 : 1, right = x < line.last ? x + 1 : x - 1;
        const int across = line.row[left] + line.row[right], down = line.above[x] + line.below[x];
        const int corners = line.above[left] + line.above[right] + line.below[left] + line.below[right];
        const bool red = line.red != 0, green = red != ((x & 1) == RedX);
        const int one = green ? (across + 1) >> 1 : line.row[x], other = green ? (down + 1) >> 1 : (corners + 2) >> 2;
        rgb[0] = static_cast<std::uint8_t>(red ? one : other);
        rgb[1] = static_cast<std::uint8_t>(green ? line.row[x] : (across + down + 2) >> 2);
        rgb[2] = static_cast<std::uint8_t>(red ? other : one);
    }
};

typedef FrameBayer<0, 0> FrameRggb;
typedef FrameBayer<0, 1> FrameGrbg;
typedef FrameBayer<1, 0> FrameGbrg;
typedef FrameBayer<1, 1> FrameBggr;

// A pixel in the channels of a network: its colours, blue first or not, or gray (0.299 R + 0.587 G + 0.114 B in 1/32768).
template <class Format, int Channels, bool BlueFirst>
N2D2_INLINE void frameChannels(const typename Format::Line& line, int x, std::uint32_t* values) {
    std::uint8_t colours[3];
    Format::read(line, x, colours);
    if (Channels == 1 && Format::Colours == 3) {
        values[0] = (9798u * colours[0] + 19235u * colours[1] + 3735u * colours[2] + 16384u) >> 15;
        return;
    }
    N2D2_UNROLL_FOR(c, Channels)
        values[c] = colours[Format::Colours == 1 ? 0 : BlueFirst ? 2 - c : c];
}

}  // namespace n2d2
