// Fully connected layer.
//
//   out[o] = Epilogue(bias[o] + sum over y, x, c of w[o][y][x][c] * in[y][x][c])
//
// in: a plane of any shape, in HWC. weights: OHWC, the exporter has reordered them from the flattened
// C, H, W order of the network. out: a plane of 1 x 1 x O. Sums in Cfg::Sum. Each run of contiguous inputs is
// one scalar product: the whole input, a line, or a pixel, as its plane allows.
//
// Config: planes Input, Output; types Weight, Sum, Epilogue, Isa; enum FullWeights (some are -128), ByteSums (words whose products of bytes
// 16 bits hold), Serial.
// The output never overlaps the input.
#ifndef N2D2_FULLYCONNECTED_HPP
#define N2D2_FULLYCONNECTED_HPP

#include "n2d2/dot.hpp"
#include "n2d2/output.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"

namespace n2d2 {

template <class Cfg, class Isa = typename Cfg::Isa>
struct FullyConnected {
    typedef typename Cfg::Input Input;
    typedef typename Cfg::Output Output;
    typedef typename Cfg::Weight Weight;
    typedef typename Cfg::Sum Sum;
    typedef typename Cfg::Epilogue Epilogue;
    typedef typename Output::Type Out;
    typedef PlaneTraits<Input> Traits;

    enum : int {
        C = Input::Channels,
        H = Input::Height,
        W = Input::Width,
        K = H * W * C,
        O = Output::Channels,
        Tile = O < 16 ? int(O) : 16,
        Tiles = (O + Tile - 1) / Tile,
        LastTile = O - (Tiles - 1) * Tile,
        Run = Traits::Whole  ? int(K) :
              Traits::Packed ? W * C :
                               int(C),  // contiguous inputs
        LineRuns = Traits::Packed ? 1 : int(W),
        Runs = Traits::Whole ? 1 : H * LineRuns
    };
    static_assert(!Cfg::Serial, "a fully connected layer cannot overwrite its input");
    static_assert(static_cast<int>(Output::Height) == 1 && static_cast<int>(Output::Width) == 1, "the output is one pixel");

    template <int Count>
    static N2D2_INLINE void piece(const unsigned char* in, int output, Out* out, const Weight* weights, const Sum* bias) {
        Sum sums[Count];
        for (int o = 0; o < Count; ++o)
            sums[o] = bias[output + o];
        const Weight* const w = weights + static_cast<long>(output) * K;
        for (int i = 0; i < Runs; ++i)
            dots<Sum, Count>(Run, line<Input>(in, i / LineRuns) + i % LineRuns * Input::Stride, w + i * Run, K, sums);
        store<Epilogue, Count>(sums, output, out + output);
    }

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const Weight* weights, const Sum* bias) {
        Tasks<false, 1, Tiles, static_cast<long>(K) * Tile>::run([=](int, int tile) N2D2_INLINE_LAMBDA {
            if (tile + 1 < Tiles)
                piece<Tile>(in, tile * Tile, line<Output>(out, 0), weights, bias);
            else
                piece<LastTile>(in, tile * Tile, line<Output>(out, 0), weights, bias);
        });
    }
};

template <class Cfg>
N2D2_INLINE void fullyConnected(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                const typename Cfg::Sum* bias) {
    FullyConnected<Cfg>::run(in, out, weights, bias);
}

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

#endif  // N2D2_FULLYCONNECTED_HPP
