// Transposed two-dimensional convolution, dense or grouped, and depthwise.
//
//   out[y][x][o] = Epilogue(bias[o] + sum over u, v, c of w[o][u][v][c] * (in[i][j][g(o)+c] - InputZero))
//   for all u, v with y + T - u*DH = i*SH and x + L - v*DW = j*SW, i and j inside the input
//
// Every output gathers what reaches it, so that it is stored once and sums stay in registers.
//
// in, out: planes in HWC. weights: OHWC, c over the Channels / Groups inputs of the output's group;
// HWC for deconvolutionDepthwise, where each output reads the input channel of its number. Sums are in Cfg::Sum,
// whose range the exporter has proved sufficient.
//
// Config: planes Input, Output; types Weight, Sum, Epilogue, Isa; enum KernelHeight, KernelWidth, StrideHeight,
// StrideWidth, DilationHeight, DilationWidth, PadTop, PadLeft, Groups, InputZero, Serial, Reverse.
// Line order: out line y is stored while all in lines that it or a later one (with Reverse: an earlier one) gathers are intact.
#ifndef N2D2_DECONVOLUTION_HPP
#define N2D2_DECONVOLUTION_HPP

#include "n2d2/dot.hpp"
#include "n2d2/output.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"

namespace n2d2 {

// The input position from which kernel position `tap` reaches an output position, or -1.
template <int Stride, int Dilation, int Pad, int Size>
N2D2_INLINE int sourceOf(int position, int tap) {
    const int shifted = position + Pad - tap * Dilation;
    if (shifted < 0 || shifted % Stride != 0 || shifted / Stride >= Size)
        return -1;
    return shifted / Stride;
}

// Where the products of an output position come from.
template <class Cfg>
struct DeconvolutionTaps {
    typedef typename Cfg::Input Input;
    typedef typename Input::Type In;
    enum : int { KH = Cfg::KernelHeight, H = Input::Height, W = Input::Width };

    // rows[u]: the input line that kernel line u brings to output line y, null when there is none.
    static N2D2_INLINE void rowsOf(const unsigned char* in, int y, const In** rows) {
        for (int u = 0; u < KH; ++u) {
            const int row = sourceOf<Cfg::StrideHeight, Cfg::DilationHeight, Cfg::PadTop, H>(y, u);
            rows[u] = row >= 0 ? line<Input>(in, row) : nullptr;
        }
    }
    static N2D2_INLINE int columnOf(int x, int v) {
        return sourceOf<Cfg::StrideWidth, Cfg::DilationWidth, Cfg::PadLeft, W>(x, v);
    }
};

template <class Cfg, class Isa = typename Cfg::Isa>
struct Deconvolution {
    typedef typename Cfg::Input Input;
    typedef typename Cfg::Output Output;
    typedef typename Cfg::Weight Weight;
    typedef typename Cfg::Sum Sum;
    typedef typename Input::Type In;
    typedef typename Output::Type Out;
    typedef DeconvolutionTaps<Cfg> Taps;

    enum : int {
        KH = Cfg::KernelHeight,
        KW = Cfg::KernelWidth,
        C = static_cast<int>(Input::Channels) / Cfg::Groups,   // inputs of an output
        O = static_cast<int>(Output::Channels) / Cfg::Groups,  // outputs of a group
        K = KH * KW * C,
        Pixels = Output::Width,
        Tile = O < 32 ? int(O) : 32,
        Tiles = (O + Tile - 1) / Tile,
        LastTile = O - (Tiles - 1) * Tile
    };
    static_assert(static_cast<int>(Input::Channels) % Cfg::Groups == 0 && static_cast<int>(Output::Channels) % Cfg::Groups == 0,
                  "the groups must divide the channels and the outputs");

    // Adds the products of one input pixel with the weights of Count outputs at one kernel position.
    template <int Count>
    static N2D2_INLINE void add(const In* x, const Weight* w, Sum* sums) {
        if (Cfg::InputZero == 0) {
            dots<Sum, Count>(C, x, w, K, sums);
            return;
        }
        for (int o = 0; o < Count; ++o)
            for (int c = 0; c < C; ++c)
                sums[o] += (static_cast<Sum>(x[c]) - static_cast<Sum>(Cfg::InputZero)) * static_cast<Sum>(w[o * K + c]);
    }

