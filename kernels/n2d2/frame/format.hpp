// Pixels of a camera's frame in memory.
//
// A format reads pixel x of a line as bytes: Colours 3 for red, green, blue, Colours 1 for gray.
#ifndef N2D2_FRAME_FORMAT_HPP
#define N2D2_FRAME_FORMAT_HPP

#include "n2d2/env.hpp"

namespace n2d2 {

// Bytes of colours side by side, red at the position Red.
template <int Bytes, int Red, int Blue>
struct FrameBytes {
    enum : int { Colours = 3 };
    static N2D2_INLINE void read(const std::uint8_t* line, int x, std::uint8_t* rgb) {
        const std::uint8_t* const at = line + Bytes * x;
        rgb[0] = at[Red];
        rgb[1] = at[1];
        rgb[2] = at[Blue];
    }
};

typedef FrameBytes<3, 0, 2> FrameRgb;
typedef FrameBytes<3, 2, 0> FrameBgr;
typedef FrameBytes<4, 0, 2> FrameRgba;

struct FrameGray {
    enum : int { Colours = 1 };
    static N2D2_INLINE void read(const std::uint8_t* line, int x, std::uint8_t* gray) { gray[0] = line[x]; }
};

// Words of 5 bits red, 6 green, 5 blue; `High`: the position of their high byte. The first bits of a colour are repeated as its last.
template <int High>
struct FrameWords {
    enum : int { Colours = 3 };
    static N2D2_INLINE void read(const std::uint8_t* line, int x, std::uint8_t* rgb) {
        const unsigned word = static_cast<unsigned>(line[2 * x + High] << 8 | line[2 * x + 1 - High]);
        const unsigned red = word >> 11, green = word >> 5 & 63, blue = word & 31;
        rgb[0] = static_cast<std::uint8_t>(red << 3 | red >> 2);
        rgb[1] = static_cast<std::uint8_t>(green << 2 | green >> 4);
        rgb[2] = static_cast<std::uint8_t>(blue << 3 | blue >> 2);
    }
};

typedef FrameWords<1> FrameRgb565;
typedef FrameWords<0> FrameRgb565be;

// Two pixels in four bytes: Y, U, Y, V of BT.601, Y from 16 to 235; factors in 1/65536.
struct FrameYuyv {
    enum : int { Colours = 3 };
    static N2D2_INLINE std::uint8_t byte(int value) {
        return static_cast<std::uint8_t>(value < 0 ? 0 : value >> 16 > 255 ? 255 : value >> 16);
    }
    static N2D2_INLINE void read(const std::uint8_t* line, int x, std::uint8_t* rgb) {
        const std::uint8_t* const pair = line + 4 * (x >> 1);
        const int luma = 76309 * (line[2 * x] - 16) + 32768, u = pair[1] - 128, v = pair[3] - 128;
        rgb[0] = byte(luma + 104597 * v);
        rgb[1] = byte(luma - 53279 * v - 25675 * u);
        rgb[2] = byte(luma + 132201 * u);
    }
};

// A pixel in the channels of a network: its colours, blue first or not, or gray (0.299 R + 0.587 G + 0.114 B in 1/32768).
template <class Format, int Channels, bool BlueFirst>
N2D2_INLINE void frameChannels(const std::uint8_t* line, int x, std::uint32_t* values) {
    std::uint8_t colours[3];
    Format::read(line, x, colours);
    if (Channels == 1 && Format::Colours == 3) {
        values[0] = (9798u * colours[0] + 19235u * colours[1] + 3735u * colours[2] + 16384u) >> 15;
        return;
    }
    N2D2_UNROLL
    for (int c = 0; c < Channels; ++c)
        values[c] = colours[Format::Colours == 1 ? 0 : BlueFirst ? 2 - c : c];
}

}  // namespace n2d2

#endif  // N2D2_FRAME_FORMAT_HPP
