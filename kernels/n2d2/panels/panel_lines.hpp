// Windows that are read from padded copies of the input lines, where that is less work than gathering each.
//
// A gathered window has KH * KW * C inputs, so that each input is copied up to KH * KW times; a line of a block is copied once. A tile
// is then a part of one output line: its pixels lie StrideWidth * C inputs apart, and a window is KH pieces of KW * C inputs.
// The price are tiles that are not all of one size, and thus more loads of weights.
//
// A Microkernel that has LineVector, the bytes of its vectors, can multiply such tiles: Tile::run<Pitch, Lines, Jump>.
#pragma once

#include "n2d2/panels/microkernel.hpp"
#include "n2d2/tuning.hpp"

namespace n2d2 {

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
// Savings of less than a fiftieth of the products are not worth the larger code.
template <class Im2col, int Vector, int Lines, int Outputs, int Group, int TilePixels>
struct LinesPay {
    enum : int {
        V = Vector > 0 ? Vector : 1,
        Pixels = Lines * Im2col::OW,
        LineTiles = (Im2col::OW + TilePixels - 1) / TilePixels,
        WindowTiles = (Pixels + TilePixels - 1) / TilePixels,
        Bytes = Im2col::K / Im2col::KH * static_cast<int>(sizeof(typename Im2col::In)),
        Sums = Im2col::OW / LineTiles * Group *
               (64 / V)  // of the smaller tiles: an instruction for each, which wait for each other
    };
    enum : long {
        ByWindows = long(Pixels) * Im2col::KH * (2 * ((Bytes + V - 1) / V) + 6),
        ByLines = long(Lines) * Im2col::inputLines(2) * (2 * ((Im2col::LineBytes + V - 1) / V) + 16) / 2 +
                  long(Im2col::Words) * ((Outputs * 4 + V - 1) / V) * (Lines * LineTiles - WindowTiles),
        Products = long(Pixels) * Im2col::Words * ((Outputs * 4 + V - 1) / V)
    };
    enum : bool {
        value = Vector > 0 && bool(Im2col::ByLines) && long(ByLines) + Products / 50 < long(ByWindows) &&
                (int(Sums) >= 10 || int(LineTiles) * Lines == int(WindowTiles)) &&
                Im2col::inputLines(2) * Im2col::LineBytes <= 262144
    };
};

}  // namespace n2d2