    template <int Count>
    static N2D2_INLINE void piece(const In* const* rows, int output, Out* out, const Weight* weights, const Sum* bias) {
        const int channel = output / O * C;
        const Weight* const w = weights + static_cast<long>(output) * K;
        for (int x = 0; x < Pixels; ++x) {
            Sum sums[Count];
            for (int o = 0; o < Count; ++o)
                sums[o] = bias[output + o];
            for (int v = 0; v < KW; ++v) {
                const int column = Taps::columnOf(x, v);
                if (column < 0)
                    continue;
                for (int u = 0; u < KH; ++u)
                    if (rows[u])
                        add<Count>(rows[u] + column * Input::Stride + channel, w + (u * KW + v) * C, sums);
            }
            store<typename Cfg::Epilogue, Count>(sums, output, out + x * Output::Stride + output);
        }
    }

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const Weight* weights, const Sum* bias,
                                const Rows& lines = Rows::all<Output>()) {
        constexpr int pieces = Cfg::Groups * Tiles;
        constexpr bool serial = Cfg::Serial != 0, reverse = Cfg::Reverse != 0;
        Tasks<serial, Output::Height, pieces, static_cast<long>(K) * Tile * Pixels, reverse>::run(
            lines, [=](int y, int index) N2D2_INLINE_LAMBDA {
                const In* rows[KH];
                Taps::rowsOf(in, y, rows);
                const int tile = index % Tiles;
                const int output = index / Tiles * O + tile * Tile;
                if (tile + 1 < Tiles)
                    piece<Tile>(rows, output, line<Output>(out, y), weights, bias);
                else
                    piece<LastTile>(rows, output, line<Output>(out, y), weights, bias);
            });
    }
};

template <class Cfg, class Isa = typename Cfg::Isa>
struct DeconvolutionDepthwise {
    typedef typename Cfg::Input Input;
    typedef typename Cfg::Output Output;
    typedef typename Cfg::Weight Weight;
    typedef typename Cfg::Sum Sum;
    typedef typename Input::Type In;
    typedef typename Output::Type Out;
    typedef DeconvolutionTaps<Cfg> Taps;

    enum : int {
        KH = Cfg::KernelHeight,
        KW = Cfg::KernelWidth,
        C = Input::Channels,
        Tile = C < 32 ? int(C) : 32,
        Tiles = (C + Tile - 1) / Tile,
        LastTile = C - (Tiles - 1) * Tile
    };
    static_assert(static_cast<int>(Input::Channels) == static_cast<int>(Output::Channels),
                  "a depthwise convolution keeps the number of channels");

    template <int Count>
    static N2D2_INLINE void piece(const In* const* rows, int channel, Out* out, const Weight* weights, const Sum* bias) {
        for (int x = 0; x < Output::Width; ++x) {
            Sum sums[Count];
            for (int i = 0; i < Count; ++i)
                sums[i] = bias[channel + i];
            for (int v = 0; v < KW; ++v) {
                const int column = Taps::columnOf(x, v);
                if (column < 0)
                    continue;
                for (int u = 0; u < KH; ++u) {
                    if (!rows[u])
                        continue;
                    const In* const from = rows[u] + column * Input::Stride + channel;
                    const Weight* const w = weights + (u * KW + v) * C + channel;
                    for (int i = 0; i < Count; ++i)
                        sums[i] += (static_cast<Sum>(from[i]) - static_cast<Sum>(Cfg::InputZero)) * static_cast<Sum>(w[i]);
                }
            }
            store<typename Cfg::Epilogue, Count>(sums, channel, out + x * Output::Stride + channel);
        }
    }

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const Weight* weights, const Sum* bias,
                                const Rows& lines = Rows::all<Output>()) {
        constexpr long work = static_cast<long>(KH) * KW * Tile * static_cast<int>(Output::Width);
        constexpr bool serial = Cfg::Serial != 0, reverse = Cfg::Reverse != 0;
        Tasks<serial, Output::Height, Tiles, work, reverse>::run(lines, [=](int y, int tile) N2D2_INLINE_LAMBDA {
            const In* rows[KH];
            Taps::rowsOf(in, y, rows);
            if (tile + 1 < Tiles)
                piece<Tile>(rows, tile * Tile, line<Output>(out, y), weights, bias);
            else
                piece<LastTile>(rows, tile * Tile, line<Output>(out, y), weights, bias);
        });
    }
};

template <class Cfg, class... Lines>
N2D2_INLINE void deconvolution(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                               const typename Cfg::Sum* bias, const Lines&... rows) {
    Deconvolution<Cfg>::run(in, out, weights, bias, rows...);
}

template <class Cfg, class... Lines>
N2D2_INLINE void deconvolutionDepthwise(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                        const typename Cfg::Sum* bias, const Lines&... rows) {
    DeconvolutionDepthwise<Cfg>::run(in, out, weights, bias, rows...);
}

}  // namespace n2d2

#endif  // N2D2_DECONVOLUTION_HPP
