// Windows that are read from padded copies of the input lines, where that is less work than gathering each.
//
// A gathered window has KH * KW * C inputs, so that each input is copied up to KH * KW times; a line of a block is copied once. A tile
// is then a part of one output line: its pixels lie StrideWidth * C inputs apart, and a window is KH pieces of KW * C inputs.
// The price are tiles that are not all of one size, and thus more loads of weights.
//
// A Machine that has LineVector, the bytes of its vectors, can multiply such tiles: Tile::run<Pitch, Lines, Jump>.
#ifndef N2D2_PANELS_PANEL_LINES_HPP
#define N2D2_PANELS_PANEL_LINES_HPP

#include "n2d2/tuning.hpp"

namespace n2d2 {

template <class Machine, class Found = void>
struct LineVectorOf {
    enum : int { Bytes = 0 };
};
template <class Machine>
struct LineVectorOf<Machine, typename Exists<Machine::LineVector>::Type> {
    enum : int { Bytes = Machine::LineVector };
};

template <bool ByLines, long Pitch, int Lines, long Jump>
struct TileOfLines {
    template <class Tile, class In, class Weight, class Sum, class At>
    static N2D2_INLINE void run(const In* x, const Weight* weights, const Sum* bias, int output, const At& at) {
        Tile::template run<Pitch>(x, weights, bias, output, at);
    }
};
template <long Pitch, int Lines, long Jump>
struct TileOfLines<true, Pitch, Lines, Jump> {
    template <class Tile, class In, class Weight, class Sum, class At>
    static N2D2_INLINE void run(const In* x, const Weight* weights, const Sum* bias, int output, const At& at) {
        Tile::template run<Pitch, Lines, Jump>(x, weights, bias, output, at);
    }
};

// Instructions of both ways, about: a vector is loaded and stored, each run of them takes some more; a tile loads all weights.
// What saves less than a fiftieth of the products is not worth the larger code.
template <class Gather, int Vector, int Lines, int Outputs, int Group, int TilePixels>
struct LinesPay {
    enum : int {
        V = Vector > 0 ? Vector : 1,
        Pixels = Lines * Gather::OW,
        LineTiles = (Gather::OW + TilePixels - 1) / TilePixels,
        WindowTiles = (Pixels + TilePixels - 1) / TilePixels,
        Bytes = Gather::K / Gather::KH * static_cast<int>(sizeof(typename Gather::In)),
        Sums = Gather::OW / LineTiles * Group * (64 / V)  // of the smaller tiles: an instruction for each, which wait for each other
    };
    enum : long {
        ByWindows = long(Pixels) * Gather::KH * (2 * ((Bytes + V - 1) / V) + 6),
        ByLines = long(Lines) * Gather::inputLines(2) * (2 * ((Gather::LineBytes + V - 1) / V) + 16) / 2 +
                  long(Gather::Words) * ((Outputs * 4 + V - 1) / V) * (Lines * LineTiles - WindowTiles),
        Products = long(Pixels) * Gather::Words * ((Outputs * 4 + V - 1) / V)
    };
    enum : bool {
        value = Vector > 0 && bool(Gather::ByLines) && long(ByLines) + Products / 50 < long(ByWindows) &&
                (int(Sums) >= 10 || int(LineTiles) * Lines == int(WindowTiles)) && Gather::inputLines(2) * Gather::LineBytes <= 262144
    };
};

}  // namespace n2d2

#endif  // N2D2_PANELS_PANEL_LINES_HPP
