// Dense convolution by pairs of pixels (pixel_pairs.hpp): one function for all layers, which reads their shapes from constants.
//
// Pixels are taken in the order of their lines, four or six at a time, the last of a line with the first of the next. All windows are
// spread before a result is stored, so that the order of lines is that of the portable kernel (convolution.hpp).
#pragma once

#include "n2d2/mcu/pixel_pairs.hpp"
#include "n2d2/mcu/pixel_walk.hpp"
#include "n2d2/parallel.hpp"

namespace n2d2 {
namespace pixels {

// One byte of two pixels, as signed numbers.
template <bool Signed>
N2D2_INLINE std::uint32_t word(unsigned char p, unsigned char q) {
    if (Signed)
        return static_cast<std::uint32_t>(static_cast<signed char>(p)) +
               (static_cast<std::uint32_t>(static_cast<signed char>(q)) << 16);
    return p + (static_cast<std::uint32_t>(q) << 16) - 0x00800080u;
}

// Pixels whose runs of `count` bytes are to be words of a window; returns its end.
template <bool Signed, int Pixels>
N2D2_INLINE std::uint32_t* spread(const unsigned char* const* from, int count, std::uint32_t* window) {
    constexpr int last = Pixels - 2, pairs = Pixels / 2;
    const unsigned char *p = from[0], *q = from[1], *r = from[2], *s = from[3], *t = from[last], *u = from[last + 1];
    std::uint32_t* const end = window + pairs * count;
    std::uint32_t* const whole = window + pairs * (count & ~3);
#define N2D2_PIXELS_BYTE(i)                           \
    window[pairs * i] = word<Signed>(p[i], q[i]);     \
    window[pairs * i + 1] = word<Signed>(r[i], s[i]); \
    if (Pixels == 6)                                  \
        window[pairs * i + pairs - 1] = word<Signed>(t[i], u[i]);
    while (window != whole) {
        N2D2_PIXELS_BYTE(0)
        N2D2_PIXELS_BYTE(1)
        N2D2_PIXELS_BYTE(2)
        N2D2_PIXELS_BYTE(3)
        p += 4, q += 4, r += 4, s += 4, t += 4, u += 4;
        window += 4 * pairs;
    }
    while (window != end) {
        N2D2_PIXELS_BYTE(0)
        ++p, ++q, ++r, ++s, ++t, ++u;
        window += pairs;
    }
#undef N2D2_PIXELS_BYTE
    return window;
}

// The windows of all pixels. `padded`: kernelWidth * channels zero points.
template <bool Signed, int Pixels>
N2D2_INLINE void gather(const lanes::Shape& s, const lanes::Place* places, const unsigned char* padded, std::uint32_t* window) {
    const int last = s.in.width - s.kernelWidth, first = places[0].left, move = places[1].left - first;
    const int end = first + (Pixels - 1) * move;
    if (s.packed && places[0].lines == places[Pixels - 1].lines && places[Pixels - 1].left == end && first >= 0 &&
        first <= last && end >= 0 && end <= last) {  // pixels of one line, in equal steps
        const unsigned char* const* const lines = places[0].lines;
        for (int u = 0; u < s.kernelHeight; ++u) {
            const unsigned char* const base = lines[u] ? lines[u] + first * s.in.stride : padded;
            const int step = lines[u] ? move * s.in.stride : 0;
            const unsigned char* from[Pixels];
            from[0] = base;
            N2D2_UNROLL
            for (int j = 1; j < Pixels; ++j)
                from[j] = from[j - 1] + step;
            window = spread<Signed, Pixels>(from, s.kernelWidth * s.channels, window);
        }
        return;
    }
    std::int32_t offsets[Pixels];
    bool inside = s.packed;
    for (int j = 0; j < Pixels; ++j) {
        inside = inside && places[j].left >= 0 && places[j].left <= last;
        offsets[j] = places[j].left * s.in.stride;
    }
    const unsigned char* from[Pixels];
    for (int u = 0; u < s.kernelHeight; ++u) {
        if (inside) {
            for (int j = 0; j < Pixels; ++j)
                from[j] = places[j].lines[u] ? places[j].lines[u] + offsets[j] : padded;
            window = spread<Signed, Pixels>(from, s.kernelWidth * s.channels, window);
            continue;
        }
        for (int v = 0; v < s.kernelWidth; ++v) {
            for (int j = 0; j < Pixels; ++j) {
                const int column = places[j].left + v * s.dilationWidth;
                const bool there = places[j].lines[u] && column >= 0 && column < s.in.width;
                from[j] = there ? places[j].lines[u] + column * s.in.stride : padded;
            }
            window = spread<Signed, Pixels>(from, s.channels, window);
        }
    }
}

// The buffers of a layer while it runs.
struct Buffers {
    std::uint32_t* window;        // Pixels / 2 * inputs
    unsigned char* padded;        // kernelWidth * channels
    unsigned char* results;       // Pixels times outputs rounded up to two, or null where results are stored where they belong
    const unsigned char** lines;  // Pixels * kernelHeight
};

// `Pixels`: at a time.
template <bool Signed, int Pixels, int Rounding, bool Low>
N2D2_MCU_FAST void convolution(const lanes::Shape& s, const Results& stored, const unsigned char* in, unsigned char* out,
                               const std::int8_t* stream, const Buffers& buffers, int begin, int end) {
    const int wide = s.outputs + s.outputs % 2, inputs = Pixels / 2 * s.inputs;
    unsigned char* to[Pixels];
    std::memset(buffers.padded, s.padding, static_cast<std::size_t>(s.kernelWidth * s.channels));
    for (int i = Pixels / 2 * s.kernelHeight * s.kernelWidth * s.channels; i < inputs; ++i)
        buffers.window[i] = 0;
    lanes::Place places[Pixels];
    lanes::PixelWalk<Pixels> walk(s, in, out, buffers.lines, begin, end);
    while (walk.next(places)) {
        gather<Signed, Pixels>(s, places, buffers.padded, buffers.window);
        N2D2_UNROLL_FOR(j, Pixels)
            to[j] = buffers.results ? buffers.results + j * wide : places[j].out;
        products<Rounding, Pixels, Low>(buffers.window, buffers.window + inputs, stream, wide, stored, to);
        if (buffers.results)
            for (int j = 0; j < Pixels; ++j)
                std::memcpy(places[j].out, buffers.results + j * wide, static_cast<std::size_t>(s.outputs));
    }
}

}  // namespace pixels

N2D2_STREAM_KERNEL(PixelConvolution, Pixels, Convolution<Cfg, Portable>) {
    N2D2_PLANES(Cfg);
    enum : int {
        C = Input::Channels,
        O = Output::Channels,
        K = (Cfg::KernelHeight * Cfg::KernelWidth * C + 1) / 2 * 2,
        Pixels = K <= 256 ? 6 : 4  // 3 KB of windows
    };

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                const typename Cfg::Sum*, const Rows& rows = Rows::all<Output>()) {
        static constexpr lanes::Shape shape = lanes::shapeOf<Cfg>(K);
        static constexpr pixels::Results stored = {Cfg::VectorZero, Cfg::VectorLow, Cfg::VectorHigh};
        std::uint32_t window[Pixels / 2 * K];
        unsigned char padded[int(Cfg::KernelWidth) * C], results[O % 2 ? Pixels * (O + 1) : 1];
        const unsigned char* lines[Pixels * Cfg::KernelHeight];
        const pixels::Buffers buffers = {window, padded, O % 2 ? results : nullptr, lines};
        pixels::convolution<std::numeric_limits<typename Input::Type>::is_signed, Pixels, Cfg::Rounding, Cfg::VectorLow != 0>(
            shape, stored, in, out, elementsOf<std::int8_t>(weights), buffers, rows.begin, rows.end);
    }
};

}  // namespace n2d2
