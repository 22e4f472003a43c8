// Fully connected layer.
//
//   out[o] = Epilogue(bias[o] + sum over y, x, c of w[o][y][x][c] * in[y][x][c])
//
// in: a plane of any shape, in HWC. weights: OHWC, the exporter has reordered them from the flattened
// C, H, W order of the network. out: a plane of 1 x 1 x O. Sums in Cfg::Sum. Each run of contiguous inputs is
// one scalar product: the whole input, a line, or a pixel, as its plane allows.
//
// Config: planes Input, Output; types Weight, Sum, Epilogue, Isa; enum FullWeights (some are -128), ByteSums (words whose products of bytes
// 16 bits hold), Serial; where weights are packed (n2d2/packed.hpp) WeightBits, WeightStep, WeightFlip, WeightBase, Prepacked.
// The output never overlaps the input.
#pragma once

#include "n2d2/dot.hpp"
#include "n2d2/output.hpp"
#include "n2d2/packed.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"

namespace n2d2 {

template <class Cfg, class Isa = typename Cfg::Isa>
struct FullyConnected {
    N2D2_PLANES(Cfg);
    N2D2_WEIGHTS(Cfg);
    typedef PlaneRuns<Input> Runs;
    typedef PackedWeights<Cfg> Packing;
    typedef typename Packing::Stored Stored;

    enum : int {
        K = Runs::All,
        O = Output::Channels,
        Most = int(Packing::Bits) == 0 ? 16 : 4,
        Tile = least(int(O), int(Most)),
        Tiles = (O + Tile - 1) / Tile,
        LastTile = O - (Tiles - 1) * Tile,
        Run = Runs::Length
    };
    static_assert(!Cfg::Serial, "a fully connected layer cannot overwrite its input");
    static_assert(int(Output::Height) == 1 && int(Output::Width) == 1, "the output is one pixel");

    // Adds the products of the inputs [first, first + Run).
    template <class P, int Count, bool Packed>
    struct Products {
        static N2D2_INLINE void add(const In* x, const Weight* weights, int output, int first, Sum* sums) {
            dots<Sum, Count>(Run, x, weights + static_cast<long>(output) * K + first, K, sums);
        }
    };
    template <class P, int Count>
    struct Products<P, Count, true> {
        static N2D2_INLINE void add(const In* x, const Stored* weights, int output, int first, Sum* sums) {
            constexpr int most = 256, bytes = (K * P::Bits + 7) / 8, run = Run;
            Weight w[Count * most];
            for (int at = 0; at < run; at += most) {
                const int count = least(most, run - at);
                for (int o = 0; o < Count; ++o)
                    P::unpack(weights + static_cast<long>(output + o) * bytes, first + at, count, w + o * most);
                dots<Sum, Count>(count, x + at, w, most, sums);
            }
        }
    };

    typedef WeightRows<Packing, O, K> AllWeights;

    template <int Count>
    static N2D2_INLINE void piece(const unsigned char* in, int output, Out* out, const Stored* weights, const Sum* bias) {
        Sum sums[Count];
        for (int o = 0; o < Count; ++o)
            sums[o] = bias[output + o];
        for (int i = 0; i < Runs::Count; ++i)
            Products<Packing, Count, Packing::Bits != 0>::add(Runs::at(in, i), weights, output, i * Run, sums);
        store<Epilogue, Count>(sums, output, out + output);
    }

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const Stored* weights, const Sum* bias) {
        Tasks<false, 1, Tiles, static_cast<long>(K) * Tile>::run([=](int, int tile) N2D2_INLINE_LAMBDA {
            if (tile + 1 < Tiles)
                piece<Tile>(in, tile * Tile, line<Output>(out, 0), weights, bias);
            else
                piece<LastTile>(in, tile * Tile, line<Output>(out, 0), weights, bias);
        });
    }
};

N2D2_LAYER(fullyConnected, WithWeights<Cfg, FullyConnected<Cfg>, FullyConnected<Unpacked<Cfg> > >)

}  // namespace n2d2

#if N2D2_FLOAT_VECTORS
#include "n2d2/panels/float_tile.hpp"
#include "n2d2/panels/panel_fullyconnected.hpp"
namespace n2d2 {
template <class Cfg>
struct FullyConnected<Cfg, RealVectors> : PanelFullyConnected<Cfg, floats::Microkernel> {};
}  // namespace n2d2
#endif
#define N2D2_BIND_FULLYCONNECTED
#include "n2d2/bindings.hpp"
#undef N2D2_BIND_FULLYCONNECTED
