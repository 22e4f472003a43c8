// Local response normalisation over the channels of each pixel, floating point.
//
//   out[y][x][c] = Epilogue(in[c] / (k + alpha * sum of in[i]^2)^beta), i from c - (Window-1)/2 to c + Window/2
//
// Input and output are disjoint. Config: planes Input, Output; types Epilogue, Isa and Parameters with the static functions alpha(),
// beta(), k(); enum Window.
#pragma once

#include <cmath>

#include "n2d2/functions.hpp"
#include "n2d2/output.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"

namespace n2d2 {

template <class Cfg, class Isa = typename Cfg::Isa>
struct Lrn {
    typedef typename Cfg::Input::Type T;
    typedef typename Cfg::Parameters Parameters;
    enum : int { C = Cfg::Input::Channels, Before = (Cfg::Window - 1) / 2 };

    static N2D2_INLINE void pixel(const T* in, T* out) {
        constexpr int channels = C, before = Before, window = Cfg::Window;
        for (int c = 0; c < channels; ++c) {
            double sum = 0.0;
            for (int i = largest(0, c - before); i < least(channels, c - before + window); ++i)
                sum = sum + rounded(static_cast<double>(in[i]) * static_cast<double>(in[i]));
            const double divisor = exact::power(Parameters::k() + rounded(Parameters::alpha() * sum), Parameters::beta());
            out[c] = Cfg::Epilogue::apply(static_cast<T>(static_cast<double>(in[c]) / divisor), c);
        }
    }
};

template <class Cfg>
N2D2_INLINE void lrn(const unsigned char* in, unsigned char* out) {
    N2D2_PLANES(Cfg);
    static_assert(!std::numeric_limits<In>::is_integer, "a normalisation needs floating-point data");
    constexpr long root = 16;  // cost of one, in multiply-accumulates
    constexpr long work = root * int(Output::Channels) * int(Output::Width);
    Tasks<false, Output::Height, 1, work>::run([=](int y, int) N2D2_INLINE_LAMBDA {
        const In* const from = line<Input>(in, y);
        Out* const to = line<Output>(out, y);
        for (int x = 0; x < Output::Width; ++x)
            Lrn<Cfg>::pixel(from + x * Input::Stride, to + x * Output::Stride);
    });
}

}  // namespace n2d2
