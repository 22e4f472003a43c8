// Two-dimensional convolution (cross-correlation), dense or grouped.
//
//   out[y][x][o] = Epilogue(bias[o] + sum over u, v, c of w[o][u][v][c] * in[y*SH - T + u*DH][x*SW - L + v*DW][g(o)+c])
//
// in, out: planes in HWC. weights: OHWC, c over the Channels / Groups inputs of the output's group. Positions
// outside the input hold InputZero. Sums are in Cfg::Sum, whose range the exporter has proved sufficient.
//
// One output line is computed in pieces of up to Tile outputs of one group, whose weights stay in the
// cache along the line. The window of a pixel is gathered into one run of elements on the stack (two pixels:
// 2 * KH * KW * C / Groups elements), so that padding, dilation and strides are dealt with once for
// all outputs of the piece; a 1x1 window is used in place, unless bytes are gathered as 16-bit integers (n2d2/dot.hpp).
//
// Config: planes Input, Output; types Weight, Sum, Epilogue, Isa; enum KernelHeight, KernelWidth, StrideHeight,
// StrideWidth, DilationHeight, DilationWidth, PadTop, PadLeft, Groups, InputZero, FullWeights (some are -128), ByteSums (words
// whose products of bytes 16 bits hold), Serial, Reverse; where weights are packed (n2d2/packed.hpp) WeightBits, WeightStep, WeightFlip,
// WeightBase.
// Line order: out line y is stored while in lines >= y*SH - T are intact; with Reverse, from the last line on, while
// those that lines <= y read are.
#pragma once

#include "n2d2/dot.hpp"
#include "n2d2/line_order.hpp"
#include "n2d2/output.hpp"
#include "n2d2/packed.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"
#include "n2d2/residual.hpp"
#include "n2d2/tuning.hpp"

namespace n2d2 {

template <class Cfg, class Isa = typename Cfg::Isa>
struct Convolution {
    N2D2_WINDOWS(Cfg);
    N2D2_WEIGHTS(Cfg);
    typedef typename WindowOf<In, Weight, Sum>::Type Element;
    typedef PackedWeights<Cfg> Packing;
    typedef typename Packing::Stored Stored;

    enum : int {
        C = int(Input::Channels) / Cfg::Groups,   // inputs of an output
        O = int(Output::Channels) / Cfg::Groups,  // outputs of a group
        K = KH * KW * C,
        Most =
            int(Packing::Bits) == 0 || K <= 128 ? 32 : largest(4, 1024 / K * 4),  // 4 KB of unpacked weights, or four outputs
        Tile = least(int(O), int(Most)),
        Tiles = (O + Tile - 1) / Tile,
        LastTile = O - (Tiles - 1) * Tile,
        Extent = (KW - 1) * Cfg::DilationWidth + 1,
        InPlace = sizeof(Element) == sizeof(In) && KH == 1 && KW == 1 && Cfg::PadTop <= 0 && Cfg::PadLeft <= 0 &&
                  (int(OH) - 1) * Cfg::StrideHeight - Cfg::PadTop < int(H) &&
                  (int(OW) - 1) * Cfg::StrideWidth - Cfg::PadLeft < int(W),
        Run = int(PlaneTraits<Input>::Packed) && Cfg::DilationWidth == 1 && Cfg::Groups == 1
    };
    static_assert(int(Input::Channels) % Cfg::Groups == 0 && int(Output::Channels) % Cfg::Groups == 0,
                  "the groups must divide the channels and the outputs");

    // Elements [channel, channel + C) of KW positions of one input line, from column x on.
    static N2D2_INLINE void im2colLine(const In* row, int x, int channel, Element* window) {
        constexpr int width = W, extent = Extent, step = Cfg::DilationWidth;
        constexpr bool run = Run;
        if (run && x >= 0 && x + extent <= width) {
            const In* const from = row + x * Input::Stride;
#if defined(N2D2_SCALAR_TILES) || N2D2_M_PROFILE
            // The C libraries of these cores copy single bytes, or access unaligned words.
            if (sizeof(Element) == 1 && KW * C % 4 == 0 && reinterpret_cast<std::uintptr_t>(from) % 4 == 0) {
                void* const to = __builtin_assume_aligned(window, 4);
                const void* const words = __builtin_assume_aligned(from, 4);
                for (int i = 0; i < KW * C / 4; ++i) {
                    std::uint32_t word;
                    std::memcpy(&word, static_cast<const unsigned char*>(words) + 4 * i, 4);
                    std::memcpy(static_cast<unsigned char*>(to) + 4 * i, &word, 4);
                }
                return;
            }
#endif
            for (int i = 0; i < KW * C; ++i)
                window[i] = from[i];
            return;
        }
        for (int v = 0; v < KW; ++v, x += step, window += C) {
            if (x >= 0 && x < width) {
                const In* const from = row + x * Input::Stride + channel;
                for (int c = 0; c < C; ++c)
                    window[c] = from[c];
            } else {
                for (int c = 0; c < C; ++c)
                    window[c] = static_cast<Element>(Cfg::InputZero);
            }
        }
    }

