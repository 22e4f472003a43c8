// Convolution of 3 x 3 windows with stride 1 by Winograd (tiles.hpp): one function for all layers, which reads their shapes from constants.
//
// Pairs of lines come in their order. Where the output lies over the input, the first stored line of a pair may cover one line of inputs that
// the pair still needs: that one is copied.
#pragma once

#include "n2d2/mcu/lane_convolution.hpp"
#include "n2d2/mcu/tiles.hpp"

namespace n2d2 {
namespace tiles {

// The buffers of a layer while it runs.
struct Buffers {
    std::uint32_t* inputs;  // 16 for each channel: those of two tiles, transformed
    unsigned char* padded;  // channels
    unsigned char*
        results;  // outputs rounded up to four: of pixels that are not there; of eight pixels where outputs are no multiple of four
    unsigned char* copy;  // a line of inputs; null where the output lies apart
};

// The four lines of inputs of a pair of lines; null outside the input.
N2D2_INLINE void placeLines(const lanes::Shape& s, const unsigned char* in, int y, unsigned char* copy,
                            const unsigned char** lines) {
    const int top = y - s.padTop, covered = top + (s.reverse ? 3 : 0);
    for (int u = 0; u < 4; ++u)
        lines[u] = top + u < 0 || top + u >= s.in.height ? nullptr : in + s.in.at(top + u);
    const unsigned char*& line = lines[covered - top];
    if (copy && line) {
        copyBytes(copy, line, static_cast<std::size_t>((s.in.width - 1) * s.in.stride + s.channels));
        line = copy;
    }
}

// The inputs of the two tiles whose outputs begin at column x: six columns of four pixels.
N2D2_INLINE void place(const lanes::Shape& s, const unsigned char* const* lines, int x, const unsigned char* padded,
                       const unsigned char** taps) {
    const int left = x - s.padLeft;
    const bool inside = left >= 0 && left + 6 <= s.in.width;
    for (int u = 0; u < 4; ++u) {
        const int step = lines[u] ? s.in.stride : 0;
        const unsigned char* at = lines[u] ? lines[u] + left * step : padded;
        if (inside) {
            N2D2_UNROLL
            for (int v = 0; v < 6; ++v, at += step)
                taps[4 * v + u] = at;
            continue;
        }
        for (int v = 0; v < 6; ++v, at += step)
            taps[4 * v + u] = left + v >= 0 && left + v < s.in.width ? at : padded;
    }
}

template <bool Signed, int Rounding>
N2D2_MCU_FAST void convolution(const lanes::Shape& s, const unsigned char* in, unsigned char* out, const std::uint32_t* stream,
                               const Buffers& buffers) {
    const int words = s.channels >> 1, pairs = (s.out.height + 1) >> 1, wide = (s.outputs + 3) & ~3;
    const bool whole = wide == s.outputs;
    Work work;
    work.inputs = buffers.inputs;
    work.stream = stream;
    work.end = buffers.inputs + 32 * words;
    work.back = 128 * words - 8;
    work.blocks = wide >> 2;
    work.first = (Unrolled - (words - 1) % Unrolled) % Unrolled * StepBytes;
    work.next = (Unrolled - words % Unrolled) % Unrolled * StepBytes;
    lanes::limit(work, s);
    std::memset(buffers.padded, s.padding, static_cast<std::size_t>(s.channels));
    for (int pair = 0; pair < pairs; ++pair) {
        const int y = 2 * (s.reverse ? pairs - 1 - pair : pair);
        const unsigned char *lines[4], *taps[24];
        placeLines(s, in, y, buffers.copy, lines);
        unsigned char* to[2] = {out + s.out.at(y), y + 1 < s.out.height ? out + s.out.at(y + 1) : nullptr};
        for (int x = 0; x < s.out.width; x += 4) {
            place(s, lines, x, buffers.padded, taps);
            (Signed ? transformSigned<> : transformUnsigned<>)(taps, buffers.inputs, s.channels);
            if (whole && to[1] && x + 4 <= s.out.width) {
                const std::int32_t step = s.out.stride;
                unsigned char *upper = to[0] + x * step, *lower = to[1] + x * step;
                N2D2_UNROLL
                for (int j = 0; j < 4; ++j, upper += step, lower += step) {
                    work.out[j] = upper;
                    work.out[4 + j] = lower;
                }
                Kernels<Rounding>::template outputs<>(&work);
                continue;
            }
            unsigned char* results[8];
            for (int j = 0; j < 8; ++j) {
                const int column = x + j % 4;
                results[j] = to[j / 4] && column < s.out.width ? to[j / 4] + column * s.out.stride : nullptr;
                work.out[j] = !whole ? buffers.results + j * wide : results[j] ? results[j] : buffers.results;
            }
            Kernels<Rounding>::template outputs<>(&work);
            if (!whole)
                for (int j = 0; j < 8; ++j)
                    if (results[j])
                        copyBytes(results[j], work.out[j], static_cast<std::size_t>(s.outputs));
        }
    }
}

}  // namespace tiles

// A layer whose stream has transformed weights (Cfg::Transformed); the others have the kernel by lanes.
template <class Cfg, class Found = void>
struct TileConvolution : LaneConvolution<Cfg> {};

template <class Cfg>
struct TileConvolution<Cfg, typename Exists<Cfg::Transformed>::Type> {
    N2D2_PLANES(Cfg);
    static_assert(Cfg::KernelHeight == 3 && Cfg::KernelWidth == 3 && Cfg::StrideHeight == 1 && Cfg::StrideWidth == 1 &&
                      Cfg::DilationHeight == 1 && Cfg::DilationWidth == 1 && Cfg::Groups == 1 && !Cfg::Streamed,
                  "3 x 3 windows of one group, stride 1, whole");
    enum : int {
        C = Input::Channels,
        Wide = (int(Output::Channels) + 3) / 4 * 4,
        Results = Wide == int(Output::Channels) ? int(Wide) : 8 * Wide,
        Copy = Cfg::Serial ? (int(Input::Width) - 1) * int(PlaneTraits<Input>::Stride) + C : 0
    };
    static_assert(C % 4 == 0, "channels by four");

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                const typename Cfg::Sum*) {
        static constexpr lanes::Shape shape = lanes::shapeOf<Cfg>(C);
        std::uint32_t inputs[16 * C], padded[C / 4], results[Results / 4], copy[(int(Copy) + 4) / 4];
        const tiles::Buffers buffers = {inputs, reinterpret_cast<unsigned char*>(padded),
                                        reinterpret_cast<unsigned char*>(results),
                                        int(Copy) > 0 ? reinterpret_cast<unsigned char*>(copy) : nullptr};
        tiles::convolution<std::numeric_limits<typename Input::Type>::is_signed, Cfg::Rounding>(
            shape, in, out, elementsOf<std::uint32_t>(weights), buffers);
    }
};

}  // namespace n2d2
