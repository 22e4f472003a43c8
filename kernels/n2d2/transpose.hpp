// Permutation of the axes of a tensor. Axes are numbered 0 channel, 1 line, 2 column.
//
//   output axis a runs along input axis AxisC, AxisH or AxisW (for a = channel, line, column):
//   out[y][x][c] = Epilogue(in at the coordinates k with k[AxisC] = c, k[AxisH] = y, k[AxisW] = x)
//
// Input and output are disjoint. Config: planes Input, Output; types Epilogue, Isa; enum AxisC, AxisH, AxisW.
#pragma once

#include "n2d2/output.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"

namespace n2d2 {

template <class Cfg, class Isa = typename Cfg::Isa>
struct Transpose {
    N2D2_PLANES(Cfg);
    enum : int { C = Output::Channels, W = Output::Width, AxisC = Cfg::AxisC, AxisH = Cfg::AxisH, AxisW = Cfg::AxisW };
    static_assert((1 << AxisC | 1 << AxisH | 1 << AxisW) == 7, "the axes are a permutation");

    // The coordinate along an input axis that belongs to the output coordinates (c, y, x).
    template <int Axis>
    static N2D2_INLINE int along(int c, int y, int x) {
        constexpr int channel = AxisC, row = AxisH;
        return Axis == channel ? c : Axis == row ? y : x;
    }

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out) {
        Tasks<false, Output::Height, 1, static_cast<long>(C) * W>::run([=](int y, int) N2D2_INLINE_LAMBDA {
            typename Output::Type* const to = line<Output>(out, y);
            for (int x = 0; x < W; ++x)
                for (int c = 0; c < C; ++c)
                    to[x * Output::Stride + c] = Cfg::Epilogue::apply(
                        line<Input>(in, along<1>(c, y, x))[along<2>(c, y, x) * Input::Stride + along<0>(c, y, x)], c);
        });
    }
};

N2D2_LAYER(transpose, Transpose<Cfg>)

}  // namespace n2d2