    static N2D2_INLINE const Element* inPlace(const Element* from, Element*) { return from; }
    static N2D2_INLINE const Element* inPlace(const void*, Element* buffer) { return buffer; }  // never

    // The window of output column x: a run of K elements, in `buffer` unless it can be used in place.
    static N2D2_INLINE const Element* window(const In* const* rows, int x, int channel, Element* buffer) {
        const int left = x * Cfg::StrideWidth - Cfg::PadLeft;
        if (InPlace)
            return inPlace(rows[0] + left * Input::Stride + channel, buffer);
        for (int u = 0; u < KH; ++u) {
            Element* const part = buffer + u * KW * C;
            if (rows[u]) {
                im2colLine(rows[u], left, channel, part);
            } else {
                for (int i = 0; i < KW * C; ++i)
                    part[i] = static_cast<Element>(Cfg::InputZero);
            }
        }
        return buffer;
    }

    typedef WeightRows<Packing, int(Cfg::Groups) * int(O), K> AllWeights;

    // Outputs [output, output + Count) of all pixels of a line.
    template <int Count>
    static N2D2_INLINE void piece(const In* const* rows, int output, Out* out, const Stored* weights, const Sum* bias) {
        const int channel = output / O * C;
        const WeightRows<Packing, Count, K> unpacked(weights, output);
        const Weight* const w = unpacked.first;
        int x = 0;
        alignas(4) alignas(Element) Element buffer[InPlace ? 1 : 2 * K];
        Sum sums[Count], sumsY[Count];
        for (; x + 2 <= OW; x += 2) {
            const Element* const first = window(rows, x, channel, buffer);
            const Element* const second = window(rows, x + 1, channel, buffer + (InPlace ? 0 : int(K)));
            for (int o = 0; o < Count; ++o)
                sums[o] = sumsY[o] = bias[output + o];
            dots<Sum, Count>(K, first, second, w, K, sums, sumsY);
            store<Epilogue, Count>(sums, output, out + x * Output::Stride + output);
            store<Epilogue, Count>(sumsY, output, out + (x + 1) * Output::Stride + output);
        }
        if (x < OW) {
            const Element* const only = window(rows, x, channel, buffer);
            for (int o = 0; o < Count; ++o)
                sums[o] = bias[output + o];
            dots<Sum, Count>(K, only, w, K, sums);
            store<Epilogue, Count>(sums, output, out + x * Output::Stride + output);
        }
    }

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const Stored* weights, const Sum* bias,
                                const Rows& rows = Rows::all<Output>()) {
        constexpr int pieces = int(Cfg::Groups) * int(Tiles);
        LayerTasks<Cfg, pieces, static_cast<long>(K) * Tile * OW, WindowOrder<Cfg> >::run(
            rows, [=](int y, int index) N2D2_INLINE_LAMBDA {
                const In* taps[KH];
                windowRows<Cfg>(in, y, taps);
                const int tile = index % Tiles;
                const int output = index / Tiles * O + tile * Tile;
                if (tile + 1 < Tiles)
                    piece<Tile>(taps, output, line<Output>(out, y), weights, bias);
                else
                    piece<LastTile>(taps, output, line<Output>(out, y), weights, bias);
            });
    }
};

template <class Cfg, class... Lines>
N2D2_INLINE void convolution(const unsigned char* in, unsigned char* out, const typename PackedWeights<Cfg>::Stored* weights,
                             const typename Cfg::Sum* bias, const Lines&... rows) {
#if defined(N2D2_TUNE)
    int tile = 0;
#define N2D2_RUN_TILE(Pixels, Panels, Bytes) \
    if (tuneTile == tile++)                  \
        Convolution<Tiled<Cfg, Pixels, Panels, Bytes> >::run(in, out, weights, bias, rows...);
    N2D2_TILES(N2D2_RUN_TILE)
#undef N2D2_RUN_TILE
#else
    WithWeights<Cfg, Convolution<Cfg>, Convolution<Unpacked<Cfg> > >::run(in, out, weights, bias, rows...);
#endif
}

}  // namespace n2d2

#if N2D2_FLOAT_VECTORS
#include "n2d2/panels/float_tile.hpp"
#include "n2d2/panels/panel_convolution.hpp"
namespace n2d2 {
template <class Cfg>
struct Convolution<Cfg, RealVectors> : PanelConvolution<Cfg, floats::Microkernel> {};
}  // namespace n2d2
#endif
#define N2D2_BIND_CONVOLUTION
#include "n2d2/bindings.hpp"
#undef N2D2_BIND_CONVOLUTION
