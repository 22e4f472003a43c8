// Softmax over groups of channels of each pixel, floating point.
//
//   out[y][x][c] = Epilogue(exp(in[y][x][c] - largest) / sum of exp(in - largest) over the group of c)
//
// or, with Log, in - largest - log(the sum), in double and in the order of the channels. Group divides Channels. The largest exponent is 0, so nothing overflows and the sum is at least 1.
// Input and output are disjoint. Config: planes Input, Output; types Epilogue, Isa; enum Group, Log.
#ifndef N2D2_SOFTMAX_HPP
#define N2D2_SOFTMAX_HPP

#include <cmath>

#include "n2d2/functions.hpp"
#include "n2d2/output.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"

namespace n2d2 {

template <class Cfg, class Isa = typename Cfg::Isa>
struct Softmax {
    typedef typename Cfg::Input Input;
    typedef typename Cfg::Output Output;
    typedef typename Input::Type T;
    enum : int { C = Input::Channels, W = Input::Width, Group = Cfg::Group };
    static_assert(!std::numeric_limits<T>::is_integer, "softmax needs floating-point data");
    static_assert(static_cast<int>(C) % static_cast<int>(Group) == 0, "the group must divide the channels");

    static N2D2_INLINE void group(const T* in, int channel, T* out) {
        double highest = static_cast<double>(in[0]), sum = 0.0;
        for (int c = 1; c < Group; ++c)
            highest = largest(highest, static_cast<double>(in[c]));
        double powers[Group];
        for (int c = 0; c < Group; ++c)
            powers[c] = static_cast<double>(in[c]) - highest;
        exact::exps<Group>(powers, powers);
        for (int c = 0; c < Group; ++c)
            sum = sum + powers[c];
        const double logarithm = Cfg::Log != 0 ? exact::log(sum) : 0.0;
        for (int c = 0; c < Group; ++c)
            out[c] = Cfg::Epilogue::apply(
                static_cast<T>(Cfg::Log != 0 ? (static_cast<double>(in[c]) - highest) - logarithm : powers[c] / sum),
                channel + c);
    }

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out) {
        constexpr long exponential = 16;  // cost of one, in multiply-accumulates
        Tasks<false, Output::Height, 1, exponential * C * W>::run([=](int y, int) N2D2_INLINE_LAMBDA {
            const T* const from = line<Input>(in, y);
            T* const to = line<Output>(out, y);
            for (int x = 0; x < W; ++x)
                for (int c = 0; c < C; c += Group)
                    group(from + x * Input::Stride + c, c, to + x * Output::Stride + c);
        });
    }
};

template <class Cfg>
N2D2_INLINE void softmax(const unsigned char* in, unsigned char* out) {
    Softmax<Cfg>::run(in, out);
}

}  // namespace n2d2

#endif  // N2D2_SOFTMAX_HPP
