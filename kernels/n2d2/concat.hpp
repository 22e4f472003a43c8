// Concatenation of channels: every input copied to its place in the output, line by line.
//
//   out[y][x][Channel + c] = Stage(in[y][x][c] - InputZero, Index)
//
// Index selects the input's own factor of the rescale; a plain copy has a stage that keeps the value and
// InputZero 0. One config per input.
// Config: planes Input, Output; types Sum, Stage, Isa; enum Channel, Index, InputZero, Serial, Reverse.
// Line order: out line y is stored while the lines >= y (with Reverse: <= y) of all inputs are intact.
#ifndef N2D2_CONCAT_HPP
#define N2D2_CONCAT_HPP

#include "n2d2/output.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"

namespace n2d2 {

template <class Cfg, class Isa = typename Cfg::Isa>
struct ConcatInput {
    typedef typename Cfg::Input Input;
    typedef typename Cfg::Output Output;
    typedef typename Cfg::Sum Sum;
    enum : int { C = Input::Channels, W = Input::Width };
    static_assert(static_cast<int>(Cfg::Channel) + static_cast<int>(C) <= static_cast<int>(Output::Channels),
                  "the channels of an input must lie within the output");
    static_assert(static_cast<int>(Input::Height) == static_cast<int>(Output::Height) &&
                      static_cast<int>(Input::Width) == static_cast<int>(Output::Width),
                  "the inputs of a concatenation have the size of the output");

    static N2D2_INLINE Sum centred(typename Input::Type x) {
        return static_cast<Sum>(static_cast<Sum>(x) - static_cast<Sum>(Cfg::InputZero));
    }

    static N2D2_INLINE void copyLine(const unsigned char* in, unsigned char* out, int y) {
        const typename Input::Type* const from = line<Input>(in, y);
        typename Output::Type* const to = line<Output>(out, y) + Cfg::Channel;
        for (int x = 0; x < W; ++x)
            for (int c = 0; c < C; ++c)
                to[x * Output::Stride + c] = Cfg::Stage::apply(centred(from[x * Input::Stride + c]), Cfg::Index);
    }
};

// Line y of all inputs, in order.
template <class... Inputs>
struct ConcatLine {
    static N2D2_INLINE void copy(const unsigned char* const*, unsigned char*, int) {}
};

template <class First, class... Rest>
struct ConcatLine<First, Rest...> {
    static N2D2_INLINE void copy(const unsigned char* const* in, unsigned char* out, int y) {
        ConcatInput<First>::copyLine(in[0], out, y);
        ConcatLine<Rest...>::copy(in + 1, out, y);
    }
};

// in: the bases of the inputs, in the order of their configs.
template <class First, class... Rest>
N2D2_INLINE void concat(const unsigned char* const* in, unsigned char* out,
                        const Rows& rows = Rows::all<typename First::Output>()) {
    typedef typename First::Output Output;
    constexpr bool serial = First::Serial != 0, reverse = First::Reverse != 0;
    constexpr long work = static_cast<long>(Output::Channels) * static_cast<int>(Output::Width);
    Tasks<serial, Output::Height, 1, work, reverse>::run(
        rows, [=](int y, int) N2D2_INLINE_LAMBDA { ConcatLine<First, Rest...>::copy(in, out, y); });
}

}  // namespace n2d2

#endif  // N2D2_CONCAT_HPP
