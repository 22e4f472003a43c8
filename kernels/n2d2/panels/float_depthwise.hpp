// Depthwise convolution in float32: the weights of a vector of channels stay in registers along a line.
//
// A sum adds the taps of a window in order, those outside the input left out. The constants are those of the portable
// kernel, which also takes the channels that fill no vector.
#pragma once

#include "n2d2/panels/float_vector.hpp"

namespace n2d2 {

template <class Cfg>
struct Depthwise<Cfg, RealVectors> {
    typedef Depthwise<Cfg, Portable> Scalar;
    N2D2_WINDOWS(Cfg);
    N2D2_WEIGHTS(Cfg);  // float or Half
    static_assert(int(Cfg::InputZero) == 0, "floating point has no zero point");

    enum : int {
        C = Input::Channels,
        Lanes = floats::Lanes,
        Whole = C / Lanes,  // vectors of channels
        Rest = C % Lanes,
        Blocks = Whole + (Rest > 0 ? 1 : 0)
    };

    struct Constants {
        floats::Vector taps[KH * KW];
        floats::Vector bias;
        N2D2_INLINE Constants(const Weight* w, const float* b) : bias(floats::load(b)) {
            N2D2_UNROLL_FOR(t, KH * KW)
                taps[t] = floats::load(w + t * C);
        }
    };

    // The output of column x; Inside: no tap of the window is outside of the input.
    template <bool Inside>
    static N2D2_INLINE void pixel(const float* const* rows, const Constants& constants, int x, int channel, float* out) {
        constexpr int width = W, step = Cfg::DilationWidth;
        const int left = x * Cfg::StrideWidth - Cfg::PadLeft;
        floats::Vector sum[1] = {constants.bias};
        N2D2_UNROLL_FOR(u, KH) {
            if (!Inside && !rows[u])
                continue;
            const float* const from = rows[u] + left * Input::Stride + channel;
            N2D2_UNROLL_FOR(v, KW)
                if (Inside || (left + v * step >= 0 && left + v * step < width))
                    sum[0] = floats::add(sum[0], floats::load(from + v * step * Input::Stride), constants.taps[u * KW + v]);
        }
        floats::Finish<Epilogue>::template run<Lanes>(sum, channel, out + x * Output::Stride + channel);
    }

    static N2D2_INLINE void block(const float* const* rows, int channel, float* out, const Weight* weights, const float* bias) {
        const Constants constants(weights + channel, bias + channel);
        Scalar::pixels(rows, [&](int x, bool inside) N2D2_INLINE_LAMBDA {
            if (inside)
                pixel<true>(rows, constants, x, channel, out);
            else
                pixel<false>(rows, constants, x, channel, out);
        });
    }

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const Weight* weights, const float* bias,
                                const Rows& rows = Rows::all<Output>()) {
        constexpr long work = static_cast<long>(KH) * KW * Lanes * static_cast<int>(OW) / 4;
        LayerTasks<Cfg, Blocks, work, WindowOrder<Cfg> >::run(rows, [=](int y, int index) N2D2_INLINE_LAMBDA {
            const float* taps[KH];
            windowRows<Cfg>(in, y, taps);
            if (index < Whole)
                block(taps, index * Lanes, line<Output>(out, y), weights, bias);
            else
                Scalar::template piece<(Rest > 0 ? int(Rest) : 1)>(taps, Whole * Lanes, line<Output>(out, y), weights, bias);
        });
    }
};

}  // namespace n2d2
