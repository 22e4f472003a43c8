// The loop that all pointwise kernels share: out element i depends on element i of the inputs only.
//
//   out[y][x][c] = Stage(reader(y, x, c), PerChannel ? c : 0)
//
// The output may lie over an input (in place, or wherever element i of an input dies when element i of the
// output is stored). Elements are therefore taken in order, ascending or with Reverse descending, in short tiles
// whose operands are combined in a local array before the first of them is stored: all operands of an element are read
// before it is stored, and the compiler may vectorise without having to prove that the buffers are apart.
//
// Reader: constructed from the input bases and a line number; at(i, c) gives element i counted from the last
// pixel(x), c being its channel; enum Packed says whether all inputs are one run per line.
#ifndef N2D2_POINTWISE_HPP
#define N2D2_POINTWISE_HPP

#include "n2d2/output.hpp"
#include "n2d2/parallel.hpp"
#include "n2d2/plane.hpp"

namespace n2d2 {

template <class Stage, bool PerChannel, class Isa>
struct PointwiseRun {
    typedef typename Stage::Type Out;
    enum : int { Tile = 64 };

    template <int Count, class Reader>
    static N2D2_INLINE void tile(const Reader& reader, int first, Out* out) {
        alignas(64) decltype(reader.at(0, 0)) values[Count];
        for (int i = 0; i < Count; ++i)
            values[i] = reader.at(first + i, first + i);
        StageRun<Stage, PerChannel, Isa>::template run<Count>(values, PerChannel ? first : 0, out + first);
    }

    template <bool Reverse, int Length, class Reader>
    static N2D2_INLINE void run(const Reader& reader, Out* out) {
        constexpr int rest = Length % Tile, whole = Length - rest;
        if (Reverse && rest > 0)
            tile<(rest > 0 ? rest : 1)>(reader, whole, out);
        for (int i = 0; i < whole; i += Tile)
            tile<Tile>(reader, Reverse ? whole - Tile - i : i, out);
        if (!Reverse && rest > 0)
            tile<(rest > 0 ? rest : 1)>(reader, whole, out);
    }
};

// Config: plane Output; type Stage; enum Serial, Reverse. `source` is what the Reader is constructed from.
template <class Cfg, class Reader, bool PerChannel, class Source>
N2D2_INLINE void pointwise(const Source& source, unsigned char* out, const Rows& rows) {
    typedef typename Cfg::Output Output;
    typedef PointwiseRun<typename Cfg::Stage, PerChannel, typename Cfg::Isa> Run;
    constexpr bool serial = Cfg::Serial != 0, reverse = Cfg::Reverse != 0;
    constexpr bool flat = Reader::Packed != 0 && PlaneTraits<Output>::Packed != 0 && !PerChannel;
    constexpr int width = Output::Width, channels = Output::Channels;
    constexpr int length = flat ? width * channels : channels;
    constexpr int runs = flat ? 1 : width;
    constexpr long work = static_cast<long>(width) * channels;
    Tasks<serial, Output::Height, 1, work, reverse>::run(rows, [=](int y, int) N2D2_INLINE_LAMBDA {
        const Reader reader(source, y);
        typename Output::Type* const to = line<Output>(out, y);
        for (int step = 0; step < runs; ++step) {
            const int x = reverse ? runs - 1 - step : step;
            Run::template run<reverse, length>(reader.pixel(x), to + x * Output::Stride);
        }
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

#if N2D2_AVX512VNNI
#include "n2d2/x86/avx512_run.hpp"
#elif N2D2_AVX2
#include "n2d2/x86/avx2_run.hpp"
#endif

#endif  // N2D2_POINTWISE_HPP
