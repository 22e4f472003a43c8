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
#pragma once

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

// The input positions whose products make an output position.
template <class Cfg>
struct DeconvolutionTaps {
    N2D2_WINDOWS(Cfg);

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

// The products of one input pixel with the weights of Count outputs, from `output` on, at one kernel position.
template <class Cfg>
struct DenseProducts {
    N2D2_PLANES(Cfg);
    N2D2_WEIGHTS(Cfg);
    enum : int {
        Groups = Cfg::Groups,
        C = int(Input::Channels) / Groups,            // inputs of an output
        O = int(Output::Channels) / Groups,           // outputs of a group
        K = Cfg::KernelHeight * Cfg::KernelWidth * C  // products of an output
    };
    static_assert(int(Input::Channels) % Groups == 0 && int(Output::Channels) % Groups == 0,
                  "the groups must divide the channels and the outputs");

    template <int Count>
    static N2D2_INLINE void add(const In* pixel, int output, int position, const Weight* weights, Sum* sums) {
        const In* const x = pixel + output / O * C;
        const Weight* const w = weights + static_cast<long>(output) * K + position * C;
        if (Cfg::InputZero == 0) {
            dots<Sum, Count>(C, x, w, K, sums);
            return;
        }
        for (int o = 0; o < Count; ++o)
            for (int c = 0; c < C; ++c)
                sums[o] += (static_cast<Sum>(x[c]) - static_cast<Sum>(Cfg::InputZero)) * static_cast<Sum>(w[o * K + c]);
    }
};

template <class Cfg>
struct ChannelProducts {
    N2D2_PLANES(Cfg);
    N2D2_WEIGHTS(Cfg);
    enum : int { Groups = 1, O = Input::Channels, K = Cfg::KernelHeight * Cfg::KernelWidth };
    static_assert(int(O) == int(Output::Channels), "a depthwise convolution keeps the number of channels");

    template <int Count>
    static N2D2_INLINE void add(const In* pixel, int output, int position, const Weight* weights, Sum* sums) {
        const In* const x = pixel + output;
        const Weight* const w = weights + position * O + output;
        for (int i = 0; i < Count; ++i)
            sums[i] += (static_cast<Sum>(x[i]) - static_cast<Sum>(Cfg::InputZero)) * static_cast<Sum>(w[i]);
    }
};

template <class Cfg, class Products>
struct TransposedConvolution {
    N2D2_WINDOWS(Cfg);
    N2D2_WEIGHTS(Cfg);
    typedef DeconvolutionTaps<Cfg> Taps;

    enum : int { O = Products::O, Tile = least(int(O), 32), Tiles = (O + Tile - 1) / Tile, LastTile = O - (Tiles - 1) * Tile };

    template <int Count>
    static N2D2_INLINE void piece(const In* const* rows, int output, Out* out, const Weight* weights, const Sum* bias) {
        for (int x = 0; x < OW; ++x) {
            Sum sums[Count];
            for (int o = 0; o < Count; ++o)
                sums[o] = bias[output + o];
            for (int v = 0; v < KW; ++v) {
                const int column = Taps::columnOf(x, v);
                if (column < 0)
                    continue;
                for (int u = 0; u < KH; ++u)
                    if (rows[u])
                        Products::template add<Count>(rows[u] + column * Input::Stride, output, u * KW + v, weights, sums);
            }
            store<Epilogue, Count>(sums, output, out + x * Output::Stride + output);
        }
    }

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const Weight* weights, const Sum* bias,
                                const Rows& lines = Rows::all<Output>()) {
        LayerTasks<Cfg, int(Products::Groups) * Tiles, static_cast<long>(Products::K) * Tile * OW>::run(
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

N2D2_LAYER(deconvolution, TransposedConvolution<Cfg, DenseProducts<Cfg> >)
N2D2_LAYER(deconvolutionDepthwise, TransposedConvolution<Cfg, ChannelProducts<Cfg> >)

}  // namespace n2d2
