// Depthwise convolution: each output channel reads the input channel of the same number.
//
//   out[y][x][c] = Epilogue(bias[c] + sum over u, v of w[u][v][c] * in[y*SH - T + u*DH][x*SW - L + v*DW][c])
//
// in, out: planes in HWC with equal Channels. weights: HWC, so that the innermost loop runs over channels in
// memory order and vectorises. Positions outside the input hold InputZero: they are skipped when it
// is 0. Config and line order as in convolution.hpp, Groups = Channels.
#pragma once

#include "n2d2/half.hpp"
#include "n2d2/line_order.hpp"
#include "n2d2/output.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"
#include "n2d2/steady.hpp"

namespace n2d2 {

template <class Cfg, class Isa = typename Cfg::Isa>
struct Depthwise {
    N2D2_WINDOWS(Cfg);
    N2D2_WEIGHTS(Cfg);

    enum : int {
        C = Input::Channels,
        Tile = C < 32 ? int(C) : 32,
        Tiles = (C + Tile - 1) / Tile,
        LastTile = C - (Tiles - 1) * Tile,
        Extent = (KW - 1) * Cfg::DilationWidth + 1
    };
    static_assert(int(Input::Channels) == int(Output::Channels), "a depthwise convolution keeps the number of channels");

    template <int Count>
    static N2D2_INLINE void add(const In* x, const Weight* w, Sum* sums) {
        for (int i = 0; i < Count; ++i)
            sums[i] += times<Sum>(x[i], w[i]);
    }

    // Adds InputZero * w for one position outside the input.
    template <int Count>
    static N2D2_INLINE void addZero(const Weight* w, Sum* sums) {
        if (Cfg::InputZero != 0)
            for (int i = 0; i < Count; ++i)
                sums[i] += static_cast<Sum>(Cfg::InputZero) * static_cast<Sum>(w[i]);
    }

    // Channels [channel, channel + Count) of the output column x, whose whole window lies inside the input.
    template <int Count>
    static N2D2_INLINE void innerPixel(const In* const* rows, int x, int channel, Out* out, const Weight* weights,
                                       const Sum* bias) {
        constexpr int step = int(Cfg::DilationWidth) * int(Input::Stride);
        const int left = (x * Cfg::StrideWidth - Cfg::PadLeft) * Input::Stride + channel;
        Sum sums[Count];
        for (int i = 0; i < Count; ++i) {
            Sum sum = bias[channel + i];
            for (int u = 0; u < KH; ++u)
                for (int v = 0; v < KW; ++v)
                    sum += times<Sum>(rows[u][left + v * step + i], weights[(u * KW + v) * C + channel + i]);
            sums[i] = sum;
        }
        store<Epilogue, Count>(sums, channel, out + x * Output::Stride + channel);
    }

    // The same for any window.
    template <int Count>
    static N2D2_INLINE void outerPixel(const In* const* rows, int x, int channel, Out* out, const Weight* weights,
                                       const Sum* bias) {
        constexpr int width = W, step = Cfg::DilationWidth;
        const int left = x * Cfg::StrideWidth - Cfg::PadLeft;
        Sum sums[Count];
        for (int i = 0; i < Count; ++i)
            sums[i] = bias[channel + i];
        for (int u = 0; u < KH; ++u) {
            for (int v = 0; v < KW; ++v) {
                const Weight* const w = weights + (u * KW + v) * C + channel;
                const int column = left + v * step;
                if (rows[u] && column >= 0 && column < width)
                    add<Count>(rows[u] + column * Input::Stride + channel, w, sums);
                else
                    addZero<Count>(w, sums);
            }
        }
        store<Epilogue, Count>(sums, channel, out + x * Output::Stride + channel);
    }

    // Calls pixel(x, whether no tap of its window is outside of the input) for the pixels of a line.
    template <class Pixel>
    static N2D2_INLINE void pixels(const In* const* rows, const Pixel& pixel) {
        constexpr int stride = Cfg::StrideWidth, pad = Cfg::PadLeft, all = OW;
        constexpr int last = W - Extent + pad;  // left edge of the rightmost inner window, pads included
        constexpr int begin = least(all, pad > 0 ? (pad + stride - 1) / stride : 0);
        constexpr int end = largest(begin, least(all, last < 0 ? 0 : last / stride + 1));
        bool inside = true;  // no line of the window is padding
        for (int u = 0; u < KH; ++u)
            inside = inside && rows[u];
        const int innerBegin = inside ? begin : all, innerEnd = inside ? end : all;
        for (int x = 0; x < innerBegin; ++x)
            pixel(x, false);
        for (int x = innerBegin; x < innerEnd; ++x)
            pixel(x, true);
        for (int x = innerEnd; x < all; ++x)
            pixel(x, false);
    }

    template <int Count>
    static N2D2_INLINE void piece(const In* const* rows, int channel, Out* out, const Weight* weights, const Sum* bias) {
        pixels(rows, [=](int x, bool inside) N2D2_INLINE_LAMBDA {
            if (inside)
                innerPixel<Count>(rows, x, channel, out, weights, bias);
            else
                outerPixel<Count>(rows, x, channel, out, weights, bias);
        });
    }

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const Weight* weights, const Sum* bias,
                                const Rows& rows = Rows::all<Output>()) {
        constexpr long work = static_cast<long>(KH) * KW * Tile * OW;
        LayerTasks<Cfg, Tiles, work, WindowOrder<Cfg> >::run(rows, [=](int y, int tile) N2D2_INLINE_LAMBDA {
            const In* taps[KH];
            windowRows<Cfg>(in, y, taps);
            if (tile + 1 < Tiles)
                piece<Tile>(taps, tile * Tile, line<Output>(out, y), weights, bias);
            else
                piece<LastTile>(taps, tile * Tile, line<Output>(out, y), weights, bias);
        });
    }
};

N2D2_LAYER(depthwise, Depthwise<Cfg>)

}  // namespace n2d2

#if N2D2_FLOAT_VECTORS
#include "n2d2/panels/float_depthwise.hpp"
#endif
#define N2D2_BIND_DEPTHWISE
#include "n2d2/bindings.hpp"
#undef N2D2_BIND_DEPTHWISE
