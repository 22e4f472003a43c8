// Sums of average pools of bytes, four channels at a time in registers.
#pragma once

#include "n2d2/mcu/lane_shape.hpp"

namespace n2d2 {
namespace quads {

// Adds the four channels of `count` pixels, `stride` bytes apart, to `sums`.
struct AddPixels {
    template <class T>
    static N2D2_MCU_FAST void run(const T* from, int stride, int count, std::int32_t* sums) {
        std::int32_t a = sums[0], b = sums[1], c = sums[2], d = sums[3];
        for (; count > 0; --count, from += stride) {
            a += from[0];
            b += from[1];
            c += from[2];
            d += from[3];
        }
        sums[0] = a;
        sums[1] = b;
        sums[2] = c;
        sums[3] = d;
    }
};

}  // namespace quads

// Channels by four of bytes, sums in 32 bits; the others have the portable sums.
template <class Cfg, class Add = quads::AddPixels,
          bool Bytes = sizeof(typename Cfg::Input::Type) == 1 && std::is_same<typename Cfg::Sum, std::int32_t>::value &&
                       int(Cfg::Input::Channels) % 4 == 0>
struct QuadPoolAverage : PoolAverage<Cfg, Portable> {};

template <class Cfg, class Add>
struct QuadPoolAverage<Cfg, Add, true> : PoolAverage<Cfg, Portable> {
    typedef typename Cfg::Input Input;
    typedef PlaneTraits<Input> Traits;

    template <int Count>
    static N2D2_INLINE void add(const unsigned char* in, Span rows, Span columns, int channel, std::int32_t* sums) {
        // Lines that are taken whole and follow each other are one.
        constexpr bool whole = Traits::Flat;
        const bool joined = whole && columns.count() == Input::Width;
        const int lines = joined ? (rows.count() > 0) : rows.count(), pixels = columns.count() * (joined ? rows.count() : 1);
        for (int v = rows.begin; v < rows.begin + lines; ++v) {
            const typename Input::Type* const from = line<Input>(in, v) + columns.begin * Input::Stride + channel;
            for (int i = 0; i < Count; i += 4)
                Add::run(from + i, Input::Stride, pixels, sums + i);
        }
    }
};

}  // namespace n2d2
