#ifndef SEVERAL_HPP
#define SEVERAL_HPP

#include <cmath>
#include <type_traits>

#include "more.hpp"
#include "n2d2/output.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"
#include "n2d2/pool.hpp"

namespace several {

template <class T, class Parameters>
struct SoftClip {
    static T apply(T x) { return x / (T(1) + std::fabs(x) / Parameters::limit()); }
};

template <class Sum>
Sum root(Sum squares, std::true_type) {
    std::int64_t r = static_cast<std::int64_t>(std::sqrt(256.0 * static_cast<double>(squares)));
    return static_cast<Sum>(r);
}
template <class Sum>
Sum root(Sum squares, std::false_type) { return std::sqrt(squares); }

template <class Cfg>
void l2Pool(const unsigned char* in, unsigned char* out) {
    typedef typename Cfg::Input Input;
    typedef typename Cfg::Output Output;
    typedef typename Cfg::Sum Sum;
    n2d2::Tasks<(Cfg::Serial != 0), Output::Height, 1, 1, (Cfg::Reverse != 0)>::run([=](int y, int) {
        for (int x = 0; x < Output::Width; ++x)
            for (int c = 0; c < Output::Channels; ++c) {
                Sum sum = Sum(0);
                for (int v = 0; v < Cfg::Kernel0; ++v)
                    for (int u = 0; u < Cfg::Kernel1; ++u) {
                        const int row = y * Cfg::Stride0 + v - Cfg::Pads0, column = x * Cfg::Stride1 + u - Cfg::Pads1;
                        if (row < 0 || row >= Input::Height || column < 0 || column >= Input::Width)
                            continue;
                        const Sum value = Sum(n2d2::line<Input>(in, row)[column * Input::Stride + c]) - Sum(Cfg::InputZero);
                        sum += value * value;
                    }
                const Sum result = root<Sum>(sum, std::integral_constant<bool, std::numeric_limits<Sum>::is_integer>());
                n2d2::line<Output>(out, y)[x * Output::Stride + c] = Cfg::Epilogue::apply(result, 0);
            }
    });
}

template <class Cfg>
void shuffle(const unsigned char* in, unsigned char* out) {
    typedef typename Cfg::Input Input;
    constexpr int each = Input::Channels / Cfg::Groups;
    for (int y = 0; y < Input::Height; ++y)
        for (int x = 0; x < Input::Width; ++x)
            for (int c = 0; c < Input::Channels; ++c)
                n2d2::line<typename Cfg::Output>(out, y)[x * Cfg::Output::Stride + c % each * Cfg::Groups + c / each] =
                    Cfg::Epilogue::apply(n2d2::line<Input>(in, y)[x * Input::Stride + c], 0);
}

template <class Cfg>
void dot(const unsigned char* const* in, unsigned char* out, const typename Cfg::Sum* weight) {
    typedef typename Cfg::Output Output;
    typedef typename Cfg::Sum Sum;
    static_assert(Cfg::Inputs == 3, "written for three inputs");
    constexpr int length = Output::Width * Output::Channels;
    n2d2::Tasks<(Cfg::Serial != 0), Output::Height, 1, 1, (Cfg::Reverse != 0)>::run([=](int y, int) {
        for (int step = 0; step < length; ++step) {
            const int i = Cfg::Reverse ? length - 1 - step : step, x = i / Output::Channels, c = i % Output::Channels;
            const Sum sum = weight[0] * (Sum(n2d2::line<typename Cfg::Input0>(in[0], y)[x * Cfg::Input0::Stride + c]) - Sum(Cfg::Input0Zero)) +
                            weight[1] * (Sum(n2d2::line<typename Cfg::Input1>(in[1], y)[x * Cfg::Input1::Stride + c]) - Sum(Cfg::Input1Zero)) +
                            weight[2] * (Sum(n2d2::line<typename Cfg::Input2>(in[2], y)[x * Cfg::Input2::Stride + c]) - Sum(Cfg::Input2Zero));
            n2d2::line<Output>(out, y)[x * Output::Stride + c] = Cfg::Epilogue::apply(sum, 0);
        }
    });
}

struct OtherPool {};

}  // namespace several

namespace n2d2 {

template <class Cfg>
struct PoolMax<Cfg, several::OtherPool> : PoolMax<Cfg, Portable> {
    static_assert(several::Beside::value == 7, "the header beside this one is found");
};

}  // namespace n2d2

#endif  // SEVERAL_HPP
