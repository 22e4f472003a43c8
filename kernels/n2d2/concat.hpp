// Concatenation of channels: every input copied to its place in the output, line by line.
//
//   out[y][x][Channel + c] = Epilogue(in[y][x][c] - InputZero)
//
// One config per input: its epilogue has the factor of this input; that of a plain copy keeps the value, with InputZero 0. Pixels of
// few channels are rescaled together.
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
    static_assert(static_cast<int>(Cfg::Channel) + static_cast<int>(C) <= static_cast<int>(Output::Channels),
                  "the channels of an input must lie within the output");
    static_assert(static_cast<int>(Input::Height) == static_cast<int>(Output::Height) &&
                      static_cast<int>(Input::Width) == static_cast<int>(Output::Width),
                  "the inputs of a concatenation have the size of the output");

    typedef typename Cfg::Epilogue Epilogue;
    // Pixels of few channels are rescaled together, so that they fill vectors; the last vector is filled up.
    enum : int {
        Tile = 64,
        Unit = std::is_same<Isa, Portable>::value ? 1 : 32,
        Rest = C % Tile,
        Piece = C >= Tile ? 1 : least(int(W), Tile / C),
        LastPixels = W % Piece,
        Copied = std::is_same<Epilogue, Moved<Out> >::value && std::is_same<In, Out>::value && int(Cfg::InputZero) == 0
    };

    // Channels [0, Count) of the Pixels pixels from `from` on.
    template <int Pixels, int Count>
    static N2D2_INLINE void rescale(const In* from, Out* to) {
        constexpr int count = Pixels * Count, filled = (count + Unit - 1) / Unit * Unit;
        alignas(64) Sum values[filled];
        alignas(64) Out results[filled];
        for (int i = count; i < filled; ++i)
            values[i] = Sum(0);
        for (int p = 0; p < Pixels; ++p)
            for (int c = 0; c < Count; ++c)
                values[p * Count + c] =
                    static_cast<Sum>(static_cast<Sum>(from[p * Input::Stride + c]) - static_cast<Sum>(Cfg::InputZero));
        EpilogueRun<Epilogue, false, Isa>::template run<filled>(values, 0, results);
        for (int p = 0; p < Pixels; ++p)
            copyBytes(to + p * Output::Stride, results + p * Count, static_cast<std::size_t>(Count) * sizeof(Out));
    }

    static N2D2_INLINE void copyLine(const unsigned char* in, unsigned char* out, int y) {
        constexpr int last = LastPixels, rest = Rest, tile = Tile, piece = Piece, channels = C, few = least(channels, tile);
        const In* const from = line<Input>(in, y);
        Out* const to = line<Output>(out, y) + Cfg::Channel;
        if (Copied) {
            for (int x = 0; x < W; ++x)
                copyBytes(to + x * Output::Stride, from + x * Input::Stride, static_cast<std::size_t>(C) * sizeof(Out));
            return;
        }
        if (channels < tile) {
            int x = 0;
            for (; x + piece <= W; x += piece)
                rescale<piece, few>(from + x * Input::Stride, to + x * Output::Stride);
            if (last > 0)
                rescale<(last > 0 ? last : 1), few>(from + x * Input::Stride, to + x * Output::Stride);
            return;
        }
        for (int x = 0; x < W; ++x) {
            int c = 0;
            for (; c + tile <= channels; c += tile)
                rescale<1, tile>(from + x * Input::Stride + c, to + x * Output::Stride + c);
            if (rest > 0)
                rescale<1, (rest > 0 ? rest : 1)>(from + x * Input::Stride + c, to + x * Output::Stride + c);
        }
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
