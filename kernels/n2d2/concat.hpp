// Concatenation of channels: every input copied to its place in the output, line by line.
//
//   out[y][x][Channel + c] = Epilogue(in[y][x][c] - InputZero)
//
// One config per input: its epilogue has the factor of this input; that of a plain copy keeps the value, with InputZero 0.
// Config: planes Input, Output; types Sum, Epilogue, Isa; enum Channel, InputZero, Serial, Reverse.
// Line order: out line y is stored while the lines >= y (with Reverse: <= y) of all inputs are intact.
#pragma once

#include <type_traits>

#include "n2d2/pointwise.hpp"

namespace n2d2 {

template <class Cfg, class Isa = typename Cfg::Isa>
struct ConcatInput {
    N2D2_PLANES(Cfg);
    typedef typename Cfg::Sum Sum;
    enum : int { C = Input::Channels, W = Input::Width };
    static_assert(int(Cfg::Channel) + static_cast<int>(C) <= int(Output::Channels),
                  "the channels of an input must lie within the output");
    static_assert(int(Input::Height) == int(Output::Height) && int(Input::Width) == int(Output::Width),
                  "the inputs of a concatenation have the size of the output");

    typedef typename Cfg::Epilogue Epilogue;
    enum : bool {
        Copied = std::is_same<Epilogue, Moved<Out> >::value && std::is_same<In, Out>::value && int(Cfg::InputZero) == 0
    };

    // As pointwise.hpp has it.
    struct Reader {
        const In* from;
        N2D2_INLINE Reader pixel(int x) const { return Reader{from + x * Input::Stride}; }
        N2D2_INLINE Sum at(int i, int) const {
            return static_cast<Sum>(static_cast<Sum>(from[i]) - static_cast<Sum>(Cfg::InputZero));
        }
    };

    static N2D2_INLINE void copyLine(const unsigned char* in, unsigned char* out, int y) {
        const In* const from = line<Input>(in, y);
        Out* const to = line<Output>(out, y) + Cfg::Channel;
        if (Copied)
            for (int x = 0; x < W; ++x)
                copyBytes(to + x * Output::Stride, from + x * Input::Stride, static_cast<std::size_t>(C) * sizeof(Out));
        else
            PointwiseRun<Epilogue, false, Isa, 64>::template line<false, false, W, C, Output::Stride>(Reader{from}, to);
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
    constexpr long work = static_cast<long>(Output::Channels) * int(Output::Width);
    Tasks<serial, Output::Height, 1, work, reverse>::run(
        rows, [=](int y, int) N2D2_INLINE_LAMBDA { ConcatLine<First, Rest...>::copy(in, out, y); });
}

}  // namespace n2d2
