// The loop that all pointwise kernels share: out element i depends on element i of the inputs only.
//
//   out[y][x][c] = Epilogue(reader(y, x, c), PerChannel ? c : 0)
//
// The output may lie over an input (in place, or wherever element i of an input dies when element i of the
// output is stored). Elements are therefore taken in order, ascending or with Reverse descending, in short tiles
// whose operands are combined in a local array before the first of them is stored: all operands of an element are read
// before it is stored, and the compiler may vectorise without having to prove that the buffers are apart. Tiles that fill no
// vectors are filled up; pixels of few channels that are no run with the next ones (an operand is repeated, say) share a tile.
//
// Reader: constructed from the input bases and a line number; at(i, c) gives element i counted from the last
// pixel(x), c being its channel; enum Packed says whether all inputs are one run per line.
#pragma once

#include <type_traits>

#include "n2d2/output.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"

namespace n2d2 {

template <class Epilogue, bool PerChannel, class Isa, int Combined>
struct PointwiseRun {
    typedef typename Epilogue::Type Out;
    // Tile: elements combined at once; Unit: those of a vector, to which the last ones of a run are filled up.
    enum : int { Tile = Combined, Unit = std::is_same<Isa, Portable>::value ? 1 : 32 };

    template <int Count, class Reader>
    static N2D2_INLINE void tile(const Reader& reader, int first, Out* out) {
        alignas(64) decltype(reader.at(0, 0)) values[Count];
        if (Tile <= 4) {
            N2D2_UNROLL_FOR(i, Count)
                values[i] = reader.at(first + i, first + i);
            N2D2_UNROLL_FOR(i, Count)
                out[first + i] = Epilogue::apply(values[i], PerChannel ? first + i : 0);
            return;
        }
        for (int i = 0; i < Count; ++i)
            values[i] = reader.at(first + i, first + i);
        EpilogueRun<Epilogue, PerChannel, Isa>::template run<Count>(values, PerChannel ? first : 0, out + first);
    }

    // The Channels channels of Pixels pixels from x on; `out` is the line.
    template <int Pixels, int Channels, int Stride, class Reader>
    static N2D2_INLINE void pixels(const Reader& line, int x, Out* out) {
        typedef decltype(line.at(0, 0)) Value;
        constexpr int count = Pixels * Channels, filled = (count + Unit - 1) / Unit * Unit;
        alignas(64) Value values[filled];
        for (int i = count; i < filled; ++i)
            values[i] = Value();
        for (int p = 0; p < Pixels; ++p) {
            const Reader reader = line.pixel(x + p);
            for (int c = 0; c < Channels; ++c)
                values[p * Channels + c] = reader.at(c, c);
        }
        if (filled == count && Stride == Channels) {
            EpilogueRun<Epilogue, false, Isa>::template run<count>(values, 0, out + x * Stride);
            return;
        }
        alignas(64) Out results[filled];
        EpilogueRun<Epilogue, false, Isa>::template run<filled>(values, 0, results);
        for (int p = 0; p < Pixels; ++p)
            copyBytes(out + (x + p) * Stride, results + p * Channels, static_cast<std::size_t>(Channels) * sizeof(Out));
    }

    template <bool Reverse, int Length, class Reader>
    static N2D2_INLINE void run(const Reader& reader, Out* out) {
        constexpr int rest = Length % Tile, whole = Length - rest;
        if (Reverse && rest > 0)
            last<rest>(reader, whole, out);
        for (int i = 0; i < whole; i += Tile)
            tile<Tile>(reader, Reverse ? whole - Tile - i : i, out);
        if (!Reverse && rest > 0)
            last<rest>(reader, whole, out);
    }
    template <int Rest, class Reader>
    static N2D2_INLINE void last(const Reader& reader, int first, Out* out) {
        constexpr int count = Rest > 0 ? Rest : 1;
        if (PerChannel || Rest % Unit == 0)
            tile<count>(reader, first, out);
        else
            filledUp<count>(reader, first, out);
    }
    template <int Count, class Reader>
    static N2D2_INLINE void filledUp(const Reader& reader, int first, Out* out) {
        typedef decltype(reader.at(0, 0)) Value;
        constexpr int filled = (Count + Unit - 1) / Unit * Unit;
        alignas(64) Value values[filled];
        alignas(64) Out results[filled];
        for (int i = Count; i < filled; ++i)
            values[i] = Value();
        for (int i = 0; i < Count; ++i)
            values[i] = reader.at(first + i, first + i);
        EpilogueRun<Epilogue, false, Isa>::template run<filled>(values, 0, results);
        copyBytes(out + first, results, Count * sizeof(Out));
    }

    // A line of Width pixels of Channels elements, Stride apart; Flat: they are one run, as those of the reader.
    template <bool Reverse, bool Flat, int Width, int Channels, int Stride, class Reader>
    static N2D2_INLINE void line(const Reader& reader, Out* to) {
        constexpr int length = Flat ? Width * Channels : Channels, runs = Flat ? 1 : Width;
        constexpr bool shared = !Flat && !PerChannel && Channels < 64;
        constexpr int piece = shared ? least(Width, 64 / least(Channels, 64)) : 1, rest = Width % piece;
        if (shared) {
            for (int step = 0; step + piece <= Width; step += piece)
                pixels<piece, Channels, Stride>(reader, Reverse ? Width - piece - step : step, to);
            if (rest > 0)
                pixels<(rest > 0 ? rest : 1), Channels, Stride>(reader, Reverse ? 0 : Width - rest, to);
            return;
        }
        for (int step = 0; step < runs; ++step) {
            const int x = Reverse ? runs - 1 - step : step;
            run<Reverse, length>(reader.pixel(x), to + x * Stride);
        }
    }
};

// Config: plane Output; type Epilogue; enum Serial, Reverse. `source` is what the Reader is constructed from. Combined: elements of a tile.
template <class Cfg, class Reader, bool PerChannel, int Combined = 64, class Source>
N2D2_INLINE void pointwise(const Source& source, unsigned char* out, const Rows& rows) {
    typedef typename Cfg::Output Output;
    typedef PointwiseRun<typename Cfg::Epilogue, PerChannel, typename Cfg::Isa, Combined> Run;
    constexpr bool flat = Reader::Packed != 0 && PlaneTraits<Output>::Packed != 0 && !PerChannel;
    constexpr int width = Output::Width, channels = Output::Channels;
    LayerTasks<Cfg, 1, static_cast<long>(width) * channels>::run(rows, [=](int y, int) N2D2_INLINE_LAMBDA {
        const Reader reader(source, y);
        Run::template line<(Cfg::Reverse != 0), flat, width, channels, Output::Stride>(reader, n2d2::line<Output>(out, y));
    });
}

// Checks that a pointwise input has the shape of the output.
template <class Input, class Output>
struct SameShape {
    static_assert(int(Input::Height) == int(Output::Height) && int(Input::Width) == int(Output::Width) &&
                      int(Input::Channels) == int(Output::Channels),
                  "the operands of a pointwise layer have one shape");
    enum : int { value = 1 };
};

}  // namespace n2d2

#define N2D2_BIND_RUNS
#include "n2d2/bindings.hpp"
#undef N2D2_BIND_RUNS
