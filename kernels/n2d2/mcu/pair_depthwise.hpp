// Depthwise convolution by pairs of taps (pairs.hpp): one function for all layers, which reads their shapes from constants.
#pragma once

#include "n2d2/mcu/lane_shape.hpp"
#include "n2d2/mcu/pairs.hpp"
#include "n2d2/parallel.hpp"

namespace n2d2 {
namespace pairs {

// `rows`: kernelHeight pointers. `taps`: an even number of them, at least one for each position of the kernel. `padded`: room for
// the channels.
template <bool Signed, int Rounding>
N2D2_MCU_FAST void depthwise(const lanes::Shape& s, const unsigned char* in, unsigned char* out, const std::uint32_t* stream,
                             const unsigned char** rows, const unsigned char** taps, unsigned char* padded, int begin,
                             int end) {
    const int extent = (s.kernelWidth - 1) * s.dilationWidth, count = s.kernelHeight * s.kernelWidth, pixels = s.out.width;
    const int step = s.strideWidth * s.in.stride;
    std::memset(padded, s.padding, static_cast<std::size_t>(s.channels));
    taps[count] = padded;  // beside the last one, if that is alone
    Work work;
    work.taps = taps;
    work.end = taps + (count + 1) / 2 * 2;
    work.stream = stream;
    work.channels = s.channels;
    lanes::limit(work, s);
    for (int turn = begin; turn < end; ++turn) {
        const int y = s.reverse ? s.out.height - 1 - turn : turn;
        int from = y * s.strideHeight - s.padTop;
        for (int u = 0; u < s.kernelHeight; ++u, from += s.dilationHeight)
            rows[u] = from < 0 || from >= s.in.height ? nullptr : in + lanes::offsetOf(s.in, from);
        unsigned char* to = out + lanes::offsetOf(s.out, y);
        bool inner = false;
        for (int x = 0; x < pixels; ++x, to += s.out.stride) {
            const int left = x * s.strideWidth - s.padLeft;
            const bool inside = left >= 0 && left + extent < s.in.width;
            if (inside && inner) {
                const unsigned char** tap = taps;
                for (int u = 0; u < s.kernelHeight; ++u) {
                    const int by = rows[u] ? step : 0;
                    for (int v = 0; v < s.kernelWidth; ++v)
                        *tap++ += by;
                }
            } else {
                lanes::placeTaps(s, rows, x, padded, taps);
            }
            inner = inside;
            work.out = to;
            Signed ? Kernels<Rounding>::template ofSigned<>(&work) : Kernels<Rounding>::template ofUnsigned<>(&work);
        }
    }
}

}  // namespace pairs

// A layer whose constants are a stream (Cfg::Lanes); the others have the portable kernel.
template <class Cfg, class Found = void>
struct PairDepthwise : Depthwise<Cfg, Portable> {};

template <class Cfg>
struct PairDepthwise<Cfg, typename Exists<Cfg::Lanes>::Type> {
    N2D2_PLANES(Cfg);
    enum : int { Taps = Cfg::KernelHeight * Cfg::KernelWidth };

    static N2D2_INLINE void run(const unsigned char* in, unsigned char* out, const typename Cfg::Weight* weights,
                                const typename Cfg::Sum*, const Rows& rows = Rows::all<Output>()) {
        static constexpr lanes::Shape shape = lanes::shapeOf<Cfg>(Input::Channels);
        const unsigned char* lines[Cfg::KernelHeight];
        const unsigned char* taps[(Taps + 2) / 2 * 2];
        unsigned char padded[(int(Input::Channels) + 3) / 4 * 4];
        pairs::depthwise<std::numeric_limits<typename Input::Type>::is_signed, Cfg::Rounding>(
            shape, in, out, elementsOf<std::uint32_t>(weights), lines, taps, padded, rows.begin, rows.end);
    }
};

}  // namespace n2d2
