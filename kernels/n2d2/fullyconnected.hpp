// Fully connected layer.
//
//   out[o] = Stage(bias[o] + sum over y, x, c of w[o][y][x][c] * in[y][x][c])
//
// in: a plane of any shape, in HWC. weights: OHWC, the exporter has reordered them from the flattened
// C, H, W order of the network. out: a plane of 1 x 1 x O. Sums in Cfg::Sum. Each run of contiguous inputs is
// one scalar product: the whole input, a line, or a pixel, as its plane allows.
//
// Config: planes Input, Output; types Weight, Sum, Stage, Isa; enum FullWeights (some are -128), ByteSums (words whose products of bytes
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
    typedef typename Cfg::Stage Stage;
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
        Run = Traits::Whole ? int(K) : Traits::Packed ? W * C : int(C),  // contiguous inputs
        LineRuns = Traits::Packed ? 1 : int(W),
        Runs = Traits::Whole ? 1 : H * LineRuns
    };
    static_assert(!Cfg::Serial, "a fully connected layer cannot overwrite its input");
    static_assert(static_cast<int>(Output::Height) == 1 && static_cast<int>(Output::Width) == 1,
                  "the output is one pixel");

    template <int Count>
    static N2D2_INLINE void piece(const unsigned char* in, int output, Out* out, const Weight* weights,
                                  const Sum* bias) {
        Sum sums[Count];
        for (int o = 0; o < Count; ++o)
            sums[o] = bias[output + o];
        const Weight* const w = weights + static_cast<long>(output) * K;
        for (int i = 0; i < Runs; ++i)
            dots<Sum, Count>(Run, line<Input>(in, i / LineRuns) + i % LineRuns * Input::Stride, w + i * Run, K, sums);
        store<Stage, Count>(sums, output, out + output);
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

#if N2D2_PANELS
#include "n2d2/panels/float_tile.hpp"
#include "n2d2/panels/panel_fullyconnected.hpp"
namespace n2d2 {
template <class Cfg>
struct FullyConnected<Cfg, RealVectors> : PanelFullyConnected<Cfg, floats::Machine> {};
}  // namespace n2d2
#endif
#if N2D2_AVX512VNNI
#include "n2d2/x86/avx512_tile.hpp"
namespace n2d2 {
template <class Cfg>
struct FullyConnected<Cfg, Avx512Vnni> : PanelFullyConnected<Cfg, avx512::Machine> {};
}  // namespace n2d2
#elif N2D2_AVXVNNI
#include "n2d2/x86/avxvnni_tile.hpp"
namespace n2d2 {
template <class Cfg>
struct FullyConnected<Cfg, Avx2> : PanelFullyConnected<Cfg, avxvnni::Machine> {};
}  // namespace n2d2
#elif N2D2_AVX2
#include "n2d2/x86/avx2_byte_tile.hpp"
namespace n2d2 {
template <class Cfg>
struct FullyConnected<Cfg, Avx2> : PanelFullyConnected<Cfg, avx2::ByteMachine<Cfg::ByteSums> > {};
}  // namespace n2d2
#elif N2D2_SSE41
#include "n2d2/x86/sse41_byte_tile.hpp"
namespace n2d2 {
template <class Cfg>
struct FullyConnected<Cfg, Sse41> : PanelFullyConnected<Cfg, sse41::ByteMachine<Cfg::ByteSums> > {};
}  // namespace n2d2
#elif N2D2_NEON_DOT
#include "n2d2/arm/neon_dot_tile.hpp"
namespace n2d2 {
template <class Cfg>
struct FullyConnected<Cfg, NeonDot> : PanelFullyConnected<Cfg, neondot::Machine> {};
}  // namespace n2d2
#elif N2D2_NEON
#include "n2d2/arm/neon_bytes_tile.hpp"
namespace n2d2 {
template <class Cfg>
struct FullyConnected<Cfg, Neon> : PanelFullyConnected<Cfg, neonbytes::Machine<Cfg::FullWeights != 0> > {};
}  // namespace n2d2
#endif

#endif  // N2D2_FULLYCONNECTED_HPP
